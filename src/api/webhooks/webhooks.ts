import { z } from '@hono/zod-openapi'
import { permits } from '../../accounts/key-rights.ts'
import { SECOND } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import { buildJsonSchema } from '../../platform/json-fields.ts'
import {
  getDelivery,
  type Recovered as RecoveredDeliveries,
  type RetriedDelivery,
  retryDelivery,
  retryFailedDeliveries,
} from '../../webhooks/deliveries.ts'
import { getDeliveryPage, searchDeliveries } from '../../webhooks/delivery-store.ts'
import { SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import {
  deleteWebhook,
  getWebhook,
  type RotatedSecret,
  rotateWebhookSecret,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import {
  buildEventExample,
  EVENT_KINDS,
  EVENT_TYPES,
  TEST_KIND,
} from '../../webhooks/event-types.ts'
import {
  presentDelivery,
  presentDetail,
  presentTest,
  presentWebhook,
  presentWithSecret,
} from '../../webhooks/present.ts'
import { createTestEventLimit, sendTestEvent } from '../../webhooks/send-test-event.ts'
import type { ApiDeps } from '../api-deps.ts'
import { answerWith, commitResponse, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { encodeCursor, pageQuery, parseCursor, toPage, toPageBody } from '../query.ts'
import { withOrigin } from '../request-context.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import {
  ATTEMPTED_EXAMPLE,
  DELIVERY_EXAMPLE,
  DeliveryAnswer,
  DeliveryDetailAnswer,
  DeliveryPage,
  deliveryFilters,
  Recovered,
  RecoveryRequest,
  WebhookTest,
  WebhookTestRequest,
} from '../schemas/delivery.ts'
import {
  EventList,
  NEW_WEBHOOK_EXAMPLE,
  NewWebhookRequest,
  RotatedWebhook,
  SecretRotation,
  WebhookAnswer,
  WebhookPatchRequest,
} from '../schemas/webhook.ts'
import {
  deliveryParams,
  deliveryTarget,
  WEBHOOK_BODY_MAX,
  type WebhookCreateDeps,
  webhookCreateRoutes,
  webhookParams,
  webhookTarget,
} from './create.ts'
import { type EventDeps, eventRoutes } from './events.ts'

type WebhookDeps = Pick<
  ApiDeps,
  'database' | 'guard' | 'random' | 'resolver' | 'settings' | 'transport'
> &
  IdempotencyDeps &
  WebhookCreateDeps &
  EventDeps

/** Routes that get, update, replace and delete one endpoint. */
function webhookChangeRoutes(service: WebhookDeps) {
  const router = newRouter()

  const read = route(service, 'GET /v1/webhooks/{id}', {
    id: 'getWebhook',
    summary: 'Get a webhook endpoint',
    scope: 'webhooks:read',
    params: webhookParams,
    answer: json(WebhookAnswer, 'The endpoint'),
  })
  router.handle(read, async c =>
    c.json(presentAnswer(await getWebhook(service, webhookTarget(c, c.req.valid('param')))), 200),
  )

  const change = route(service, 'PATCH /v1/webhooks/{id}', {
    id: 'updateWebhook',
    summary: 'Update a webhook endpoint',
    description: 'Fields that you omit keep their values.',
    scope: 'webhooks:write',
    params: webhookParams,
    body: { schema: WebhookPatchRequest, example: { active: false }, max: WEBHOOK_BODY_MAX },
    answer: json(WebhookAnswer, 'The endpoint'),
    errors: ['invalid_webhook_url', 'invalid_event'],
  })
  router.handle(change, async c => {
    const input = { ...webhookTarget(c, c.req.valid('param')), change: c.req.valid('json') }
    return c.json(presentAnswer(await updateWebhook(withOrigin(c, service), input)), 200)
  })

  const replace = route(service, 'PUT /v1/webhooks/{id}', {
    id: 'replaceWebhook',
    summary: 'Replace a webhook endpoint',
    description: "Fields that you omit get their default values. The secret doesn't change.",
    scope: 'webhooks:write',
    params: webhookParams,
    body: { schema: NewWebhookRequest, example: NEW_WEBHOOK_EXAMPLE, max: WEBHOOK_BODY_MAX },
    answer: json(WebhookAnswer, 'The endpoint'),
    errors: ['invalid_webhook_url', 'invalid_event'],
  })
  router.handle(replace, async c => {
    const target = webhookTarget(c, c.req.valid('param'))
    const input = { ...target, change: c.req.valid('json'), replacesHeaders: true }
    return c.json(presentAnswer(await updateWebhook(withOrigin(c, service), input)), 200)
  })

  const remove = route(service, 'DELETE /v1/webhooks/{id}', {
    id: 'deleteWebhook',
    summary: 'Delete a webhook endpoint',
    description: 'Events are no longer sent to it, and scheduled retries are cancelled.',
    scope: 'webhooks:write',
    params: webhookParams,
    answer: { description: 'The endpoint is deleted' },
    status: 204,
  })
  router.handle(remove, async c => {
    await deleteWebhook(withOrigin(c, service), webhookTarget(c, c.req.valid('param')))
    return c.body(null, 204)
  })

  return router
}

const presentAnswer = (webhook: Webhook) => ({
  success: true as const,
  data: presentWebhook(webhook),
})

/** Route that rotates the secret of an endpoint. */
function webhookSecretRoutes(service: WebhookDeps) {
  const rotate = route(service, 'POST /v1/webhooks/{id}/secret', {
    id: 'rotateWebhookSecret',
    summary: 'Rotate the secret of a webhook endpoint',
    description:
      'Returns the new secret, once. `X-EV-Signature` uses it from now on. Until the grace period ends, `webhook-signature` also contains a signature with the previous secret.',
    scope: 'webhooks:write',
    idempotent: true,
    params: webhookParams,
    body: {
      schema: SecretRotation,
      example: { grace_period_seconds: 86_400 },
      max: WEBHOOK_BODY_MAX,
      required: false,
    },
    answer: json(RotatedWebhook, 'The endpoint with its new secret'),
  })
  return newRouter().handle(rotate, c => {
    // Without a body, the defaults of its schema are not applied.
    const graceS = c.req.valid('json').grace_period_seconds ?? SECRET_GRACE_MS / SECOND
    const input = { ...webhookTarget(c, c.req.valid('param')), graceMs: graceS * SECOND }
    return answerWith<RotatedSecret>(
      c,
      service,
      beforeCommit => rotateWebhookSecret(withOrigin(c, service), input, beforeCommit),
      ({ webhook, secret, previousExpiresAt }) => {
        const previous_secret_expires_at = isoTime(previousExpiresAt)
        const data = { ...presentWithSecret(webhook, secret), previous_secret_expires_at }
        return { status: 200, body: { success: true, data } }
      },
    )
  })
}

/** Routes of webhook endpoints, their deliveries and events. */
export function webhookRoutes(service: WebhookDeps) {
  const router = newRouter()
  router.include(webhookCreateRoutes(service))
  // Precedes the routes with an ID, which would match `events`, too.
  router.include(catalogueRoutes(service))
  router.include(webhookChangeRoutes(service))
  router.include(webhookSecretRoutes(service))
  router.include(webhookTestRoutes(service))
  router.include(deliveryLogRoutes(service))
  router.include(redeliveryRoutes(service))
  router.include(eventRoutes(service))
  return router
}

/** Route that lists the event types. */
function catalogueRoutes(service: WebhookDeps) {
  const list = route(service, 'GET /v1/webhooks/events', {
    id: 'listEvents',
    summary: 'List event types',
    description:
      "Returns the event types that you can subscribe to, each with the JSON Schema of its data and an example. `webhook.test` isn't included, because it is only sent as a test event.",
    scope: 'webhooks:read',
    answer: json(EventList, 'The event types', CATALOGUE),
  })
  return newRouter().handle(list, c => c.json(CATALOGUE, 200))
}

const CATALOGUE = {
  success: true as const,
  data: {
    events: EVENT_KINDS.map(event => {
      const { description, data } = EVENT_TYPES[event]
      return {
        event,
        description,
        example: {
          event,
          event_id: 'evt_abc123',
          timestamp: '2026-03-21T10:30:00.000Z',
          data: buildEventExample(event),
        },
        schema: {
          $schema: 'https://json-schema.org/draft/2020-12/schema',
          ...buildJsonSchema(data),
          additionalProperties: false,
        },
      }
    }),
  },
}

/** Route that sends a test event. */
function webhookTestRoutes(service: WebhookDeps) {
  const { version } = service.settings
  const services = { ...service, version, startTest: createTestEventLimit() }
  const send = route(service, 'POST /v1/webhooks/{id}/test', {
    id: 'testWebhook',
    summary: 'Send a test event to a webhook endpoint',
    description:
      'Sends one event to the endpoint and returns the response of your receiver. The status is 200 even if the delivery failed. Without a body, it sends `webhook.test`; with `event`, the example of that event type, marked with `"sandbox": true`. The endpoint can be disabled, and doesn\'t have to be subscribed to the event. An account can have four test events in flight.',
    scope: 'webhooks:write',
    idempotent: true,
    params: webhookParams,
    body: {
      schema: WebhookTestRequest,
      example: { event: 'batch.completed' },
      max: WEBHOOK_BODY_MAX,
      required: false,
    },
    answer: json(WebhookTest, 'The result of the test'),
  })
  return newRouter().handle(send, async c => {
    // Without a body, the defaults of its schema are not applied.
    const kind = c.req.valid('json').event ?? TEST_KIND
    const input = { ...webhookTarget(c, c.req.valid('param')), sandbox: c.get('sandbox'), kind }
    const outcome = await sendTestEvent(services, input)
    const body = { success: true, data: presentTest(outcome) }
    return commitResponse(c, service, async () => ({ status: 200, body }))
  })
}

/** Routes that resend events. */
function redeliveryRoutes(service: WebhookDeps) {
  const router = newRouter()

  const retry = route(service, 'POST /v1/webhooks/{id}/deliveries/{delivery_id}/retry', {
    id: 'retryDelivery',
    summary: 'Retry a delivery',
    description:
      'Sends the same event again at once, with the usual retries if it fails. The event can already be delivered. The endpoint must be active.',
    scope: 'webhooks:write',
    idempotent: true,
    params: deliveryParams,
    answer: json(DeliveryAnswer, 'The delivery', DELIVERY_EXAMPLE),
  })
  router.handle(retry, c => {
    const target = deliveryTarget(c, c.req.valid('param'))
    return answerWith<RetriedDelivery>(
      c,
      service,
      beforeCommit => retryDelivery(service, target, beforeCommit),
      ({ webhook, delivery }) => ({
        status: 200,
        body: {
          success: true,
          data: presentDelivery(delivery, webhook, service.database.steadyClock),
        },
      }),
    )
  })

  const recover = route(service, 'POST /v1/webhooks/{id}/recover', {
    id: 'recoverDeliveries',
    summary: 'Resend failed deliveries',
    description:
      'Resends all events whose deliveries failed since a time, for example after an outage of your receiver.',
    scope: 'webhooks:write',
    idempotent: true,
    params: webhookParams,
    body: { schema: RecoveryRequest, max: WEBHOOK_BODY_MAX },
    answer: json(Recovered, 'The number of resent events'),
  })
  router.handle(recover, c => {
    const { since } = c.req.valid('json')
    const input = { ...webhookTarget(c, c.req.valid('param')), since }
    return answerWith<RecoveredDeliveries>(
      c,
      service,
      beforeCommit => retryFailedDeliveries(service, input, beforeCommit),
      ({ recovered }) => ({ status: 200, body: { success: true, data: { recovered } } }),
    )
  })

  return router
}

function deliveryLogRoutes(service: WebhookDeps) {
  const router = newRouter()

  const list = route(service, 'GET /v1/webhooks/{id}/deliveries', {
    id: 'listDeliveries',
    summary: 'List the deliveries of a webhook endpoint, newest first',
    description:
      'Returns one row for each event, with the result of its last attempt. Finished deliveries are kept for seven days.',
    scope: 'webhooks:read',
    params: webhookParams,
    query: z.object({ ...pageQuery, ...deliveryFilters }),
    answer: json(DeliveryPage, 'One page of deliveries'),
  })
  router.handle(list, async c => {
    const { limit, cursor, status, event, search } = c.req.valid('query')
    const webhook = await getWebhook(service, webhookTarget(c, c.req.valid('param')))
    const query = { webhookId: webhook.id, before: parseCursor(cursor), status, event }
    const { rows, next } =
      search === undefined
        ? toPage(await getDeliveryPage(service.database, { ...query, max: limit + 1 }), limit)
        : toCursor(await searchDeliveries(service.database, { ...query, max: limit, search }))
    const items = rows.map(row => presentDelivery(row, webhook, service.database.steadyClock))
    return c.json(toPageBody(items, next), 200)
  })

  const read = route(service, 'GET /v1/webhooks/{id}/deliveries/{delivery_id}', {
    id: 'getDelivery',
    summary: 'Get a delivery with its request and responses',
    scope: 'webhooks:read',
    params: deliveryParams,
    answer: json(DeliveryDetailAnswer, 'The delivery', ATTEMPTED_EXAMPLE),
  })
  router.handle(read, async c => {
    const target = deliveryTarget(c, c.req.valid('param'))
    const { webhook, logged } = await getDelivery(service, target)
    const withSignatures = permits(c.get('caller').key.scopes, 'webhooks:write')
    const data = presentDetail(logged, webhook, service.database.steadyClock, { withSignatures })
    return c.json({ success: true as const, data }, 200)
  })

  return router
}

const toCursor = ({ rows, next }: Awaited<ReturnType<typeof searchDeliveries>>) => ({
  rows,
  next: next === null ? null : encodeCursor(next),
})
