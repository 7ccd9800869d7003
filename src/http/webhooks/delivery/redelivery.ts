import { createRoute } from '@hono/zod-openapi'
import { type Trx, writeBeside } from '../../../store/database.ts'
import { recoverDeliveries, retryDelivery } from '../../../store/event/deliveries.ts'
import { commit } from '../../guard/commit.ts'
import { guard } from '../../guard/guard.ts'
import { idempotent } from '../../guard/idempotent.ts'
import { newRouter } from '../../router.ts'
import { json } from '../../schema/answers.ts'
import {
  DELIVERY_EXAMPLE,
  DeliveryAnswer,
  RECOVERED_EXAMPLE,
  RECOVERY_EXAMPLE,
  Recovered,
  RecoveryRequest,
} from '../../schema/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../../schema/error.ts'
import type { Service } from '../../service.ts'
import { WEBHOOK_BODY_MAX } from '../create.ts'
import { foundWebhook, refuseOff, webhookParams } from '../found-webhook.ts'
import { deliveryParams, noSuchDelivery } from './log.ts'
import { presentDelivery } from './present.ts'

/** Sending once more what was sent, or was given up. */
export function redeliveryRoutes(service: Service) {
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const common = { tags: ['Webhooks'], security: SECURITY, method: 'post' as const }
  const middleware = [...guard(service, rule), idempotent(service)]
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
      const { id, delivery_id } = c.req.valid('param')
      const webhook = await foundWebhook(c, service, id)
      refuseOff(webhook)
      const now = service.clock.now()
      const answer = await commit(c, service, async trx => {
        const row = await retryDelivery(trx, webhook.id, delivery_id, now)
        const data = presentDelivery(row ?? noSuchDelivery(), webhook)
        return { status: 200, body: { success: true, data } }
      })
      service.deliveries.wake()
      return answer as never
    })
    .openapi(recover, async c => {
      const webhook = await foundWebhook(c, service, c.req.valid('param').id)
      refuseOff(webhook)
      const { since } = c.req.valid('json')
      const now = service.clock.now()
      const recover = async (trx: Trx) => {
        const recovered = await recoverDeliveries(trx, webhook.id, { since, now })
        return { status: 200, body: { success: true, data: { recovered } } } as const
      }
      const answer = await commit(c, service, recover, writeBeside)
      service.deliveries.wake()
      return answer as never
    })
}
