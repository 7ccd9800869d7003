import { createRoute } from '@hono/zod-openapi'
import { newSigningSecret, newWebhookId, WEBHOOKS_MAX } from '../../hook/endpoint.ts'
import { countWebhooks, createWebhook, listWebhooks } from '../../store/event/webhooks.ts'
import { ApiError } from '../error/api-error.ts'
import { commit } from '../guard/commit.ts'
import { guard } from '../guard/guard.ts'
import { idempotent } from '../guard/idempotent.ts'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schema/error.ts'
import {
  CREATED_WEBHOOK_EXAMPLE,
  CreatedWebhook,
  NEW_WEBHOOK_EXAMPLE,
  NewWebhookRequest,
  WEBHOOK_LIST_EXAMPLE,
  WebhookList,
} from '../schema/webhook.ts'
import type { Service } from '../service.ts'
import { presentWebhook, presentWithSecret } from './present.ts'
import { checkUrl } from './url.ts'

/** Listing the endpoints, and registering one. */
export function webhookCreateRoutes(service: Service) {
  const rule = { counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const list = createRoute({
    ...{ method: 'get', path: '/v1/webhooks', operationId: 'listWebhooks' },
    summary: 'The webhook endpoints of the account',
    description: 'The oldest first.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: guard(service, { ...rule, scope: 'webhooks:read' }),
    responses: {
      200: json(WebhookList, 'The endpoints', WEBHOOK_LIST_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  const create = createRoute({
    ...{ method: 'post', path: '/v1/webhooks', operationId: 'createWebhook' },
    summary: 'Register a webhook endpoint',
    description:
      'Events are sent to it from now on, signed with a secret that is shown in this answer and never again.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: [...guard(service, { ...rule, scope: 'webhooks:write' }), idempotent(service)],
    request: {
      body: {
        content: {
          'application/json': { schema: NewWebhookRequest, example: NEW_WEBHOOK_EXAMPLE },
        },
        required: true,
      },
    },
    responses: {
      201: json(CreatedWebhook, 'The endpoint', CREATED_WEBHOOK_EXAMPLE),
      ...errorResponses('invalid_request', ...CREATION_FAULTS),
    },
  } as const)
  return newRouter()
    .openapi(list, async c => {
      const webhooks = await listWebhooks(service.database, c.get('caller').account.id)
      const data = { webhooks: webhooks.map(presentWebhook), total: webhooks.length }
      return c.json({ success: true as const, data }, 200)
    })
    .openapi(create, async c => {
      const body = c.req.valid('json')
      await checkUrl(service, body.url)
      const { random, clock, seal } = service
      const accountId = c.get('caller').account.id
      const secret = newSigningSecret(random)
      return (await commit(c, service, async trx => {
        refuseTooMany(await countWebhooks(trx, accountId))
        const webhook = await createWebhook(trx, {
          ...{ id: newWebhookId(random), accountId, ...body },
          ...{ secret: seal.seal(secret.text), secretHint: secret.hint },
          createdAt: clock.now(),
        })
        const data = presentWithSecret(webhook, secret.text)
        const headers = { Location: `/v1/webhooks/${webhook.id}` }
        return { status: 201, body: { success: true, data }, headers }
      })) as never
    })
}

const CREATION_FAULTS = [
  ...(['invalid_webhook_url', 'invalid_event'] as const),
  ...BODY_FAULTS,
  ...REPLAY_FAULTS,
]

/** The longest URL, a description and all events, with room. */
export const WEBHOOK_BODY_MAX = 16 * 1024

function refuseTooMany(count: number): void {
  if (count < WEBHOOKS_MAX) return
  throw new ApiError(
    'invalid_request',
    `The account has ${count} webhook endpoints, which is the most it may have. Delete one first.`,
  )
}
