import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import {
  getKey,
  KEY_GRACE_MS,
  type KeyTarget,
  type RotatedKey as RotatedKeyText,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../accounts/keys.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { answerWith } from '../middleware/idempotency.ts'
import { withOrigin } from '../request-context.ts'
import { route } from '../route.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import {
  KEY_EXAMPLE,
  KeyAnswer,
  KeyDeletionQuery,
  KeyPatchRequest,
  ROTATED_KEY_EXAMPLE,
  RotatedKey,
  RotateRequest,
} from '../schemas/key.ts'
import type { Service } from '../service.ts'
import { KEY_BODY_MAX, keyCreateRoutes, toKeyPatch } from './create.ts'
import { ownRights } from './permission.ts'
import { presentKey } from './present.ts'

export function keyRoutes(service: Service) {
  const router = newRouter()
  router.route('/', keyCreateRoutes(service))
  router.route('/', keyChangeRoutes(service))
  return router
}

/** Routes that get, update, rotate and delete one key. */
function keyChangeRoutes(service: Service) {
  const router = newRouter()

  const get = route(service, 'GET /v1/keys/{id}', {
    id: 'getKey',
    summary: 'Get an API key',
    scope: 'keys:write',
    params,
    answer: json(KeyAnswer, 'The key', KEY_EXAMPLE),
  })
  router.openapi(get, async c => {
    const { actor: _, ...target } = keyTarget(c, c.req.valid('param'))
    const key = await getKey(service, target)
    return c.json({ success: true as const, data: presentKey(key) }, 200)
  })

  const change = route(service, 'PATCH /v1/keys/{id}', {
    id: 'updateKey',
    summary: 'Update an API key',
    description:
      'Fields that are omitted keep their values. The change applies from the next request on. A key can only reduce its own rights.',
    scope: 'keys:write',
    params,
    body: { schema: KeyPatchRequest, example: PATCH_EXAMPLE, max: KEY_BODY_MAX },
    answer: json(KeyAnswer, 'The key', KEY_EXAMPLE),
  })
  router.openapi(change, async c => {
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
      'Issues a new secret for the key, returned only in this response. Both secrets work until the grace period ends: deploy the new one in time. Dashboard sessions of the key are signed out, except the one that sends this request.',
    scope: 'keys:write',
    idempotent: true,
    params,
    body: { schema: RotateRequest, example: ROTATION_EXAMPLE, max: KEY_BODY_MAX, required: false },
    answer: json(RotatedKey, 'The key with its new secret', ROTATED_KEY_EXAMPLE),
  })
  router.openapi(rotate, c => {
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
      'The key stops working at once, even if it is the calling key. Dashboard sessions of the key are signed out. The last key of the account that is neither revoked nor expired is only deleted with `force=true`; otherwise the request fails with 409 `last_key`.',
    scope: 'keys:write',
    params,
    query: KeyDeletionQuery,
    answer: { description: 'The key is deleted' },
    status: 204,
    errors: ['last_key'],
  })
  router.openapi(remove, async c => {
    const isForced = c.req.valid('query').force === 'true'
    await revokeKey(withOrigin(c, service), { ...keyTarget(c, c.req.valid('param')), isForced })
    return c.body(null, 204)
  })

  return router
}

const params = z.object({
  id: z.string().max(100).openapi({ description: 'ID of the key.', example: 'key_01' }),
})

/** The key of the path parameter, within the account of the caller. */
function keyTarget(c: Context<Env>, { id }: z.output<typeof params>): KeyTarget {
  const caller = c.get('caller')
  return { keyId: id, accountId: caller.account.id, actor: ownRights(caller) }
}

const PATCH_EXAMPLE = { name: 'CI of the shop', rate_limit_per_minute: 600 }
const ROTATION_EXAMPLE = { grace_period_seconds: 3_600 }
