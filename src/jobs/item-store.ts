import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres, typedRows } from '../db/sql-dialect.ts'
import { runEach } from '../db/sqlite.ts'
import { decodeResult } from '../engine/verdict/stored-result.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import type { ItemState, ItemTable } from './tables.ts'

// The states of an item, a row of a list:
//
// | state               | event                                                  | next state           |
// | ------------------- | ------------------------------------------------------ | -------------------- |
// |                     | it is stored with its list                             | `queued`             |
// |                     | it is stored, and an earlier row has its address       | `same`               |
// |                     | it is stored with a result, or it is not an address    | `done`               |
// | `queued`            | its operator is found, and it waits for room there     | `routed`             |
// | `queued`, `routed`  | a member of a cluster claims it                        | `probing`            |
// | waiting             | an attempt brings no definite result: it is postponed  | `routed`             |
// | waiting             | its result is stored                                   | `done`               |
// | `probing`           | its member releases it, or is removed; its job starts  | `queued` or `routed` |
// | `routed`, `probing` | its address was erased, and its job is resumed         | `queued`             |
//
// Waiting are `queued`, `routed` and `probing`.
// A `same` item has the result of the item at `same_as`, and never changes. A single process claims
// nothing: an item stays `queued` or `routed` until its result is stored.

// SQLite uses a partial index only if the statement contains its condition literally, so states in
// conditions are literals, never parameters.

/** The state of a claimed item once nothing holds it. */
export const RELEASED = sql<ItemState>`case when operator is null then 'queued' else 'routed' end`

/**
 * Condition for the items that are `probing`. Those of a cluster have a holder, and `item_holder`
 * finds them.
 */
export const isProbing = (db: Pick<Kysely<unknown>, 'getExecutor'>): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`state = 'probing' and holder is not null`
    : sql<boolean>`state = 'probing'`

export type QueuedItem = Pick<ItemTable, 'position' | 'text' | 'copies'>

/** Lists the next items that are not routed yet, in list order. */
export function queuedItems(
  { db }: Database,
  o: { jobId: string; after: number; max: number },
): Promise<QueuedItem[]> {
  return db
    .selectFrom('item')
    .select(['position', 'text', 'copies'])
    .where('job_id', '=', o.jobId)
    .where('state', '=', sql.lit('queued'))
    .where('position', '>', o.after)
    .orderBy('position')
    .limit(o.max)
    .execute()
}

export type StoredItem = QueuedItem &
  Pick<
    ItemTable,
    | 'state'
    | 'tries'
    | 'ready_at'
    | 'route'
    | 'egress'
    | 'refused_by'
    | 'accepted'
    | 'latest_result'
  >

/** Returns the result of the latest probe; null if there is none. */
export const decodeLatest = ({
  latest_result: stored,
}: Pick<ItemTable, 'latest_result'>): Result | null =>
  stored === null ? null : decodeResult(stored)

/** Returns the items at these positions that have no result, in list order. */
export function openItems(
  { db }: Database,
  { jobId, positions }: { readonly jobId: string; readonly positions: readonly number[] },
): Promise<StoredItem[]> {
  return db
    .selectFrom('item')
    .select(['position', 'text', 'copies', 'state', 'tries', 'ready_at'])
    .select(['route', 'egress', 'refused_by', 'accepted', 'latest_result'])
    .where('job_id', '=', jobId)
    .where('position', 'in', [...positions])
    .where('state', 'in', ['queued', 'routed'])
    .orderBy('position')
    .execute()
}

type DueItem = {
  readonly position: number
  readonly dueAt: number
  readonly operator: string | null
  readonly egress: string | null
}

/** Lists when the routed items of a job are due, in list order. */
export function dueItems(
  { db }: Database,
  o: { jobId: string; after: number; max: number },
): Promise<DueItem[]> {
  return db
    .selectFrom('item')
    .select(['position', 'due_at as dueAt', 'operator', 'egress'])
    .where('job_id', '=', o.jobId)
    .where('state', '=', sql.lit('routed'))
    .where('position', '>', o.after)
    .orderBy('position')
    .limit(o.max)
    .execute()
}

export type ItemRoute = {
  readonly position: number
  readonly operator: string
  readonly domain: string
  readonly route: string
}

/**
 * Routes queued items to the operators of their exchangers; an item that is already routed stays as
 * it is.
 */
export async function storeRoutes(
  trx: Transaction<Schema>,
  o: { jobId: string; routed: readonly ItemRoute[]; now: number },
): Promise<void> {
  if (isPostgres(trx)) return storeAllRoutes(trx, o)
  const rows = o.routed.map(({ position, operator, domain, route }) => [
    ...[operator, domain, route, o.now, o.now, o.jobId, position],
  ])
  await runEach(
    trx,
    `update item set state = 'routed', operator = ?, domain = ?, route = ?,
      due_at = ?, ready_at = ?
    where job_id = ? and position = ? and state = 'queued'`,
    rows,
  )
}

