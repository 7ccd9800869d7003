import type { Address, SyntaxFault } from './address/address.ts'
import type { DnsPause } from './dns-pause.ts'
import type { Step } from './step-observer.ts'

export type VerifyOptions = {
  readonly signal?: AbortSignal
  /** `dialogue`: keep the lines of the SMTP session. */
  readonly include?: readonly 'dialogue'[]
  /** False: skip the SMTP check. */
  readonly checkSmtp?: boolean
  /** True: ignore the result cache. */
  readonly forceRefresh?: boolean
  /**
   * Whose cached answers and verifications in flight are shared: those with the same scope, such as
   * the ID of an account. Null or left out: those without a scope.
   */
  readonly cacheScope?: string | null
  /**
   * Time limit of a single verification, in ms. Default and maximum: the deadline of the engine.
   */
  readonly deadlineMs?: number
  /** Called for each step of a single verification as it happens, and never after its result. */
  readonly onStep?: (step: Step) => void
}

/** The address of the text, for a caller that has parsed it; left out: the engine parses the text. */
export type ParsedOption = { readonly address?: Address | SyntaxFault }

/** Options for one address of a list. */
export type RouteOptions = VerifyOptions & {
  /** Pauses the address while the DNS check fails; without it the address ends as `dns_error`. */
  readonly dnsPause?: DnsPause
  /**
   * Answers that are cached since this time, epoch ms, were given to this list, which was then
   * interrupted before it stored their results: they do not count as cached.
   */
  readonly ownAnswersSince?: number
}
