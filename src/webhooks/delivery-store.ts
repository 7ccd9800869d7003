import { sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import { yieldToEventLoop } from '../platform/clock.ts'
import { toWebhook, type Webhook } from './endpoint-store.ts'
import type {
  AttemptTable,
  DeliveryState,
  DeliveryTable,
  DeliveryTrigger,
  EventTable,
  WebhookTable,
} from './tables.ts'

export { type NewAttempt, type NewTest, recordAttempts, recordTest } from './attempt-store.ts'

// States that choose rows are literals, so that the partial index of what is open is used.

/** An event that is to be sent to a webhook now. */
export type DueDelivery = {
  readonly id: string
  readonly eventId: string
  readonly kind: string
  /** The bytes of the event. */
  readonly body: string
  readonly trigger: DeliveryTrigger
  /** Attempts of this round so far. */
  readonly attempt: number
  /** As it stands now. */
  readonly webhook: Webhook
}

export type DueWebhook = { readonly id: string; readonly url: string }

/** The active webhooks that have something due by now, epoch ms. */
export async function dueWebhooks({ reader }: Database, now: number): Promise<DueWebhook[]> {
  // From webhook to webhook by the index: one that has nothing open costs nothing, and a long line no more than a short one.
  const { rows } = await sql<DueWebhook>`
    with recursive waiting(id) as (
      select min(webhook_id) from delivery where ${IS_OPEN}
      union all
      select (select min(webhook_id) from delivery where ${IS_OPEN} and webhook_id > waiting.id)
      from waiting where waiting.id is not null)
    select webhook.id as id, webhook.url as url from waiting join webhook on webhook.id = waiting.id
    where webhook.active = 1 and webhook.deleted_at is null and exists (
      select 1 from delivery
      where webhook_id = webhook.id and ${IS_OPEN} and due_at <= ${now})`.execute(reader)
  return rows
}

/** What a webhook is to be sent next: the earliest due, but for those under way. None while it is off, or when it is gone. */
export async function nextDeliveries(
  { reader }: Database,
  webhookId: string,
  {
    now,
    except,
    max,
  }: { readonly now: number; readonly except: readonly string[]; readonly max: number },
): Promise<DueDelivery[]> {
  // Before each request: made by Kysely's builder it would cost twice as much.
  const { rows } = await sql<DueRow>`
    select webhook.*, delivery.id as delivery_id, delivery.event_id, delivery.kind,
      delivery."trigger", delivery.attempt, event.body
    from webhook join delivery on delivery.webhook_id = webhook.id
      join event on event.id = delivery.event_id
    where ${isOpenAt(webhookId, except)} and delivery.due_at <= ${now}
    order by delivery.due_at, delivery.created_at, delivery.id limit ${max}`.execute(reader)
  return rows.map(toDue)
}

function toDue(row: DueRow): DueDelivery {
  const { delivery_id: id, event_id: eventId, kind, body, trigger, attempt } = row
  return { id, eventId, kind, body, trigger, attempt, webhook: toWebhook(row) }
}

type DueRow = WebhookTable &
  Pick<DeliveryTable, 'event_id' | 'kind' | 'trigger' | 'attempt'> &
  Pick<EventTable, 'body'> & { readonly delivery_id: string }

/** When the next delivery of a webhook is due, but for those under way, epoch ms; null: none is, or it is off or gone. */
export async function nextDueAt(
  { reader }: Database,
  webhookId: string,
  except: readonly string[],
): Promise<number | null> {
  const { rows } = await sql<Pick<DeliveryTable, 'due_at'>>`
    select delivery.due_at from webhook join delivery on delivery.webhook_id = webhook.id
    where ${isOpenAt(webhookId, except)} order by delivery.due_at limit 1`.execute(reader)
  return rows[0]?.due_at ?? null
}

/** How many are on their way, to whatever webhooks: the index of these is read, and no row. */
export async function countOpenDeliveries({ reader }: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from delivery where ${IS_OPEN}`.execute(reader)
  return Number(rows[0]?.count ?? 0)
}

const IS_OPEN = sql`delivery.state in ('pending', 'retry_scheduled')`

/** On its way to a webhook that is on, and not under way now. */
const isOpenAt = (webhookId: string, except: readonly string[]) =>
  sql`webhook.id = ${webhookId} and webhook.active = 1 and webhook.deleted_at is null
    and ${IS_OPEN} ${butFor(except)}`

/** One by one: for `not in` a table is made each time. */
const butFor = (except: readonly string[]) =>
  sql.join(
    except.map(id => sql`and delivery.id <> ${id}`),
    sql` `,
  )

export type DeliveryRow = DeliveryTable

/**
 * Begins a new round of attempts at once, whatever came of those before. One that is still to be sent for the first
 * time in its round stays as it is: it is due already. Null when the webhook has no such delivery.
 */
export async function retryDelivery(
  trx: Transaction<Schema>,
  webhookId: string,
  deliveryId: string,
  now: number,
): Promise<DeliveryRow | null> {
  const started = await trx
    .updateTable('delivery')
    .set(newCycle(now))
    .where('id', '=', deliveryId)
    .where('webhook_id', '=', webhookId)
    .where('state', '<>', 'pending')
    .returningAll()
    .executeTakeFirst()
  if (started !== undefined) return started
  const pending = await trx
    .selectFrom('delivery')
    .selectAll()
    .where('id', '=', deliveryId)
    .where('webhook_id', '=', webhookId)
    .executeTakeFirst()
  return pending ?? null
}

/**
 * Begins a new round for all that failed and was made since a time, epoch ms, but for tests; gives how many they are.
 * In steps of one transaction: after a long breakdown they are so many that nobody else would be heard meanwhile.
 */
export async function recoverDeliveries(
  trx: Transaction<Schema>,
  webhookId: string,
  { since, now }: { readonly since: number; readonly now: number },
): Promise<number> {
  for (let all = 0; ; await yieldToEventLoop()) {
    const { numUpdatedRows } = await trx
      .with(
        cte => cte('lost').materialized(),
        db =>
          db
            .selectFrom('delivery')
            .select('id')
            .where('webhook_id', '=', webhookId)
            .where('state', '=', 'failed')
            .where('trigger', '<>', 'test')
            .where('created_at', '>=', since)
            .limit(STEP_ROWS)
            .$if(isPostgres(trx), query => query.forUpdate()),
      )
      .updateTable('delivery')
      .set(newCycle(now))
      .where('id', 'in', db => db.selectFrom('lost').select('id'))
      .executeTakeFirstOrThrow()
    all += Number(numUpdatedRows)
    if (numUpdatedRows < STEP_ROWS) return all
  }
}

/** It takes some milliseconds. */
const STEP_ROWS = 1_000

const newCycle = (now: number) => ({
  ...{ state: 'pending' as const, trigger: 'manual' as const },
  ...{ attempt: 0, due_at: now, expires_at: null },
})

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
