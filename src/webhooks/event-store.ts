import type { Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import type { Random } from '../platform/random.ts'
import { subscribers } from './endpoint-store.ts'
import { type EventKind, eventBody, newDeliveryId, newEventId } from './event.ts'

export type Emission = {
  readonly accountId: string
  readonly kind: EventKind
  readonly data: object
  readonly sandbox: boolean
  /** Epoch ms. */
  readonly now: number
  readonly random: Random
}

/**
 * Writes an event and one delivery per subscribed webhook, in the transaction that causes the
 * event, so that it is sent exactly if that transaction commits. Returns the ID of the event, or
 * null, and writes nothing, if no webhook is subscribed.
 */
export async function emit(trx: Transaction<Schema>, o: Emission): Promise<string | null> {
  const webhooks = await subscribers(trx, o.accountId, o.kind)
  if (webhooks.length === 0) return null
  const { now, random } = o
  const id = newEventId(random)
  const body = eventBody({ id, kind: o.kind, at: now, data: o.data, sandbox: o.sandbox })
  await trx
    .insertInto('event')
    .values({ id, account_id: o.accountId, kind: o.kind, body, created_at: now })
    .execute()
  const deliveries = webhooks.map(webhook_id => ({
    ...{ id: newDeliveryId(random), event_id: id, webhook_id, kind: o.kind },
    trigger: 'scheduled' as const,
    ...{ state: 'pending' as const, attempt: 0, due_at: now, created_at: now },
  }))
  await trx.insertInto('delivery').values(deliveries).execute()
  return id
}
