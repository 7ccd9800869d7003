import { sql, type Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { inArray, isPostgres } from '../db/sql-dialect.ts'
import type { DeliveryTable } from './tables.ts'

/** A delivery, and its webhook, before an attempt is written down. */
export type EndpointStatus = Pick<DeliveryTable, 'id' | 'trigger' | 'attempt'> & {
  readonly webhookId: string
  readonly accountId: string
  readonly url: string
  readonly active: number
  readonly failingSince: number | null
  /** Of all its rounds. */
  attempts: number
}

/** How deliveries stand, by ID; those that are gone are left out. It stays so until the end of the transaction. */
export async function getEndpointStatus(
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
