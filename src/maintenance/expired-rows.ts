import { sql } from 'kysely'
import { SESSION_IDLE_MS } from '../accounts/session.ts'
import type { Trx } from '../db/database.ts'
import { inArray, isPostgres } from '../db/sql-dialect.ts'

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
