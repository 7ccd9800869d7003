import { createRoute, z } from '@hono/zod-openapi'
import {
  getDelivery,
  type Recovered as RecoveredDeliveries,
  type RetriedDelivery,
  retryDelivery,
  retryFailedDeliveries,
} from '../../webhooks/deliveries.ts'
import { deliveryPage } from '../../webhooks/delivery-store.ts'
import { getWebhook } from '../../webhooks/endpoints.ts'
import { pageOf, pageQuery, positionOf } from '../cursor.ts'
import { answerWith, idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import {
  DELIVERY_DETAIL_EXAMPLE,
  DELIVERY_EXAMPLE,
  DELIVERY_PAGE_EXAMPLE,
  DeliveryAnswer,
  DeliveryDetailAnswer,
  DeliveryPage,
  deliveryFilters,
  RECOVERED_EXAMPLE,
  RECOVERY_EXAMPLE,
  Recovered,
  RecoveryRequest,
} from '../schemas/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import type { Service } from '../service.ts'
import {
  deliveryParams,
  deliveryTarget,
  WEBHOOK_BODY_MAX,
  webhookParams,
  webhookTarget,
} from './create.ts'
import { presentDelivery, presentDetail } from './delivery-view.ts'

/** Sending once more what was sent, or was given up. */
export function redeliveryRoutes(service: Service) {
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const common = {
    ...{ tags: ['Webhooks'], security: SECURITY, method: 'post' as const },
    parameters: [IDEMPOTENCY_KEY],
  }
  const middleware = [...requireKey(service, rule), idempotent(service)]
  const errors = errorResponses('invalid_request', 'not_found', ...BODY_FAULTS, ...REPLAY_FAULTS)
  const retry = createRoute({
    ...{ ...common, path: '/v1/webhooks/{id}/deliveries/{delivery_id}/retry' },
    operationId: 'retryDelivery',
    summary: 'Send an event once more',
    description:
      'The same event, at once, and again after the usual waits should it fail. Also one that was delivered already. Nothing is sent to an endpoint that is switched off: that is refused.',
    middleware,
    request: { params: deliveryParams },
    responses: { 200: json(DeliveryAnswer, 'The delivery', DELIVERY_EXAMPLE), ...errors },
  })
  const recover = createRoute({
    ...{ ...common, path: '/v1/webhooks/{id}/recover', operationId: 'recoverDeliveries' },
    summary: 'Send all once more that was given up',
    description:
      'All events since a time whose deliveries failed: for after a long breakdown of the receiver.',
    middleware,
    request: {
      params: webhookParams,
      body: {
        content: { 'application/json': { schema: RecoveryRequest, example: RECOVERY_EXAMPLE } },
        required: true,
      },
    },
    responses: { 200: json(Recovered, 'How many', RECOVERED_EXAMPLE), ...errors },
  })
  return newRouter()
    .openapi(retry, async c => {
      const target = deliveryTarget(c, c.req.valid('param'))
      return (await answerWith<RetriedDelivery>(
        c,
        service,
        beforeCommit => retryDelivery(service, target, beforeCommit),
        ({ webhook, delivery }) => ({
          status: 200,
          body: { success: true, data: presentDelivery(delivery, webhook) },
        }),
      )) as never
    })
    .openapi(recover, async c => {
      const { since } = c.req.valid('json')
      const input = { ...webhookTarget(c, c.req.valid('param')), since }
      return (await answerWith<RecoveredDeliveries>(
        c,
        service,
        beforeCommit => retryFailedDeliveries(service, input, beforeCommit),
        ({ recovered }) => ({ status: 200, body: { success: true, data: { recovered } } }),
      )) as never
    })
}

/** What was sent to an endpoint, and what came of it. */
export function deliveryLogRoutes(service: Service) {
  const common = { tags: ['Webhooks'], security: SECURITY }
  const middleware = requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax: 0 })
  const list = createRoute({
    ...{ ...common, method: 'get' as const, path: '/v1/webhooks/{id}/deliveries' },
    operationId: 'listDeliveries',
    summary: 'What was sent to a webhook endpoint, the newest first',
    description:
      'One row for each event, with what came of its last attempt. What is over is kept for seven days.',
    middleware,
    request: { params: webhookParams, query: z.object({ ...pageQuery, ...deliveryFilters }) },
    responses: {
      200: json(DeliveryPage, 'One page of it', DELIVERY_PAGE_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  })
  const read = createRoute({
    ...{ ...common, method: 'get' as const, path: '/v1/webhooks/{id}/deliveries/{delivery_id}' },
    operationId: 'getDelivery',
    summary: 'One delivery, with what was sent and answered',
    middleware,
    request: { params: deliveryParams },
    responses: {
      200: json(DeliveryDetailAnswer, 'The delivery', DELIVERY_DETAIL_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  })
  return newRouter()
    .openapi(list, async c => {
      const { limit, cursor, status, event } = c.req.valid('query')
      const webhook = await getWebhook(service, webhookTarget(c, c.req.valid('param')))
      const found = await deliveryPage(service.database, {
        ...{ webhookId: webhook.id, before: positionOf(cursor), max: limit + 1 },
        ...(status === undefined ? {} : { status }),
        ...(event === undefined ? {} : { event }),
      })
      const { rows, next } = pageOf(found, limit)
      const items = rows.map(row => presentDelivery(row, webhook))
      const data = { items, next_cursor: next, has_more: next !== null }
      return c.json({ success: true as const, data }, 200)
    })
    .openapi(read, async c => {
      const target = deliveryTarget(c, c.req.valid('param'))
      const { webhook, logged } = await getDelivery(service, target)
      const data = presentDetail(logged, webhook)
      return c.json({ success: true as const, data }, 200)
    })
}