// On PostgreSQL each statement is a round trip, so one statement writes all rows; on SQLite one
// statement per row is faster.

async function storeAllRoutes(
  trx: Transaction<Schema>,
  { jobId, routed, now }: Parameters<typeof storeRoutes>[1],
): Promise<void> {
  if (routed.length === 0) return
  await sql`
    update item set state = 'routed', operator = each.operator,
      domain = each.domain, route = each.route, due_at = ${now}, ready_at = ${now}
    from ${typedRows(routed, 'position bigint, operator text, domain text, route text')}
    where ${matchItem(jobId, routed)} and state = 'queued'`.execute(trx)
}

/**
 * The state that an item must have for a change to apply; if left out, any state without a result.
 */
export type Fence =
  /** The item was not claimed: it has not been routed since it was read, or was routed just before. */
  | { readonly state: 'queued' | 'routed' }
  /** The member that claimed the item has not expired, and no other has claimed it since. */
  | { readonly state: 'probing'; readonly holder: string }

export type Recorded = {
  readonly jobId: string
  readonly position: number
  /** See `encodeResult`. */
  readonly result: string
  readonly class: string
  readonly fence?: Fence | undefined
}

/**
 * Writes results; each item accepts exactly one. Returns for each result whether its item accepted
 * it.
 */
export async function recordResults(
  trx: Transaction<Schema>,
  recorded: readonly Recorded[],
): Promise<boolean[]> {
  if (isPostgres(trx)) return recordAll(trx, recorded)
  const written = recorded.map(() => false)
  const groups = Map.groupBy(recorded.keys(), index => recorded[index]?.fence?.state ?? 'any')
  for (const [state, indexes] of groups) {
    const rows = indexes.map(index => toParameters(recorded[index] as Recorded))
    const changes = await runEach(trx, RECORD_TEXTS[state], rows)
    for (let i = 0; i < indexes.length; i++) written[indexes[i] as number] = changes[i] === 1
  }
  return written
}

const toParameters = ({ result, class: klass, jobId, position, fence }: Recorded) =>
  fence !== undefined && 'holder' in fence
    ? [result, klass, jobId, position, fence.holder]
    : [result, klass, jobId, position]

/** The statement for one result on SQLite, where each column set costs an index lookup. */
const toRecordText = (clear: string, fence: string) =>
  `update item set state = 'done', result = ?, class = ?, route = null, accepted = null, latest_result = null${clear}
    where job_id = ? and position = ? and state <> 'done'${fence}`

const RECORD_TEXTS: Readonly<Record<Fence['state'] | 'any', string>> = {
  any: toRecordText('', ''),
  queued: toRecordText('', " and state = 'queued'"),
  routed: toRecordText('', " and state = 'routed'"),
  probing: toRecordText(', holder = null', " and state = 'probing' and holder = ?"),
}

const getHolder = (fence: Fence | undefined): string | null =>
  fence !== undefined && 'holder' in fence ? fence.holder : null

async function recordAll(
  trx: Transaction<Schema>,
  recorded: readonly Recorded[],
): Promise<boolean[]> {
  const written = recorded.map(() => false)
  const all = recorded.map(({ jobId, position, fence, result, class: klass }, index) => ({
    jobId,
    position,
    fenceState: fence?.state ?? null,
    fenceHolder: getHolder(fence),
    result,
    class: klass,
    index,
  }))
  for (const rows of withoutDuplicates(all, ({ jobId, position }) => `${jobId} ${position}`)) {
    const done = await sql<{ index: number }>`
      update item set state = 'done', result = each.result, class = each.class, route = null,
        accepted = null, latest_result = null, holder = null
      from ${typedRows(rows, `"jobId" text, ${FENCED}, index integer, result text, class text`)}
      where item.job_id = each."jobId" and item.position = each.position
        and state <> 'done' and ${FENCE_HOLDS}
      returning each.index as index`.execute(trx)
    for (const { index } of done.rows) written[index] = true
  }
  return written
}

type LatestResult = {
  /** See `encodeResult`. */
  readonly result: string
  /** False if no server was probed this time; then an earlier result is kept. */
  readonly isProbed: boolean
}

