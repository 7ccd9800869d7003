import { createRoute, z } from '@hono/zod-openapi'
import { EVENT_KINDS } from '../../webhooks/event.ts'
import { createTestEventLimit, sendTestEvent } from '../../webhooks/send-test-event.ts'
import { commitResponse, idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { WEBHOOK_TEST_EXAMPLE, WebhookTest } from '../schemas/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { EVENTS } from '../schemas/event.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import { EventList } from '../schemas/webhook.ts'
import type { Service } from '../service.ts'
import { webhookChangeRoutes, webhookSecretRoutes } from './change.ts'
import { WEBHOOK_BODY_MAX, webhookCreateRoutes, webhookParams, webhookTarget } from './create.ts'
import { presentTest } from './delivery-view.ts'
import { deliveryLogRoutes, redeliveryRoutes } from './redelivery.ts'

/** Where an account wants to be told of events, and what was sent there. */
export function webhookRoutes(service: Service) {
  const router = newRouter()
  router.route('/', webhookCreateRoutes(service))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', catalogueRoutes(service))
  router.route('/', webhookChangeRoutes(service))
  router.route('/', webhookSecretRoutes(service))
  router.route('/', webhookTestRoutes(service))
  router.route('/', deliveryLogRoutes(service))
  router.route('/', redeliveryRoutes(service))
  return router
}

/** What can be subscribed to. */
function catalogueRoutes(service: Service) {
  const list = createRoute({
    ...{ method: 'get', path: '/v1/webhooks/events', operationId: 'listEvents' },
    summary: 'The events that there are',
    description:
      'What can be subscribed to, with the JSON Schema of its data and an example as it is sent. `webhook.test` is not among them: it is sent when an endpoint is tried out.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax: 0 }),
    responses: {
      200: json(EventList, 'The events', CATALOGUE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(list, c => c.json(CATALOGUE, 200))
}

const CATALOGUE = {
  success: true as const,
  data: {
    events: EVENT_KINDS.map(event => {
      const { description, data, example } = EVENTS[event]
      const envelope = { event, event_id: 'evt_abc123', timestamp: '2026-03-21T10:30:00.000Z' }
      return {
        ...{ event, description, example: { ...envelope, data: example } },
        schema: z.toJSONSchema(data) as Record<string, unknown>,
      }
    }),
  },
}

/** Trying an endpoint out. */
function webhookTestRoutes(service: Service) {
  const testLimit = createTestEventLimit()
  const services = { ...service, version: service.settings.version, testLimit }
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const send = createRoute({
    ...{ method: 'post', path: '/v1/webhooks/{id}/test', operationId: 'testWebhook' },
    summary: 'Send a test event to a webhook endpoint',
    description:
      'Sends `webhook.test` once and at once, also to an endpoint that is switched off, and answers with what the receiver said: with 200 also where it failed. It needs no subscription. With `X-EV-Sandbox: true` it has `"sandbox": true`. An account may have four of them under way.',
    tags: ['Webhooks'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...requireKey(service, rule), idempotent(service)],
    request: { params: webhookParams },
    responses: {
      200: json(WebhookTest, 'What came of it', WEBHOOK_TEST_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS, ...REPLAY_FAULTS),
    },
  } as const)
  return newRouter().openapi(send, async c => {
    const input = { ...webhookTarget(c, c.req.valid('param')), sandbox: c.get('sandbox') }
    const outcome = await sendTestEvent(services, input)
    const body = { success: true, data: presentTest(outcome) }
    return (await commitResponse(c, service, async () => ({ status: 200, body }))) as never
  })
}
