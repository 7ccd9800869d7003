import type { Kysely, Transaction } from 'kysely'
import type { LRUCache } from 'lru-cache'
import { countRows } from '../db/count-rows.ts'
import type { Database } from '../db/database.ts'
import type { Reader } from '../db/reader.ts'
import type { Schema } from '../db/schema.ts'
import { SECOND } from '../platform/clock.ts'
import { createLru } from '../platform/lru.ts'
import { type Account, accountIn } from './account-store.ts'
import { hashEquals, isTestPrefix, type Secret } from './key.ts'
import { PUBLISHABLE_SCOPES, permits, type Scope } from './key-rights.ts'
import type { ApiKeyTable, KeySecretTable } from './tables.ts'

/** An API key, with the visible parts of its newest secret. */
export type ApiKey = {
  /** `key_…` */
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly prefix: string
  readonly hint: string
  readonly scopes: readonly Scope[]
  /** Addresses and CIDRs; empty: any. */
  readonly allowedIps: readonly string[]
  /** Domains, each with its subdomains; empty: any. */
  readonly allowedDomains: readonly string[]
  readonly rateLimitPerMinute: number | null
  /** This and all times below: epoch ms. */
  readonly createdAt: number
  readonly expiresAt: number | null
  /** Whether all its requests are in the sandbox. */
  readonly isTest: boolean
  readonly lastUsedAt: number | null
  readonly revokedAt: number | null
}

export type NewKey = Pick<ApiKey, 'id' | 'accountId'> &
  Required<KeyPatch> & {
    readonly secret: Omit<Secret, 'text'>
    readonly now: number
  }

/** The fields of a key that can be changed. */
export type KeyPatch = Partial<
  Pick<
    ApiKey,
    'name' | 'scopes' | 'allowedIps' | 'allowedDomains' | 'rateLimitPerMinute' | 'expiresAt'
  >
>

export async function createKey(trx: Transaction<Schema>, key: NewKey): Promise<ApiKey> {
  const row = {
    id: key.id,
    account_id: key.accountId,
    created_at: key.now,
    last_used_at: null,
    revoked_at: null,
    ...toColumns(key),
  }
  await trx.insertInto('api_key').values(row).execute()
  await addSecret(trx, key.id, key.secret, key.now)
  return toKey({ ...row, ...key.secret })
}

/** A key found by one of its secrets. */
export type FoundKey = {
  readonly key: ApiKey
  readonly account: Account
  /** End of the grace period, epoch ms, if the secret was rotated; null for the newest secret. */
  readonly secretExpiresAt: number | null
}

/**
 * Finds the key whose secret has this hash. Returns null if there is none or it is revoked. The
 * caller checks whether it has expired.
 */
export async function findKeyByHash({ reader }: Database, hash: string): Promise<FoundKey | null> {
  const row = await reader
    .selectFrom('key_secret as used')
    .innerJoin('api_key', 'api_key.id', 'used.key_id')
    .innerJoin('key_secret as newest', 'newest.key_id', 'api_key.id')
    .selectAll('api_key')
    .select(['newest.prefix', 'newest.hint', 'used.hash', 'used.expires_at as graceEnd'])
    .where('used.hash', '=', hash)
    .where('newest.expires_at', 'is', null)
    .where('api_key.revoked_at', 'is', null)
    .executeTakeFirst()
  if (row === undefined || !hashEquals(row.hash, hash)) return null
  const account = await accountIn(reader, row.account_id)
  return account && { key: toKey(row), account, secretExpiresAt: row.graceEnd }
}

