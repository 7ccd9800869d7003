import { sql } from 'kysely'
import { SECOND } from '../../base/clock.ts'
import { serverTime } from '../cluster/server-time.ts'
import type { Database, Trx } from '../database.ts'
import { each } from '../dialect.ts'
import type { Bucket } from './limits.ts'

/** One who asks to be charged, or `back`: what was charged to a window is to be taken back from it. */
export type Wish = {
  readonly buckets: readonly Bucket[]
  readonly back: { readonly key: string; readonly endsAt: number } | null
}

/** A window by the clock of the database, epoch ms. */
export type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/** How a bucket stood when a wish had been counted; `leftMs` tells when it is over on whatever clock. */
export type Standing = { readonly used: number; readonly endsAt: number; readonly leftMs: number }

export type Outcome = { readonly refusedBy: number | null; readonly standing: readonly Standing[] }

export type Counted = {
  /** In the order of the wishes. */
  readonly outcomes: readonly Outcome[]
  readonly windows: ReadonlyMap<string, Window>
  /** By the clock of the database, epoch ms. */
  readonly now: number
}

/**
 * Counts wishes one after the other, each in all of its buckets or in none. A power cut of the server may forget what was
 * counted last, as with a file: nobody waits for its disk.
 */
export async function count(database: Database, wishes: readonly Wish[]): Promise<Counted> {
  const locked = wishes.some(({ back }) => back !== null) ? null : await chargeAll(database, wishes)
  return locked === null
    ? countOneByOne(database, wishes)
    : { ...settle(wishes, locked), ...locked }
}

/** Windows as they were before they were charged. */
type Locked = Pick<Counted, 'now'> & { readonly windows: Map<string, Window> }

/** Where there is room for all, which is so nearly always, one statement does; null: there is not, and nothing was charged. */
async function chargeAll(database: Database, wishes: readonly Wish[]): Promise<Locked | null> {
  const db = database.loose
  const wanted = wantedOf(wishes)
  const { rows } = await sql<Row & { readonly charge: number }>`
    with wanted as (
      select value ->> 'key' as key, cast(value ->> 'charge' as bigint) as charge,
        cast(value ->> 'limit' as bigint) as most, cast(value ->> 'perMs' as bigint) as per_ms
      from ${each(db, wanted)}
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
      and found = ${wanted.length}
    returning bucket.key, standing.used, standing.per_ms as "perMs", standing.ends_at as "endsAt",
      now`.execute(db)
  if (rows.length < wanted.length) return null
  const windows = rows.map(
    ({ key, used, perMs, endsAt }) => [key, { used, perMs, endsAt }] as const,
  )
  return { windows: new Map(windows), now: rows[0]?.now ?? 0 }
}

/** What all wishes together ask of each bucket. */
function wantedOf(wishes: readonly Wish[]) {
  const wanted = new Map<string, { key: string; perMs: number; limit: number; charge: number }>()
  for (const { buckets, back } of wishes) {
    if (back !== null && !wanted.has(back.key)) {
      wanted.set(back.key, { key: back.key, perMs: 0, limit: 0, charge: 0 })
    }
    for (const { key, perMs, limit } of buckets) {
      const before = wanted.get(key)
      // Of a plan that is changed while some of its requests wait both limits hold.
      const least = before === undefined ? limit : Math.min(before.limit, limit)
      wanted.set(key, { key, perMs, limit: least, charge: (before?.charge ?? 0) + 1 })
    }
  }
  return [...wanted.values()]
}

/** Where somebody is refused, who comes first matters: decided here, while nobody else has the rows. */
function countOneByOne(database: Database, wishes: readonly Wish[]): Promise<Counted> {
  return database.loose.transaction().execute(async trx => {
    const locked = await lockWindows(database, trx, wishes)
    const { outcomes, changed } = settle(wishes, locked)
    const rows = [...changed].map(key => ({ key, ...(locked.windows.get(key) as Window) }))
    if (rows.length > 0) await writeWindows(trx, rows)
    return { outcomes, ...locked }
  })
}

