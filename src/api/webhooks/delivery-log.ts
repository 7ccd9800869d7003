import { createRoute, z } from '@hono/zod-openapi'
import { getDelivery } from '../../webhooks/deliveries.ts'
import { deliveryPage } from '../../webhooks/delivery-log.ts'
import { getWebhook } from '../../webhooks/endpoints.ts'
import { pageOf, pageQuery, positionOf } from '../cursor.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import {
  DELIVERY_DETAIL_EXAMPLE,
  DELIVERY_PAGE_EXAMPLE,
  DeliveryDetailAnswer,
  DeliveryPage,
  deliveryFilters,
} from '../schemas/delivery.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import type { Service } from '../service.ts'
import { presentDelivery, presentDetail } from './delivery-view.ts'
import { deliveryParams, deliveryTarget, webhookParams, webhookTarget } from './target.ts'

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
