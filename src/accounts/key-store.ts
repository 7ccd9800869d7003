import type { Kysely, Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { type Account, accountIn } from './account-store.ts'
import { hashEquals, type Secret } from './key.ts'
import { permits, type Scope } from './scope.ts'
import { endSessionsOfKey, endSessionsWithGrace } from './session-end.ts'
import type { ApiKeyTable, KeySecretTable } from './tables.ts'

/** A key of the API, with what may be shown of its newest text. */
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
  /** Web sites, with what lies below them; empty: any. */
  readonly allowedDomains: readonly string[]
  readonly rateLimitPerMinute: number | null
  /** This and all times below: epoch ms. */
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
  readonly revokedAt: number | null
}

export type NewKey = Pick<ApiKey, 'id' | 'accountId'> &
  Required<KeyPatch> & {
    readonly secret: Omit<Secret, 'text'>
    readonly now: number
  }

/** What of a key may be changed later on. */
export type KeyPatch = Partial<
  Pick<
    ApiKey,
    'name' | 'scopes' | 'allowedIps' | 'allowedDomains' | 'rateLimitPerMinute' | 'expiresAt'
  >
>

export async function createKey(trx: Transaction<Schema>, key: NewKey): Promise<ApiKey> {
  const row = {
    ...{ id: key.id, account_id: key.accountId },
    ...{ created_at: key.now, last_used_at: null, revoked_at: null },
    ...columnsOf(key),
  }
  await trx.insertInto('api_key').values(row).execute()
  await addSecret(trx, key.id, key.secret, key.now)
  return toKey({ ...row, ...key.secret })
}

/** A key that a text opens. */
export type FoundKey = {
  readonly key: ApiKey
  readonly account: Account
  /** The end of its grace, epoch ms, when another text has taken its place. */
  readonly secretExpiresAt: number | null
}

/** Whose key it is whose text has this hash; null for one that is unknown or revoked. Whether it has expired the caller tells. */
export async function findKeyByHash({ reader }: Database, hash: string): Promise<FoundKey | null> {
  const row = await reader
    .selectFrom('key_secret as given')
    .innerJoin('api_key', 'api_key.id', 'given.key_id')
    .innerJoin('key_secret as newest', 'newest.key_id', 'api_key.id')
    .selectAll('api_key')
    .select(['newest.prefix', 'newest.hint', 'given.hash', 'given.expires_at as graceEnd'])
    .where('given.hash', '=', hash)
    .where('newest.expires_at', 'is', null)
    .where('api_key.revoked_at', 'is', null)
    .executeTakeFirst()
  if (row === undefined || !hashEquals(row.hash, hash)) return null
  const account = await accountIn(reader, row.account_id)
  return account && { key: toKey(row), account, secretExpiresAt: row.graceEnd }
}

/** Whether a text that opens nothing was the text of a revoked key; false also for one that never was a key. */
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

/** The key of that id, whoever's it is, as for a session that was opened with it; null for one that is unknown or revoked. */
export async function findKeyById({ reader }: Database, id: string): Promise<FoundKey | null> {
  const row = await openKeys(reader).where('api_key.id', '=', id).executeTakeFirst()
  const account = row === undefined ? null : await accountIn(reader, row.account_id)
  return row === undefined || account === null
    ? null
    : { key: toKey(row), account, secretExpiresAt: null }
}

/** The keys of an account that are not revoked, the oldest first. */
export async function listKeys({ db }: Database, accountId: string): Promise<ApiKey[]> {
  const rows = await openKeys(db)
    .where('api_key.account_id', '=', accountId)
    .orderBy('api_key.created_at')
    .orderBy('api_key.id')
    .execute()
  return rows.map(toKey)
}

/** How many they are. */
export async function countKeys(db: Kysely<Schema>, accountId: string): Promise<number> {
  const { count } = await db
    .selectFrom('api_key')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Null for another account's, and for a revoked one; `accountId` null: of any account. */
export async function findKey(
  db: Kysely<Schema>,
  accountId: string | null,
  id: string,
): Promise<ApiKey | null> {
  const row = await openKeys(db)
    .where('api_key.id', '=', id)
    .$if(accountId !== null, query => query.where('api_key.account_id', '=', accountId))
    .executeTakeFirst()
  return row === undefined ? null : toKey(row)
}

/** Changes what is given; who came with a key that may no longer sign in is signed out. Null where there is no such key. */
export async function updateKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  patch: KeyPatch,
): Promise<ApiKey | null> {
  const key = await findKey(trx, accountId, id)
  if (key === null) return null
  noteChange()
  const changed = { ...key, ...patch }
  await trx.updateTable('api_key').set(columnsOf(changed)).where('id', '=', id).execute()
  if (!permits(changed.scopes, 'dashboard')) await endSessionsOfKey(trx, id, null)
  return changed
}

/** Whether no other key of the account is in use: all others are revoked or expired. False for an expired key itself. */
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
    .limit(2)
    .execute()
  return inUse.length === 1 && inUse[0]?.id === id
}

/** From now on none of its texts opens anything, and who came with it is signed out; false when there is no such key. */
export async function revokeKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  now: number,
): Promise<boolean> {
  noteChange()
  const { numUpdatedRows } = await trx
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return false
  // The texts stay, as digests: who still uses one is told that it was revoked.
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
 * Gives the key another text; those that it has go on for `graceMs`. Who came with it is signed out at once, but for
 * the session that asks for this: a text that others may know has perhaps been signed in with. Null where there is no
 * such key.
 */
export async function rotateKey(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  { secret, graceMs, now, keepSession = null }: Rotation,
): Promise<ApiKey | null> {
  const key = await findKey(trx, accountId, id)
  if (key === null) return null
  noteChange()
  const end = now + graceMs
  // One that is in its grace already keeps to the end that it was given.
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

export type Rotation = {
  readonly secret: Omit<Secret, 'text'>
  readonly graceMs: number
  readonly now: number
  /** The session that asks for it. */
  readonly keepSession?: string | null
}

/** Notes when keys were last used, epoch ms by key. */
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

/** How often this process changed keys: whoever keeps one in memory looks again when it moved. */
export const keyChanges = () => changes

let changes = 0
const noteChange = () => void changes++

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
  lastUsedAt: row.last_used_at,
  revokedAt: row.revoked_at,
})

const columnsOf = (key: Required<KeyPatch>) => ({
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

/** Each with its newest text, the one that is not in its grace. */
const openKeys = (db: Kysely<Schema>) =>
  db
    .selectFrom('api_key')
    .innerJoin('key_secret', 'key_secret.key_id', 'api_key.id')
    .selectAll('api_key')
    .select(['key_secret.prefix', 'key_secret.hint'])
    .where('key_secret.expires_at', 'is', null)
    .where('api_key.revoked_at', 'is', null)
