import { sql, type Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { inArray, isPostgres, jsonRows } from '../db/sql-dialect.ts'
import { enterDisabled, enterFailure } from './alerts/alert-store.ts'
import { type DeliveryTransition, GONE } from './delivery-state.ts'
import { type DeliveryError, DISABLED_REASONS, type DisabledCode } from './endpoint.ts'
import type { AttemptTable, DeliveryTable, DeliveryTrigger } from './tables.ts'

/** One request, and what came of it. */
export type TriedDelivery = {
  /** When it began, epoch ms. */
  readonly startedAt: number
  readonly url: string
  readonly durationMs: number
  /** Null: nobody answered. */
  readonly statusCode: number | null
  /** Of the answer. */
  readonly headers: Readonly<Record<string, string>> | null
  /** The beginning of the answer's body, cleaned. */
  readonly excerpt: string | null
  /** What was wrong, in a sentence; null: nothing. */
  readonly error: string | null
  /** The same for programs. */
  readonly errorCode: DeliveryError | null
}

export type NewAttempt = TriedDelivery & {
  /** As it was when it was taken. */
  readonly delivery: {
    readonly id: string
    readonly webhookId: string
    readonly round: { readonly trigger: DeliveryTrigger; readonly attempt: number }
  }
  readonly next: DeliveryTransition
  /** Why its webhook is to be switched off with it; null: it is not. */
  readonly disabledCode: DisabledCode | null
}

/**
 * Writes down what came of attempts, in the order in which they ended, and how it goes on with their deliveries and
 * webhooks. Where somebody asked for a delivery once more meanwhile, or another server made the same attempt, that
 * stands: then the attempt is only kept with the others. One whose delivery is gone is passed over.
 */
export async function recordAttempts(
  trx: Transaction<Schema>,
  attempts: readonly NewAttempt[],
  { now }: { readonly now: number },
): Promise<void> {
  const status = await getEndpointStatus(
    trx,
    attempts.map(({ delivery }) => delivery.id),
  )
  const found = attempts.flatMap(attempt => {
    const delivery = status.get(attempt.delivery.id)
    return delivery === undefined ? [] : [{ attempt, delivery }]
  })
  const made = await notYetWritten(trx, found)
  if (made.length === 0) return
  await insertAttempts(
    trx,
    made.map(({ attempt, delivery }) => {
      delivery.attempts += 1
      const { trigger } = attempt.delivery.round
      return attemptRow(attempt, { delivery_id: delivery.id, number: delivery.attempts, trigger })
    }),
  )
  await forgetOldest(trx, made)
  const inCycle = made.filter(isInCycle)
  await moveOn(trx, inCycle)
  await enterFailures(trx, inCycle, now)
  await touchWebhooks(trx, made.filter(hasAlert), now)
}

/** An attempt that is written down. */
export type RecordedAttempt = { readonly attempt: NewAttempt; readonly delivery: EndpointStatus }

const isInCycle = ({ attempt: { delivery: taken }, delivery }: RecordedAttempt) =>
  delivery.trigger === taken.round.trigger && delivery.attempt === taken.round.attempt

/** One that comes late says nothing of its webhook but that it took something. */
const hasAlert = (made: RecordedAttempt) =>
  isInCycle(made) || made.attempt.next.state === 'delivered'

/**
 * Where the answer to a commit was lost, it is tried again, and may be there already: its delivery has moved on, and the
 * very same request is among its attempts.
 */
async function notYetWritten(
  trx: Transaction<Schema>,
  found: readonly RecordedAttempt[],
): Promise<RecordedAttempt[]> {
  const late = found.filter(one => !isInCycle(one))
  if (late.length === 0) return [...found]
  const ids = late.map(({ delivery }) => delivery.id)
  const { rows } = await sql<Request>`
    select delivery_id, "trigger", url, started_at, duration_ms from attempt
    where delivery_id in ${inArray(trx, ids)}`.execute(trx)
  const written = new Set(rows.map(nameOf))
  return found.filter(one => isInCycle(one) || !written.has(nameOf(requestOf(one))))
}

type Request = Pick<AttemptTable, 'delivery_id' | 'trigger' | 'url' | 'started_at' | 'duration_ms'>

const requestOf = ({ attempt, delivery }: RecordedAttempt): Request => ({
  ...{ delivery_id: delivery.id, trigger: attempt.delivery.round.trigger, url: attempt.url },
  ...{ started_at: attempt.startedAt, duration_ms: attempt.durationMs },
})

const nameOf = ({ delivery_id, trigger, url, started_at, duration_ms }: Request) =>
  JSON.stringify([delivery_id, trigger, url, started_at, duration_ms])

const attemptRow = (
  tried: TriedDelivery,
  of: Pick<AttemptTable, 'delivery_id' | 'number' | 'trigger'>,
): AttemptTable => ({
  ...of,
  url: tried.url,
  started_at: tried.startedAt,
  duration_ms: tried.durationMs,
  status_code: tried.statusCode,
  headers: tried.headers === null ? null : JSON.stringify(tried.headers),
  excerpt: tried.excerpt,
  error: tried.error,
  error_code: tried.errorCode,
})

/** All in one parameter: there is one statement for any number of them, and it is prepared once. */
async function insertAttempts(trx: Transaction<Schema>, rows: AttemptTable[]): Promise<void> {
  await sql`
    insert into attempt (delivery_id, number, "trigger", url, started_at, duration_ms,
      status_code, headers, excerpt, error, error_code)
    select value ->> 'delivery_id', cast(value ->> 'number' as integer), value ->> 'trigger',
      value ->> 'url', cast(value ->> 'started_at' as bigint),
      cast(value ->> 'duration_ms' as integer), cast(value ->> 'status_code' as integer),
      value ->> 'headers', value ->> 'excerpt', value ->> 'error',
      value ->> 'error_code'
    from ${jsonRows(trx, rows)}`.execute(trx)
}

/**
 * Attempts kept of one delivery, the last: each time that somebody asks for it once more there may be six, and
 * nobody else sees to it that they ask no thousand times.
 */
export const ATTEMPTS_MAX = 60

async function forgetOldest(
  trx: Transaction<Schema>,
  made: readonly RecordedAttempt[],
): Promise<void> {
  for (const { delivery } of made.filter(one => one.delivery.attempts > ATTEMPTS_MAX)) {
    await trx
      .deleteFrom('attempt')
      .where('delivery_id', '=', delivery.id)
      .where('number', '<=', delivery.attempts - ATTEMPTS_MAX)
      .execute()
  }
}

async function moveOn(trx: Transaction<Schema>, made: readonly RecordedAttempt[]): Promise<void> {
  const rows = made.map(({ attempt }) => ({ id: attempt.delivery.id, ...afterwards(attempt) }))
  await sql`
    update delivery set attempt = delivery.attempt + 1, state = value ->> 'state',
      due_at = coalesce(cast(value ->> 'due_at' as bigint), due_at),
      expires_at = cast(value ->> 'expires_at' as bigint),
      status_code = cast(value ->> 'status_code' as integer),
      duration_ms = cast(value ->> 'duration_ms' as integer), error = value ->> 'error',
      error_code = value ->> 'error_code'
    from ${jsonRows(trx, rows)} where delivery.id = value ->> 'id'`.execute(trx)
}

const afterwards = ({ next, ...tried }: TriedDelivery & { readonly next: DeliveryTransition }) => ({
  state: next.state,
  /** Null: as it was. */
  due_at: next.state === 'retry_scheduled' ? next.dueAt : null,
  expires_at: next.state === 'retry_scheduled' ? null : next.expiresAt,
  status_code: tried.statusCode,
  duration_ms: tried.durationMs,
  error: tried.error,
  error_code: tried.errorCode,
})

/** Whoever owns the webhooks is told of what was given up. */
async function enterFailures(
  trx: Transaction<Schema>,
  made: readonly RecordedAttempt[],
  now: number,
): Promise<void> {
  const failed = made.filter(({ attempt }) => attempt.next.state === 'failed')
  for (const [webhookId, ofOne] of Map.groupBy(failed, ({ delivery }) => delivery.webhookId)) {
    const [last] = ofOne.slice(-1) as [RecordedAttempt]
    const { accountId } = last.delivery
    const events = ofOne.length
    await enterFailure(trx, { webhookId, accountId, events, error: last.attempt.error, now })
  }
}

/** A test, which was sent at once and is written down afterwards. */
export type NewTest = TriedDelivery & {
  readonly accountId: string
  readonly webhookId: string
  /** The bytes that were sent. */
  readonly event: { readonly id: string; readonly body: string }
  readonly deliveryId: string
  readonly next: DeliveryTransition
  readonly now: number
}

/** Writes a test down, as an event with its delivery and attempt; it says nothing about how its webhook stands. */
export async function recordTest(trx: Transaction<Schema>, test: NewTest): Promise<void> {
  const { accountId, webhookId, event, deliveryId, now } = test
  const [kind, trigger] = ['webhook.test', 'test'] as const
  await trx
    .insertInto('event')
    .values({ ...event, account_id: accountId, kind, created_at: now })
    .execute()
  const after = afterwards(test)
  await trx
    .insertInto('delivery')
    .values({
      ...{ id: deliveryId, event_id: event.id, webhook_id: webhookId, kind, trigger },
      ...{ ...after, due_at: after.due_at ?? now, attempt: 1, created_at: now },
    })
    .execute()
  await insertAttempts(trx, [attemptRow(test, { delivery_id: deliveryId, number: 1, trigger })])
}

/** Keeps since when webhooks have failed, by what came of attempts, and switches off those that were to be. */
async function touchWebhooks(
  trx: Transaction<Schema>,
  made: readonly RecordedAttempt[],
  now: number,
): Promise<void> {
  const events = made.filter(isWhereItIs)
  for (const [webhookId, ofOne] of Map.groupBy(events, ({ delivery }) => delivery.webhookId)) {
    const [{ delivery: before }] = ofOne as [RecordedAttempt]
    const after = deliveriesOf(ofOne, now)
    if (after.failingSince !== before.failingSince) {
      const { failingSince } = after
      await sql`update webhook set failing_since = ${failingSince} where id = ${webhookId}`.execute(
        trx,
      )
    }
    if (before.active === 1 && after.disabledCode !== null) {
      const { disabledCode: code } = after
      const reason = DISABLED_REASONS[code]
      await switchOff(trx, { webhookId, code, reason, now })
      await enterDisabled(trx, { webhookId, accountId: before.accountId, reason, now })
    }
  }
}

/** A URL that was changed meanwhile says nothing about the one that has taken its place. */
const isWhereItIs = ({ attempt, delivery }: RecordedAttempt) => attempt.url === delivery.url

/** What attempts at one webhook make of it, one after the other. */
function deliveriesOf(made: readonly RecordedAttempt[], now: number) {
  let failingSince = made[0]?.delivery.failingSince ?? null
  let disabledCode: DisabledCode | null = null
  for (const { attempt } of made) {
    // Another attempt succeeded since this one was judged: the webhook has not failed for long.
    const isStale = failingSince === null || failingSince > attempt.startedAt
    if (attempt.statusCode === GONE || !isStale) disabledCode ??= attempt.disabledCode
    failingSince = attempt.next.state === 'delivered' ? null : (failingSince ?? now)
  }
  return { failingSince, disabledCode }
}

const switchOff = (
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

/** A delivery, and its webhook, before an attempt is written down. */
type EndpointStatus = Pick<DeliveryTable, 'id' | 'trigger' | 'attempt'> & {
  readonly webhookId: string
  readonly accountId: string
  readonly url: string
  readonly active: number
  readonly failingSince: number | null
  /** Of all its rounds. */
  attempts: number
}

/** How deliveries stand, by ID; those that are gone are left out. It stays so until the end of the transaction. */
async function getEndpointStatus(
  trx: Transaction<Schema>,
  ids: readonly string[],
): Promise<Map<string, EndpointStatus>> {
  if (isPostgres(trx)) await lockDeliveries(trx, ids)
  const { rows } = await sql<EndpointStatus>`
    select delivery.id, delivery."trigger", delivery.attempt,
      webhook.id as "webhookId", webhook.account_id as "accountId", webhook.url, webhook.active,
      webhook.failing_since as "failingSince",
      (select coalesce(max(number), 0) from attempt where delivery_id = delivery.id) as attempts
    from delivery join webhook on webhook.id = delivery.webhook_id
    where delivery.id in ${inArray(trx, ids)} and webhook.deleted_at is null`.execute(trx)
  return new Map(rows.map(row => [row.id, row]))
}

/**
 * Keeps other servers off these deliveries, then off their webhooks, each in the order of their IDs, so that no two wait
 * for one another. Statements of their own: what is read afterwards is what was committed while these waited.
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
