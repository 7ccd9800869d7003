import { sql } from 'kysely'
import type { Database, Trx } from '../../db/database.ts'
import { serverTime } from '../../db/server-time.ts'
import { jsonRows } from '../../db/sql-dialect.ts'
import { SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { createLimiter, type LimiterDeps } from './limiter.ts'
import {
  applyCharges,
  type Bucket,
  type BucketUsage,
  type ChargeRequest,
  type ChargeResult,
  costOf,
  type LimitStore,
  toUsage,
  type Window,
  type WindowStore,
  type Windows,
  windowAt,
} from './windows.ts'

/**
 * Opens the rate limits on a PostgreSQL server, which are exact across all processes that share it.
 * Windows follow the clock of the server.
 */
export const createPostgresLimits = (database: Database, deps: LimiterDeps): LimitStore =>
  createLimiter(serverWindows(database, deps), deps)

function serverWindows(database: Database, { clock }: LimiterDeps): WindowStore {
  const cached = new TtlMap<CachedWindow>({ sizeMax: CACHE_MAX, clock })
  return {
    cached(key) {
      const window = cached.get(key)
      if (window === undefined) return null
      const { used, endsAt, until } = window
      return { used, endsAt, leftMs: until - clock.monotonicNow() }
    },
    async count(requests) {
      const hasRefund = requests.some(({ refund }) => refund !== null)
      const charged = hasRefund ? null : await chargeAll(database, requests)
      const { outcomes, windows, now } = charged ?? (await countOneByOne(database, requests))
      const receivedAt = clock.monotonicNow()
      for (const [key, { used, endsAt }] of windows) {
        const leftMs = endsAt - now
        if (leftMs > 0) cached.set(key, { used, endsAt, until: receivedAt + leftMs }, leftMs)
      }
      return outcomes
    },
    read: buckets => readWindows(database, buckets),
    deleteExpired: () => deleteExpired(database),
    close: () => {},
  }
}

/** The latest state this process has seen. `endsAt` is database time, `until` monotonic time. */
type CachedWindow = { readonly used: number; readonly endsAt: number; readonly until: number }

/** For display only: a window that was evicted shows as unused. */
const CACHE_MAX = 100_000

/** Windows after requests were counted in them. */
type Counted = Windows & { readonly outcomes: readonly ChargeResult[] }

/**
 * Charges all requests in one statement if every bucket has room for them, which is the usual case.
 * Returns null if one has not; nothing is charged then.
 */
async function chargeAll(
  database: Database,
  requests: readonly ChargeRequest[],
): Promise<Counted | null> {
  const db = database.asyncDb
  const requested = mergeRequests(requests)
  const { rows } = await sql<Row & { readonly charge: number }>`
    with requested as (
      select value ->> 'key' as key, cast(value ->> 'charge' as bigint) as charge,
        cast(value ->> 'limit' as bigint) as most, cast(value ->> 'perMs' as bigint) as per_ms
      from ${jsonRows(db, requested)}
    ), locked as materialized (
      select key, used, per_ms, ends_at from bucket
      where key in (select key from requested) order by key collate "C" for update
    ), server as materialized (
      select count(*) as found, ${serverTime(database)} as now from locked
    ), state as (
      select key, charge, most, now, found,
        case when ends_at <= now then 0 else used end as used,
        case when ends_at <= now then requested.per_ms else locked.per_ms end as per_ms,
        case when ends_at <= now then now + requested.per_ms
          else least(ends_at, now + locked.per_ms) end as ends_at
      from locked join requested using (key) cross join server
    )
    update bucket set used = state.used + charge, per_ms = state.per_ms,
      ends_at = state.ends_at
    from state where bucket.key = state.key
      and (select coalesce(bool_and(used + charge <= most), false) from state)
      and found = ${requested.length}
    returning bucket.key, state.used, state.per_ms as "perMs", state.ends_at as "endsAt",
      now`.execute(db)
  if (rows.length < requested.length) return null
  const windows = new Map(
    rows.map(({ key, used, perMs, endsAt }) => [key, { used, perMs, endsAt }] as const),
  )
  const now = rows[0]?.now ?? 0
  return { outcomes: applyCharges(requests, { windows, now }).outcomes, windows, now }
}

/** Sums the requests per bucket. */
function mergeRequests(requests: readonly ChargeRequest[]) {
  const requested = new Map<string, { key: string; perMs: number; limit: number; charge: number }>()
  for (const { buckets, refund } of requests) {
    if (refund !== null && !requested.has(refund.key)) {
      requested.set(refund.key, { key: refund.key, perMs: 0, limit: 0, charge: 0 })
    }
    for (const bucket of buckets) {
      const { key, perMs, limit } = bucket
      const before = requested.get(key)
      // If the plan changes while requests wait, the smaller limit applies.
      const least = before === undefined ? limit : Math.min(before.limit, limit)
      const charge = (before?.charge ?? 0) + costOf(bucket)
      requested.set(key, { key, perMs, limit: least, charge })
    }
  }
  return [...requested.values()]
}

/**
 * Charges the requests in order, with their rows locked. Used if at least one is rejected, because
 * then their order decides which.
 */
function countOneByOne(database: Database, requests: readonly ChargeRequest[]): Promise<Counted> {
  return database.asyncDb.transaction().execute(async trx => {
    const locked = await lockWindows(database, trx, requests)
    const { outcomes, changed } = applyCharges(requests, locked)
    const rows = [...changed].map(key => ({ key, ...(locked.windows.get(key) as Window) }))
    if (rows.length > 0) await writeWindows(trx, rows)
    return { outcomes, ...locked }
  })
}

/**
 * Locks the rows of all buckets, in key order to avoid deadlocks, and returns the current windows.
 * Missing rows are inserted first, because a missing row cannot be locked.
 */
async function lockWindows(
  database: Database,
  trx: Trx,
  requests: readonly ChargeRequest[],
): Promise<Windows> {
  const requested = mergeRequests(requests)
  const { rows } = await sql<Row>`
    insert into bucket (key, used, per_ms, ends_at)
    select value ->> 'key', 0, cast(value ->> 'perMs' as bigint), 0
    from ${jsonRows(trx, requested)}
    order by (value ->> 'key') collate "C"
    on conflict (key) do update set key = excluded.key
    returning key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now,
      ${limitIdleTime}`.execute(trx)
  // A row that was locked late has a later time than the rows before it.
  const now = Math.max(0, ...rows.map(row => row.now))
  const spans = new Map(requested.map(({ key, perMs }) => [key, perMs]))
  const windows = rows.map(row => [row.key, windowAt(row, spans.get(row.key) ?? 0, now)] as const)
  return { windows: new Map(windows), now }
}

type Row = {
  readonly key: string
  readonly used: number
  readonly perMs: number
  readonly endsAt: number
  readonly now: number
}

/**
 * A process that stalls inside the transaction would keep its rows locked: the server ends the
 * transaction after this time.
 */
const IDLE_MS = 2 * SECOND
const limitIdleTime = sql`set_config('idle_in_transaction_session_timeout', ${String(IDLE_MS)}, true)`

async function writeWindows(
  trx: Trx,
  rows: readonly (Window & { readonly key: string })[],
): Promise<void> {
  await sql`
    update bucket set used = cast(value ->> 'used' as bigint),
      per_ms = cast(value ->> 'perMs' as bigint), ends_at = cast(value ->> 'endsAt' as bigint)
    from ${jsonRows(trx, rows)} where bucket.key = value ->> 'key'`.execute(trx)
}

async function readWindows(
  database: Database,
  buckets: readonly Bucket[],
): Promise<readonly BucketUsage[]> {
  const { reader } = database
  const { rows } = await sql<Row>`
    select bucket.key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now
    from ${jsonRows(reader, buckets)} join bucket on bucket.key = value ->> 'key'`.execute(reader)
  const rowOf = new Map(rows.map(row => [row.key, row]))
  return buckets.map(({ key, perMs }) => {
    const row = rowOf.get(key)
    const now = row?.now ?? 0
    return toUsage(windowAt(row, perMs, now), now)
  })
}

/** Deletes expired windows. Rows that are locked are skipped until the next run. */
async function deleteExpired(database: Database): Promise<void> {
  await sql`
    delete from bucket where key in (
      select key from bucket where ends_at <= ${serverTime(database)}
      limit ${DELETED_ROWS_MAX} for update skip locked)`.execute(database.asyncDb)
}

const DELETED_ROWS_MAX = 10_000
