import { sql } from 'kysely'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { inArray, jsonRows } from '../db/sql-dialect.ts'
import type { CatchAllStore, KnownCatchAll } from '../engine/probe/shared-catch-all.ts'
import { Batcher } from '../platform/batcher.ts'
import { MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import { serverTime } from './members.ts'

/** What waits to be written; beyond it a domain that was found is asked again by others. */
const WAITING_MAX = 5_000
const FORGET_MAX = 10_000

/** Which domains take mail for everybody, as all members of a cluster found it, in the table `catch_all`. */
export interface SharedCatchAll extends CatchAllStore {
  /** Writes what is not written yet, and nothing after that. */
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
  let forgotAt = clock.monotonicNow()
  const found = new Batcher<Found>({
    ...{ clock, waitMs: timings.gatherMs, sizeMax: WAITING_MAX, keyOf: ({ domain }) => domain },
    async run(domains) {
      await putCatchAllDomains(database, domains)
      if (clock.monotonicNow() - forgotAt < timings.forgetEveryMs) return
      forgotAt = clock.monotonicNow()
      await deleteCatchAllDomains(database)
    },
    onFailure(error) {
      log.warn('what domains take could not be shared', { error: errorMessage(error) })
      return 'reject'
    },
  })
  return {
    get: domains => getCatchAllDomains(database, domains),
    set(domain, known) {
      if (found.pending < WAITING_MAX) void found.add({ domain, ...known })
    },
    close: () => found.close(),
  }
}

type Found = KnownCatchAll & { readonly domain: string }

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

/** In the order of the domains, as all do, so that no two wait for one another. */
async function putCatchAllDomains(database: Database, found: readonly Found[]): Promise<void> {
  const given = found
    .map(({ domain, catchAll, keepMs }) => ({ domain, catchAll: catchAll ? 1 : 0, keepMs }))
    .sort((a, b) => (a.domain < b.domain ? -1 : 1))
  await writeAsyncCommit(database, db =>
    sql`
      insert into catch_all (domain, catch_all, keep_until)
      select value ->> 'domain', cast(value ->> 'catchAll' as integer),
        cast(value ->> 'keepMs' as bigint) + ${serverTime(database)}
      from ${jsonRows(db, given)} where true
      on conflict (domain) do update
      set catch_all = excluded.catch_all, keep_until = excluded.keep_until`.execute(db),
  )
}

async function deleteCatchAllDomains(database: Database): Promise<void> {
  await writeAsyncCommit(database, db =>
    sql`
      delete from catch_all where domain in (
        select domain from catch_all where keep_until <= ${serverTime(database)}
        order by domain limit ${FORGET_MAX})`.execute(db),
  )
}

/** Intervals by which processes share which domains accept all mail, in ms. */
export type CatchAllTimings = {
  /** Findings of so much time are written together. */
  readonly gatherMs: number
  /** How often findings that are out of date are deleted. */
  readonly forgetEveryMs: number
}

export const DEFAULT_CATCH_ALL_TIMINGS: CatchAllTimings = {
  gatherMs: SECOND,
  forgetEveryMs: 10 * MINUTE,
}
