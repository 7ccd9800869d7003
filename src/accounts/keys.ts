import { type AuditServices, addAuditEntry } from '../audit.ts'
import { type BeforeCommit, type Database, type Trx, write, writeWith } from '../db/database.ts'
import type { Random } from '../platform/random.ts'
import { accountIn } from './account-store.ts'
import { accountError } from './errors.ts'
import { newSecret } from './key.ts'
import {
  exceedingRights,
  isPublishable,
  type KeyRights,
  permits,
  UNRESTRICTED,
} from './key-rights.ts'
import {
  type ApiKey,
  countKeys,
  findKey,
  createKey as insertRow,
  isLastKey,
  type KeyPatch,
  revokeKey as revokeRow,
  rotateKey as rotateRow,
  updateKey as updateRow,
} from './key-store.ts'
import { parseName } from './name.ts'
import { findPlan, KEYS_MAX, type Plan } from './plan.ts'

/**
 * Requests per minute of a publishable key if none are given: a visitor can copy the key, and its
 * account pays for the verifications. Few sites have more sign-ups.
 */
export const PUBLISHABLE_KEY_RATE = 120

type KeyServices = AuditServices & { readonly database: Database }

/**
 * The rights of the key that makes the request; it can neither create nor change a key that exceeds
 * them. Null for the admin, who is not restricted.
 */
type Actor = KeyRights | null

export type KeyTarget = {
  readonly keyId: string
  /** Null for a key of any account, as the admin may address. */
  readonly accountId: string | null
  readonly actor: Actor
}

export type KeyInput = Pick<ApiKey, 'accountId' | 'name' | 'scopes'> &
  Omit<KeyPatch, 'name' | 'scopes'> &
  Pick<KeyRights, 'isTest'> & { readonly actor: Actor }

export type KeyWithSecret = {
  readonly key: ApiKey
  /** The secret. Only the caller gets it: the database stores its hash. */
  readonly text: string
}

/** Returns a key. Throws `key_not_found`, also for a revoked key and one of another account. */
export async function getKey(
  { database }: Pick<KeyServices, 'database'>,
  target: Pick<KeyTarget, 'keyId' | 'accountId'>,
): Promise<ApiKey> {
  return (await findKey(database.reader, target.accountId, target.keyId)) ?? keyNotFound(target)
}

/**
 * Creates a key. A restriction that is not set is inherited from the actor. A publishable key,
 * which has `PUBLISHABLE_SCOPES`, needs allowed domains. Throws `name_invalid`, `expiry_past`,
 * `rights_exceeded`, `domains_required` and `key_limit_reached`.
 */
export async function createKey(
  services: KeyServices & { readonly plans: ReadonlyMap<string, Plan> },
  { accountId, actor, name, ...restrictions }: KeyInput,
  beforeCommit?: BeforeCommit<KeyWithSecret>,
): Promise<KeyWithSecret> {
  const { database, clock, random } = services
  const now = clock.now()
  requireFuture(restrictions.expiresAt, now)
  const inherited = actor ?? UNRESTRICTED
  const rate =
    inherited.rateLimitPerMinute ?? (isPublishable(restrictions) ? PUBLISHABLE_KEY_RATE : null)
  const rights = withKind({ ...inherited, rateLimitPerMinute: rate, ...restrictions })
  requireWithin(actor, rights)
  requireDomains(rights)
  const { text, ...secret } = newSecret(random, kindOf(rights))
  const fields = { name: parseName(name), ...pickRights(rights) }
  const row = { ...fields, id: newKeyId(random), accountId, secret, now }
  const insert = async (trx: Trx) => {
    await requireKeyPlace(trx, services.plans, accountId)
    const key = await insertRow(trx, row)
    await addAuditEntry(trx, services, { action: 'key.created', accountId, target: key })
    return { key, text }
  }
  return writeWith(database, insert, beforeCommit)
}

async function requireKeyPlace(
  trx: Trx,
  plans: ReadonlyMap<string, Plan>,
  accountId: string,
): Promise<void> {
  const account = await accountIn(trx, accountId)
  const plan = findPlan(plans, account?.plan ?? '')
  const max = Math.min(plan.keys ?? KEYS_MAX, KEYS_MAX)
  const count = await countKeys(trx, accountId)
  if (count >= max) throw accountError('key_limit_reached', { count, max, plan: plan.name })
}

export const newKeyId = (random: Random) => `key_${random.token(ID_LENGTH)}`

const ID_LENGTH = 16

/**
 * Updates the fields in `patch`. Throws `key_not_found`, `name_invalid`, `expiry_past`,
 * `rights_exceeded`, and for a publishable key `domains_required` and `scopes_fixed`.
 */
