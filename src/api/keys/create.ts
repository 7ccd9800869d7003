import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { PUBLISHABLE_SCOPES } from '../../accounts/key-rights.ts'
import { type KeyPatch, listKeys } from '../../accounts/key-store.ts'
import { createKey, type KeyWithSecret } from '../../accounts/keys.ts'
import type { Env } from '../context.ts'
import { answerWith } from '../middleware/idempotency.ts'
import { withOrigin } from '../request-context.ts'
import { route } from '../route.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
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
  const router = newRouter()

  const list = route(service, 'GET /v1/keys', {
    id: 'listKeys',
    summary: 'List API keys',
    description: 'Deleted keys are not included.',
    scope: 'keys:write',
    answer: json(KeyList, 'The keys', KEY_LIST_EXAMPLE),
  })
  router.openapi(list, async c => {
    const keys = await listKeys(service.database, c.get('caller').account.id)
    const data = { keys: keys.map(key => presentKey(key)), total: keys.length }
    return c.json({ success: true as const, data }, 200)
  })

  const create = route(service, 'POST /v1/keys', {
    id: 'createKey',
    summary: 'Create an API key',
    description:
      'The key itself is returned only in this response: the service stores its hash. Restrictions that are omitted are inherited from the calling key. A new key cannot have more rights than the calling key. With `publishable`, the key is for forms on websites: it can only be used for `POST /v1/verify/form`, from the pages of `allowed_domains`.',
    scope: 'keys:write',
    idempotent: true,
    body: { schema: NewKeyRequest, example: NEW_KEY_EXAMPLE, max: KEY_BODY_MAX },
    answer: json(CreatedKey, 'The key', CREATED_KEY_EXAMPLE),
    status: 201,
    headers: ['Location'],
  })
  router.openapi(create, c =>
    addKey(c, service, { ...c.req.valid('json'), accountId: c.get('caller').account.id }),
  )

  return router
}

type NewKey = z.output<typeof NewKeyRequest> & { readonly accountId: string }

/** Creates a key of an account with the rights of the caller at most. */
export function addKey(
  c: Context<Env>,
  service: Service,
  { accountId, name, test, scopes, ...restrictions }: NewKey,
): Promise<never> {
  const caller = c.get('caller')
  // The schema requires `scopes` unless the key is publishable.
  const kind = test === undefined ? {} : { isTest: test }
  const rights = { ...kind, scopes: scopes ?? PUBLISHABLE_SCOPES, ...toKeyPatch(restrictions) }
  const input = { accountId, actor: ownRights(caller), name, ...rights }
  // A key of another account cannot be read with this one.
  const isOwn = accountId === caller.account.id
  return answerWith<KeyWithSecret>(
    c,
    service,
    beforeCommit => createKey(withOrigin(c, service), input, beforeCommit),
    ({ key, text }) => ({
      ...{ status: 201, body: { success: true, data: presentKey(key, text) } },
      ...(isOwn ? { headers: { Location: `/v1/keys/${key.id}` } } : {}),
    }),
  )
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
