import { sql } from 'kysely'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { serverTime } from '../db/server-time.ts'
import { inArray, jsonRows } from '../db/sql-dialect.ts'
import type { CatchAllStore, KnownCatchAll } from '../engine/probe/shared-catch-all.ts'
import type { Log } from '../platform/log.ts'
import {
  BackgroundWriter,
  DEFAULT_WRITER_TIMINGS,
  type WriterTimings,
} from './background-writer.ts'
import { CLUSTER_LOG } from './telemetry.ts'

const DELETED_MAX = 10_000

/** Catch-all results of all members, in the table `catch_all`. */
interface SharedCatchAll extends CatchAllStore {
  /** Writes pending results; later ones are dropped. */
  close(): Promise<unknown>
}

type CatchAllDeps = {
  readonly database: Database
  readonly log: Log
  readonly timings?: WriterTimings
}

export function openCatchAll(deps: CatchAllDeps): SharedCatchAll {
  const { database, log, timings = DEFAULT_WRITER_TIMINGS } = deps
  const writer = new BackgroundWriter<CatchAllResult>({
    database,
    log,
    failed: CLUSTER_LOG.catchAllNotShared,
    keyOf: ({ domain }) => domain,
    put: results => putCatchAllDomains(database, results),
    deleteExpired: () => deleteCatchAllDomains(database),
    timings,
  })
  return {
    get: domains => getCatchAllDomains(database, domains),
    set: (domain, result) => writer.add({ domain, ...result }),
    close: () => writer.close(),
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
