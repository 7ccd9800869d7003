import { SECOND } from '../../platform/clock.ts'
import {
  classifyReply,
  type NoResponseReason,
  type RecipientOutcome,
  type ReplyContext,
  type Stage,
} from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'

/** The outcome for one recipient, with the connection that produced it. */
export type ProbeResult = {
  readonly answer: RecipientOutcome
  /** Whether the domain accepts mail for every local part; null if not tested or undecided. */
  readonly catchAll: boolean | null
  /** The egress that probed the recipient, or would have. */
  readonly egress: string
  readonly host: string | null
  readonly ip: string | null
  readonly tls: boolean
  /** Time from dialing to the reply to EHLO, in ms; null if no session was opened. */
  readonly connectMs: number | null
  /**
   * False if this was not an attempt: the answer comes from cached state of the MX group or operator,
   * or the server refused one connection while it served another.
   */
  readonly asked: boolean
  /** True if no host could be dialed, and one of them had served us recently. */
  readonly isLost?: boolean | undefined
  /** The SMTP dialogue, if it was requested. */
  readonly dialogue: readonly string[] | null
}

export type ConnectionInfo = Partial<Omit<ProbeResult, 'answer' | 'dialogue'>>

/** Classifies the result of a command: a reply or a connection failure. */
export function outcomeFor(
  stage: Stage,
  outcome: Reply | ConnectionFailure,
  about: ReplyContext = {},
): RecipientOutcome {
  if (isFailure(outcome)) return noResponse(outcome.broken, stage, outcome.detail)
  return classifyReply(stage, outcome, about)
}

export const noResponse = (
  why: NoResponseReason,
  stage: Stage,
  detail: string,
): RecipientOutcome => ({
  kind: 'no-response',
  why,
  stage,
  detail,
})

/** True if the transaction or the connection accepts no more recipients. */
export const isTooMany = ({ kind, why }: RecipientOutcome) =>
  kind === 'deferred' && why === 'too-many'

/** True if the server asks for fewer or slower connections. */
export const isThrottling = ({ kind, why }: RecipientOutcome) =>
  kind === 'deferred' && why === 'rate'

/** True if the server demands STARTTLS first. */
export const isTlsDemand = ({ kind, why }: RecipientOutcome) => kind === 'blocked' && why === 'tls'

export const DEADLINE_EXCEEDED = noResponse('timeout', 'connect', 'deadline exceeded')
/** TLS failed but the host does not require it: the host is tried once more without TLS. */
export const WITHOUT_TLS = noResponse('tls', 'starttls', 'retried without TLS')
export const OUT_OF_STEP = noResponse(
  'garbage',
  'rcpt',
  'the replies were out of step with the commands',
)
export const NO_RESULT = noResponse('closed', 'rcpt', 'the session ended without a result')

/** The server also rejects a recipient that it accepted before, so no other recipient is named. */
export const REJECTS_ALL: RecipientOutcome = {
  kind: 'deferred',
  why: 'rate',
  retryAfterMs: null,
  stage: 'rcpt',
  reply: {
    code: 421,
    enhanced: null,
    text: 'not probed: the server rejects every recipient for now',
  },
}

/** The time ended during the wait for a permit that only the limits of ev required. */
const OWN_PACE = noResponse(
  'own-limit',
  'connect',
  'not probed in time: ev waited for its own rate limit for this mail server',
)

/** No socket could be opened, because this process or the system has no free file descriptor. */
export const NO_DESCRIPTOR = noResponse(
  'own-limit',
  'connect',
  'not probed: too many open files (raise the limit, as with ulimit -n)',
)

/** No socket could be opened, because the system has no free local port for it. */
export const NO_PORT = noResponse(
  'own-limit',
  'connect',
  'not probed: this machine has no free local port (wait, or lower --concurrency)',
)

/** The proxy reported a failure of its own, so it may be as busy as this machine could be. */
export const PROXY_FAULT = noResponse(
  'own-limit',
  'connect',
  'not probed: the proxy reports a failure of its own (SOCKS reply 1)',
)

/**
 * The outcome of targets for which no connection may be opened now: the time has ended (`aborted`),
 * or the pause is too long to wait out here.
 */
export function toHeldOutcome(
  { waitMs, paused }: { readonly waitMs: number; readonly paused: boolean },
  aborted: boolean,
): RecipientOutcome {
  if (aborted) return paused ? DEADLINE_EXCEEDED : OWN_PACE
  return {
    kind: 'deferred',
    why: 'rate',
    retryAfterMs: Math.ceil(waitMs / SECOND) * SECOND,
    stage: 'connect',
    reply: {
      code: 421,
      enhanced: null,
      text: `not probed: the provider requires a pause of ${Math.ceil(waitMs / SECOND)} seconds`,
    },
  }
}

/** How a pipelined group ended before each command had its reply. A 421 closes the connection. */
export type Cut = ConnectionFailure['broken']

/** Returns null if the `last` command of a group has its reply, because then all have. */
export function cutShort(last: Reply | ConnectionFailure): Cut | null {
  if (isFailure(last)) return last.broken
  return last.code === 421 ? 'closed' : null
}
