import { createRoute } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { BucketState } from '../../accounts/rate-limits/types.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import { DAY, SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { askingOf, creditState } from '../middleware/rate-limit.ts'
import { allBuckets, subjectOf } from '../middleware/rate-limit-buckets.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { type LIMIT_NAMES, LIMITS_EXAMPLE, Limits } from '../schemas/account.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import type { Service } from '../service.ts'

/** How close whoever asks is to each limit. */
export function limitRoutes(service: Service) {
  const limits = createRoute({
    ...{ method: 'get', path: '/v1/limits', operationId: 'getLimits' },
    summary: 'All limits, and what is left of each',
    description:
      'Those that hold for this key and the address that asks, with the credits of the day where the plan has an end to them. Looking takes nothing away but this request itself. A limit that was not used for a while begins anew with the next request: `resets_at` is then the end of the window that would begin now.',
    tags: ['Account'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'account:read', counts: null, bodyMax: 0 }),
    responses: {
      200: json(Limits, 'The limits', LIMITS_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(limits, async c => {
    const credits = await creditState(service, c.get('caller'))
    const data = {
      limits: [
        ...(await requestLimits(c, service)),
        ...(credits === null ? [] : [presentLimit(CREDITS, credits)]),
      ],
    }
    return c.json({ success: true as const, data }, 200)
  })
}

type Named = { readonly name: (typeof LIMIT_NAMES)[number]; readonly text: string; perMs: number }

const CREDITS: Named = {
  name: 'credits',
  text: 'Verifications of the day, by your plan',
  perMs: DAY,
}

/** None where the operator has switched them off. */
async function requestLimits(c: Context<Env>, service: Service) {
  const { limits, settings } = service
  if (!settings.limits) return []
  const buckets = allBuckets(c.get('caller'), askingOf(c, service))
  const states = await limits.look(buckets)
  return buckets.map(({ kind, perMs }, n) =>
    presentLimit({ name: kind, text: subjectOf(kind), perMs }, states[n] as BucketState),
  )
}

const presentLimit = (
  { name, text, perMs }: Named,
  { limit, remaining, resetAt }: BucketState,
) => ({
  ...{ name, text, limit, remaining },
  window_seconds: perMs / SECOND,
  resets_at: isoTime(resetAt),
})
