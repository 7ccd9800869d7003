import { sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { serverTime } from '../../db/server-time.ts'
import { inArray, jsonRows } from '../../db/sql-dialect.ts'
import { ALL_EGRESSES } from '../../engine/rate-control/destination-limits.ts'
import { currentStop, type ProbeStop } from '../../engine/rate-control/rules.ts'
import type { RateKey } from '../../engine/rate-control/shared-state.ts'
import { HOUR } from '../../platform/clock.ts'
import type { StoredRate } from './stored-state.ts'

/** A rate state at a version, which grows with each change; 0: there is no row. */
export type RateVersion = RateKey & { readonly version: number }

export type RateRecord = RateVersion & { readonly stored: StoredRate }

/** The rate states at one moment. */
export type RateRead = {
  /** Epoch ms, by the database's clock. */
  readonly now: number
  /** IDs of the members that have not been expired. */
  readonly members: readonly string[]
  readonly records: readonly RateRecord[]
}

type RateQuery = {
  /** States to return if their version has changed. */
  readonly known: readonly RateVersion[]
  /** Also returns the states with a block that changed since this time, epoch ms; null: none. */
  readonly refusedSince: number | null
}

/** Unchanged rows are deleted after this time, which is longer than any pause. */
const RETENTION_MS = 2 * HOUR

/** Reads rate states, and the members at that moment. */
export async function readRates(
  database: Database,
  { known, refusedSince }: RateQuery,
): Promise<RateRead> {
  const db = readerOf(database)
  const { rows } = await sql<ReadRow>`
    with requested as (
      select value ->> 'operator' as operator, value ->> 'egress' as egress,
        cast(value ->> 'version' as bigint) as version
      from ${jsonRows(db, known)}),
    found as (
      select pace.* from requested join pace
        on pace.operator = requested.operator and pace.egress = requested.egress
      where pace.changed_at <> requested.version
      union all
      select * from pace
      where changed_at > ${refusedSince ?? Number.MAX_SAFE_INTEGER} and state like ${HAS_BLOCK})
    select ${serverTime(database)} as now, (select json_agg(id) from member) as members, found.*
    from (select 1) as single_row left join found on true`.execute(db)
  const [first] = rows
  return {
    now: first?.now ?? 0,
    members: first?.members ?? [],
    records: rows.flatMap(toRecords),
  }
}

/** Rate states read per call: operators of a report, each with several egresses. */
const STOPS_READ_MAX = 500

/**
 * Returns why operators are not probed now, by name; times are those of the database's clock. An
 * operator counts as stopped if its limit over all egresses is, or every egress that probed it
 * lately, and then until the first of them continues.
 */
export async function readProbeStops(
  database: Database,
  operators: readonly string[],
): Promise<ReadonlyMap<string, ProbeStop>> {
  if (operators.length === 0) return new Map()
  const db = readerOf(database)
  const { rows } = await sql<StopRow>`
    select operator, egress, state, ${serverTime(database)} as now from pace
    where operator in ${inArray(db, operators)} and changed_at > ${serverTime(database)} - ${RETENTION_MS}
    order by operator, egress limit ${STOPS_READ_MAX}`.execute(db)
  const stops = new Map<string, ProbeStop>()
  for (const [operator, states] of Map.groupBy(rows, row => row.operator)) {
    const [overAll, single] = [true, false].map(isOverAll =>
      states.filter(({ egress }) => (egress === ALL_EGRESSES) === isOverAll).map(toStop),
    )
    const stop = earliest(overAll) ?? earliest(single)
    if (stop !== null) stops.set(operator, stop)
  }
  return stops
}

type StopRow = { operator: string; egress: string; state: string; now: number }

const toStop = ({ state, now }: StopRow) =>
  currentStop((JSON.parse(state) as StoredRate).state, now)

/** Returns the stop that ends first; null if there is none, or if one egress is not stopped. */
function earliest(stops: readonly (ProbeStop | null)[] = []): ProbeStop | null {
  const [first = null] = stops.toSorted((a, b) => (a?.until ?? 0) - (b?.until ?? 0))
  return first
}

/** Connections on which statements do not wait for writers of lists. */
const readerOf = ({ reader }: Database) => reader

type ReadRow = {
  now: number
  members: string[] | null
  operator: string | null
  egress: string
  state: string
  changed_at: number
}

/**
 * Matches only rows with a block: in the stored JSON this text occurs in no other place, because
 * the text of server replies comes after it.
 */
const HAS_BLOCK = '%"refusal":{%'

function toRecords({ operator, egress, state, changed_at }: ReadRow): RateRecord[] {
  if (operator === null) return []
  return [{ operator, egress, version: changed_at, stored: JSON.parse(state) as StoredRate }]
}

export type RateWrite = RateRecord & {
  /** The member that must not have been expired for this write; null: none. */
  readonly member: string | null
}

/**
 * Writes the states that are still at their version, in one statement, so that writers do not wait
 * for each other (optimistic locking). Returns the new versions of those written; the others must
 * be read again.
 */
export async function writeRates(
  database: Database,
  writes: readonly RateWrite[],
): Promise<RateVersion[]> {
  const db = readerOf(database)
  const requested = writes.map(({ stored, ...write }) => ({
    ...write,
    state: JSON.stringify(stored),
  }))
  const { rows } = await sql<RateVersion>`
    with requested as materialized (
      select value ->> 'operator' as operator, value ->> 'egress' as egress,
        cast(value ->> 'version' as bigint) as version, value ->> 'state' as state
      from ${jsonRows(db, requested)}
      where value ->> 'member' is null
        or exists (select 1 from member where id = value ->> 'member')),
    locked as materialized (
      select requested.* from requested join pace
        on pace.operator = requested.operator and pace.egress = requested.egress
      where pace.changed_at = requested.version
      order by pace.operator, pace.egress for update of pace),
    changed as (
      update pace set state = locked.state,
        changed_at = greatest(pace.changed_at + 1, ${serverTime(database)})
      from locked where pace.operator = locked.operator and pace.egress = locked.egress
      returning pace.operator, pace.egress, pace.changed_at as version),
    inserted as (
      insert into pace (operator, egress, state, changed_at)
      select operator, egress, state, ${serverTime(database)} from requested where version = 0
      order by operator, egress
      on conflict do nothing
      returning operator, egress, changed_at as version)
    select * from changed union all select * from inserted`.execute(db)
  return rows
}

/** Deletes the states of operators that have not been used for long. */
export async function deleteRates(database: Database): Promise<void> {
  await database.db
    .deleteFrom('pace')
    .where('changed_at', '<', sql<number>`${serverTime(database)} - ${RETENTION_MS}`)
    .execute()
}
