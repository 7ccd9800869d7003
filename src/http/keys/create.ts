import { createRoute } from '@hono/zod-openapi'
import { newSecret } from '../../account/key.ts'
import { createKey, listKeys } from '../../store/account/keys.ts'
import { ApiError } from '../error/api-error.ts'
import { commit } from '../guard/commit.ts'
import { guard } from '../guard/guard.ts'
import { idempotent } from '../guard/idempotent.ts'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { BODY_FAULTS, errorResponses, SECURITY } from '../schema/error.ts'
import { IDEMPOTENCY_KEY } from '../schema/headers.ts'
import {
  CREATED_KEY_EXAMPLE,
  CreatedKey,
  KEY_LIST_EXAMPLE,
  KeyList,
  NEW_KEY_EXAMPLE,
  NewKeyRequest,
} from '../schema/key.ts'
import type { Service } from '../service.ts'
import { ownRights, refuseBeyond } from './permission.ts'
import { presentKey } from './present.ts'
import { timeAhead } from './time-ahead.ts'

/** Listing keys, and making one. */
export function keyCreateRoutes(service: Service) {
  const rule = { scope: 'keys:write', counts: null, bodyMax: KEY_BODY_MAX } as const
  const list = createRoute({
    ...{ method: 'get', path: '/v1/keys', operationId: 'listKeys' },
    summary: 'The keys of the account',
    description: 'Those that were deleted are not among them.',
    tags: ['Keys'],
    security: SECURITY,
    middleware: guard(service, rule),
    responses: {
      200: json(KeyList, 'The keys', KEY_LIST_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  const create = createRoute({
    ...{ method: 'post', path: '/v1/keys', operationId: 'createKey' },
    summary: 'Make a key',
    description:
      'Its text is shown in this answer and never again: the service keeps only its hash. A restriction that is left out is inherited from the key that asks; no key is given more rights than that one has.',
    tags: ['Keys'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...guard(service, rule), idempotent(service)],
    request: {
      body: {
        content: { 'application/json': { schema: NewKeyRequest, example: NEW_KEY_EXAMPLE } },
        required: true,
      },
    },
    responses: {
      201: json(CreatedKey, 'The key', CREATED_KEY_EXAMPLE),
      ...errorResponses(
        'invalid_request',
        ...BODY_FAULTS,
        'idempotency_in_progress',
        'idempotency_mismatch',
      ),
    },
  } as const)
  return newRouter()
    .openapi(list, async c => {
      const keys = await listKeys(service.database, c.get('caller').account.id)
      const data = { keys: keys.map(key => presentKey(key)), total: keys.length }
      return c.json({ success: true as const, data }, 200)
    })
    .openapi(create, async c => {
      const body = c.req.valid('json')
      const caller = c.get('caller')
      const own = ownRights(caller)
      const { clock, random, database } = service
      const now = clock.now()
      const { allowed_ips, allowed_domains, rate_limit_per_minute, expires_at } = body
      const rights = {
        scopes: body.scopes,
        allowedIps: allowed_ips ?? own.allowedIps,
        allowedDomains: allowed_domains ?? own.allowedDomains,
        rateLimitPerMinute:
          rate_limit_per_minute === undefined ? own.rateLimitPerMinute : rate_limit_per_minute,
        expiresAt:
          expires_at === undefined ? own.expiresAt : timeAhead('expires_at', expires_at, now),
      }
      refuseBeyond(caller, rights)
      refuseTooMany((await listKeys(database, caller.account.id)).length)
      const secret = newSecret(random, 'live')
      return (await commit(c, service, async trx => {
        const key = await createKey(trx, {
          ...{ id: `key_${random.token(ID_LENGTH)}`, accountId: caller.account.id, secret, now },
          ...{ name: body.name, ...rights },
        })
        const data = presentKey(key, secret.text)
        const headers = { Location: `/v1/keys/${key.id}` }
        return { status: 201, body: { success: true, data }, headers }
      })) as never
    })
}

/** A hundred restrictions of each kind, and some room. */
export const KEY_BODY_MAX = 64 * 1024
const ID_LENGTH = 16
/** One for each thing that asks; more are made by a loop that went wrong. */
const KEYS_MAX = 500

function refuseTooMany(count: number): void {
  if (count < KEYS_MAX) return
  throw new ApiError(
    'invalid_request',
    `The account has ${count} keys, which is the most it may have. Delete those that nobody uses.`,
  )
}
