import { createRoute } from '@hono/zod-openapi'
import { readCredit } from '../../accounts/credits/credit-store.ts'
import { periodEnd, periodStart } from '../../accounts/plan.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { CREDITS_EXAMPLE, Credits } from '../schemas/account.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import type { Service } from '../service.ts'

/** What of its plan an account has left today. */
export function creditRoutes(service: Service) {
  const credits = createRoute({
    ...{ method: 'get', path: '/v1/credits', operationId: 'getCredits' },
    summary: 'Credits of today',
    description:
      'One credit for each definite answer that was found out anew: `unknown`, cached and malformed ones, duplicates and the sandbox cost nothing. A plan without a daily limit has null for what is left and what was added.',
    tags: ['Account'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'account:read', counts: null, bodyMax: 0 }),
    responses: {
      200: json(Credits, 'The credits', CREDITS_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(credits, async c => {
    const { account, key, plan } = c.get('caller')
    const now = service.clock.now()
    const { used, held } = await readCredit(service.database, account.id, periodStart(now))
    const limit = plan.creditsPerDay
    const data = {
      ...{ account_id: account.id, api_key_id: key.id, api_key_name: key.name, plan: plan.name },
      credits_balance: limit === null ? null : Math.max(0, limit - used - held),
      ...{ credits_consumed: used, credits_held: held, credits_added: limit },
      period: 'day' as const,
      resets_at: isoTime(periodEnd(now)),
      last_updated: isoTime(now),
    }
    return c.json({ success: true as const, data }, 200)
  })
}
