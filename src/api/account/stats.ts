import { createRoute, z } from '@hono/zod-openapi'
import { type Usage, usageOf } from '../../accounts/credits/usage.ts'
import { listKeys } from '../../accounts/key-store.ts'
import { periodEnd, periodStart } from '../../accounts/plan.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { DAY } from '../../platform/clock.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { PERIODS, STATS_EXAMPLE, Stats } from '../schemas/account.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import type { Service } from '../service.ts'

/** How much an account verified, by day and by key. */
export function statsRoutes(service: Service) {
  const stats = createRoute({
    ...{ method: 'get', path: '/v1/stats', operationId: 'getStats' },
    summary: 'Verifications by day and by key',
    description:
      'Of today (UTC), or of the last 7 or 30 days with today. Days without any verification are there too.',
    tags: ['Account'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'account:read', counts: null, bodyMax: 0 }),
    request: { query: z.object({ period: z.enum(PERIODS).default('day') }) },
    responses: {
      200: json(Stats, 'The numbers', STATS_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(stats, async c => {
    const { period } = c.req.valid('query')
    const { account } = c.get('caller')
    const to = periodEnd(service.clock.now())
    const from = to - DAYS[period] * DAY
    const usage = await usageOf(service.database, { accountId: account.id, from, to })
    const keys = await listKeys(service.database, account.id)
    const names = new Map(keys.map(({ id, name }) => [id, name]))
    const data = {
      ...{ period, from: isoTime(from), to: isoTime(to) },
      total: sumOf(usage),
      days: daysOf(from, to).map(day => ({
        date: isoTime(day).slice(0, 'YYYY-MM-DD'.length),
        ...sumOf(usage.filter(row => row.day === day)),
      })),
      keys: [...new Set(usage.map(row => row.key_id))].toSorted().map(key_id => ({
        ...{ key_id, key_name: names.get(key_id) ?? null },
        ...sumOf(usage.filter(row => row.key_id === key_id)),
      })),
    }
    return c.json({ success: true as const, data }, 200)
  })
}

const DAYS = { day: 1, week: 7, month: 30 } as const

const daysOf = (from: number, to: number) =>
  Array.from({ length: (to - from) / DAY }, (_, n) => periodStart(from) + n * DAY)

function sumOf(rows: readonly Usage[]) {
  const sum = {
    ...{ verifications: 0, cached: 0, credits: 0 },
    ...{ deliverable: 0, undeliverable: 0, risky: 0, unknown: 0 },
  }
  for (const row of rows) {
    sum.verifications += row.verifications
    sum.cached += row.cached
    sum.credits += row.credits
    sum[row.class as Class] += row.verifications
  }
  return sum
}
