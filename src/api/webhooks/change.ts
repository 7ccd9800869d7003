import { createRoute, type z } from '@hono/zod-openapi'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import { deleteWebhook, getWebhook, updateWebhook } from '../../webhooks/endpoints.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, SECURITY } from '../schemas/error.ts'
import {
  NEW_WEBHOOK_EXAMPLE,
  NewWebhookRequest,
  WEBHOOK_EXAMPLE,
  WebhookAnswer,
  WebhookPatchRequest,
} from '../schemas/webhook.ts'
import type { Service } from '../service.ts'
import { WEBHOOK_BODY_MAX } from './create.ts'
import { presentWebhook } from './present.ts'
import { webhookParams as params, webhookTarget } from './target.ts'

/** One endpoint: looking at it, changing it, and removing it. */
export function webhookChangeRoutes(service: Service) {
  const bodyMax = WEBHOOK_BODY_MAX
  const writing = requireKey(service, { scope: 'webhooks:write', counts: null, bodyMax })
  const common = { path: '/v1/webhooks/{id}', tags: ['Webhooks'], security: SECURITY }
  const answers = { 200: json(WebhookAnswer, 'The endpoint', WEBHOOK_EXAMPLE) }
  const read = createRoute({
    ...{ ...common, method: 'get' as const, operationId: 'getWebhook' },
    summary: 'One webhook endpoint',
    middleware: requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax }),
    request: { params },
    responses: { ...answers, ...errorResponses('invalid_request', 'not_found') },
  })
  const change = createRoute({
    ...{ ...common, method: 'patch' as const, operationId: 'updateWebhook' },
    summary: 'Change a webhook endpoint',
    description: 'What is left out stays as it is.',
    middleware: writing,
    request: { params, body: bodyOf(WebhookPatchRequest, { active: false }) },
    responses: {
      ...answers,
      ...errorResponses(...CHANGE_FAULTS),
    },
  })
  const replace = createRoute({
    ...{ ...common, method: 'put' as const, operationId: 'replaceWebhook' },
    summary: 'Write a webhook endpoint anew',
    description: 'What is left out gets its default. Its secret stays.',
    middleware: writing,
    request: { params, body: bodyOf(NewWebhookRequest, NEW_WEBHOOK_EXAMPLE) },
    responses: {
      ...answers,
      ...errorResponses(...CHANGE_FAULTS),
    },
  })
  const remove = createRoute({
    ...{ ...common, method: 'delete' as const, operationId: 'deleteWebhook' },
    summary: 'Remove a webhook endpoint',
    description: 'Nothing is sent to it any more, also not what was to be sent again.',
    middleware: writing,
    request: { params },
    responses: {
      204: { description: 'It is gone' },
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS),
    },
  })
  return newRouter()
    .openapi(read, async c =>
      c.json(answer(await getWebhook(service, webhookTarget(c, c.req.valid('param')))), 200),
    )
    .openapi(change, async c => {
      const input = { ...webhookTarget(c, c.req.valid('param')), change: c.req.valid('json') }
      return c.json(answer(await updateWebhook(service, input)), 200)
    })
    .openapi(replace, async c => {
      const input = { ...webhookTarget(c, c.req.valid('param')), change: c.req.valid('json') }
      return c.json(answer(await updateWebhook(service, input)), 200)
    })
    .openapi(remove, async c => {
      await deleteWebhook(service, webhookTarget(c, c.req.valid('param')))
      return c.body(null, 204)
    })
}

const CHANGE_FAULTS = [
  ...(['invalid_request', 'not_found', 'invalid_webhook_url', 'invalid_event'] as const),
  ...BODY_FAULTS,
]

const bodyOf = <Schema extends z.ZodType>(schema: Schema, example: z.input<Schema>) => ({
  content: { 'application/json': { schema, example } },
  required: true as const,
})

const answer = (webhook: Webhook) => ({ success: true as const, data: presentWebhook(webhook) })
