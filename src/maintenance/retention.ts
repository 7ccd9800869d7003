import { sql } from 'kysely'
import { deleteHistoryBefore, deleteSandboxHistoryBefore } from '../accounts/credits/history.ts'
import { REPLAY_MS } from '../accounts/idempotency.ts'
import { SESSION_IDLE_MS } from '../accounts/session.ts'
import { type Database, type Trx, write } from '../db/database.ts'
import { inArray, isPostgres } from '../db/sql-dialect.ts'
import { DAY, HOUR, sleep } from '../platform/clock.ts'
import { RETENTION_MS, SANDBOX_RETENTION_MS } from '../webhooks/delivery-state.ts'

export { SANDBOX_RETENTION_MS as SANDBOX_KEPT_MS }

/** What goes by its age, and before which time it goes, epoch ms. */
export type Retention = {
  readonly name:
    | ('history' | 'sandboxHistory' | 'replays' | 'credits' | 'answers' | 'sessions')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events' | 'secrets')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written together with its deliveries, and goes with the last of them. */
const ORPHANED_EVENTS_RETENTION_MS = HOUR
/** Credits are counted by the day; what is older is asked for by nobody. */
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
  { name: 'secrets', expiry: forgetSecretsUntil, before: now },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_RETENTION_MS },
  { name: 'answers', expiry: forgetAnswersBefore, before: now },
  { name: 'sessions', expiry: deleteSessionsUntil, before: now },
]

/** Rows of the first transaction; those that follow have twice as many, or half as many, by how long it took. */
const FIRST_STEP_ROWS = 125
/** With a delivery go up to sixty attempts. */
const STEP_ROWS_MIN = 25
const STEP_ROWS_MAX = 1_000
/** The event loop stands still for about as long. */
const STEP_MS = 20
/** Between two steps, so that others come first. */
const STEP_PAUSE_MS = 20

/** Removes what is old in steps, until nothing is left of it or `signal` aborts; gives how many rows went. */
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
 * What grows with use and is of no use later; each removes at most `max` rows and gives how many. Several servers may do
 * so at the same time: rows that another has in its hands are passed over, and come with the next look.
 */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** At the end of what chooses rows. SQLite has one writer: nothing is in another's hands. */
const unlessTaken = (trx: Trx, table: string) =>
  isPostgres(trx) ? sql`for update of ${sql.table(table)} skip locked` : sql``

/** Deliveries that are kept no longer than until a time, epoch ms. */
export const deleteDeliveriesUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    with old as materialized (
      select id from delivery where expires_at <= ${until} order by expires_at limit ${max}
      ${unlessTaken(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  return deleteWith(trx, rows)
}

/** Deliveries that wait, due no later than a time, epoch ms, for somebody to switch their webhook on. */
export const deleteStrandedUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    with old as materialized (
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.active = 0
        and delivery.state in ('pending', 'retry_scheduled') and delivery.due_at <= ${until}
      limit ${max} ${unlessTaken(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  return deleteWith(trx, rows)
}

/** Deliveries of webhooks that were deleted by a time, epoch ms; those that have none left go themselves. */
export const deleteWebhooksUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    with old as materialized (
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.deleted_at <= ${until}
      limit ${max} ${unlessTaken(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  await deleteWith(trx, rows)
  if (rows.length < max) await deleteEmptyWebhooks(trx, until)
  return rows.length
}

/** Locked before it is looked whether something is left of them: whoever tells of something keeps its webhooks until then. */
async function deleteEmptyWebhooks(trx: Trx, until: number): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from webhook where deleted_at <= ${until} ${unlessTaken(trx, 'webhook')}`.execute(trx)
  const ids = rows.map(({ id }) => id)
  const empty = await sql<{ id: string }>`
    delete from webhook where id in ${inArray(trx, ids)}
      and not exists (select 1 from delivery where webhook_id = webhook.id)
    returning id`.execute(trx)
  const gone = empty.rows.map(({ id }) => id)
  await sql`delete from notice where webhook_id in ${inArray(trx, gone)}`.execute(trx)
}

type Gone = { readonly id: string; readonly eventId: string }

/** What is known of deliveries goes with them, and an event with the last of its own. */
async function deleteWith(trx: Trx, gone: readonly Gone[]): Promise<number> {
  const ids = gone.map(({ id }) => id)
  await sql`delete from attempt where delivery_id in ${inArray(trx, ids)}`.execute(trx)
  const eventIds = [...new Set(gone.map(({ eventId }) => eventId))]
  await sql`
    delete from event where id in ${inArray(trx, eventIds)}
      and not exists (select 1 from delivery where event_id = event.id)`.execute(trx)
  return gone.length
}

/**
 * Events that happened before a time, epoch ms, and have no delivery: an ev that kept them by age leaves such ones
 * behind, and two servers that remove the last two deliveries of one at the same time. Only the oldest are looked at:
 * among many that are on their way none is looked for in vain.
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

/** Secrets of webhooks that were replaced, and sign nothing more from a time on, epoch ms. */
export const forgetSecretsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from webhook where previous_until <= ${until} limit ${max}
      ${unlessTaken(trx, 'webhook')})
    update webhook set previous_secret = null, previous_until = null
    where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Answers to requests with an Idempotency-Key that came no later than a time, epoch ms: too old to be repeated. */
export const deleteReplaysBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select key_id, idempotency_key from replay where created_at <= ${before} limit ${max}
      ${unlessTaken(trx, 'replay')})
    delete from replay
    where (key_id, idempotency_key) in (select key_id, idempotency_key from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Sessions of the dashboard that are over by a time, epoch ms: they lasted, or were left alone, for too long. */
export const deleteSessionsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from session
      where expires_at <= ${until} or last_seen_at <= ${until - SESSION_IDLE_MS} limit ${max}
      ${unlessTaken(trx, 'session')})
    delete from session where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Answers of mail servers that are kept no longer than until a time, epoch ms. */
export const forgetAnswersBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select address_key from answer where keep_until <= ${before} limit ${max}
      ${unlessTaken(trx, 'answer')})
    delete from answer where address_key in (select address_key from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** What accounts used in days that began before a time, epoch ms, and that nobody holds credits of. */
export const deleteCreditsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select account_id, period_start from credit
      where period_start < ${before} and held = 0 limit ${max} ${unlessTaken(trx, 'credit')})
    delete from credit
    where (account_id, period_start) in (select account_id, period_start from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}
