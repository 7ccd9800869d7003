import { sql } from 'kysely'
import { serverTime } from '../../cluster/members.ts'
import type { Database, Trx } from '../../db/database.ts'
import { jsonRows } from '../../db/sql-dialect.ts'
import { SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { createLimiter, type LimiterDeps } from './limiter.ts'
import type { Bucket, LimitStore } from './types.ts'
import {
  type BucketUsage,
  type ChargeRequest,
  type Outcome,
  settle,
  usageOf,
  type Window,
  type WindowStore,
  type Windows,
  windowAt,
} from './windows.ts'

/** Limits on a PostgreSQL server, exact over all processes that share it, by its clock. */
export const serverLimits = (database: Database, doors: LimiterDeps): LimitStore =>
  createLimiter(serverWindows(database, doors), doors)

function serverWindows(database: Database, { clock }: LimiterDeps): WindowStore {
  const known = new TtlMap<Known>({ sizeMax: KNOWN_MAX, clock })
  return {
    known(key) {
      const window = known.get(key)
      if (window === undefined) return null
      const { used, endsAt, until } = window
      return { used, endsAt, leftMs: until - clock.monotonicNow() }
    },
    async count(requests) {
      const hasBack = requests.some(({ back }) => back !== null)
      const charged = hasBack ? null : await chargeAll(database, requests)
      const { outcomes, windows, now } = charged ?? (await countOneByOne(database, requests))
      const ticks = clock.monotonicNow()
      for (const [key, { used, endsAt }] of windows) {
        const leftMs = endsAt - now
        if (leftMs > 0) known.set(key, { used, endsAt, until: ticks + leftMs }, leftMs)
      }
      return outcomes
    },
    look: buckets => look(database, buckets),
    sweep: () => sweep(database),
    close: () => {},
  }
}

/** As this process heard of it last: `endsAt` is by the clock of the database, `until` in ticks. */
type Known = { readonly used: number; readonly endsAt: number; readonly until: number }

/** For display alone: what is forgotten shows as whole. */
const KNOWN_MAX = 100_000

/** Windows after wishes were counted in them. */
type Counted = Windows & { readonly outcomes: readonly Outcome[] }

/** Where there is room for all, which is so nearly always, one statement does; null: there is not, and nothing was charged. */
async function chargeAll(
  database: Database,
  requests: readonly ChargeRequest[],
): Promise<Counted | null> {
  const db = database.isAsync
  const requested = requestsOf(requests)
  const { rows } = await sql<Row & { readonly charge: number }>`
    with wanted as (
      select value ->> 'key' as key, cast(value ->> 'charge' as bigint) as charge,
        cast(value ->> 'limit' as bigint) as most, cast(value ->> 'perMs' as bigint) as per_ms
      from ${jsonRows(db, requested)}
    ), locked as materialized (
      select key, used, per_ms, ends_at from bucket
      where key in (select key from wanted) order by key collate "C" for update
    ), moment as materialized (
      select count(*) as found, ${serverTime(database)} as now from locked
    ), standing as (
      select key, charge, most, now, found,
        case when ends_at <= now then 0 else used end as used,
        case when ends_at <= now then wanted.per_ms else locked.per_ms end as per_ms,
        case when ends_at <= now then now + wanted.per_ms
          else least(ends_at, now + locked.per_ms) end as ends_at
      from locked join wanted using (key) cross join moment
    )
    update bucket set used = standing.used + charge, per_ms = standing.per_ms,
      ends_at = standing.ends_at
    from standing where bucket.key = standing.key
      and (select coalesce(bool_and(used + charge <= most), false) from standing)
      and found = ${requested.length}
    returning bucket.key, standing.used, standing.per_ms as "perMs", standing.ends_at as "endsAt",
      now`.execute(db)
  if (rows.length < requested.length) return null
  const windows = new Map(
    rows.map(({ key, used, perMs, endsAt }) => [key, { used, perMs, endsAt }] as const),
  )
  const now = rows[0]?.now ?? 0
  return { outcomes: settle(requests, { windows, now }).outcomes, windows, now }
}

/** What all wishes together ask of each bucket. */
function requestsOf(requests: readonly ChargeRequest[]) {
  const requested = new Map<string, { key: string; perMs: number; limit: number; charge: number }>()
  for (const { buckets, back } of requests) {
    if (back !== null && !requested.has(back.key)) {
      requested.set(back.key, { key: back.key, perMs: 0, limit: 0, charge: 0 })
    }
    for (const { key, perMs, limit } of buckets) {
      const before = requested.get(key)
      // Of a plan that is changed while some of its requests wait both limits hold.
      const least = before === undefined ? limit : Math.min(before.limit, limit)
      requested.set(key, { key, perMs, limit: least, charge: (before?.charge ?? 0) + 1 })
    }
  }
  return [...requested.values()]
}

/** Where somebody is refused, who comes first matters: decided here, while nobody else has the rows. */
function countOneByOne(database: Database, requests: readonly ChargeRequest[]): Promise<Counted> {
  return database.isAsync.transaction().execute(async trx => {
    const locked = await lockWindows(database, trx, requests)
    const { outcomes, changed } = settle(requests, locked)
    const rows = [...changed].map(key => ({ key, ...(locked.windows.get(key) as Window) }))
    if (rows.length > 0) await writeWindows(trx, rows)
    return { outcomes, ...locked }
  })
}

/**
 * Locks the rows of all buckets, in one order for everybody, and gives the windows that hold now. Rows that are not there
 * are made, as one that is not there cannot be locked.
 */
async function lockWindows(
  database: Database,
  trx: Trx,
  requests: readonly ChargeRequest[],
): Promise<Windows> {
  const requested = requestsOf(requests)
  const { rows } = await sql<Row>`
    insert into bucket (key, used, per_ms, ends_at)
    select value ->> 'key', 0, cast(value ->> 'perMs' as bigint), 0
    from ${jsonRows(trx, requested)}
    order by (value ->> 'key') collate "C"
    on conflict (key) do update set key = excluded.key
    returning key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now,
      ${unlessIdle}`.execute(trx)
  // Rows that were waited for are later than those before them.
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
 * A process that stands still between its statements would keep its rows from all others: the server ends its transaction
 * then.
 */
const IDLE_MS = 2 * SECOND
const unlessIdle = sql`set_config('idle_in_transaction_session_timeout', ${String(IDLE_MS)}, true)`

async function writeWindows(
  trx: Trx,
  rows: readonly (Window & { readonly key: string })[],
): Promise<void> {
  await sql`
    update bucket set used = cast(value ->> 'used' as bigint),
      per_ms = cast(value ->> 'perMs' as bigint), ends_at = cast(value ->> 'endsAt' as bigint)
    from ${jsonRows(trx, rows)} where bucket.key = value ->> 'key'`.execute(trx)
}

async function look(
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
    return usageOf(windowAt(row, perMs, now), now)
  })
}

/** Clears away what is over. Rows that somebody has at the moment are left to the next time. */
async function sweep(database: Database): Promise<void> {
  await sql`
    delete from bucket where key in (
      select key from bucket where ends_at <= ${serverTime(database)}
      limit ${SWEEP_ROWS_MAX} for update skip locked)`.execute(database.isAsync)
}

const SWEEP_ROWS_MAX = 10_000
