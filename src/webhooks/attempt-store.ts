import { sql, type Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { inArray, isPostgres, jsonRows } from '../db/sql-dialect.ts'
import { queueDisabledAlert, queueFailureAlert } from './alert-store.ts'
import { type DeliveryTransition, GONE } from './delivery-state.ts'
import {
  countAttempts,
  type DeliveryError,
  DISABLED_REASONS,
  type DisabledCode,
  parseDailyAttempts,
} from './endpoint.ts'
import type { SentKind } from './event-types.ts'
import type { AttemptTable, DeliveryTable, DeliveryTrigger } from './tables.ts'

/** One request to a webhook and its result. */
export type AttemptDetails = {
  /** Start of the request, epoch ms. */
  readonly startedAt: number
  readonly url: string
  readonly durationMs: number
  /** Null if there was no response. */
  readonly statusCode: number | null
  readonly headers: Readonly<Record<string, string>> | null
  /** Start of the response body, sanitized. */
  readonly excerpt: string | null
  /** Error message; null if the attempt succeeded. */
  readonly error: string | null
  readonly errorCode: DeliveryError | null
  /** Request headers, without the values of custom headers; null if nothing was sent. */
  readonly requestHeaders: Readonly<Record<string, string>> | null
}

export type NewAttempt = AttemptDetails & {
  /** The delivery as it was when the attempt started. */
  readonly delivery: {
    readonly id: string
    readonly webhookId: string
    readonly cycle: { readonly trigger: DeliveryTrigger; readonly attempt: number }
  }
  readonly next: DeliveryTransition
  /** Reason for disabling the webhook; null: it stays active. */
  readonly disabledCode: DisabledCode | null
}

/**
 * Records attempts in the order in which they ended, and updates their deliveries and webhooks. If
 * a delivery was retried manually in the meantime, or another server made the same attempt, the
 * delivery keeps its state and the attempt is only added to its log. An attempt whose delivery was
 * deleted is dropped.
 */
export async function recordAttempts(
  trx: Transaction<Schema>,
  attempts: readonly NewAttempt[],
  { now, steadyNow }: RecordedAt,
): Promise<void> {
  const status = await getEndpointStatus(
    trx,
    attempts.map(({ delivery }) => delivery.id),
  )
  const found = attempts.flatMap(attempt => {
    const delivery = status.get(attempt.delivery.id)
    return delivery === undefined ? [] : [{ attempt, delivery }]
  })
  const records = await dropRecorded(trx, found)
  if (records.length === 0) return
  await insertAttempts(
    trx,
    records.map(({ attempt, delivery }) => {
      delivery.attempts += 1
      const { trigger } = attempt.delivery.cycle
      return toAttemptRow(attempt, { delivery_id: delivery.id, number: delivery.attempts, trigger })
    }),
  )
  await deleteOldest(trx, records)
  const inCycle = records.filter(isInCycle)
  await updateDeliveries(trx, inCycle)
  await queueFailureAlerts(trx, inCycle, steadyNow)
  await touchWebhooks(trx, records.filter(affectsWebhook), { now, steadyNow })
  await countByDay(trx, inCycle.filter(isCurrentUrl))
}

/** The same moment by two clocks, epoch ms. */
type RecordedAt = { readonly now: number; readonly steadyNow: number }

/** An attempt with the state of its delivery before it. */
type RecordedAttempt = { readonly attempt: NewAttempt; readonly delivery: EndpointStatus }

const isInCycle = ({ attempt: { delivery: started }, delivery }: RecordedAttempt) =>
  delivery.trigger === started.cycle.trigger && delivery.attempt === started.cycle.attempt

/** A late attempt affects its webhook only if it succeeded. */
const affectsWebhook = (record: RecordedAttempt) =>
  isInCycle(record) || record.attempt.next.state === 'delivered'

/**
 * Drops attempts that are recorded already. After a commit whose confirmation was lost the write is
 * retried: the delivery has moved on, and the same request is in its log.
 */
async function dropRecorded(
  trx: Transaction<Schema>,
  found: readonly RecordedAttempt[],
): Promise<RecordedAttempt[]> {
  const late = found.filter(one => !isInCycle(one))
  if (late.length === 0) return [...found]
  const ids = late.map(({ delivery }) => delivery.id)
  const { rows } = await sql<Request>`
    select delivery_id, "trigger", url, started_at, duration_ms from attempt
    where delivery_id in ${inArray(trx, ids)}`.execute(trx)
  const written = new Set(rows.map(requestKey))
  return found.filter(one => isInCycle(one) || !written.has(requestKey(toRequest(one))))
}

type Request = Pick<AttemptTable, 'delivery_id' | 'trigger' | 'url' | 'started_at' | 'duration_ms'>

const toRequest = ({ attempt, delivery }: RecordedAttempt): Request => ({
  delivery_id: delivery.id,
  trigger: attempt.delivery.cycle.trigger,
  url: attempt.url,
  started_at: attempt.startedAt,
  duration_ms: attempt.durationMs,
})

const requestKey = ({ delivery_id, trigger, url, started_at, duration_ms }: Request) =>
  JSON.stringify([delivery_id, trigger, url, started_at, duration_ms])

const toAttemptRow = (
  attempt: AttemptDetails,
  of: Pick<AttemptTable, 'delivery_id' | 'number' | 'trigger'>,
): AttemptTable => ({
  ...of,
  url: attempt.url,
  started_at: attempt.startedAt,
  duration_ms: attempt.durationMs,
  status_code: attempt.statusCode,
  headers: attempt.headers === null ? null : JSON.stringify(attempt.headers),
  excerpt: attempt.excerpt,
  error: attempt.error,
  error_code: attempt.errorCode,
  request_headers: attempt.requestHeaders === null ? null : JSON.stringify(attempt.requestHeaders),
})

/** All rows are one JSON parameter, so that one prepared statement serves any number of them. */
async function insertAttempts(trx: Transaction<Schema>, rows: AttemptTable[]): Promise<void> {
  await sql`
    insert into attempt (delivery_id, number, "trigger", url, started_at, duration_ms,
      status_code, headers, excerpt, error, error_code, request_headers)
    select value ->> 'delivery_id', cast(value ->> 'number' as integer), value ->> 'trigger',
      value ->> 'url', cast(value ->> 'started_at' as bigint),
      cast(value ->> 'duration_ms' as integer), cast(value ->> 'status_code' as integer),
      value ->> 'headers', value ->> 'excerpt', value ->> 'error',
      value ->> 'error_code', value ->> 'request_headers'
    from ${jsonRows(trx, rows)}`.execute(trx)
}

/**
 * Attempts kept per delivery, the latest ones. Each manual retry may add six, and the number of
 * retries is not limited.
 */
const ATTEMPTS_MAX = 60

async function deleteOldest(
  trx: Transaction<Schema>,
  records: readonly RecordedAttempt[],
): Promise<void> {
  for (const { delivery } of records.filter(one => one.delivery.attempts > ATTEMPTS_MAX)) {
    await trx
      .deleteFrom('attempt')
      .where('delivery_id', '=', delivery.id)
      .where('number', '<=', delivery.attempts - ATTEMPTS_MAX)
      .execute()
  }
}

async function updateDeliveries(
  trx: Transaction<Schema>,
  records: readonly RecordedAttempt[],
): Promise<void> {
  const rows = records.map(({ attempt }) => ({
    id: attempt.delivery.id,
    ...toDeliveryUpdate(attempt),
  }))
  await sql`
    update delivery set attempt = delivery.attempt + 1, state = value ->> 'state',
      due_at = coalesce(cast(value ->> 'due_at' as bigint), due_at),
      expires_at = cast(value ->> 'expires_at' as bigint),
      status_code = cast(value ->> 'status_code' as integer),
      duration_ms = cast(value ->> 'duration_ms' as integer), error = value ->> 'error',
      error_code = value ->> 'error_code'
    from ${jsonRows(trx, rows)} where delivery.id = value ->> 'id'`.execute(trx)
}

const toDeliveryUpdate = ({
  next,
  ...attempt
}: AttemptDetails & { readonly next: DeliveryTransition }) => ({
  state: next.state,
  /** Null leaves it unchanged. */
  due_at: next.state === 'retry_scheduled' ? next.dueAt : null,
  expires_at: next.state === 'retry_scheduled' ? null : next.expiresAt,
  status_code: attempt.statusCode,
  duration_ms: attempt.durationMs,
  error: attempt.error,
  error_code: attempt.errorCode,
})

/** Queues alerts about deliveries that failed for good. */
async function queueFailureAlerts(
  trx: Transaction<Schema>,
  records: readonly RecordedAttempt[],
  now: number,
): Promise<void> {
  const failed = records.filter(({ attempt }) => attempt.next.state === 'failed')
  for (const [webhookId, group] of Map.groupBy(failed, ({ delivery }) => delivery.webhookId)) {
    const [last] = group.slice(-1) as [RecordedAttempt]
    const { accountId } = last.delivery
    const events = group.length
    await queueFailureAlert(trx, { webhookId, accountId, events, error: last.attempt.error, now })
  }
}

/** A test event that has been sent. */
type NewTest = AttemptDetails & {
  readonly accountId: string
  readonly webhookId: string
  /** The event as it was sent. */
  readonly event: { readonly id: string; readonly kind: SentKind; readonly body: string }
  readonly deliveryId: string
  readonly next: DeliveryTransition
  readonly now: number
  /** When the delivery was due, steady time. */
  readonly dueAt: number
}

/**
 * Records a test as an event with its delivery and attempt. It does not affect the state of its
 * webhook.
 */
export async function recordTest(trx: Transaction<Schema>, test: NewTest): Promise<void> {
  const { accountId, webhookId, event, deliveryId, now } = test
  const { kind } = event
  const trigger = 'test'
  await trx
    .insertInto('event')
    .values({ ...event, account_id: accountId, created_at: now })
    .execute()
  const after = toDeliveryUpdate(test)
  await trx
    .insertInto('delivery')
    .values({
      id: deliveryId,
      event_id: event.id,
      webhook_id: webhookId,
      kind,
      trigger,
      ...after,
      due_at: after.due_at ?? test.dueAt,
      attempt: 1,
      created_at: now,
    })
    .execute()
  await insertAttempts(trx, [toAttemptRow(test, { delivery_id: deliveryId, number: 1, trigger })])
}

/** Adds the attempts to the daily counts of their webhooks. */
async function countByDay(
  trx: Transaction<Schema>,
  records: readonly RecordedAttempt[],
): Promise<void> {
  const groups = Map.groupBy(records, ({ delivery }) => delivery.webhookId)
  const rows = [...groups].map(([id, group]) => {
    const attempts = group.map(({ attempt: { startedAt, next } }) => ({
      startedAt,
      isDelivered: next.state === 'delivered',
    }))
    const days = parseDailyAttempts(group[0]?.delivery.dailyAttempts ?? null)
    return { id, days: JSON.stringify(countAttempts(days, attempts)) }
  })
  await sql`
    update webhook set daily_attempts = value ->> 'days'
    from ${jsonRows(trx, rows)} where webhook.id = value ->> 'id'`.execute(trx)
}

/** Updates since when webhooks have been failing, and disables those whose attempts ask for it. */
async function touchWebhooks(
  trx: Transaction<Schema>,
  records: readonly RecordedAttempt[],
  { now, steadyNow }: RecordedAt,
): Promise<void> {
  const events = records.filter(isCurrentUrl)
  for (const [webhookId, group] of Map.groupBy(events, ({ delivery }) => delivery.webhookId)) {
    const [{ delivery: before }] = group as [RecordedAttempt]
    const after = applyAttempts(group, now)
    if (after.failingSince !== before.failingSince) {
      const { failingSince } = after
      await sql`update webhook set failing_since = ${failingSince} where id = ${webhookId}`.execute(
        trx,
      )
    }
    if (before.active === 1 && after.disabledCode !== null) {
      const { disabledCode: code } = after
      const reason = DISABLED_REASONS[code]
      await disableWebhook(trx, { webhookId, code, reason, now })
      await queueDisabledAlert(trx, {
        webhookId,
        accountId: before.accountId,
        reason,
        now: steadyNow,
      })
    }
  }
}

/** An attempt at a former URL says nothing about the current one. */
const isCurrentUrl = ({ attempt, delivery }: RecordedAttempt) => attempt.url === delivery.url

/** Applies attempts at one webhook in order. */
function applyAttempts(records: readonly RecordedAttempt[], now: number) {
  let failingSince = records[0]?.delivery.failingSince ?? null
  let disabledCode: DisabledCode | null = null
  for (const { attempt } of records) {
    // Another attempt has succeeded since this one was evaluated, so the webhook has not failed
    // that long.
    const isStale = failingSince === null || failingSince > attempt.startedAt
    if (attempt.statusCode === GONE || !isStale) disabledCode ??= attempt.disabledCode
    // A time in the future was written before the clock was set back.
    failingSince = attempt.next.state === 'delivered' ? null : Math.min(failingSince ?? now, now)
  }
  return { failingSince, disabledCode }
}

const disableWebhook = (
  trx: Transaction<Schema>,
  o: {
    readonly webhookId: string
    readonly code: DisabledCode
    readonly reason: string
    readonly now: number
  },
) =>
  trx
    .updateTable('webhook')
    .set({ active: 0, disabled_reason: o.reason, disabled_code: o.code, updated_at: o.now })
    .where('id', '=', o.webhookId)
    .execute()

/** A delivery and its webhook before an attempt is recorded. */
type EndpointStatus = Pick<DeliveryTable, 'id' | 'trigger' | 'attempt'> & {
  readonly webhookId: string
  readonly accountId: string
  readonly url: string
  readonly active: number
  readonly failingSince: number | null
  /** The JSON of `DailyAttempts`. */
  readonly dailyAttempts: string | null
  /** Attempts of all its cycles. */
  attempts: number
}

/**
 * Returns the state of deliveries by ID, without deleted ones, and locks them until the end of the
 * transaction.
 */
async function getEndpointStatus(
  trx: Transaction<Schema>,
  ids: readonly string[],
): Promise<Map<string, EndpointStatus>> {
  if (isPostgres(trx)) await lockDeliveries(trx, ids)
  const { rows } = await sql<EndpointStatus>`
    select delivery.id, delivery."trigger", delivery.attempt,
      webhook.id as "webhookId", webhook.account_id as "accountId", webhook.url, webhook.active,
      webhook.failing_since as "failingSince", webhook.daily_attempts as "dailyAttempts",
      (select coalesce(max(number), 0) from attempt where delivery_id = delivery.id) as attempts
    from delivery join webhook on webhook.id = delivery.webhook_id
    where delivery.id in ${inArray(trx, ids)} and webhook.deleted_at is null`.execute(trx)
  return new Map(rows.map(row => [row.id, row]))
}

/**
 * Locks these deliveries and then their webhooks, each in ID order, so that servers cannot
 * deadlock. The locks are separate statements: later reads see what was committed while these
 * waited.
 */
async function lockDeliveries(trx: Transaction<Schema>, ids: readonly string[]): Promise<void> {
  await sql`
    select id from delivery where id in ${inArray(trx, ids)} order by id for no key update`.execute(
    trx,
  )
  await sql`
    select id from webhook where id in (
      select webhook_id from delivery where id in ${inArray(trx, ids)})
    order by id for no key update`.execute(trx)
}
