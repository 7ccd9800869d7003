import { type Database, write } from '../../src/db/database.ts'
import { type NewAttempt, recordAttempts } from '../../src/webhooks/attempt-store.ts'
import { createWebhook, type NewWebhook, type Webhook } from '../../src/webhooks/endpoint-store.ts'
import { EVENT_KINDS } from '../../src/webhooks/event-types.ts'
import type { DeliveryTable, NoticeTable } from '../../src/webhooks/tables.ts'

/** Adds an active webhook with all events. */
export const addWebhook = (database: Database, given: Partial<NewWebhook> = {}): Promise<Webhook> =>
  write(database, trx =>
    createWebhook(trx, {
      id: 'wh_a',
      accountId: 'acc_a',
      url: 'https://app.example/hook',
      events: EVENT_KINDS,
      active: true,
      description: 'ours',
      secret: 'sealed',
      secretHint: 'LaSw',
      createdAt: database.clock.now(),
      ...given,
    }),
  )

/** Adds a delivery that was created and is due at `at`, with its own event unless it names one. */
export async function addDelivery(
  { db }: Database,
  id: string,
  { at = 0, ...given }: Partial<DeliveryTable> & { at?: number } = {},
): Promise<void> {
  const delivery: DeliveryTable = {
    id,
    event_id: id.replace('dlv', 'evt'),
    webhook_id: 'wh_a',
    kind: 'batch.completed',
    state: 'pending',
    trigger: 'scheduled',
    attempt: 0,
    due_at: at,
    created_at: at,
    status_code: null,
    duration_ms: null,
    error: null,
    error_code: null,
    expires_at: null,
    ...given,
  }
  const { event_id, kind, created_at } = delivery
  await db
    .insertInto('event')
    .values({ id: event_id, account_id: 'acc_a', kind, body: `body of ${event_id}`, created_at })
    .onConflict(conflict => conflict.doNothing())
    .execute()
  await db.insertInto('delivery').values(delivery).execute()
}

export const deliveryRow = ({ db }: Database, id: string): Promise<DeliveryTable | undefined> =>
  db.selectFrom('delivery').selectAll().where('id', '=', id).executeTakeFirst()

/** An attempt that was answered with 500 and is retried at 60,000. */
export const attemptAt = (id: string, given: Partial<NewAttempt> = {}): NewAttempt => ({
  delivery: { id, webhookId: 'wh_a', cycle: { trigger: 'scheduled', attempt: 0 } },
  next: { state: 'retry_scheduled', dueAt: 60_000 },
  startedAt: 1_000,
  url: 'https://app.example/hook',
  durationMs: 84,
  statusCode: 500,
  headers: { server: 'x' },
  requestHeaders: null,
  excerpt: 'no',
  error: 'It answered 500.',
  errorCode: 'http_status',
  disabledCode: null,
  ...given,
})

export const FAILURE = {
  next: { state: 'failed', expiresAt: 900_000 },
} as const satisfies Partial<NewAttempt>

export const NOW = 5_000

export const record = (database: Database, attempts: readonly NewAttempt[], now = NOW) =>
  write(database, trx => recordAttempts(trx, attempts, { now, steadyNow: now }))

export const attemptsOf = ({ db }: Database) =>
  db.selectFrom('attempt').selectAll().orderBy('delivery_id').orderBy('number').execute()

export const noticeOf = ({ db }: Database): Promise<NoticeTable | undefined> =>
  db.selectFrom('notice').selectAll().where('webhook_id', '=', 'wh_a').executeTakeFirst()
