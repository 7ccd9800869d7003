import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import type { MemberRole } from './tables.ts'

export type NewMember = {
  readonly id: string
  readonly role: MemberRole
  /** For people: its machine and process. */
  readonly name: string
  readonly version: string
  /** Names of the egresses that it asks by. */
  readonly egresses: readonly string[]
}

/** A process that nobody buried. */
export type Member = NewMember & {
  /** Epoch ms, by the database's clock. */
  readonly joinedAt: number
  /** Since it was last heard of, ms. */
  readonly quietMs: number
}

/** Whoever has joined may claim items and hold credits; gives when, by the database's clock. */
export async function register(database: Database, o: NewMember): Promise<number> {
  const now = serverTime(database)
  const { rows } = await sql<{ seen_at: number }>`
    insert into member (id, role, name, version, egresses, joined_at, seen_at)
    values (${o.id}, ${o.role}, ${o.name}, ${o.version}, ${JSON.stringify(o.egresses)}, ${now}, ${now})
    returning seen_at`.execute(membershipConnection(database))
  return rows[0]?.seen_at ?? 0
}

/** A member is heard of: gives when, by the database's clock; null: it was buried. */
export async function heartbeat(database: Database, id: string): Promise<number | null> {
  const { rows } = await sql<{ seen_at: number }>`
    update member set seen_at = ${serverTime(database)} where id = ${id} returning seen_at`.execute(
    membershipConnection(database),
  )
  return rows[0]?.seen_at ?? null
}

/** Members that nobody buried, in the order in which they joined. */
export async function liveMembers(database: Database): Promise<Member[]> {
  const rows = await membershipConnection(database)
    .selectFrom('member')
    .selectAll()
    .select(serverTime(database).as('now'))
    .orderBy('joined_at')
    .orderBy('id')
    .execute()
  return rows.map(({ id, role, name, version, egresses, joined_at, seen_at, now }) => ({
    ...{ id, role, name, version, egresses: JSON.parse(egresses) as string[] },
    ...{ joinedAt: joined_at, quietMs: now - seen_at },
  }))
}

/** Releases what members had claimed, in the transaction that removes them. */
export type ReleaseClaims = (trx: Trx, members: readonly string[]) => Promise<void>

/** Removes a member that ends; others may claim at once what it had. */
export async function deregister(
  database: Database,
  id: string,
  releaseClaims: ReleaseClaims,
): Promise<void> {
  await writeConcurrent(database, async trx => {
    await trx.deleteFrom('member').where('id', '=', id).execute()
    await releaseClaims(trx, [id])
  })
}

export type ReaperIdentity = {
  /** The ID of the member that buries. */
  readonly by: string
  /** Since when it is in touch with the database without a gap, by the database's clock. */
  readonly since: number
  /**
   * When the burier was last heard of, as far as it knows. A beat that came in meanwhile, and is not answered yet, may be
   * the first one after a gap: it buries nobody before it knows.
   */
  readonly heardAt: number
  /** Who was not heard of for so long, while the burier was in touch, is dead. */
  readonly deadMs: number
  /** The burier itself must have been heard of within this time: a database that stood still heard of nobody. */
  readonly freshMs: number
}

/** Removes members whose heartbeats stopped, and releases their claims. Returns their IDs. */
export function expireMembers(
  database: Database,
  o: ReaperIdentity,
  releaseClaims: ReleaseClaims,
): Promise<string[]> {
  const now = serverTime(database)
  return writeConcurrent(database, async trx => {
    // One that is heard of just now, or buried by another, is passed over.
    const { rows } = await sql<{ id: string }>`
      delete from member where id in (
        select id from member as dead
        where id <> ${o.by} and seen_at < ${now} - ${o.deadMs} and ${o.since} < ${now} - ${o.deadMs}
          and exists (
            select 1 from member as burier where id = ${o.by}
              and seen_at >= ${now} - ${o.freshMs} and seen_at <= ${o.heardAt})
        order by id ${isPostgres(trx) ? sql`for update of dead skip locked` : sql``})
      returning id`.execute(trx)
    const ids = rows.map(({ id }) => id)
    await releaseClaims(trx, ids)
    return ids
  })
}

/** After their clock was set back: who was heard of in what is now the future counts from now on. */
export async function fixFutureHeartbeats(database: Database): Promise<void> {
  const now = serverTime(database)
  await sql`update member set seen_at = ${now} where seen_at > ${now}`.execute(
    membershipConnection(database),
  )
}

/** A connection that no other work has to wait for. */
export const membershipConnection = ({ dialect, reader, db }: Database) =>
  dialect === 'postgres' ? reader : db

/**
 * The time by the database's clock, epoch ms, inside a statement: machines that share a database go by the one clock
 * that all of them have. It runs on within a transaction. On SQLite it is that of the process.
 */
export const serverTime = ({ dialect, clock }: Pick<Database, 'dialect' | 'clock'>) =>
  (dialect === 'postgres'
    ? sql`cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)`
    : sql`${clock.now()}`) as RawBuilder<number>

/** The same, read by itself; `db` is the transaction, for use inside one. */
export async function serverNow(
  database: Pick<Database, 'dialect' | 'clock' | 'db'>,
  db: Kysely<Schema> = database.db,
): Promise<number> {
  if (database.dialect === 'sqlite') return database.clock.now()
  const { rows } = await sql<{ now: number }>`select ${serverTime(database)} as now`.execute(db)
  return rows[0]?.now ?? database.clock.now()
}
