import type { Random } from '../../base/random.ts'
import { eventBody, newDeliveryId, newEventId, TEST_KIND } from '../../hook/event.ts'
import { type Database, write } from '../../store/database.ts'
import { recordTest } from '../../store/event/deliveries.ts'
import type { Webhook } from '../../store/event/webhooks.ts'
import { type Attempt, type AttemptParts, makeAttempt } from './attempt.ts'

export type TestParts = AttemptParts & {
  readonly database: Database
  readonly random: Random
}

export type TestOutcome = Pick<
  Attempt,
  'statusCode' | 'durationMs' | 'excerpt' | 'error' | 'errorCode'
> & {
  readonly deliveryId: string
  readonly eventId: string
  readonly state: 'delivered' | 'failed'
}

/** Sends a test event to a webhook once, whether it is on or off, and writes down what came of it. */
export async function sendTest(
  parts: TestParts,
  webhook: Webhook,
  { sandbox }: { readonly sandbox: boolean },
): Promise<TestOutcome> {
  const { database, clock, random } = parts
  const [at, eventId, deliveryId] = [clock.now(), newEventId(random), newDeliveryId(random)]
  const data = { webhook_id: webhook.id, message: 'Test event' }
  const body = eventBody({ id: eventId, kind: TEST_KIND, at, data, sandbox })
  const sent = { eventId, body, trigger: 'test', attempt: 0, webhook } as const
  const attempt = await makeAttempt(parts, sent)
  const event = { id: eventId, body }
  const of = { accountId: webhook.accountId, webhookId: webhook.id, event, deliveryId }
  await write(database, trx => recordTest(trx, { ...attempt, ...of, now: clock.now() }))
  const state = attempt.next.state === 'delivered' ? 'delivered' : 'failed'
  const { statusCode, durationMs, excerpt, error, errorCode } = attempt
  return { deliveryId, eventId, state, statusCode, durationMs, excerpt, error, errorCode }
}