/** Whether this is the hash of a secret of a revoked key. False for an unknown hash. */
export async function isRevoked({ reader }: Database, hash: string): Promise<boolean> {
  const row = await reader
    .selectFrom('key_secret')
    .innerJoin('api_key', 'api_key.id', 'key_secret.key_id')
    .select('api_key.id')
    .where('key_secret.hash', '=', hash)
    .where('api_key.revoked_at', 'is not', null)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Finds a key of any account by its ID, for a dashboard session that was opened with it. Returns
 * null if there is none or it is revoked.
 */
export async function findKeyById({ reader }: Database, id: string): Promise<FoundKey | null> {
  const row = await openKeys(reader).where('api_key.id', '=', id).executeTakeFirst()
  const account = row === undefined ? null : await accountIn(reader, row.account_id)
  return row === undefined || account === null
    ? null
    : { key: toKey(row), account, secretExpiresAt: null }
}

/** Lists the keys of an account that are not revoked, oldest first. */
export async function listKeys({ db }: Database, accountId: string): Promise<ApiKey[]> {
  const rows = await openKeys(db)
    .where('api_key.account_id', '=', accountId)
    .orderBy('api_key.created_at')
    .orderBy('api_key.id')
    .execute()
  return rows.map(toKey)
}

/** Counts the keys of an account that are not revoked. */
export async function countKeys(db: Reader, accountId: string): Promise<number> {
  return countRows(
    db.selectFrom('api_key').where('account_id', '=', accountId).where('revoked_at', 'is', null),
  )
}

/**
 * Finds a key of an account that is not revoked; `accountId` null finds it in any account. Returns
 * null if there is none.
 */
export async function findKey(
  db: Reader,
  accountId: string | null,
  id: string,
): Promise<ApiKey | null> {
  const row = await openKeys(db)
    .where('api_key.id', '=', id)
    .$if(accountId !== null, query => query.where('api_key.account_id', '=', accountId))
    .executeTakeFirst()
  return row === undefined ? null : toKey(row)
}

/**
 * Updates the fields in `patch`. Ends the dashboard sessions of a key that loses the scope
 * `dashboard`. Returns null if there is no such key.
 */
export async function updateKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  patch: KeyPatch,
): Promise<ApiKey | null> {
  const key = await findKey(trx, accountId, id)
  if (key === null) return null
  countChange()
  const changed = { ...key, ...patch }
  await trx.updateTable('api_key').set(toColumns(changed)).where('id', '=', id).execute()
  if (!permits(changed.scopes, 'dashboard')) await endSessionsOfKey(trx, id, null)
  return changed
}

/** Whether this is the only secret key of the account that is neither revoked nor expired. */
export async function isLastKey(
  db: Kysely<Schema>,
  accountId: string,
  id: string,
  now: number,
): Promise<boolean> {
  const inUse = await db
    .selectFrom('api_key')
    .select('id')
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .where('scopes', '!=', JSON.stringify(PUBLISHABLE_SCOPES))
    .limit(2)
    .execute()
  return inUse.length === 1 && inUse[0]?.id === id
}

/** Revokes a key and ends its dashboard sessions. Returns false if there is no such key. */
export async function revokeKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  now: number,
): Promise<boolean> {
  countChange()
  const { numUpdatedRows } = await trx
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return false
  // The hashes stay, so that a request with a secret of this key is told that it was revoked.
  await trx
    .updateTable('key_secret')
    .set({ expires_at: now })
    .where('key_id', '=', id)
    .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .execute()
  await endSessionsOfKey(trx, id, null)
  return true
}

/**
 * Issues a new secret. The previous ones stay valid for `graceMs`. All dashboard sessions of the
 * key end at once except `keepSession`, because a secret that leaked may have been used to sign in.
 * Returns null if there is no such key.
 */
export async function rotateKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  { secret, graceMs, now, keepSession = null }: Rotation,
): Promise<ApiKey | null> {
  const key = await findKey(trx, accountId, id)
  if (key === null) return null
  countChange()
  const end = now + graceMs
  // A secret that is in its grace period already keeps the end of that period.
  await trx
    .updateTable('key_secret')
    .set({ expires_at: end })
    .where('key_id', '=', id)
    .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', end)]))
    .execute()
  await trx
    .deleteFrom('key_secret')
    .where('key_id', '=', id)
    .where('expires_at', '<=', now)
    .execute()
  await addSecret(trx, id, secret, now)
  await endSessionsOfKey(trx, id, keepSession)
  await endSessionsWithGrace(trx, id, end)
  return { ...key, prefix: secret.prefix, hint: secret.hint }
}

type Rotation = {
  readonly secret: Omit<Secret, 'text'>
  readonly graceMs: number
  readonly now: number
  /** The dashboard session of the request, which is not ended. */
  readonly keepSession?: string | null
}

/** Saves when keys were last used, epoch ms by key ID. */
export async function touchKeys(
  { db }: Pick<Database, 'db'>,
  times: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [id, last_used_at] of times) {
    await db
      .updateTable('api_key')
      .set({ last_used_at })
      .where('id', '=', id)
      .where(eb => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', last_used_at)]))
      .execute()
  }
}

