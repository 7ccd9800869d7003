import { createRoute } from '@hono/zod-openapi'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { SECOND } from '../../platform/clock.ts'
import { SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import { type RotatedSecret, rotateWebhookSecret } from '../../webhooks/endpoints.ts'
import { answerWith } from '../middleware/commit-response.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import {
  ROTATED_WEBHOOK_EXAMPLE,
  RotatedWebhook,
  SECRET_ROTATION_EXAMPLE,
  SecretRotation,
} from '../schemas/webhook.ts'
import type { Service } from '../service.ts'
import { WEBHOOK_BODY_MAX } from './create.ts'
import { presentWithSecret } from './present.ts'
import { webhookParams, webhookTarget } from './target.ts'

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
