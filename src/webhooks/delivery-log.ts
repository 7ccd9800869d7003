import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AttemptTable, DeliveryState, DeliveryTable } from './tables.ts'

export type DeliveryQuery = {
  readonly webhookId: string
  readonly status?: DeliveryState | undefined
  /** A kind of event. */
  readonly event?: string | undefined
  /** The last of the page before; null: from the newest on. */
  readonly before: { readonly createdAt: number; readonly id: string } | null
  readonly max: number
}

/** What was sent to a webhook, and what is to be, the newest first. */
export function deliveryPage({ reader }: Database, o: DeliveryQuery): Promise<DeliveryTable[]> {
  let query = reader.selectFrom('delivery').selectAll().where('webhook_id', '=', o.webhookId)
  if (o.status !== undefined) query = query.where('state', '=', o.status)
  if (o.event !== undefined) query = query.where('kind', '=', o.event)
  if (o.before !== null) {
    const { createdAt, id } = o.before
    query = query.where(sql<boolean>`(created_at, id) < (${createdAt}, ${id})`)
  }
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

export type LoggedDelivery = {
  readonly delivery: DeliveryTable
  /** The bytes that are sent. */
  readonly body: string
  /** Those that are kept, the first first. */
  readonly attempts: AttemptTable[]
}

/** One delivery to a webhook, with all that came of it; null when the webhook has no such delivery. */
export async function findDelivery(
  { reader }: Database,
  webhookId: string,
  id: string,
): Promise<LoggedDelivery | null> {
  const row = await reader
    .selectFrom('delivery')
    .innerJoin('event', 'event.id', 'delivery.event_id')
    .selectAll('delivery')
    .select('event.body')
    .where('delivery.id', '=', id)
    .where('delivery.webhook_id', '=', webhookId)
    .executeTakeFirst()
  if (row === undefined) return null
  const attempts = await reader
    .selectFrom('attempt')
    .selectAll()
    .where('delivery_id', '=', id)
    .orderBy('number')
    .execute()
  const { body, ...delivery } = row
  return { delivery, body, attempts }
}

/** The ID of the webhook that a delivery goes to; null: there is no such delivery. */
export async function findWebhookOfDelivery(
  { reader }: Database,
  deliveryId: string,
): Promise<string | null> {
  const row = await reader
    .selectFrom('delivery')
    .select('webhook_id')
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  return row?.webhook_id ?? null
}