/** Counts the changes to keys by this process. A cache of keys is stale once the number changes. */
const keyChanges = () => changes

let changes = 0
const countChange = () => void changes++

type KeyRow = ApiKeyTable & Pick<KeySecretTable, 'prefix' | 'hint'>

const toKey = (row: KeyRow): ApiKey => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  prefix: row.prefix,
  hint: row.hint,
  scopes: JSON.parse(row.scopes),
  allowedIps: JSON.parse(row.allowed_ips),
  allowedDomains: JSON.parse(row.allowed_domains),
  rateLimitPerMinute: row.rate_limit_per_minute,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  isTest: isTestPrefix(row.prefix),
  lastUsedAt: row.last_used_at,
  revokedAt: row.revoked_at,
})

const toColumns = (key: Required<KeyPatch>) => ({
  name: key.name,
  scopes: JSON.stringify(key.scopes),
  allowed_ips: JSON.stringify(key.allowedIps),
  allowed_domains: JSON.stringify(key.allowedDomains),
  rate_limit_per_minute: key.rateLimitPerMinute,
  expires_at: key.expiresAt,
})

function addSecret(
  trx: Transaction<Schema>,
  key_id: string,
  { hash, prefix, hint }: Omit<Secret, 'text'>,
  created_at: number,
) {
  const row = { hash, key_id, prefix, hint, created_at, expires_at: null }
  return trx.insertInto('key_secret').values(row).execute()
}

/** Keys that are not revoked, each with its newest secret. */
const openKeys = (db: Reader) =>
  db
    .selectFrom('api_key')
    .innerJoin('key_secret', 'key_secret.key_id', 'api_key.id')
    .selectAll('api_key')
    .select(['key_secret.prefix', 'key_secret.hint'])
    .where('key_secret.expires_at', 'is', null)
    .where('api_key.revoked_at', 'is', null)

/** Time within which a change to a key by another process takes effect here. */
const FRESH_MS = SECOND

/** Size of the cache, in keys; about 1 KB each. */
const KEYS_MAX = 10_000

/**
 * Finds a key by its hash, as `findKeyByHash`, and caches it for a second. A change by this process
 * takes effect at once, a change by another process (`ev keys revoke`) within a second. Requests at
 * the same time share a lookup. A hash without a key is not cached, because a client can send any
 * number of those.
 */
export function getCachedKey(
  database: Database,
  hash: string,
): FoundKey | Promise<FoundKey | null> {
  const cache = cacheFor(database)
  const [now, changes] = [database.clock.monotonicNow(), keyChanges()]
  const cached = cache.get(hash)
  if (cached?.changes === changes && now < cached.freshUntil) return cached.found
  const found = findKeyByHash(database, hash)
  const lookup: CachedKey = { found, changes, freshUntil: now + FRESH_MS }
  cache.set(hash, lookup)
  const forget = () => {
    if (cache.peek(hash) === lookup) cache.delete(hash)
  }
  found.then(key => {
    if (key === null) forget()
    else lookup.found = key
  }, forget)
  return found
}

type CachedKey = {
  /** The key once it is read. */
  found: FoundKey | Promise<FoundKey | null>
  readonly changes: number
  readonly freshUntil: number
}

const caches = new WeakMap<Database, LRUCache<string, CachedKey>>()

function cacheFor(database: Database): LRUCache<string, CachedKey> {
  const cache = caches.get(database) ?? createLru<CachedKey>(KEYS_MAX)
  caches.set(database, cache)
  return cache
}

/**
 * Limits the sessions that were opened with a rotated secret of a key to the end of its grace
 * period, epoch ms.
 */
async function endSessionsWithGrace(
  trx: Transaction<Schema>,
  keyId: string,
  end: number,
): Promise<void> {
  await trx
    .updateTable('session')
    .set({ expires_at: end, secret_expires_at: end })
    .where('key_id', '=', keyId)
    .where('secret_expires_at', '>', end)
    .execute()
}

/** Ends all sessions of a key except one. Returns how many ended. */
export async function endSessionsOfKey(
  trx: Transaction<Schema>,
  keyId: string,
  except: string | null,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('session')
    .where('key_id', '=', keyId)
    .where('id', '!=', except ?? '')
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
