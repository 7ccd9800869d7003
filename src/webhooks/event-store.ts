import type { Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import { isAfter, type PageRange, pageStart } from '../db/paging.ts'
import type { Schema } from '../db/schema.ts'
import type { Random } from '../platform/random.ts'
import { type Subscription, subscribers } from './endpoint-store.ts'
import { eventBody, newDeliveryId, newEventId } from './event.ts'
import type { DeliveryTable, EventTable } from './tables.ts'

export type Emission = Subscription & {
  readonly data: object
  readonly sandbox: boolean
  /** Epoch ms. */
  readonly now: number
  /** When its deliveries are due, steady time. */
  readonly dueAt: number
  readonly random: Random
}

/**
 * Writes an event and one delivery per subscribed webhook, in the transaction that causes the
 * event, so that it is sent exactly if that transaction commits. Returns the ID of the event, or
 * null, and writes nothing, if no webhook is subscribed.
 */
export async function emit(trx: Transaction<Schema>, o: Emission): Promise<string | null> {
  const webhooks = await subscribers(trx, o)
  if (webhooks.length === 0) return null
  const { now, dueAt, random } = o
  const id = newEventId(random)
  const body = eventBody({ id, kind: o.kind, at: now, data: o.data, sandbox: o.sandbox })
  await trx
    .insertInto('event')
    .values({ id, account_id: o.accountId, kind: o.kind, body, created_at: now })
    .execute()
  const deliveries = webhooks.map(webhook_id => ({
    id: newDeliveryId(random),
    event_id: id,
    webhook_id,
    kind: o.kind,
    trigger: 'scheduled' as const,
    state: 'pending' as const,
    attempt: 0,
    due_at: dueAt,
    created_at: now,
  }))
  await trx.insertInto('delivery').values(deliveries).execute()
  return id
}

type EventQuery = PageRange & {
  readonly accountId: string
  readonly kind?: string | undefined
  /** Start of the time range, epoch ms. */
  readonly since?: number | undefined
  readonly max: number
}

/** Returns a page of the events of an account, newest first. */
export function getEventPage({ reader }: Database, o: EventQuery): Promise<EventTable[]> {
  let query = reader.selectFrom('event').selectAll().where('account_id', '=', o.accountId)
  if (o.kind !== undefined) query = query.where('kind', '=', o.kind)
  if (o.since !== undefined) query = query.where('created_at', '>=', o.since)
  const end = pageStart(o)
  if (end !== null) query = query.where(isAfter(end))
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

type FoundEvent = {
  readonly event: EventTable
  /** Its deliveries, by the time they were created. */
  readonly deliveries: readonly DeliveryTable[]
}

/**
 * Finds an event of an account with its deliveries; `accountId` null finds it in any account.
 * Returns null if there is none.
 */
export async function findEvent(
  { reader }: Database,
  accountId: string | null,
  id: string,
): Promise<FoundEvent | null> {
  const event = await reader
    .selectFrom('event')
    .selectAll()
    .where('id', '=', id)
    .$if(accountId !== null, query => query.where('account_id', '=', accountId))
    .executeTakeFirst()
  if (event === undefined) return null
  const deliveries = await reader
    .selectFrom('delivery')
    .selectAll()
    .where('event_id', '=', id)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return { event, deliveries }
}
