import { sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { jsonRows } from '../../db/sql-dialect.ts'
import type { RateKey } from '../../engine/rate-control/shared-state.ts'
import { HOUR } from '../../platform/clock.ts'
import { serverTime } from '../members.ts'
import type { StoredRate } from './stored-state.ts'

/** A pace at a version, which grows with each change; 0: there is no row. */
export type RateVersion = RateKey & { readonly version: number }

export type RateRecord = RateVersion & { readonly stored: StoredRate }

/** What was seen of the paces, all at one moment. */
export type RateRead = {
  /** Epoch ms, by the database's clock. */
  readonly now: number
  /** The IDs of the members that nobody buried. */
  readonly members: readonly string[]
  readonly records: readonly RateRecord[]
}

export type RateQuery = {
  /** Those whose version is another by now are told. */
  readonly known: readonly RateVersion[]
  /** And all in which an operator refuses us, changed since this time, epoch ms; null: not asked for. */
  readonly refusedSince: number | null
}

/** A row that nobody changed for so long is forgotten. Longer than any pause. */
const KEEP_MS = 2 * HOUR

/** Looks at paces, and at who is a member at that moment. */
export async function readRates(
  database: Database,
  { known, refusedSince }: RateQuery,
): Promise<RateRead> {
  const db = lineOf(database)
  const { rows } = await sql<ReadRow>`
    with given as (
      select value ->> 'operator' as operator, value ->> 'egress' as egress,
        cast(value ->> 'version' as bigint) as version
      from ${jsonRows(db, known)}),
    found as (
      select pace.* from given join pace
        on pace.operator = given.operator and pace.egress = given.egress
      where pace.changed_at <> given.version
      union all
      select * from pace
      where changed_at > ${refusedSince ?? Number.MAX_SAFE_INTEGER} and state like ${REFUSED})
    select ${serverTime(database)} as now, (select json_agg(id) from member) as members, found.*
    from (select 1) as one left join found on true`.execute(db)
  const [first] = rows
  return {
    now: first?.now ?? 0,
    members: first?.members ?? [],
    records: rows.flatMap(recordOf),
  }
}

/** Connections on which nobody waits for other writers. */
const lineOf = ({ reader }: Database) => reader

type ReadRow = {
  now: number
  members: string[] | null
  operator: string | null
  egress: string
  state: string
  changed_at: number
}

/** In a state of ours a brace stands there in no other case; what servers said stands behind it. */
const REFUSED = '%"refusal":{%'

function recordOf({ operator, egress, state, changed_at }: ReadRow): RateRecord[] {
  if (operator === null) return []
  return [{ operator, egress, version: changed_at, stored: JSON.parse(state) as StoredRate }]
}

export type RateWrite = RateRecord & {
  /** Who must be a member for this to be written; null: nobody. */
  readonly member: string | null
}

/**
 * Writes those paces that are still at their version, in one statement, so that nobody waits for whoever thinks about
 * one. Gives what was written, with the new versions; the others are to be looked at again.
 */
export async function writeRates(
  database: Database,
  writes: readonly RateWrite[],
): Promise<RateVersion[]> {
  const db = lineOf(database)
  const given = writes.map(({ stored, ...write }) => ({ ...write, state: JSON.stringify(stored) }))
  const { rows } = await sql<RateVersion>`
    with given as materialized (
      select value ->> 'operator' as operator, value ->> 'egress' as egress,
        cast(value ->> 'version' as bigint) as version, value ->> 'state' as state
      from ${jsonRows(db, given)}
      where value ->> 'member' is null
        or exists (select 1 from member where id = value ->> 'member')),
    taken as materialized (
      select given.* from given join pace
        on pace.operator = given.operator and pace.egress = given.egress
      where pace.changed_at = given.version
      order by pace.operator, pace.egress for update of pace),
    changed as (
      update pace set state = taken.state,
        changed_at = greatest(pace.changed_at + 1, ${serverTime(database)})
      from taken where pace.operator = taken.operator and pace.egress = taken.egress
      returning pace.operator, pace.egress, pace.changed_at as version),
    made as (
      insert into pace (operator, egress, state, changed_at)
      select operator, egress, state, ${serverTime(database)} from given where version = 0
      order by operator, egress
      on conflict do nothing
      returning operator, egress, changed_at as version)
    select * from changed union all select * from made`.execute(db)
  return rows
}

/** Forgets operators that nobody asked for long. */
export async function deleteRates(database: Database): Promise<void> {
  await lineOf(database)
    .deleteFrom('pace')
    .where('changed_at', '<', sql<number>`${serverTime(database)} - ${KEEP_MS}`)
    .execute()
}
