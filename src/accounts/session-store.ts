import type { Kysely, Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import type { Account } from './account-store.ts'
import { hashEquals } from './key.ts'
import { type ApiKey, findKeyById } from './key-store.ts'
import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSIONS_MAX } from './session.ts'
import type { SessionTable } from './tables.ts'

export { endSessionsOfKey } from './session-end.ts'

/** Somebody who is signed in to the dashboard, with a key. */
export type Session = {
  /** `ses_…` */
  readonly id: string
  readonly keyId: string
  readonly accountId: string
  /** This and all times below: epoch ms. */
  readonly createdAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  /** The end of the grace period of the key's text with which it was opened; null: that text was not replaced. */
  readonly secretExpiresAt: number | null
  /** From where somebody signed in, and with what, as their browser says; foreign text. */
  readonly ip: string
  readonly agent: string
}

export type NewSession = Pick<Session, 'id' | 'keyId' | 'accountId' | 'ip' | 'agent'> & {
  /** Of its token. */
  readonly hash: string
  readonly now: number
  /** The end of its grace, where somebody signs in with a text of the key that another has taken the place of. */
  readonly secretExpiresAt?: number | null
}

/**
 * Signs somebody in, for no longer than the text lasts that they came with. Of a key that has too many sessions those
 * go that were seen longest ago.
 */
export async function createSession(
  trx: Transaction<Schema>,
  { hash, now, secretExpiresAt = null, ...session }: NewSession,
): Promise<Session> {
  await makeRoom(trx, session.keyId)
  const expiresAt = Math.min(now + SESSION_MAX_MS, secretExpiresAt ?? Number.POSITIVE_INFINITY)
  const made = { ...session, createdAt: now, lastSeenAt: now, expiresAt, secretExpiresAt }
  await trx
    .insertInto('session')
    .values({
      ...{ id: made.id, hash, key_id: made.keyId, account_id: made.accountId },
      ...{ created_at: now, last_seen_at: now, expires_at: made.expiresAt },
      secret_expires_at: secretExpiresAt,
      ...{ ip: made.ip, agent: made.agent },
    })
    .execute()
  return made
}

export type FoundSession = {
  readonly session: Session
  readonly key: ApiKey
  readonly account: Account
}

/**
 * Whose session it is whose token has this hash; null for one that is unknown or over, and for one whose key was
 * revoked or has expired. Whether the key may still sign in the caller tells.
 */
export async function findSession(
  database: Database,
  hash: string,
  now: number,
): Promise<FoundSession | null> {
  const row = await liveSessions(database.reader, now).where('hash', '=', hash).executeTakeFirst()
  if (row === undefined || !hashEquals(row.hash, hash)) return null
  const found = await findKeyById(database, row.key_id)
  if (found === null) return null
  const { key, account } = found
  if (key.expiresAt !== null && key.expiresAt <= now) return null
  return { session: toSession(row), key, account }
}

/** A session as others of its account see it. */
export type ListedSession = Session & { readonly keyName: string }

/** Who is signed in to an account, whoever was seen last first. */
export async function listSessions(
  { reader }: Database,
  accountId: string,
  now: number,
): Promise<ListedSession[]> {
  const rows = await liveSessions(reader, now)
    .innerJoin('api_key', 'api_key.id', 'session.key_id')
    .select('api_key.name as keyName')
    .where('session.account_id', '=', accountId)
    .where('api_key.revoked_at', 'is', null)
    .where(eb => eb.or([eb('api_key.expires_at', 'is', null), eb('api_key.expires_at', '>', now)]))
    .orderBy('session.last_seen_at', 'desc')
    .orderBy('session.id')
    .execute()
  return rows.map(({ keyName, ...row }) => ({ ...toSession(row), keyName }))
}

/** Signs one out; false when the account has no such session. */
export async function endSession(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('session')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}

/** Notes that it was seen; how often that is worth a write the caller tells. */
export async function touchSession(
  trx: Transaction<Schema>,
  id: string,
  now: number,
): Promise<void> {
  await trx
    .updateTable('session')
    .set({ last_seen_at: now })
    .where('id', '=', id)
    // What came later may have been written first.
    .where('last_seen_at', '<', now)
    .execute()
}

/** Leaves room for one more session of a key. */
async function makeRoom(trx: Transaction<Schema>, keyId: string): Promise<void> {
  await trx
    .deleteFrom('session')
    .where('id', 'in', query =>
      query
        .selectFrom('session')
        .select('id')
        .where('key_id', '=', keyId)
        .orderBy('last_seen_at', 'desc')
        // PostgreSQL takes no negative number for “all”, and SQLite no offset without a limit.
        .limit(Number.MAX_SAFE_INTEGER)
        .offset(SESSIONS_MAX - 1),
    )
    .execute()
}

/** Those that neither lasted too long nor were left alone too long. */
const liveSessions = (db: Kysely<Schema>, now: number) =>
  db
    .selectFrom('session')
    .selectAll('session')
    .where('session.expires_at', '>', now)
    .where('session.last_seen_at', '>', now - SESSION_IDLE_MS)

const toSession = (row: SessionTable): Session => ({
  id: row.id,
  keyId: row.key_id,
  accountId: row.account_id,
  createdAt: row.created_at,
  lastSeenAt: row.last_seen_at,
  expiresAt: row.expires_at,
  secretExpiresAt: row.secret_expires_at,
  ip: row.ip,
  agent: row.agent,
})
