import { createRoute } from '@hono/zod-openapi'
import { createTestEventLimit, sendTestEvent } from '../../webhooks/send-test-event.ts'
import { commitResponse } from '../middleware/commit-response.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { WEBHOOK_TEST_EXAMPLE, WebhookTest } from '../schemas/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import type { Service } from '../service.ts'
import { WEBHOOK_BODY_MAX } from './create.ts'
import { presentTest } from './delivery-view.ts'
import { webhookParams, webhookTarget } from './target.ts'

/** Trying an endpoint out. */
export function webhookTestRoutes(service: Service) {
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
