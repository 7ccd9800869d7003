import { type Database, write } from '../db/database.ts'
import { limitByOwner } from '../platform/owner-limit.ts'
import type { Random } from '../platform/random.ts'
import { type Attempt, type AttemptDeps, makeAttempt } from './attempt.ts'
import { recordTest } from './attempt-store.ts'
import type { Webhook } from './endpoint-store.ts'
import { getWebhook, type WebhookTarget } from './endpoints.ts'
import { webhookError } from './errors.ts'
import { eventBody, newDeliveryId, newEventId } from './event.ts'
import { buildEventExample, type SentKind, TEST_KIND } from './event-types.ts'

type TestEventServices = AttemptDeps & {
  readonly database: Database
  readonly random: Random
  readonly startTest: ReturnType<typeof createTestEventLimit>
}

export type TestOutcome = Pick<
  Attempt,
  'statusCode' | 'durationMs' | 'excerpt' | 'error' | 'errorCode'
> & {
  readonly webhook: Webhook
  readonly deliveryId: string
  readonly eventId: string
  readonly kind: SentKind
  readonly state: 'delivered' | 'failed'
}

type TestEvent = {
  readonly sandbox: boolean
  /** The type to send an example of. An example of any type but `webhook.test` is a sandbox event. */
  readonly kind: SentKind
}

/**
 * Sends a test event to an endpoint once, whether it is enabled or not, and logs the attempt.
 * Throws `webhook_not_found` and `webhook_test_limit_reached`.
 */
export async function sendTestEvent(
  services: TestEventServices,
  { sandbox, kind, ...target }: WebhookTarget & TestEvent,
): Promise<TestOutcome> {
  const webhook = await getWebhook(services, target)
  const end = services.startTest(webhook.accountId)
  try {
    return await send(services, webhook, { sandbox, kind })
  } finally {
    end()
  }
}

async function send(
  services: TestEventServices,
  webhook: Webhook,
  { sandbox, kind }: TestEvent,
): Promise<TestOutcome> {
  const { database, clock, random } = services
  const [at, eventId, deliveryId] = [clock.now(), newEventId(random), newDeliveryId(random)]
  const dueAt = database.steadyClock.now()
  const example = buildEventExample(kind)
  const data = kind === TEST_KIND ? { ...example, webhook_id: webhook.id } : example
  const isSandbox = sandbox || kind !== TEST_KIND
  const body = eventBody({ id: eventId, kind, at, data, sandbox: isSandbox })
  const sent = { eventId, body, trigger: 'test', attempt: 0, webhook } as const
  const attempt = await makeAttempt(services, sent)
  const event = { id: eventId, kind, body }
  const of = { accountId: webhook.accountId, webhookId: webhook.id, event, deliveryId, dueAt }
  await write(database, trx => recordTest(trx, { ...attempt, ...of, now: clock.now() }))
  const { statusCode, durationMs, excerpt, error, errorCode } = attempt
  return {
    webhook,
    deliveryId,
    eventId,
    kind,
    statusCode,
    durationMs,
    excerpt,
    error,
    errorCode,
    state: attempt.next.state === 'delivered' ? 'delivered' : 'failed',
  }
}

/**
 * Maximum concurrent tests of an account. Each may hold a connection for half a minute, and manual
 * testing needs no more.
 */
const TESTS_AT_ONCE_MAX = 4

/**
 * Returns a function that starts a test of an account, and returns the function that ends it. Throws
 * `webhook_test_limit_reached`.
 */
export const createTestEventLimit = () =>
  limitByOwner({
    ownerMax: TESTS_AT_ONCE_MAX,
    refuseOwner: count => webhookError('webhook_test_limit_reached', { count }),
  })
