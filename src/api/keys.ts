import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { KEY_GRACE_MS } from '../accounts/key.ts'
import { type KeyRights, PUBLISHABLE_SCOPES } from '../accounts/key-rights.ts'
import { type KeyPatch, listKeys } from '../accounts/key-store.ts'
import {
  createKey,
  getKey,
  type KeyTarget,
  type KeyWithSecret,
  type RotatedKey as RotatedKeyText,
  revokeKey,
  rotateKey,
  updateKey,
} from '../accounts/keys.ts'
import { presentKey } from '../accounts/present-key.ts'
import { SECOND } from '../platform/clock.ts'
import { isoTime } from '../platform/format.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Caller, Env } from './context.ts'
import { answerWith, type IdempotencyDeps } from './middleware/idempotency.ts'
import { withOrigin } from './request-context.ts'
import { newRouter, route } from './route.ts'
import { json } from './schemas/answers.ts'
import { idParams } from './schemas/fields.ts'
import {
  CreatedKey,
  KeyAnswer,
  KeyDeletionQuery,
  KeyList,
  KeyPatchRequest,
  NEW_KEY_EXAMPLE,
  NewKeyRequest,
  RotatedKey,
  RotateRequest,
} from './schemas/key.ts'

export type KeyDeps = Pick<ApiDeps, 'database' | 'guard' | 'random' | 'settings'> & IdempotencyDeps

export function keyRoutes(service: KeyDeps) {
  const router = newRouter()
  router.include(keyCreateRoutes(service))
  router.include(keyChangeRoutes(service))
  return router
}

/** Routes that get, update, rotate and delete one key. */
function keyChangeRoutes(service: KeyDeps) {
  const router = newRouter()

  const get = route(service, 'GET /v1/keys/{id}', {
    id: 'getKey',
    summary: 'Get an API key',
    scope: 'keys:write',
    params,
    answer: json(KeyAnswer, 'The key'),
  })
  router.handle(get, async c => {
    const { actor: _, ...target } = keyTarget(c, c.req.valid('param'))
    const key = await getKey(service, target)
    return c.json({ success: true as const, data: presentKey(key) }, 200)
  })

  const change = route(service, 'PATCH /v1/keys/{id}', {
    id: 'updateKey',
    summary: 'Update an API key',
    description:
      'Fields that you omit keep their values. The change applies to the next request. A key can reduce its own permissions, not extend them.',
    scope: 'keys:write',
    params,
    body: {
      schema: KeyPatchRequest,
      example: { name: 'CI of the shop', rate_limit_per_minute: 600 },
      max: KEY_BODY_MAX,
    },
    answer: json(KeyAnswer, 'The key'),
  })
  router.handle(change, async c => {
    const target = keyTarget(c, c.req.valid('param'))
    const key = await updateKey(withOrigin(c, service), {
      ...target,
      patch: toKeyPatch(c.req.valid('json')),
    })
    return c.json({ success: true as const, data: presentKey(key) }, 200)
  })

  const rotate = route(service, 'POST /v1/keys/{id}/rotate', {
    id: 'rotateKey',
    summary: 'Rotate an API key',
    description:
      'Returns a new secret for the key, once. Both secrets work until the grace period ends. Dashboard sessions of the key end, except the one that sends this request.',
    scope: 'keys:write',
    idempotent: true,
    params,
    body: {
      schema: RotateRequest,
      example: { grace_period_seconds: 3_600 },
      max: KEY_BODY_MAX,
      required: false,
    },
    answer: json(RotatedKey, 'The key with its new secret'),
  })
  router.handle(rotate, c => {
    // Without a body, the defaults of its schema are not applied.
    const graceS = c.req.valid('json').grace_period_seconds ?? KEY_GRACE_MS / SECOND
    const keepSession = c.env?.session?.sessionId ?? null
    const target = keyTarget(c, c.req.valid('param'))
    const input = { ...target, graceMs: graceS * SECOND, keepSession }
    return answerWith<RotatedKeyText>(
      c,
      service,
      beforeCommit => rotateKey(withOrigin(c, service), input, beforeCommit),
      ({ key, text, previousExpiresAt }) => {
        const previous_key_expires_at = isoTime(previousExpiresAt)
        const data = { ...presentKey(key, text), previous_key_expires_at }
        return { status: 200, body: { success: true, data } }
      },
    )
  })

  const remove = route(service, 'DELETE /v1/keys/{id}', {
    id: 'deleteKey',
    summary: 'Delete an API key',
    description:
      'The key stops working at once, even if it is the calling key, and its dashboard sessions end. The last working key of the account is only deleted with `force=true`; otherwise, the response is 409 `last_key`.',
    scope: 'keys:write',
    params,
    query: KeyDeletionQuery,
    answer: { description: 'The key is deleted' },
    status: 204,
    errors: ['last_key'],
  })
  router.handle(remove, async c => {
    const isForced = c.req.valid('query').force === 'true'
    await revokeKey(withOrigin(c, service), { ...keyTarget(c, c.req.valid('param')), isForced })
    return c.body(null, 204)
  })

  return router
}

