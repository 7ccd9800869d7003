import { SECOND } from '../../base/clock.ts'
import { type Answer, classify, type SilentWhy, type Stage } from '../../smtp/answer.ts'
import { type Broken, isBroken } from '../../smtp/connection.ts'
import type { Reply } from '../../smtp/reply.ts'

/** What the outcome of a command means, be it a reply or a broken conversation. */
export function answerTo(stage: Stage, outcome: Reply | Broken, recipient?: string): Answer {
  if (isBroken(outcome)) return silent(outcome.broken, stage, outcome.detail)
  return classify(stage, outcome, recipient === undefined ? {} : { recipient })
}

export const silent = (why: SilentWhy, stage: Stage, detail: string): Answer => ({
  kind: 'silent',
  why,
  stage,
  detail,
})

/** The transaction, or the connection, takes no more recipients. */
export const isTooMany = ({ kind, why }: Answer) => kind === 'deferred' && why === 'too-many'

/** We are asked to put TLS on first. */
export const isTlsDemand = ({ kind, why }: Answer) => kind === 'refused-us' && why === 'tls'

export const TIME_RAN_OUT = silent('timeout', 'connect', 'time ran out')
/** TLS failed where it was only our wish: the exchanger is visited once more, without it. */
export const WITHOUT_TLS = silent('tls', 'starttls', 'asked again without TLS')
export const OUT_OF_STEP = silent(
  'garbage',
  'rcpt',
  'the replies were out of step with the commands',
)
export const LED_NOWHERE = silent('closed', 'rcpt', 'the conversation led nowhere')

/** What is left when a pause is too long to be waited out here. */
export function heldBack(waitMs: number, aborted: boolean): Answer {
  if (aborted) return TIME_RAN_OUT
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
export type Cut = Broken['broken']

/** Null where the `last` command of a group has its reply, and so all have. */
export function cutShort(last: Reply | Broken): Cut | null {
  if (isBroken(last)) return last.broken
  return last.code === 421 ? 'closed' : null
}