export type Postponed = {
  readonly position: number
  readonly dueAt: number
  readonly tries: number
  /** The egress that must probe the item; null for any. */
  readonly egress: string | null
  readonly refusedBy: readonly string[]
  /** JSON of the acceptance if only the catch-all test remains; else null. */
  readonly accepted?: string | null
  /** What the item has as its result if it is not probed again; left out: as before. */
  readonly latest?: LatestResult
  /**
   * The route of an item that a member of a cluster has claimed, and when it was first ready to be
   * probed, epoch ms. Left out: as before.
   */
  readonly route?: ItemRoute
  readonly readyAt?: number
  readonly fence?: Fence
}

/** Reschedules items for a later attempt. */
export async function postponeItems(
  trx: Transaction<Schema>,
  jobId: string,
  postponed: readonly Postponed[],
): Promise<void> {
  const rows = postponed.map(row => ({ ...row, refused: row.refusedBy.join(' ') || null }))
  if (isPostgres(trx)) return postponeAll(trx, jobId, rows)
  for (const { position, dueAt, tries, egress, refused, accepted, latest, fence } of rows) {
    await sql`
      update item set state = 'routed', due_at = ${dueAt}, tries = ${tries},
        egress = ${egress}, refused_by = ${refused}, accepted = ${accepted ?? null}${setLatest(latest)}${clearHolder(fence)}
      where job_id = ${jobId} and position = ${position}${fenceCondition(fence ?? CLAIMED)}`.execute(
      trx,
    )
  }
}

async function postponeAll(
  trx: Transaction<Schema>,
  jobId: string,
  postponed: readonly (Postponed & { readonly refused: string | null })[],
): Promise<void> {
  const all = postponed.map(row => ({
    ...row,
    fenceState: row.fence?.state ?? null,
    fenceHolder: getHolder(row.fence),
  }))
  for (const rows of withoutDuplicates(all, ({ position }) => position)) {
    await sql`
      update item set state = 'routed', due_at = each."dueAt", tries = each.tries,
        egress = each.egress, refused_by = each.refused, accepted = each.accepted, holder = null,
        operator = coalesce(each.route ->> 'operator', item.operator),
        domain = coalesce(each.route ->> 'domain', item.domain),
        route = coalesce(each.route ->> 'route', item.route),
        ready_at = coalesce(ready_at, each."readyAt"),
        latest_result = case when each.latest is null then latest_result
          when (each.latest ->> 'isProbed')::boolean then each.latest ->> 'result'
          else coalesce(latest_result, each.latest ->> 'result') end
      from ${typedRows(rows, `${FENCED}, "dueAt" bigint, tries integer, egress text, refused text, accepted text, latest json, route json, "readyAt" bigint`)}
      where ${matchItem(jobId, rows)} and ("fenceState" is not null or state = 'probing')
        and ${FENCE_HOLDS}`.execute(trx)
  }
}

function setLatest(latest: LatestResult | undefined): RawBuilder<unknown> {
  if (latest === undefined) return sql``
  return latest.isProbed
    ? sql`, latest_result = ${latest.result}`
    : sql`, latest_result = coalesce(latest_result, ${latest.result})`
}

/**
 * Matches the item of a row. All positions are also passed as an array: the server has no
 * statistics of a list that was just stored, and would scan all of it.
 */
function matchItem(jobId: string, rows: readonly { readonly position: number }[]) {
  const positions = `{${rows.map(({ position }) => position).join(',')}}`
  return sql`job_id = ${jobId} and item.position = any(cast(${positions} as bigint[]))
    and item.position = each.position`
}

/** The state of a claimed item without a cluster. */
const CLAIMED = { state: 'probing' } as const

/** Columns of rows that may have a fence. */
const FENCED = 'position bigint, "fenceState" text, "fenceHolder" text'
const FENCE_HOLDS = sql`("fenceState" is null
  or (state = "fenceState" and holder is not distinct from "fenceHolder"))`

/** The holder is compared only if there is one: each column named costs an index lookup. */
function fenceCondition(fence: Fence | typeof CLAIMED | undefined): RawBuilder<unknown> {
  if (fence === undefined) return sql``
  const holderCondition = 'holder' in fence ? sql` and holder = ${fence.holder}` : sql``
  return sql` and state = ${sql.lit(fence.state)}${holderCondition}`
}

const clearHolder = (fence: Fence | undefined) =>
  getHolder(fence) === null ? sql`` : sql`, holder = null`

/** Splits rows into groups of distinct items, because one statement changes a row only once. */
function* withoutDuplicates<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string | number,
): Generator<readonly Row[]> {
  for (let rest = rows; rest.length > 0; ) {
    const first = new Map<string | number, Row>()
    const later: Row[] = []
    for (const row of rest) {
      if (first.has(keyOf(row))) later.push(row)
      else first.set(keyOf(row), row)
    }
    yield [...first.values()]
    rest = later
  }
}
