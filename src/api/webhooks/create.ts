import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { DeliveryTarget } from '../../webhooks/deliveries.ts'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import {
  createWebhook,
  type WebhookTarget,
  type WebhookWithSecret,
} from '../../webhooks/endpoints.ts'
import { presentWebhook, presentWithSecret } from '../../webhooks/present.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { answerWith, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { withOrigin } from '../request-context.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import { idField, idParams } from '../schemas/fields.ts'
import {
  CreatedWebhook,
  NEW_WEBHOOK_EXAMPLE,
  NewWebhookRequest,
  WebhookList,
} from '../schemas/webhook.ts'

export type WebhookCreateDeps = Pick<
  ApiDeps,
  'database' | 'guard' | 'random' | 'resolver' | 'settings'
> &
  IdempotencyDeps

/** Routes that list and create webhook endpoints. */
export function webhookCreateRoutes(service: WebhookCreateDeps) {
  const router = newRouter()

  const list = route(service, 'GET /v1/webhooks', {
    id: 'listWebhooks',
    summary: 'List webhook endpoints',
    description: 'Oldest first.',
    scope: 'webhooks:read',
    answer: json(WebhookList, 'The endpoints'),
  })
  router.handle(list, async c => {
    const webhooks = await listWebhooks(service.database, c.get('caller').account.id)
    const data = { webhooks: webhooks.map(presentWebhook), total: webhooks.length }
    return c.json({ success: true as const, data }, 200)
  })

  const create = route(service, 'POST /v1/webhooks', {
    id: 'createWebhook',
    summary: 'Create a webhook endpoint',
    description:
      'Returns the endpoint with the secret that signs its events, once. Events that happen from now on are sent to it.',
    scope: 'webhooks:write',
    idempotent: true,
    body: { schema: NewWebhookRequest, example: NEW_WEBHOOK_EXAMPLE, max: WEBHOOK_BODY_MAX },
    answer: json(CreatedWebhook, 'The endpoint'),
    status: 201,
    headers: ['Location'],
    errors: ['invalid_webhook_url', 'invalid_event'],
  })
  router.handle(create, c => {
    const input = { ...c.req.valid('json'), accountId: c.get('caller').account.id }
    return answerWith<WebhookWithSecret>(
      c,
      service,
      beforeCommit => createWebhook(withOrigin(c, service), input, beforeCommit),
      ({ webhook, secret }) => ({
        status: 201,
        body: { success: true, data: presentWithSecret(webhook, secret) },
        headers: { Location: `/v1/webhooks/${webhook.id}` },
      }),
    )
  })

  return router
}

/** Fits the longest URL, a description, all events and the longest headers. */
export const WEBHOOK_BODY_MAX = 32 * 1024

/** Path parameters of an endpoint. */
export const webhookParams = idParams('ID of the endpoint.', 'wh_8f3a2c1d')

/** Path parameters of a delivery. */
export const deliveryParams = webhookParams.extend({
  delivery_id: idField('ID of the delivery.', 'dlv_01'),
})

/** The endpoint of the path parameter, within the account of the caller. */
export const webhookTarget = (
  c: Context<Env>,
  { id }: z.output<typeof webhookParams>,
): WebhookTarget => ({ webhookId: id, accountId: c.get('caller').account.id })

export const deliveryTarget = (
  c: Context<Env>,
  { id, delivery_id }: z.output<typeof deliveryParams>,
): DeliveryTarget => ({
  deliveryId: delivery_id,
  webhookId: id,
  accountId: c.get('caller').account.id,
})
