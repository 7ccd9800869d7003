import { sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import { nextChunk, runChunk, SCANNED_MAX } from '../db/paging.ts'
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

// States in conditions are literals, so that the partial index of open deliveries is used.

/** A delivery that is due now. */
export type DueDelivery = {
  readonly id: string
  readonly eventId: string
  readonly kind: string
  /** The event as JSON. */
  readonly body: string
  readonly trigger: DeliveryTrigger
  /** Attempts in this cycle so far. */
  readonly attempt: number
  /** The webhook in its current state. */
  readonly webhook: Webhook
}

type DueWebhook = { readonly id: string; readonly url: string }

/** Lists the active webhooks with a delivery due by now, epoch ms. */
export async function listDueWebhooks({ reader }: Database, now: number): Promise<DueWebhook[]> {
  // Skips from webhook to webhook on the index: the cost does not depend on the number of open
  // deliveries.
  const { rows } = await sql<DueWebhook>`
    with recursive pending_webhook(id) as (
      select min(webhook_id) from delivery where ${IS_OPEN}
      union all
      select (select min(webhook_id) from delivery where ${IS_OPEN} and webhook_id > pending_webhook.id)
      from pending_webhook where pending_webhook.id is not null)
    select webhook.id as id, webhook.url as url from pending_webhook join webhook on webhook.id = pending_webhook.id
    where webhook.active = 1 and webhook.deleted_at is null and exists (
      select 1 from delivery
      where webhook_id = webhook.id and ${IS_OPEN} and due_at <= ${now})`.execute(reader)
  return rows
}

/**
 * Returns the next deliveries to a webhook, earliest due first, except those in flight. Empty if
 * the webhook is disabled or deleted.
 */
export async function listNextDeliveries(
  { reader }: Database,
  webhookId: string,
  {
    now,
    except,
    max,
  }: { readonly now: number; readonly except: readonly string[]; readonly max: number },
): Promise<DueDelivery[]> {
  // Raw SQL because it runs before each request: Kysely's builder would double the cost.
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

/**
 * Returns when the next delivery of a webhook is due, epoch ms, except those in flight. Null if
 * there is none, or the webhook is disabled or deleted.
 */
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

/** Counts the open deliveries of all webhooks. An index-only query. */
export async function countOpenDeliveries({ reader }: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from delivery where ${IS_OPEN}`.execute(reader)
  return Number(rows[0]?.count ?? 0)
}

const IS_OPEN = sql`delivery.state in ('pending', 'retry_scheduled')`

/** Open, to an active webhook, and not in flight. */
const isOpenAt = (webhookId: string, except: readonly string[]) =>
  sql`webhook.id = ${webhookId} and webhook.active = 1 and webhook.deleted_at is null
    and ${IS_OPEN} ${excludeSql(except)}`

/** Single conditions: SQLite builds a table for each `not in`. */
const excludeSql = (except: readonly string[]) =>
  sql.join(
    except.map(id => sql`and delivery.id <> ${id}`),
    sql` `,
  )

export type DeliveryRow = DeliveryTable

/**
 * Starts a new cycle of attempts immediately, whatever the state. A delivery whose first attempt is
 * pending stays unchanged, as it is due already. Returns null if the webhook has no such delivery.
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
 * Starts a new cycle for all failed deliveries created since a time, epoch ms, except tests.
 * Returns how many. It updates in steps within one transaction: after a long outage one statement
 * for all of them would block the event loop.
 */
export async function recoverDeliveries(
  trx: Transaction<Schema>,
  webhookId: string,
  { since, now }: { readonly since: number; readonly now: number },
): Promise<number> {
  for (let total = 0; ; await yieldToEventLoop()) {
    const { numUpdatedRows } = await trx
      .with(
        cte => cte('failed').materialized(),
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
      .where('id', 'in', db => db.selectFrom('failed').select('id'))
      .executeTakeFirstOrThrow()
    total += Number(numUpdatedRows)
    if (numUpdatedRows < STEP_ROWS) return total
  }
}

/** A step takes some milliseconds. */
const STEP_ROWS = 1_000

const newCycle = (now: number) => ({
  state: 'pending' as const,
  trigger: 'manual' as const,
  attempt: 0,
  due_at: now,
  expires_at: null,
})

export type DeliveryQuery = {
  readonly webhookId: string
  readonly status?: DeliveryState | undefined
  readonly event?: string | undefined
  /** The last row of the previous page; null: start with the newest. */
  readonly before: { readonly createdAt: number; readonly id: string } | null
  readonly max: number
}

/** Returns a page of the deliveries to a webhook, newest first. */
export const getDeliveryPage = (
  { reader }: Database,
  query: DeliveryQuery,
): Promise<DeliveryTable[]> => selectDeliveries(reader, query).execute()

function selectDeliveries(reader: Database['reader'], o: DeliveryQuery) {
  let query = reader
    .selectFrom('delivery')
    .selectAll('delivery')
    .where('delivery.webhook_id', '=', o.webhookId)
  if (o.status !== undefined) query = query.where('delivery.state', '=', o.status)
  if (o.event !== undefined) query = query.where('delivery.kind', '=', o.event)
  if (o.before !== null) {
    const { createdAt, id } = o.before
    query = query.where(sql<boolean>`(delivery.created_at, delivery.id) < (${createdAt}, ${id})`)
  }
  return query.orderBy('delivery.created_at', 'desc').orderBy('delivery.id', 'desc').limit(o.max)
}

type FoundDeliveries = {
  readonly rows: DeliveryTable[]
  /** The position after which the next search starts; null if there are no more deliveries. */
  readonly next: DeliveryQuery['before']
}

/**
 * Searches the deliveries to a webhook, newest first, for a text in the body, ID, status code or
 * error, ignoring case. A search ends after `scannedMax` deliveries and returns what was found,
 * possibly nothing.
 */
export async function searchDeliveries(
  database: Database,
  { scannedMax = SCANNED_MAX, search, ...o }: DeliverySearch,
): Promise<FoundDeliveries> {
  const found: DeliveryTable[] = []
  const text = search.toLowerCase()
  let before = o.before
  for (let scanned = 0; scanned < scannedMax; ) {
    const max = Math.min(nextChunk(database, SEARCH_CHUNK_ROWS), scannedMax - scanned)
    const chunk = await runChunk(database, () =>
      selectDeliveries(database.reader, { ...o, before, max })
        .innerJoin('event', 'event.id', 'delivery.event_id')
        .select('event.body')
        .execute(),
    )
    scanned += chunk.length
    for (const { body, ...row } of chunk) {
      if (!searchText(row, body).includes(text)) continue
      // One more than requested shows whether there are more.
      if (found.length === o.max) return { rows: found, next: positionOf(found.at(-1)) }
      found.push(row)
    }
    if (chunk.length < max) return { rows: found, next: null }
    before = positionOf(chunk.at(-1))
  }
  return { rows: found, next: before }
}

type DeliverySearch = DeliveryQuery & { readonly search: string; readonly scannedMax?: number }

/** Rows per chunk of a search: less than 2 ms with the bodies. */
const SEARCH_CHUNK_ROWS = 200

const searchText = ({ id, status_code, error }: DeliveryTable, body: string) =>
  [id, body, status_code, error].join('\n').toLowerCase()

const positionOf = (row: DeliveryTable | undefined) =>
  row === undefined ? null : { createdAt: row.created_at, id: row.id }

export type LoggedDelivery = {
  readonly delivery: DeliveryTable
  /** The request body. */
  readonly body: string
  /** The attempts that are kept, oldest first. */
  readonly attempts: AttemptTable[]
}

/**
 * Finds a delivery to a webhook with its attempts. Returns null if the webhook has no such
 * delivery.
 */
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

/** Returns the ID of the webhook of a delivery; null if there is no such delivery. */
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
