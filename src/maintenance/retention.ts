import { sql } from 'kysely'
import { deleteHistoryBefore, deleteSandboxHistoryBefore } from '../accounts/credits/history.ts'
import { REPLAY_MS } from '../accounts/idempotency.ts'
import { SESSION_IDLE_MS } from '../accounts/session.ts'
import { type Database, type Trx, write } from '../db/database.ts'
import { inArray, isPostgres } from '../db/sql-dialect.ts'
import { DAY, HOUR, sleep } from '../platform/clock.ts'
import { RETENTION_MS, SANDBOX_RETENTION_MS } from '../webhooks/delivery-state.ts'

export { SANDBOX_RETENTION_MS }

/** A retention rule: rows older than `before`, epoch ms, are deleted. */
export type Retention = {
  readonly name:
    | ('history' | 'sandboxHistory' | 'replays' | 'credits' | 'answers' | 'sessions')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events' | 'secrets')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written with its deliveries and deleted with the last of them. */
const ORPHANED_EVENTS_RETENTION_MS = HOUR
/** Credits are counted by day; older days are not read. */
const CREDITS_RETENTION_MS = 40 * DAY

export const retentions = (now: number, keepHistoryMs: number): Retention[] => [
  { name: 'history', expiry: deleteHistoryBefore, before: now - keepHistoryMs },
  {
    name: 'sandboxHistory',
    expiry: deleteSandboxHistoryBefore,
    before: now - SANDBOX_RETENTION_MS,
  },
  { name: 'replays', expiry: deleteReplaysBefore, before: now - REPLAY_MS },
  { name: 'deliveries', expiry: deleteDeliveriesUntil, before: now },
  { name: 'stranded', expiry: deleteStrandedUntil, before: now - RETENTION_MS },
  { name: 'webhooks', expiry: deleteWebhooksUntil, before: now },
  {
    name: 'events',
    expiry: deleteOrphanedEventsBefore,
    before: now - ORPHANED_EVENTS_RETENTION_MS,
  },
  { name: 'secrets', expiry: clearSecretsUntil, before: now },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_RETENTION_MS },
  { name: 'answers', expiry: deleteAnswersBefore, before: now },
  { name: 'sessions', expiry: deleteSessionsUntil, before: now },
]

/** Rows of the first transaction; the number is doubled or halved by how long each one takes. */
const FIRST_STEP_ROWS = 125
/** Each deleted delivery also deletes up to sixty attempts. */
const STEP_ROWS_MIN = 25
const STEP_ROWS_MAX = 1_000
/** Target duration of a step, which blocks the event loop for about as long. */
const STEP_MS = 20
/** Pause between two steps, for other work. */
const STEP_PAUSE_MS = 20

/** Deletes expired rows in steps until none is left or `signal` aborts. Returns their number. */
export async function expire(
  database: Database,
  { expiry, before }: Pick<Retention, 'expiry' | 'before'>,
  signal?: AbortSignal,
): Promise<number> {
  const { clock } = database
  let all = 0
  let max = FIRST_STEP_ROWS
  while (signal?.aborted !== true) {
    const startedAt = clock.monotonicNow()
    const removed = await write(database, trx => expiry(trx, before, max))
    all += removed
    if (removed < max) break
    max = nextStep(max, clock.monotonicNow() - startedAt)
    await sleep(clock, STEP_PAUSE_MS, signal)
  }
  return all
}

function nextStep(max: number, tookMs: number): number {
  if (tookMs > STEP_MS) return Math.max(STEP_ROWS_MIN, Math.floor(max / 2))
  return tookMs > STEP_MS / 2 ? max : Math.min(STEP_ROWS_MAX, max * 2)
}

/**
 * Deletes at most `max` expired rows and returns their number. Several servers may do so at the
 * same time: rows locked by another are skipped until the next run.
 */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** Skips locked rows, at the end of a select. Not needed on SQLite, which has one writer. */
const skipLocked = (trx: Trx, table: string) =>
  isPostgres(trx) ? sql`for update of ${sql.table(table)} skip locked` : sql``

