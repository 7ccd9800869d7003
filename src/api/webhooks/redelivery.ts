import { createRoute } from '@hono/zod-openapi'
import {
  type Recovered as RecoveredDeliveries,
  type RetriedDelivery,
  retryDelivery,
  retryFailedDeliveries,
} from '../../webhooks/deliveries.ts'
import { answerWith } from '../middleware/commit-response.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import {
  DELIVERY_EXAMPLE,
  DeliveryAnswer,
  RECOVERED_EXAMPLE,
  RECOVERY_EXAMPLE,
  Recovered,
  RecoveryRequest,
} from '../schemas/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import type { Service } from '../service.ts'
import { WEBHOOK_BODY_MAX } from './create.ts'
import { presentDelivery } from './delivery-view.ts'
import { deliveryParams, deliveryTarget, webhookParams, webhookTarget } from './target.ts'

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
