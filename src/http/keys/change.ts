import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { newSecret } from '../../account/key.ts'
import { SECOND } from '../../base/clock.ts'
import { isoTime } from '../../engine/result/present.ts'
import {
  type ApiKey,
  findKey,
  type KeyPatch,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../store/account/keys.ts'
import { type Trx, write } from '../../store/database.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import { commit } from '../guard/commit.ts'
import { guard } from '../guard/guard.ts'
import { idempotent } from '../guard/idempotent.ts'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { BODY_FAULTS, errorResponses, SECURITY } from '../schema/error.ts'
import {
  GRACE_S_USUAL,
  KEY_EXAMPLE,
  KeyAnswer,
  KeyPatchRequest,
  ROTATED_KEY_EXAMPLE,
  RotatedKey,
  RotateRequest,
} from '../schema/key.ts'
import type { Service } from '../service.ts'
import { KEY_BODY_MAX } from './create.ts'
import { refuseBeyond } from './permission.ts'
import { presentKey } from './present.ts'
import { timeAhead } from './time-ahead.ts'

/** One key: showing it, changing it, giving it another text, and ending it. */
export function keyChangeRoutes(service: Service) {
  const middleware = guard(service, { scope: 'keys:write', counts: null, bodyMax: KEY_BODY_MAX })
  const common = { tags: ['Keys'], security: SECURITY }
  const get = createRoute({
    ...{ ...common, method: 'get' as const, path: '/v1/keys/{id}', operationId: 'getKey' },
    summary: 'Get a key',
    middleware,
    request: { params },
    responses: {
      200: json(KeyAnswer, 'The key', KEY_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  })
  const change = createRoute({
    ...{ ...common, method: 'patch' as const, path: '/v1/keys/{id}', operationId: 'updateKey' },
    summary: 'Change a key',
    description:
      'What is left out stays as it is. The change holds from the next request on. A key can only narrow itself.',
    middleware,
    request: { params, body: bodyOf(KeyPatchRequest, { example: PATCH_EXAMPLE, required: true }) },
    responses: {
      200: json(KeyAnswer, 'The key', KEY_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS),
    },
  })
  const rotate = createRoute({
    ...{ ...common, method: 'post' as const, path: '/v1/keys/{id}/rotate' },
    operationId: 'rotateKey',
    summary: 'Give a key another text',
    description:
      'Both texts work until the end of the grace period: bring the new one everywhere meanwhile. It is shown in this answer and never again. Whoever is signed in to the dashboard with the key is signed out, but for the session that asks for this.',
    middleware: [...middleware, idempotent(service)],
    request: {
      params,
      body: bodyOf(RotateRequest, { example: ROTATION_EXAMPLE, required: false }),
    },
    responses: {
      200: json(RotatedKey, 'The key with its new text', ROTATED_KEY_EXAMPLE),
      ...errorResponses(
        'invalid_request',
        'not_found',
        ...BODY_FAULTS,
        'idempotency_in_progress',
        'idempotency_mismatch',
      ),
    },
  })
  const remove = createRoute({
    ...{ ...common, method: 'delete' as const, path: '/v1/keys/{id}', operationId: 'deleteKey' },
    summary: 'Delete a key',
    description:
      'It opens nothing from now on, also where it is the one that asks for this; whoever is signed in to the dashboard with it is signed out.',
    middleware,
    request: { params },
    responses: {
      204: { description: 'It is gone' },
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS),
    },
  })
  return newRouter()
    .openapi(get, async c => {
      const { account } = c.get('caller')
      const key = await findKey(service.database.reader, account.id, c.req.valid('param').id)
      return c.json({ success: true as const, data: presentKey(key ?? noSuchKey()) }, 200)
    })
    .openapi(change, async c => {
      const patch = patchOf(c.req.valid('json'), service.clock.now())
      const key = await write(service.database, async trx => {
        const { accountId, id, ...key } = await manageable(c, trx, c.req.valid('param').id)
        refuseBeyond(c.get('caller'), { ...key, ...patch })
        return updateKey(trx, accountId, id, patch)
      })
      return c.json({ success: true as const, data: presentKey(key ?? noSuchKey()) }, 200)
    })
    .openapi(rotate, async c => {
      const graceS = c.req.valid('json').grace_period_seconds ?? GRACE_S_USUAL
      const secret = newSecret(service.random, 'live')
      const [now, graceMs] = [service.clock.now(), graceS * SECOND]
      const rotation = { secret, graceMs, now, keepSession: c.env?.session?.sessionId ?? null }
      return (await commit(c, service, async trx => {
        const { accountId, id } = await manageable(c, trx, c.req.valid('param').id)
        const key = await rotateKey(trx, accountId, id, rotation)
        const data = presentKey(key ?? noSuchKey(), secret.text)
        const previous_key_expires_at = isoTime(now + graceMs)
        return { status: 200, body: { success: true, data: { ...data, previous_key_expires_at } } }
      })) as never
    })
    .openapi(remove, async c => {
      await write(service.database, async trx => {
        const { accountId, id } = await manageable(c, trx, c.req.valid('param').id)
        await revokeKey(trx, accountId, id, service.clock.now())
      })
      return c.body(null, 204)
    })
}

const params = z.object({ id: z.string().max(100).openapi({ example: 'key_01' }) })

const PATCH_EXAMPLE = { name: 'CI of the shop', rate_limit_per_minute: 600 }
const ROTATION_EXAMPLE = { grace_period_seconds: 3_600 }

const bodyOf = <Schema extends z.ZodType>(
  schema: Schema,
  { example, required }: { example: z.input<Schema>; required: boolean },
) => ({ content: { 'application/json': { schema, example } }, required })

/** The key of a path, if it has no right that the key of this request lacks. */
async function manageable(c: Context<Env>, trx: Trx, id: string): Promise<ApiKey> {
  const caller = c.get('caller')
  const key = (await findKey(trx, caller.account.id, id)) ?? noSuchKey()
  refuseBeyond(caller, key)
  return key
}

function noSuchKey(): never {
  throw new ApiError('not_found', 'There is no such key')
}

function patchOf(body: z.output<typeof KeyPatchRequest>, now: number): KeyPatch {
  const { name, scopes, allowed_ips, allowed_domains, rate_limit_per_minute, expires_at } = body
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(allowed_ips === undefined ? {} : { allowedIps: allowed_ips }),
    ...(allowed_domains === undefined ? {} : { allowedDomains: allowed_domains }),
    ...(rate_limit_per_minute === undefined ? {} : { rateLimitPerMinute: rate_limit_per_minute }),
    ...(expires_at === undefined ? {} : { expiresAt: timeAhead('expires_at', expires_at, now) }),
  }
}
