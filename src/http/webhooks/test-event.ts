import { createRoute } from '@hono/zod-openapi'
import { sendTest } from '../../work/deliver/test-event.ts'
import { ApiError } from '../error/api-error.ts'
import { commit } from '../guard/commit.ts'
import { guard } from '../guard/guard.ts'
import { idempotent } from '../guard/idempotent.ts'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { WEBHOOK_TEST_EXAMPLE, WebhookTest } from '../schema/delivery.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schema/error.ts'
import type { Service } from '../service.ts'
import { WEBHOOK_BODY_MAX } from './create.ts'
import { presentTest } from './delivery/present.ts'
import { foundWebhook, webhookParams } from './found-webhook.ts'

/** Trying an endpoint out. */
export function webhookTestRoutes(service: Service) {
  const take = placesByAccount()
  const rule = { scope: 'webhooks:write', counts: null, bodyMax: WEBHOOK_BODY_MAX } as const
  const send = createRoute({
    ...{ method: 'post', path: '/v1/webhooks/{id}/test', operationId: 'testWebhook' },
    summary: 'Send a test event to a webhook endpoint',
    description:
      'Sends `webhook.test` once and at once, also to an endpoint that is switched off, and answers with what the receiver said: with 200 also where it failed. It needs no subscription. With `X-EV-Sandbox: true` it has `"sandbox": true`. An account may have four of them under way.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: [...guard(service, rule), idempotent(service)],
    request: { params: webhookParams },
    responses: {
      200: json(WebhookTest, 'What came of it', WEBHOOK_TEST_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS, ...REPLAY_FAULTS),
    },
  } as const)
  return newRouter().openapi(send, async c => {
    const webhook = await foundWebhook(c, service, c.req.valid('param').id)
    const leave = take(webhook.accountId)
    try {
      const parts = { ...service, version: service.settings.version }
      const outcome = await sendTest(parts, webhook, { sandbox: c.get('sandbox') })
      const body = { success: true, data: presentTest(outcome) }
      return (await commit(c, service, async () => ({ status: 200, body }))) as never
    } finally {
      leave()
    }
  })
}

/** Each may take half a minute and holds a connection meanwhile: nobody tries out more by hand. */
export const TESTS_AT_ONCE_MAX = 4
const RETRY_AFTER_S = 5

/** Places for tests under way, by account: takes one, or refuses; the returned function gives it back. */
function placesByAccount(): (accountId: string) => () => void {
  const taken = new Map<string, number>()
  return accountId => {
    const before = taken.get(accountId) ?? 0
    if (before >= TESTS_AT_ONCE_MAX) throw tooMany()
    taken.set(accountId, before + 1)
    return () => {
      const left = (taken.get(accountId) ?? 1) - 1
      if (left === 0) taken.delete(accountId)
      else taken.set(accountId, left)
    }
  }
}

function tooMany(): ApiError {
  const sentence = `${TESTS_AT_ONCE_MAX} test events of this account are under way: wait until one has been answered.`
  return new ApiError('rate_limit', sentence, { retryAfterS: RETRY_AFTER_S })
}
