import { sql } from 'kysely'
import { breatheTogether, type Clock, MINUTE, SECOND } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { TtlMap } from '../../base/ttl-map.ts'
import { serverTime } from '../cluster/server-time.ts'
import type { Database, Trx } from '../database.ts'
import { each } from '../dialect.ts'
import {
  type Bucket,
  type BucketState,
  type LimitStore,
  nothingToGive,
  stateOf,
  type Taken,
} from './limits.ts'

/**
 * Counts on a PostgreSQL server, exactly over all processes that share it, by its clock. All that ask in one turn of the
 * event loop, and while others are counted, are counted together in one transaction. Where the server cannot be had,
 * nobody is let in: `take` rejects.
 */
export function serverLimits(database: Database, { clock, log }: Doors): LimitStore {
  const known = new TtlMap<Window>({ sizeMax: KNOWN_MAX, clock })
  const gathered: Wish[] = []
  let running: Promise<void> | null = null
  let sweepAt = clock.ticks() + SWEEP_MS

  const add = (wish: Wish) => {
    gathered.push(wish)
    running ??= run()
  }
  async function run(): Promise<void> {
    await breatheTogether()
    while (gathered.length > 0) await settle(gathered.splice(0, BATCH_MAX))
    running = null
  }
  async function settle(batch: readonly Wish[]): Promise<void> {
    try {
      const counts = await count(database, batch)
      remember(counts)
      for (const [n, wish] of batch.entries()) wish.resolve(counts.outcomes[n] as Outcome)
      await sweepNowAndThen()
    } catch (error) {
      // Who came meanwhile would wait as long for the same.
      for (const wish of [...batch, ...gathered.splice(0)]) wish.reject(error)
    }
  }
  function remember({ windows, now }: Counted): void {
    const ticks = clock.ticks()
    for (const [key, { used, perMs, endsAt }] of windows) {
      const leftMs = endsAt - now
      if (leftMs > 0) known.set(key, { used, perMs, endsAt: ticks + leftMs }, leftMs)
    }
  }
  async function sweepNowAndThen(): Promise<void> {
    if (clock.ticks() < sweepAt) return
    sweepAt = clock.ticks() + SWEEP_MS
    await sweep(database).catch(error =>
      log.warn('old limits cannot be cleared away', { why: messageOf(error) }),
    )
  }
  const peek = (buckets: readonly Bucket[]) => {
    const [now, ticks] = [clock.now(), clock.ticks()]
    return buckets.map(bucket => {
      const { used, endsAt } = known.get(bucket.key) ?? { used: 0, endsAt: ticks + bucket.perMs }
      return stateOf(bucket, { used, leftMs: endsAt - ticks }, now)
    })
  }
  /** Not waited for: what cannot be given back ends with its window. */
  function giveBack(bucket: Bucket, endsAt: number): BucketState {
    const window = known.get(bucket.key)
    if (window !== undefined) window.used--
    const told = (error: unknown) =>
      log.warn('a limit could not be given back', { why: messageOf(error) })
    add({ buckets: [], back: { key: bucket.key, endsAt }, resolve: () => {}, reject: told })
    return peek([bucket])[0] as BucketState
  }
  return {
    peek,
    async look(buckets) {
      return statesOf(clock, buckets, await read(database, buckets))
    },
    async take(buckets): Promise<Taken> {
      const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
      add({ buckets, back: null, resolve, reject })
      const { refusedBy, standing } = await promise
      const states = statesOf(clock, buckets, standing)
      if (refusedBy !== null) return { refusedBy, states, giveBack: nothingToGive }
      return {
        ...{ refusedBy, states },
        giveBack: index => giveBack(buckets[index] as Bucket, (standing[index] as Standing).endsAt),
      }
    },
    async close() {
      while (running !== null) await running
    },
  }
}

type Doors = { readonly clock: Clock; readonly log: Log }

/** `endsAt`: in the database epoch ms, here in memory ticks. */
type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/** As it stood at the end of a count; `leftMs` tells when it is over on whatever clock. */
type Standing = { readonly used: number; readonly endsAt: number; readonly leftMs: number }

type Outcome = { readonly refusedBy: number | null; readonly standing: readonly Standing[] }

/** One who asks to be charged, or `back`: what was charged to a window is to be taken back from it. */
type Wish = {
  readonly buckets: readonly Bucket[]
  readonly back: { readonly key: string; readonly endsAt: number } | null
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

type Counted = {
  readonly outcomes: readonly Outcome[]
  readonly windows: ReadonlyMap<string, Window>
  /** By the clock of the database, epoch ms. */
  readonly now: number
}

/** More in one transaction would keep their rows from other servers for long. */
const BATCH_MAX = 1_000
/** For display alone: what is forgotten shows as whole. */
const KNOWN_MAX = 100_000
/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE

const statesOf = (clock: Clock, buckets: readonly Bucket[], standing: readonly Standing[]) => {
  const now = clock.now()
  return buckets.map((bucket, n) => stateOf(bucket, standing[n] as Standing, now))
}

/** A power cut of the server may forget what was counted last, as with a file: nobody waits for its disk. */
function count(database: Database, batch: readonly Wish[]): Promise<Counted> {
  return database.loose.transaction().execute(async trx => {
    const { windows, now } = await lockWindows(database, trx, batch)
    const changed = new Set<string>()
    const outcomes = batch.map(({ buckets, back }) => {
      if (back !== null) takeBack(back, windows, changed)
      return charge(buckets, { windows, changed, now })
    })
    const rows = [...changed].map(key => ({ key, ...(windows.get(key) as Window) }))
    if (rows.length > 0) await writeWindows(trx, rows)
    return { outcomes, windows, now }
  })
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
async function lockWindows(
  database: Database,
  trx: Trx,
  batch: readonly Wish[],
): Promise<{ windows: Map<string, Window>; now: number }> {
  const spans = new Map<string, number>()
  for (const { buckets, back } of batch) {
    if (back !== null && !spans.has(back.key)) spans.set(back.key, 0)
    for (const { key, perMs } of buckets) spans.set(key, perMs)
  }
  const wanted = Array.from(spans, ([key, perMs]) => ({ key, perMs }))
  const { rows } = await sql<Row>`
    insert into bucket (key, used, per_ms, ends_at)
    select value ->> 'key', 0, cast(value ->> 'perMs' as bigint), 0 from ${each(trx, wanted)} order by 1
    on conflict (key) do update set key = excluded.key
    returning key, used, per_ms as "perMs", ends_at as "endsAt", ${serverTime(database)} as now,
      ${unlessIdle}`.execute(trx)
  // Rows that were waited for are later than those before them.
  const now = Math.max(0, ...rows.map(row => row.now))
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

async function read(database: Database, buckets: readonly Bucket[]): Promise<readonly Standing[]> {
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

/** Rows that somebody has at the moment are left to the next time. */
async function sweep(database: Database): Promise<void> {
  await sql`
    delete from bucket where key in (
      select key from bucket where ends_at <= ${serverTime(database)}
      limit ${SWEEP_ROWS_MAX} for update skip locked)`.execute(database.loose)
}

const SWEEP_ROWS_MAX = 10_000