export async function updateKey(
  services: KeyServices,
  { patch: changes, ...target }: KeyTarget & { readonly patch: KeyPatch },
): Promise<ApiKey> {
  requireFuture(changes.expiresAt, services.clock.now())
  const { name } = changes
  const patch = { ...changes, ...(name === undefined ? {} : { name: parseName(name) }) }
  return write(services.database, async trx => {
    const { accountId, ...key } = await manageableKey(trx, target)
    if (isPublishable(key) && patch.scopes !== undefined) {
      throw accountError('scopes_fixed', {})
    }
    const rights = { ...key, ...patch }
    requireWithin(target.actor, rights)
    requireDomains(rights)
    const updated = (await updateRow(trx, accountId, key.id, patch)) ?? keyNotFound(target)
    const changed = Object.keys(patch)
    await addAuditEntry(trx, services, {
      action: 'key.updated',
      accountId,
      target: updated,
      changed,
    })
    return updated
  })
}

export type RotatedKey = KeyWithSecret & {
  /** When the previous secret stops working, epoch ms. */
  readonly previousExpiresAt: number
}

type Rotation = {
  /** At most `KEY_GRACE_MAX_MS`. */
  readonly graceMs: number
  /** The dashboard session of the request; all others of the key end. */
  readonly keepSession?: string | null
}

/**
 * Issues a new secret; the previous one stays valid for `graceMs`. Throws `key_not_found` and
 * `rights_exceeded`.
 */
export async function rotateKey(
  services: KeyServices,
  { graceMs, keepSession = null, ...target }: KeyTarget & Rotation,
  beforeCommit?: BeforeCommit<RotatedKey>,
): Promise<RotatedKey> {
  const { database, clock, random } = services
  const now = clock.now()
  const rotate = async (trx: Trx) => {
    const current = await manageableKey(trx, target)
    const { accountId, id } = current
    const { text, ...secret } = newSecret(random, kindOf(current))
    const rotation = { secret, graceMs, now, keepSession }
    const key = (await rotateRow(trx, accountId, id, rotation)) ?? keyNotFound(target)
    await addAuditEntry(trx, services, { action: 'key.rotated', accountId, target: key })
    return { key, text, previousExpiresAt: now + graceMs }
  }
  return writeWith(database, rotate, beforeCommit)
}

/**
 * Revokes a key and returns its state before. Throws `key_not_found`, `rights_exceeded` and, unless
 * `isForced`, `last_key` if no other key of the account is in use.
 */
export async function revokeKey(
  services: KeyServices,
  { isForced, ...target }: KeyTarget & { readonly isForced: boolean },
): Promise<ApiKey> {
  return write(services.database, async trx => {
    const key = await manageableKey(trx, target)
    const { accountId, id } = key
    const now = services.clock.now()
    if (!isForced && (await isLastKey(trx, accountId, id, now))) {
      const account = await accountIn(trx, accountId)
      throw accountError('last_key', { id, accountName: account?.name ?? accountId })
    }
    await revokeRow(trx, accountId, id, now)
    await addAuditEntry(trx, services, { action: 'key.revoked', accountId, target: key })
    return key
  })
}

async function manageableKey(trx: Trx, target: KeyTarget): Promise<ApiKey> {
  const key = (await findKey(trx, target.accountId, target.keyId)) ?? keyNotFound(target)
  requireWithin(target.actor, key)
  return key
}

/**
 * A key can create, change, rotate and revoke only keys whose rights do not exceed its own, itself
 * included. Otherwise it could raise its own rights.
 */
function requireWithin(actor: Actor, key: KeyRights): void {
  if (actor === null) return
  const rights = exceedingRights(key, actor)
  if (rights.length === 0) return
  const scopes = key.scopes.filter(scope => !permits(actor.scopes, scope))
  throw accountError('rights_exceeded', { rights, scopes })
}

/** A publishable key is never a test key. */
const withKind = (rights: KeyRights): KeyRights =>
  isPublishable(rights) ? { ...rights, isTest: false } : rights

const kindOf = (key: Pick<KeyRights, 'scopes' | 'isTest'>) =>
  isPublishable(key) ? 'pub' : key.isTest ? 'test' : 'live'

/** A publishable key without domains could be used by every website. */
function requireDomains(key: KeyRights): void {
  if (isPublishable(key) && key.allowedDomains.length === 0) {
    throw accountError('domains_required', {})
  }
}

function requireFuture(expiresAt: number | null | undefined, now: number): void {
  if (expiresAt === undefined || expiresAt === null || expiresAt > now) return
  throw accountError('expiry_past', { expiresAt })
}

function keyNotFound({ keyId: id }: Pick<KeyTarget, 'keyId'>): never {
  throw accountError('key_not_found', { id })
}

/** Drops the fields that are not rights: an actor may be a complete `ApiKey`. */
const pickRights = (key: KeyRights): KeyRights => ({
  scopes: key.scopes,
  allowedIps: key.allowedIps,
  allowedDomains: key.allowedDomains,
  rateLimitPerMinute: key.rateLimitPerMinute,
  expiresAt: key.expiresAt,
})
