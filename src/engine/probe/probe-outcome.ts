import { SECOND } from '../../platform/clock.ts'
import {
  classifyReply,
  type NoResponseReason,
  type RecipientOutcome,
  type Stage,
} from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'

/** What the outcome of a command means, be it a reply or a broken conversation. */
export function outcomeFor(
  stage: Stage,
  outcome: Reply | ConnectionFailure,
  recipient?: string,
): RecipientOutcome {
  if (isFailure(outcome)) return noResponse(outcome.broken, stage, outcome.detail)
  return classifyReply(stage, outcome, recipient === undefined ? {} : { recipient })
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

/** The transaction, or the connection, takes no more recipients. */
export const isTooMany = ({ kind, why }: RecipientOutcome) =>
  kind === 'deferred' && why === 'too-many'

/** We are asked to put TLS on first. */
export const isTlsDemand = ({ kind, why }: RecipientOutcome) => kind === 'blocked' && why === 'tls'

export const DEADLINE_EXCEEDED = noResponse('timeout', 'connect', 'time ran out')
/** TLS failed where it was only our wish: the exchanger is visited once more, without it. */
export const WITHOUT_TLS = noResponse('tls', 'starttls', 'asked again without TLS')
export const OUT_OF_STEP = noResponse(
  'garbage',
  'rcpt',
  'the replies were out of step with the commands',
)
export const NO_RESULT = noResponse('closed', 'rcpt', 'the conversation led nowhere')

/** What is left when a pause is too long to be waited out here. */
export function withheld(waitMs: number, aborted: boolean): RecipientOutcome {
  if (aborted) return DEADLINE_EXCEEDED
  return {
    kind: 'deferred',
    why: 'rate',
    retryAfterMs: Math.ceil(waitMs / SECOND) * SECOND,
    stage: 'connect',
    reply: {
      code: 421,
      enhanced: null,
      text: `not asked: this operator wants a pause of ${Math.ceil(waitMs / SECOND)} seconds`,
    },
  }
}

/** How a group of commands ended before each had its reply. The server closes after 421. */
export type Cut = ConnectionFailure['broken']

/** Null where the `last` command of a group has its reply, and so all have. */
export function cutShort(last: Reply | ConnectionFailure): Cut | null {
  if (isFailure(last)) return last.broken
  return last.code === 421 ? 'closed' : null
}
