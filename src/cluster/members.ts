import { sql } from 'kysely'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import { serverTime } from '../db/server-time.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import type { MemberRole } from './tables.ts'

export type NewMember = {
  readonly id: string
  readonly role: MemberRole
  /** Display name: host and process. */
  readonly name: string
  readonly version: string
  /** Names of its egresses. */
  readonly egresses: readonly string[]
}

/** A member that has not been expired. */
export type Member = NewMember & {
  /** Epoch ms, by the database's clock. */
  readonly joinedAt: number
  /** Age of its last heartbeat, ms. */
  readonly quietMs: number
}

/**
 * Registers a member, which may then claim items and reserve credits. Returns the time by the
 * database's clock.
 */
export async function register(database: Database, o: NewMember): Promise<number> {
  const now = serverTime(database)
  const { rows } = await sql<{ seen_at: number }>`
    insert into member (id, role, name, version, egresses, joined_at, seen_at)
    values (${o.id}, ${o.role}, ${o.name}, ${o.version}, ${JSON.stringify(o.egresses)}, ${now}, ${now})
    returning seen_at`.execute(membershipConnection(database))
  return rows[0]?.seen_at ?? 0
}

/**
 * Writes a heartbeat. Returns its time by the database's clock, or null if the member was expired.
 */
export async function heartbeat(database: Database, id: string): Promise<number | null> {
  const { rows } = await sql<{ seen_at: number }>`
    update member set seen_at = ${serverTime(database)} where id = ${id} returning seen_at`.execute(
    membershipConnection(database),
  )
  return rows[0]?.seen_at ?? null
}

/** Lists the members that have not been expired, in order of registration. */
export async function listMembers(database: Database): Promise<Member[]> {
  const rows = await membershipConnection(database)
    .selectFrom('member')
    .selectAll()
    .select(serverTime(database).as('now'))
    .orderBy('joined_at')
    .orderBy('id')
    .execute()
  return rows.map(({ id, role, name, version, egresses, joined_at, seen_at, now }) => ({
    id,
    role,
    name,
    version,
    egresses: JSON.parse(egresses) as string[],
    joinedAt: joined_at,
    quietMs: now - seen_at,
  }))
}

/** Releases the claims of members, in the transaction that removes them. */
export type ReleaseClaims = (trx: Trx, members: readonly string[]) => Promise<void>

/** Removes a member that shuts down; its claims are free at once. */
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

type ReaperIdentity = {
  /** ID of the member that expires others. */
  readonly by: string
  /** Start of its current series of heartbeats without a gap, by the database's clock. */
  readonly since: number
  /**
   * Time of its last heartbeat, as far as it knows. A later heartbeat that is written but not yet
   * confirmed may be the first one after a gap: until it is confirmed, the member expires no
   * others.
   */
  readonly lastBeatAt: number
  /**
   * A member whose last heartbeat is older than this has expired, if the reaper had contact
   * throughout.
   */
  readonly expiryMs: number
  /** Maximum age of the reaper's own last heartbeat: a database that was down received none. */
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
    // Skips a member that is writing a heartbeat or being expired by another one.
    const { rows } = await sql<{ id: string }>`
      delete from member where id in (
        select id from member as expired
        where id <> ${o.by} and seen_at < ${now} - ${o.expiryMs} and ${o.since} < ${now} - ${o.expiryMs}
          and exists (
            select 1 from member as reaper where id = ${o.by}
              and seen_at >= ${now} - ${o.freshMs} and seen_at <= ${o.lastBeatAt})
        order by id ${isPostgres(trx) ? sql`for update of expired skip locked` : sql``})
      returning id`.execute(trx)
    const ids = rows.map(({ id }) => id)
    await releaseClaims(trx, ids)
    return ids
  })
}

/** Resets heartbeats that lie in the future after the database's clock was set back. */
export async function fixFutureHeartbeats(database: Database): Promise<void> {
  const now = serverTime(database)
  await sql`update member set seen_at = ${now} where seen_at > ${now}`.execute(
    membershipConnection(database),
  )
}

/** A connection on which heartbeats do not wait for other work. */
export const membershipConnection = ({ dialect, reader, db }: Database) =>
  dialect === 'postgres' ? reader : db
