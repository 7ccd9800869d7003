import { createRoute, type z } from '@hono/zod-openapi'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { SECOND } from '../../platform/clock.ts'
import { SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import {
  deleteWebhook,
  getWebhook,
  type RotatedSecret,
  rotateWebhookSecret,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import { answerWith, idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import {
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
  webhookParams as params,
  WEBHOOK_BODY_MAX,
  webhookParams,
  webhookTarget,
} from './create.ts'
import { presentWebhook, presentWithSecret } from './present.ts'

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

/** Giving an endpoint another secret. */
export function webhookSecretRoutes(service: Service) {
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const rotate = createRoute({
    ...{ method: 'post', path: '/v1/webhooks/{id}/secret', operationId: 'rotateWebhookSecret' },
    summary: 'Give a webhook endpoint another secret',
    description:
      'It is shown in this answer and never again. `X-EV-Signature` is made with it from now on; until the end of the grace period `webhook-signature` holds by the secret before, too.',
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
    // Without a body no default of its schema is there.
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