const params = idParams('ID of the key.', 'key_01')

/** The key of the path parameter, within the account of the caller. */
function keyTarget(c: Context<Env>, { id }: z.output<typeof params>): KeyTarget {
  const caller = c.get('caller')
  return { keyId: id, accountId: caller.account.id, actor: ownRights(caller) }
}

function keyCreateRoutes(service: KeyDeps) {
  const router = newRouter()

  const list = route(service, 'GET /v1/keys', {
    id: 'listKeys',
    summary: 'List API keys',
    description: "Returns all keys that aren't deleted.",
    scope: 'keys:write',
    answer: json(KeyList, 'The keys'),
  })
  router.handle(list, async c => {
    const keys = await listKeys(service.database, c.get('caller').account.id)
    const data = { keys: keys.map(key => presentKey(key)), total: keys.length }
    return c.json({ success: true as const, data }, 200)
  })

  const create = route(service, 'POST /v1/keys', {
    id: 'createKey',
    summary: 'Create an API key',
    description:
      "Returns the key, once: the service stores only its hash. Restrictions that you omit are inherited from the calling key, and the new key can't have more permissions than it. A `publishable` key can only be used for `POST /v1/verify/form`, from the websites in `allowed_domains`.",
    scope: 'keys:write',
    idempotent: true,
    body: { schema: NewKeyRequest, example: NEW_KEY_EXAMPLE, max: KEY_BODY_MAX },
    answer: json(CreatedKey, 'The key'),
    status: 201,
    headers: ['Location'],
  })
  router.handle(create, c =>
    addKey(c, service, { ...c.req.valid('json'), accountId: c.get('caller').account.id }),
  )

  return router
}

type NewKey = z.output<typeof NewKeyRequest> & { readonly accountId: string }

/** Creates a key of an account with the rights of the caller at most. */
export function addKey(
  c: Context<Env>,
  service: KeyDeps,
  { accountId, name, test, scopes, ...restrictions }: NewKey,
): Promise<never> {
  const caller = c.get('caller')
  // The schema requires `scopes` unless the key is publishable.
  const kind = test === undefined ? {} : { isTest: test }
  const rights = { ...kind, scopes: scopes ?? PUBLISHABLE_SCOPES, ...toKeyPatch(restrictions) }
  const input = { accountId, actor: ownRights(caller), name, ...rights }
  // A key of another account cannot be read with this one.
  const isOwn = accountId === caller.account.id
  const services = { ...withOrigin(c, service), plans: service.settings.plans }
  return answerWith<KeyWithSecret>(
    c,
    service,
    beforeCommit => createKey(services, input, beforeCommit),
    ({ key, text }) => ({
      status: 201,
      body: { success: true, data: presentKey(key, text) },
      ...(isOwn ? { headers: { Location: `/v1/keys/${key.id}` } } : {}),
    }),
  )
}

/** Converts a request body to a patch of the fields of a key. */
function toKeyPatch(body: z.output<typeof KeyPatchRequest>): KeyPatch {
  const { name, scopes, allowed_ips, allowed_domains, rate_limit_per_minute, expires_at } = body
  return omitUndefined({
    name,
    scopes,
    allowedIps: allowed_ips,
    allowedDomains: allowed_domains,
    rateLimitPerMinute: rate_limit_per_minute,
    expiresAt: typeof expires_at === 'string' ? Date.parse(expires_at) : expires_at,
  })
}

/** Fits a hundred restrictions of each kind. */
export const KEY_BODY_MAX = 64 * 1024

/**
 * Rights that the calling key can grant. A secret that was replaced by rotation has the rights of
 * its key until its grace period ends.
 */
export function ownRights({ key, secretExpiresAt }: Caller): KeyRights {
  if (secretExpiresAt === null) return key
  return { ...key, expiresAt: Math.min(secretExpiresAt, key.expiresAt ?? secretExpiresAt) }
}