/** Deletes deliveries that expire by a time, epoch ms. */
export const deleteDeliveriesUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<DeletedDelivery>`
    with old as materialized (
      select id from delivery where expires_at <= ${until} order by expires_at limit ${max}
      ${skipLocked(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  return deleteDependents(trx, rows)
}

/** Deletes open deliveries of disabled webhooks that were due by a time, epoch ms. */
export const deleteStrandedUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<DeletedDelivery>`
    with old as materialized (
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.active = 0
        and delivery.state in ('pending', 'retry_scheduled') and delivery.due_at <= ${until}
      limit ${max} ${skipLocked(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  return deleteDependents(trx, rows)
}

/** Deletes deliveries of webhooks deleted by a time, epoch ms, and then the webhooks themselves. */
export const deleteWebhooksUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<DeletedDelivery>`
    with old as materialized (
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.deleted_at <= ${until}
      limit ${max} ${skipLocked(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  await deleteDependents(trx, rows)
  if (rows.length < max) await deleteEmptyWebhooks(trx, until)
  return rows.length
}

/** Locks the webhooks before checking for deliveries: a writer of events locks its webhooks too. */
async function deleteEmptyWebhooks(trx: Trx, until: number): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from webhook where deleted_at <= ${until} ${skipLocked(trx, 'webhook')}`.execute(trx)
  const ids = rows.map(({ id }) => id)
  const empty = await sql<{ id: string }>`
    delete from webhook where id in ${inArray(trx, ids)}
      and not exists (select 1 from delivery where webhook_id = webhook.id)
    returning id`.execute(trx)
  const deleted = empty.rows.map(({ id }) => id)
  await sql`delete from notice where webhook_id in ${inArray(trx, deleted)}`.execute(trx)
}

type DeletedDelivery = { readonly id: string; readonly eventId: string }

/** Deletes the attempts of deleted deliveries, and events without deliveries. */
async function deleteDependents(trx: Trx, deleted: readonly DeletedDelivery[]): Promise<number> {
  const ids = deleted.map(({ id }) => id)
  await sql`delete from attempt where delivery_id in ${inArray(trx, ids)}`.execute(trx)
  const eventIds = [...new Set(deleted.map(({ eventId }) => eventId))]
  await sql`
    delete from event where id in ${inArray(trx, eventIds)}
      and not exists (select 1 from delivery where event_id = event.id)`.execute(trx)
  return deleted.length
}

/**
 * Deletes events created before a time, epoch ms, that have no delivery. They remain if two servers
 * delete the last two deliveries of an event at the same time, or from an earlier version. Checks
 * only the oldest events, so as not to scan those in delivery.
 */
export const deleteOrphanedEventsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from event where created_at < ${before} order by created_at limit ${max})
    delete from event where id in (
      select id from old where not exists (select 1 from delivery where event_id = old.id))`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** Clears replaced webhook secrets whose grace period ends by a time, epoch ms. */
export const clearSecretsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from webhook where previous_until <= ${until} limit ${max}
      ${skipLocked(trx, 'webhook')})
    update webhook set previous_secret = null, previous_until = null
    where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes responses stored for an Idempotency-Key until a time, epoch ms. */
export const deleteReplaysBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select key_id, idempotency_key from replay where created_at <= ${before} limit ${max}
      ${skipLocked(trx, 'replay')})
    delete from replay
    where (key_id, idempotency_key) in (select key_id, idempotency_key from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes dashboard sessions that are expired or idle for too long at a time, epoch ms. */
export const deleteSessionsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from session
      where expires_at <= ${until} or last_seen_at <= ${until - SESSION_IDLE_MS} limit ${max}
      ${skipLocked(trx, 'session')})
    delete from session where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes cached answers that expire by a time, epoch ms. */
export const deleteAnswersBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select address_key from answer where keep_until <= ${before} limit ${max}
      ${skipLocked(trx, 'answer')})
    delete from answer where address_key in (select address_key from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes credit counts of days before a time, epoch ms, without reservations. */
export const deleteCreditsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select account_id, period_start from credit
      where period_start < ${before} and held = 0 limit ${max} ${skipLocked(trx, 'credit')})
    delete from credit
    where (account_id, period_start) in (select account_id, period_start from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}
