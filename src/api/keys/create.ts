import { createRoute, type z } from '@hono/zod-openapi'
import { type KeyPatch, listKeys } from '../../accounts/key-store.ts'
import { createKey, type KeyWithSecret } from '../../accounts/keys.ts'
import { answerWith, idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import {
  CREATED_KEY_EXAMPLE,
  CreatedKey,
  KEY_LIST_EXAMPLE,
  KeyList,
  type KeyPatchRequest,
  NEW_KEY_EXAMPLE,
  NewKeyRequest,
} from '../schemas/key.ts'
import type { Service } from '../service.ts'
import { ownRights } from './permission.ts'
import { presentKey } from './present.ts'

/** Routes that list and create keys. */
export function keyCreateRoutes(service: Service) {
  const rule = { scope: 'keys:write', counts: null, bodyMax: KEY_BODY_MAX } as const
  const list = createRoute({
    ...{ method: 'get', path: '/v1/keys', operationId: 'listKeys' },
    summary: 'List API keys',
    description: 'Deleted keys are not included.',
    tags: ['Keys'],
    security: SECURITY,
    middleware: requireKey(service, rule),
    responses: {
      200: json(KeyList, 'The keys', KEY_LIST_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  const create = createRoute({
    ...{ method: 'post', path: '/v1/keys', operationId: 'createKey' },
    summary: 'Create an API key',
    description:
      'The key itself is returned only in this response: the service stores its hash. Restrictions that are omitted are inherited from the calling key. A new key cannot have more rights than the calling key.',
    tags: ['Keys'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...requireKey(service, rule), idempotent(service)],
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
      const { name, scopes, ...restrictions } = c.req.valid('json')
      const caller = c.get('caller')
      const owner = { accountId: caller.account.id, actor: ownRights(caller) }
      const input = { ...owner, name, scopes, ...toKeyPatch(restrictions) }
      return (await answerWith<KeyWithSecret>(
        c,
        service,
        beforeCommit => createKey(service, input, beforeCommit),
        ({ key, text }) => ({
          ...{ status: 201, body: { success: true, data: presentKey(key, text) } },
          headers: { Location: `/v1/keys/${key.id}` },
        }),
      )) as never
    })
}

/** Converts a request body to a patch of the fields of a key. */
export function toKeyPatch(body: z.output<typeof KeyPatchRequest>): KeyPatch {
  const { name, scopes, allowed_ips, allowed_domains, rate_limit_per_minute, expires_at } = body
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(allowed_ips === undefined ? {} : { allowedIps: allowed_ips }),
    ...(allowed_domains === undefined ? {} : { allowedDomains: allowed_domains }),
    ...(rate_limit_per_minute === undefined ? {} : { rateLimitPerMinute: rate_limit_per_minute }),
    ...(expires_at === undefined ? {} : { expiresAt: toTime(expires_at) }),
  }
}

const toTime = (text: string | null) => (text === null ? null : Date.parse(text))

/** Fits a hundred restrictions of each kind. */
export const KEY_BODY_MAX = 64 * 1024
