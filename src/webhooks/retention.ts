import { type RawBuilder, sql } from 'kysely'
import type { Trx } from '../db/database.ts'
import { type Expiry, skipLocked } from '../db/paging.ts'
import { inArray } from '../db/sql-dialect.ts'

type DeletedDelivery = { readonly id: string; readonly eventId: string }

/** Deletes deliveries that expire by a time, epoch ms. */
export const deleteDeliveriesUntil: Expiry = (trx, until, max) =>
  deleteDeliveries(
    trx,
    sql`select id from delivery where expires_at <= ${until} order by expires_at limit ${max}`,
  )

/** Deletes open deliveries of disabled webhooks that were due by a time, epoch ms. */
export const deleteStrandedUntil: Expiry = (trx, until, max) =>
  deleteDeliveries(
    trx,
    sql`
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.active = 0
        and delivery.state in ('pending', 'retry_scheduled') and delivery.due_at <= ${until}
      limit ${max}`,
  )

/** Deletes deliveries of webhooks deleted by a time, epoch ms, and then the webhooks themselves. */
export const deleteWebhooksUntil: Expiry = async (trx, until, max) => {
  const deleted = await deleteDeliveries(
    trx,
    sql`
      select delivery.id from webhook cross join delivery
      where delivery.webhook_id = webhook.id and webhook.deleted_at <= ${until} limit ${max}`,
  )
  if (deleted < max) await deleteEmptyWebhooks(trx, until)
  return deleted
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

/** Deletes the deliveries with these IDs, their attempts, and events without deliveries. */
async function deleteDeliveries(trx: Trx, ids: RawBuilder<unknown>): Promise<number> {
  const { rows: deleted } = await sql<DeletedDelivery>`
    with old as materialized (${ids} ${skipLocked(trx, 'delivery')})
    delete from delivery where id in (select id from old)
    returning id, event_id as "eventId"`.execute(trx)
  await deleteDependents(trx, deleted)
  return deleted.length
}

async function deleteDependents(trx: Trx, deleted: readonly DeletedDelivery[]): Promise<void> {
  const ids = deleted.map(({ id }) => id)
  await sql`delete from attempt where delivery_id in ${inArray(trx, ids)}`.execute(trx)
  const eventIds = [...new Set(deleted.map(({ eventId }) => eventId))]
  await sql`
    delete from event where id in ${inArray(trx, eventIds)}
      and not exists (select 1 from delivery where event_id = event.id)`.execute(trx)
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
