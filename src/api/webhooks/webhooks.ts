import { createRoute, z } from '@hono/zod-openapi'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { SECOND } from '../../platform/clock.ts'
import {
  getDelivery,
  type Recovered as RecoveredDeliveries,
  type RetriedDelivery,
  retryDelivery,
  retryFailedDeliveries,
} from '../../webhooks/deliveries.ts'
import { getDeliveryPage } from '../../webhooks/delivery-store.ts'
import { SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import {
  deleteWebhook,
  getWebhook,
  type RotatedSecret,
  rotateWebhookSecret,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import { EVENT_KINDS } from '../../webhooks/event.ts'
import { createTestEventLimit, sendTestEvent } from '../../webhooks/send-test-event.ts'
import { pageQuery, parseCursor, toPage } from '../cursor.ts'
import { answerWith, commitResponse, idempotent } from '../middleware/idempotency.ts'
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
  WEBHOOK_TEST_EXAMPLE,
  WebhookTest,
} from '../schemas/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { EVENTS } from '../schemas/event.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import {
  EventList,
  NEW_WEBHOOK_EXAMPLE,
  NewWebhookRequest,
  ROTATED_WEBHOOK_EXAMPLE,
  RotatedWebhook,
  SECRET_ROTATION_EXAMPLE,
  SecretRotation,
  WEBHOOK_EXAMPLE,
  WebhookAnswer,
  WebhookPatchRequest,
} from '../schemas/webhook.ts'
import type { Service } from '../service.ts'
import {
  deliveryParams,
  deliveryTarget,
  webhookParams as params,
  WEBHOOK_BODY_MAX,
  webhookCreateRoutes,
  webhookParams,
  webhookTarget,
} from './create.ts'
import { presentDelivery, presentDetail, presentTest } from './delivery-view.ts'
import { presentWebhook, presentWithSecret } from './present.ts'

/** Routes that get, update, replace and delete one endpoint. */
function webhookChangeRoutes(service: Service) {
  const bodyMax = WEBHOOK_BODY_MAX
  const writing = requireKey(service, { scope: 'webhooks:write', counts: null, bodyMax })
  const common = { path: '/v1/webhooks/{id}', tags: ['Webhooks'], security: SECURITY }
  const answers = { 200: json(WebhookAnswer, 'The endpoint', WEBHOOK_EXAMPLE) }
  const read = createRoute({
    ...{ ...common, method: 'get' as const, operationId: 'getWebhook' },
    summary: 'Get a webhook endpoint',
    middleware: requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax }),
    request: { params },
    responses: { ...answers, ...errorResponses('invalid_request', 'not_found') },
  })
  const change = createRoute({
    ...{ ...common, method: 'patch' as const, operationId: 'updateWebhook' },
    summary: 'Update a webhook endpoint',
    description: 'Fields that are omitted keep their values.',
    middleware: writing,
    request: { params, body: jsonBody(WebhookPatchRequest, { active: false }) },
    responses: {
      ...answers,
      ...errorResponses(...CHANGE_FAULTS),
    },
  })
  const replace = createRoute({
    ...{ ...common, method: 'put' as const, operationId: 'replaceWebhook' },
    summary: 'Replace a webhook endpoint',
    description: 'Fields that are omitted get their default values. The secret does not change.',
    middleware: writing,
    request: { params, body: jsonBody(NewWebhookRequest, NEW_WEBHOOK_EXAMPLE) },
    responses: {
      ...answers,
      ...errorResponses(...CHANGE_FAULTS),
    },
  })
  const remove = createRoute({
    ...{ ...common, method: 'delete' as const, operationId: 'deleteWebhook' },
    summary: 'Delete a webhook endpoint',
    description: 'No more events are sent to it, and scheduled retries are dropped.',
    middleware: writing,
    request: { params },
    responses: {
      204: { description: 'The endpoint is deleted' },
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

const jsonBody = <Schema extends z.ZodType>(schema: Schema, example: z.input<Schema>) => ({
  content: { 'application/json': { schema, example } },
  required: true as const,
})

const answer = (webhook: Webhook) => ({ success: true as const, data: presentWebhook(webhook) })

/** Route that rotates the secret of an endpoint. */
function webhookSecretRoutes(service: Service) {
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const rotate = createRoute({
    ...{ method: 'post', path: '/v1/webhooks/{id}/secret', operationId: 'rotateWebhookSecret' },
    summary: 'Rotate the secret of a webhook endpoint',
    description:
      'The new secret is returned only in this response. `X-EV-Signature` uses it from now on. Until the grace period ends, `webhook-signature` also has a signature of the previous secret.',
    tags: ['Webhooks'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...requireKey(service, rule), idempotent(service)],
    request: {
      params: webhookParams,
      body: {
        content: {
          'application/json': { schema: SecretRotation, example: SECRET_ROTATION_EXAMPLE },
        },
        required: false,
      },
    },
    responses: {
      200: json(RotatedWebhook, 'The endpoint with its new secret', ROTATED_WEBHOOK_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS, ...REPLAY_FAULTS),
    },
  } as const)
  return newRouter().openapi(rotate, async c => {
    // Without a body, the defaults of its schema are not applied.
    const graceS = c.req.valid('json').grace_period_seconds ?? SECRET_GRACE_MS / SECOND
    const input = { ...webhookTarget(c, c.req.valid('param')), graceMs: graceS * SECOND }
    return (await answerWith<RotatedSecret>(
      c,
      service,
      beforeCommit => rotateWebhookSecret(service, input, beforeCommit),
      ({ webhook, secret, previousExpiresAt }) => {
        const previous_secret_expires_at = isoTime(previousExpiresAt)
        const data = { ...presentWithSecret(webhook, secret), previous_secret_expires_at }
        return { status: 200, body: { success: true, data } }
      },
    )) as never
  })
}

/** Routes of webhook endpoints and their deliveries. */
export function webhookRoutes(service: Service) {
  const router = newRouter()
  router.route('/', webhookCreateRoutes(service))
  // Precedes the routes with an ID, which would match `events`, too.
  router.route('/', catalogueRoutes(service))
  router.route('/', webhookChangeRoutes(service))
  router.route('/', webhookSecretRoutes(service))
  router.route('/', webhookTestRoutes(service))
  router.route('/', deliveryLogRoutes(service))
  router.route('/', redeliveryRoutes(service))
  return router
}

/** Route that lists the event types. */
function catalogueRoutes(service: Service) {
  const list = createRoute({
    ...{ method: 'get', path: '/v1/webhooks/events', operationId: 'listEvents' },
    summary: 'List event types',
    description:
      'Event types to subscribe to, with the JSON Schema of their data and an example. `webhook.test` is not included: it is only sent as a test event.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax: 0 }),
    responses: {
      200: json(EventList, 'The event types', CATALOGUE),
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

/** Route that sends a test event. */
function webhookTestRoutes(service: Service) {
  const testLimit = createTestEventLimit()
  const services = { ...service, version: service.settings.version, testLimit }
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const send = createRoute({
    ...{ method: 'post', path: '/v1/webhooks/{id}/test', operationId: 'testWebhook' },
    summary: 'Send a test event to a webhook endpoint',
    description:
      'Sends `webhook.test` once, also to a disabled endpoint, and returns the response of the receiver, with 200 even if the delivery failed. It needs no subscription. With `X-EV-Sandbox: true`, it has `"sandbox": true`. An account can have four test events in flight.',
    tags: ['Webhooks'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...requireKey(service, rule), idempotent(service)],
    request: { params: webhookParams },
    responses: {
      200: json(WebhookTest, 'The result of the test', WEBHOOK_TEST_EXAMPLE),
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

/** Routes that resend events. */
function redeliveryRoutes(service: Service) {
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
    summary: 'Retry a delivery',
    description:
      'Sends the same event at once, with the usual retries if it fails. Also works for a delivered event. Refused if the endpoint is disabled.',
    middleware,
    request: { params: deliveryParams },
    responses: { 200: json(DeliveryAnswer, 'The delivery', DELIVERY_EXAMPLE), ...errors },
  })
  const recover = createRoute({
    ...{ ...common, path: '/v1/webhooks/{id}/recover', operationId: 'recoverDeliveries' },
    summary: 'Resend failed deliveries',
    description:
      'Resends all events since a time whose deliveries failed, such as after a long outage of the receiver.',
    middleware,
    request: {
      params: webhookParams,
      body: {
        content: { 'application/json': { schema: RecoveryRequest, example: RECOVERY_EXAMPLE } },
        required: true,
      },
    },
    responses: {
      200: json(Recovered, 'The number of resent events', RECOVERED_EXAMPLE),
      ...errors,
    },
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

/** Routes of the delivery log. */
function deliveryLogRoutes(service: Service) {
  const common = { tags: ['Webhooks'], security: SECURITY }
  const middleware = requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax: 0 })
  const list = createRoute({
    ...{ ...common, method: 'get' as const, path: '/v1/webhooks/{id}/deliveries' },
    operationId: 'listDeliveries',
    summary: 'List the deliveries of a webhook endpoint, newest first',
    description:
      'One row for each event, with the outcome of its last attempt. Finished deliveries are kept for seven days.',
    middleware,
    request: { params: webhookParams, query: z.object({ ...pageQuery, ...deliveryFilters }) },
    responses: {
      200: json(DeliveryPage, 'One page of deliveries', DELIVERY_PAGE_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  })
  const read = createRoute({
    ...{ ...common, method: 'get' as const, path: '/v1/webhooks/{id}/deliveries/{delivery_id}' },
    operationId: 'getDelivery',
    summary: 'Get a delivery with its request and responses',
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
      const found = await getDeliveryPage(service.database, {
        ...{ webhookId: webhook.id, before: parseCursor(cursor), max: limit + 1 },
        ...(status === undefined ? {} : { status }),
        ...(event === undefined ? {} : { event }),
      })
      const { rows, next } = toPage(found, limit)
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
