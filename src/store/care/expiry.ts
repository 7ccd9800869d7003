import { sql } from 'kysely'
import { SESSION_IDLE_MS } from '../../account/session.ts'
import type { Trx } from '../database.ts'

/** What grows with use and is of no use later; each removes at most `max` rows and gives how many. */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** Deliveries that are kept no longer than until a time, epoch ms. */
export const deleteDeliveriesUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    delete from delivery where id in (
      select id from delivery where expires_at <= ${until} order by expires_at limit ${max})
    returning id, event_id as "eventId"`.execute(trx)
  return deleteWith(trx, rows)
}

/** Deliveries that wait, due no later than a time, epoch ms, for somebody to switch their webhook on. */
export const deleteStrandedUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    delete from delivery where id in (
      select delivery.id from webhook cross join delivery on delivery.webhook_id = webhook.id
      where webhook.active = 0 and delivery.state in ('pending', 'retry_scheduled')
        and delivery.due_at <= ${until} limit ${max})
    returning id, event_id as "eventId"`.execute(trx)
  return deleteWith(trx, rows)
}

/** Deliveries of webhooks that were deleted by a time, epoch ms; those that have none left go themselves. */
export const deleteWebhooksUntil: Expiry = async (trx, until, max) => {
  const { rows } = await sql<Gone>`
    delete from delivery where id in (
      select delivery.id from webhook cross join delivery on delivery.webhook_id = webhook.id
      where webhook.deleted_at <= ${until} limit ${max})
    returning id, event_id as "eventId"`.execute(trx)
  await deleteWith(trx, rows)
  if (rows.length === max) return max
  const empty = await sql<{ id: string }>`
    delete from webhook where deleted_at <= ${until} returning id`.execute(trx)
  const ids = JSON.stringify(empty.rows.map(({ id }) => id))
  await sql`delete from notice where webhook_id in (select value from json_each(${ids}))`.execute(
    trx,
  )
  return rows.length
}

type Gone = { readonly id: string; readonly eventId: string }

/** What is known of deliveries goes with them, and an event with the last of its own. */
async function deleteWith(trx: Trx, gone: readonly Gone[]): Promise<number> {
  const ids = JSON.stringify(gone.map(({ id }) => id))
  await sql`
    delete from attempt where delivery_id in (select value from json_each(${ids}))`.execute(trx)
  const eventIds = JSON.stringify([...new Set(gone.map(({ eventId }) => eventId))])
  await sql`
    delete from event where id in (select value from json_each(${eventIds}))
      and not exists (select 1 from delivery where event_id = event.id)`.execute(trx)
  return gone.length
}

/**
 * Events that happened before a time, epoch ms, and have no delivery: nothing leaves such ones behind but an ev that
 * kept them by age. Only the oldest are looked at: among many that are on their way none is looked for in vain.
 */
export const deleteStrayEventsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from event where id in (
      select id from (
        select id from event where created_at < ${before} order by created_at limit ${max}) as old
      where not exists (select 1 from delivery where event_id = old.id))`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Secrets of webhooks that were replaced, and sign nothing more from a time on, epoch ms. */
export const forgetSecretsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    update webhook set previous_secret = null, previous_until = null where rowid in (
      select rowid from webhook where previous_until <= ${until} limit ${max})`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Answers to requests with an Idempotency-Key that came no later than a time, epoch ms: too old to be repeated. */
export const deleteReplaysBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from replay where rowid in (select rowid from replay where created_at <= ${before} limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** Sessions of the dashboard that are over by a time, epoch ms: they lasted, or were left alone, for too long. */
export const deleteSessionsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    delete from session where id in (
      select id from session where expires_at <= ${until}
        or last_seen_at <= ${until - SESSION_IDLE_MS} limit ${max})`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Answers of mail servers that are kept no longer than until a time, epoch ms. */
export const forgetAnswersBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from answer where rowid in (select rowid from answer where keep_until <= ${before} limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** What accounts used in days that began before a time, epoch ms, and that nobody holds credits of. */
export const deleteCreditsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    delete from credit where rowid in (
      select rowid from credit where period_start < ${before} and held = 0 limit ${max})`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}
