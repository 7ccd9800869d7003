import type { Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Reader } from '../db/reader.ts'
import type { Schema } from '../db/schema.ts'
import { DAY, HOUR } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { hashEquals, hashSecret } from './key.ts'
import { isExpired } from './key-rights.ts'
import { findPrincipal, type Principal } from './people/principal.ts'
import type { SessionTable } from './tables.ts'

/** A week: users sign in once a week, and a stolen cookie is useless after it. */
export const SESSION_MAX_MS = 7 * DAY

/** Overnight: a session left open on a shared machine has ended the next morning. */
export const SESSION_IDLE_MS = 12 * HOUR

/**
 * Maximum sessions of a key or person: enough for a team that shares one. The oldest end first, so
 * a client that signs in in a loop ends its own.
 */
export const SESSIONS_MAX = 50

/**
 * A token for the browser's cookie and the hash that is stored. The token cannot be derived from
 * the database.
 */
type SessionToken = { readonly token: string; readonly hash: string }

export function newSessionToken(random: Random): SessionToken {
  const token = random.token(TOKEN_LENGTH)
  return { token, hash: hashToken(token) }
}

/**
 * The stored hash of a token. A token has enough entropy that a slow password hash is not needed.
 */
export const hashToken = (token: string): string => hashSecret(token)

/**
 * The CSRF token that the dashboard's own forms send, which another site cannot know. It is derived
 * from the session token, so it is not stored; the session token cannot be derived from it.
 */
export const csrfToken = (token: string): string => hashSecret(`csrf ${token}`)

/** 206 bits of entropy. */
const TOKEN_LENGTH = 40

/** A dashboard session, opened by an API key or a person. */
type Session = {
  /** `ses_…` */
  readonly id: string
  /** ID of the key or of the person. */
  readonly keyId: string
  readonly accountId: string
  /** This and all times below: epoch ms. */
  readonly createdAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  /** End of the grace period of the secret that opened it; null if that secret was not rotated. */
  readonly secretExpiresAt: number | null
  /** Client address and User-Agent at sign-in, not trusted. */
  readonly ip: string
  readonly agent: string
}

export type NewSession = Pick<Session, 'id' | 'keyId' | 'accountId' | 'ip' | 'agent'> & {
  /** Hash of the session token. */
  readonly hash: string
  readonly now: number
  /** End of the grace period, if the session is opened with a rotated secret. */
  readonly secretExpiresAt?: number | null
}

/**
 * Creates a session, which ends with the secret it was opened with at the latest. If the key has
 * too many sessions, those seen longest ago end.
 */
export async function createSession(
  trx: Transaction<Schema>,
  { hash, now, secretExpiresAt = null, ...fields }: NewSession,
): Promise<Session> {
  await evictOldest(trx, fields.keyId)
  const expiresAt = Math.min(now + SESSION_MAX_MS, secretExpiresAt ?? Number.POSITIVE_INFINITY)
  const session = { ...fields, createdAt: now, lastSeenAt: now, expiresAt, secretExpiresAt }
  await trx
    .insertInto('session')
    .values({
      id: session.id,
      hash,
      key_id: session.keyId,
      account_id: session.accountId,
      created_at: now,
      last_seen_at: now,
      expires_at: session.expiresAt,
      secret_expires_at: secretExpiresAt,
      ip: session.ip,
      agent: session.agent,
    })
    .execute()
  return session
}

type FoundSession = Omit<Principal, 'secretExpiresAt'> & { readonly session: Session }

/**
 * Finds the session whose token has this hash. Returns null if there is none or it has ended, and
 * if its key is revoked or expired, or its person was removed. The caller checks whether the key or
 * person may still sign in.
 */
export async function findSession(
  database: Database,
  hash: string,
  now: number,
): Promise<FoundSession | null> {
  const row = await liveSessions(database.reader, now).where('hash', '=', hash).executeTakeFirst()
  if (row === undefined || !hashEquals(row.hash, hash)) return null
  const found = await findPrincipal(database, row.key_id)
  if (found === null) return null
  const { secretExpiresAt: _, ...principal } = found
  if (isExpired(principal.key.expiresAt, now)) return null
  return { session: toSession(row), ...principal }
}

/** Whether a session of a key or person is live. */
export async function isSessionLive(
  db: Reader,
  { id, keyId, now }: Pick<Session, 'id' | 'keyId'> & { readonly now: number },
): Promise<boolean> {
  const query = liveSessions(db, now).where('id', '=', id).where('key_id', '=', keyId)
  return (await query.executeTakeFirst()) !== undefined
}

/** `name` is that of its key or person. */
export type ListedSession = Session & { readonly name: string }

/** Lists the sessions of an account, last seen first. */
export async function listSessions(
  { reader }: Database,
  accountId: string,
  now: number,
): Promise<ListedSession[]> {
  const rows = await liveSessions(reader, now)
    .leftJoin('api_key', 'api_key.id', 'session.key_id')
    .leftJoin('person', 'person.id', 'session.key_id')
    .select(eb => eb.fn.coalesce('person.name', 'api_key.name', eb.val('')).as('name'))
    .where('session.account_id', '=', accountId)
    .where(eb => eb.or([eb('api_key.id', 'is not', null), eb('person.id', 'is not', null)]))
    .where('api_key.revoked_at', 'is', null)
    .where(eb => eb.or([eb('api_key.expires_at', 'is', null), eb('api_key.expires_at', '>', now)]))
    .orderBy('session.last_seen_at', 'desc')
    .orderBy('session.id')
    .execute()
  return rows.map(({ name, ...row }) => ({ ...toSession(row), name }))
}

/** Ends a session. Returns false if the account has no such session. */
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

/** Saves when a session was last seen. The caller decides how often that is worth a write. */
export async function touchSession(
  trx: Transaction<Schema>,
  id: string,
  now: number,
): Promise<void> {
  await trx
    .updateTable('session')
    .set({ last_seen_at: now })
    .where('id', '=', id)
    // A later request may have been written first.
    .where('last_seen_at', '<', now)
    .execute()
}

/** Deletes the sessions of a key that were seen longest ago, to leave room for one more. */
async function evictOldest(trx: Transaction<Schema>, keyId: string): Promise<void> {
  await trx
    .deleteFrom('session')
    .where('id', 'in', query =>
      query
        .selectFrom('session')
        .select('id')
        .where('key_id', '=', keyId)
        .orderBy('last_seen_at', 'desc')
        // PostgreSQL rejects a negative limit, and SQLite an offset without a limit.
        .limit(Number.MAX_SAFE_INTEGER)
        .offset(SESSIONS_MAX - 1),
    )
    .execute()
}

/** Sessions that have reached neither their maximum age nor the idle timeout. */
const liveSessions = (db: Reader, now: number) =>
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
