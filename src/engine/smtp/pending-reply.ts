import type { Stage } from './classify-reply.ts'
import type { ConnectionFailure } from './connection.ts'
import type { Reply } from './reply.ts'

/** A command that waits for its reply, or the greeting that is waited for. */
export type PendingReply = {
  readonly stage: Stage
  /** Its bytes have left, so that a reply to it may come. */
  sent: boolean
  /**
   * How long to wait for the reply to QUIT before the replies count as in step; null: another
   * command.
   */
  readonly quitTimeoutMs: number | null
  readonly resolve: (outcome: Reply | ConnectionFailure) => void
}

/** Codes of success of the commands that may be pipelined (RFC 5321 §4.3.2). */
const SUCCESS_CODES: Readonly<Partial<Record<Stage, ReadonlySet<number>>>> = {
  mail: new Set([250]),
  rcpt: new Set([250, 251, 252]),
  rset: new Set([250]),
}

/** False for a code that the command cannot have: this may be the reply to another one. */
export const isPossible = ({ stage }: PendingReply, code: number): boolean =>
  code >= 400 || SUCCESS_CODES[stage]?.has(code) !== false