/** Charges windows, and takes back from them, in the order of the wishes. */
function settle(wishes: readonly Wish[], { windows, now }: Locked) {
  const changed = new Set<string>()
  const outcomes = wishes.map(({ buckets, back }) => {
    if (back !== null) takeBack(back, windows, changed)
    return charge(buckets, { windows, changed, now })
  })
  return { outcomes, changed }
}

type Counting = {
  readonly windows: ReadonlyMap<string, Window>
  readonly changed: Set<string>
  readonly now: number
}

function charge(buckets: readonly Bucket[], { windows, changed, now }: Counting): Outcome {
  const own = buckets.map(({ key }) => windows.get(key) as Window)
  const full = own.findIndex(({ used }, n) => used >= (buckets[n] as Bucket).limit)
  if (full === -1) {
    for (const window of own) window.used++
    for (const { key } of buckets) changed.add(key)
  }
  const standing = own.map(({ used, endsAt }) => ({ used, endsAt, leftMs: endsAt - now }))
  return { refusedBy: full === -1 ? null : full, standing }
}

function takeBack(
  { key, endsAt }: NonNullable<Wish['back']>,
  windows: ReadonlyMap<string, Window>,
  changed: Set<string>,
): void {
  const window = windows.get(key)
  // Of a window that is over nothing is left to be given back.
  if (window === undefined || window.endsAt !== endsAt || window.used === 0) return
  window.used--
  changed.add(key)
}

/**
 * Locks the rows of all buckets, in one order for everybody, and gives the windows that hold now. Rows that are not there
 * are made, as one that is not there cannot be locked.
 */
async function lockWindows(database: Database, trx: Trx, wishes: readonly Wish[]): Promise<Locked> {
  const wanted = wantedOf(wishes)
  const { rows } = await sql<Row>`
    insert into bucket (key, used, per_ms, ends_at)
    select value ->> 'key', 0, cast(value ->> 'perMs' as bigint), 0
    from ${each(trx, wanted)}
    order by (value ->> 'key') collate "C"
    on conflict (key) do update set key = excluded.key
    returning key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now,
      ${unlessIdle}`.execute(trx)
  // Rows that were waited for are later than those before them.
  const now = Math.max(0, ...rows.map(row => row.now))
  const spans = new Map(wanted.map(({ key, perMs }) => [key, perMs]))
  const windows = rows.map(row => [row.key, windowOf(row, spans.get(row.key) ?? 0, now)] as const)
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

/** A window that is over makes room for one that begins now. A clock that was set back makes none longer than it was meant to be. */
function windowOf({ used, perMs, endsAt }: Row, wantedMs: number, now: number): Window {
  if (endsAt <= now) return { used: 0, perMs: wantedMs, endsAt: now + wantedMs }
  return { used, perMs, endsAt: Math.min(endsAt, now + perMs) }
}

async function writeWindows(
  trx: Trx,
  rows: readonly (Window & { readonly key: string })[],
): Promise<void> {
  await sql`
    update bucket set used = cast(value ->> 'used' as bigint),
      per_ms = cast(value ->> 'perMs' as bigint), ends_at = cast(value ->> 'endsAt' as bigint)
    from ${each(trx, rows)} where bucket.key = value ->> 'key'`.execute(trx)
}

/** How buckets stand now. */
export async function look(
  database: Database,
  buckets: readonly Bucket[],
): Promise<readonly Standing[]> {
  const { reader } = database
  const { rows } = await sql<Row>`
    select bucket.key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now
    from ${each(reader, buckets)} join bucket on bucket.key = value ->> 'key'`.execute(reader)
  const rowOf = new Map(rows.map(row => [row.key, row]))
  return buckets.map(({ key, perMs }) => {
    const row = rowOf.get(key)
    if (row === undefined) return { used: 0, endsAt: 0, leftMs: perMs }
    const { used, endsAt } = windowOf(row, perMs, row.now)
    return { used, endsAt, leftMs: endsAt - row.now }
  })
}

/** Clears away what is over. Rows that somebody has at the moment are left to the next time. */
export async function sweep(database: Database): Promise<void> {
  await sql`
    delete from bucket where key in (
      select key from bucket where ends_at <= ${serverTime(database)}
      limit ${SWEEP_ROWS_MAX} for update skip locked)`.execute(database.loose)
}

const SWEEP_ROWS_MAX = 10_000
