import { sql } from 'kysely'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { serverTime } from '../db/server-time.ts'
import { inArray, jsonRows } from '../db/sql-dialect.ts'
import type { CatchAllStore, KnownCatchAll } from '../engine/probe/shared-catch-all.ts'
import { Batcher } from '../platform/batcher.ts'
import { MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { CLUSTER_LOG } from './telemetry.ts'

/**
 * Maximum pending writes; beyond it results are dropped, and other members probe these domains
 * again.
 */
const PENDING_MAX = 5_000
const DELETED_MAX = 10_000

/** Catch-all results of all members, in the table `catch_all`. */
interface SharedCatchAll extends CatchAllStore {
  /** Writes pending results; later ones are dropped. */
  close(): Promise<unknown>
}

type CatchAllDeps = {
  readonly database: Database
  readonly log: Log
  readonly timings?: CatchAllTimings
}

export function openCatchAll(deps: CatchAllDeps): SharedCatchAll {
  const { database, log, timings = DEFAULT_CATCH_ALL_TIMINGS } = deps
  const { clock } = database
  let deletedAt = clock.monotonicNow()
  const results = new Batcher<CatchAllResult>({
    clock,
    waitMs: timings.batchMs,
    sizeMax: PENDING_MAX,
    keyOf: ({ domain }) => domain,
    async run(domains) {
      await putCatchAllDomains(database, domains)
      if (clock.monotonicNow() - deletedAt < timings.deleteEveryMs) return
      deletedAt = clock.monotonicNow()
      await deleteCatchAllDomains(database)
    },
    onFailure(error) {
      writeLog(log, CLUSTER_LOG.catchAllNotShared, { error: errorMessage(error) })
      return 'reject'
    },
  })
  return {
    get: domains => getCatchAllDomains(database, domains),
    set(domain, result) {
      if (results.pending < PENDING_MAX) void results.add({ domain, ...result })
    },
    close: () => results.close(),
  }
}

type CatchAllResult = KnownCatchAll & { readonly domain: string }

async function getCatchAllDomains(
  database: Database,
  domains: readonly string[],
): Promise<Map<string, KnownCatchAll>> {
  const { reader } = database
  const { rows } = await sql<{ domain: string; catchAll: number; keepMs: number }>`
    select domain, catch_all as "catchAll", keep_until - ${serverTime(database)} as "keepMs"
    from catch_all
    where domain in ${inArray(reader, domains)} and keep_until > ${serverTime(database)}`.execute(
    reader,
  )
  return new Map(
    rows.map(({ domain, catchAll, keepMs }) => [domain, { catchAll: catchAll === 1, keepMs }]),
  )
}

/** Sorted by domain, so that concurrent writers cannot deadlock. */
async function putCatchAllDomains(
  database: Database,
  results: readonly CatchAllResult[],
): Promise<void> {
  const rows = results
    .map(({ domain, catchAll, keepMs }) => ({ domain, catchAll: catchAll ? 1 : 0, keepMs }))
    .sort((a, b) => (a.domain < b.domain ? -1 : 1))
  await writeAsyncCommit(database, db =>
    sql`
      insert into catch_all (domain, catch_all, keep_until)
      select value ->> 'domain', cast(value ->> 'catchAll' as integer),
        cast(value ->> 'keepMs' as bigint) + ${serverTime(database)}
      from ${jsonRows(db, rows)} where true
      on conflict (domain) do update
      set catch_all = excluded.catch_all, keep_until = excluded.keep_until`.execute(db),
  )
}

async function deleteCatchAllDomains(database: Database): Promise<void> {
  await writeAsyncCommit(database, db =>
    sql`
      delete from catch_all where domain in (
        select domain from catch_all where keep_until <= ${serverTime(database)}
        order by domain limit ${DELETED_MAX})`.execute(db),
  )
}

/** Intervals of the shared catch-all results, in ms. */
export type CatchAllTimings = {
  /** Results of this period are written in one batch. */
  readonly batchMs: number
  /** Interval between deletions of expired results. */
  readonly deleteEveryMs: number
}

export const DEFAULT_CATCH_ALL_TIMINGS: CatchAllTimings = {
  batchMs: SECOND,
  deleteEveryMs: 10 * MINUTE,
}
