import { createRoute, z } from '@hono/zod-openapi'
import { isoTime } from '../../engine/result/present.ts'
import { historyPage, type Verification } from '../../store/account/history.ts'
import type { Reason, Risk } from '../../verdict/reason.ts'
import { pageOf, pageQuery, placeOf } from '../cursor.ts'
import { guard } from '../guard/guard.ts'
import { newRouter } from '../router.ts'
import { HISTORY_EXAMPLE, HistoryPage, historyFilters, type SOURCES } from '../schema/account.ts'
import { json } from '../schema/answers.ts'
import { errorResponses, SECURITY } from '../schema/error.ts'
import type { Service } from '../service.ts'

/** What an account verified. */
export function historyRoutes(service: Service) {
  const history = createRoute({
    ...{ method: 'get', path: '/v1/history', operationId: 'listHistory' },
    summary: 'What was verified, the newest first',
    description:
      'One row for each address that was verified, kept for as long as the operator says. With `X-EV-Sandbox: true` the simulated ones, else the others.',
    tags: ['Account'],
    security: SECURITY,
    middleware: guard(service, { scope: 'account:read', counts: null, bodyMax: 0 }),
    request: { query: z.object({ ...pageQuery, ...historyFilters }) },
    responses: {
      200: json(HistoryPage, 'One page of it', HISTORY_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(history, async c => {
    const { limit, cursor, email, reason, source, since, until } = c.req.valid('query')
    const found = await historyPage(service.database, {
      accountId: c.get('caller').account.id,
      sandbox: c.get('sandbox'),
      before: placeOf(cursor),
      max: limit + 1,
      ...(email === undefined ? {} : { email }),
      ...(reason === undefined ? {} : { reason }),
      ...(source === undefined ? {} : { source }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
    })
    const { rows, next } = pageOf(found, limit)
    const data = { items: rows.map(presentRow), next_cursor: next, has_more: next !== null }
    return c.json({ success: true as const, data }, 200)
  })
}

const presentRow = (row: Verification) => ({
  id: row.id,
  email: row.email,
  valid: row.valid === 1,
  deliverable: row.deliverable === 1,
  risk_level: row.risk_level as Risk,
  reason: row.reason as Reason,
  cached: row.cached === 1,
  source: row.source as (typeof SOURCES)[number],
  job_id: row.job_id,
  created_at: isoTime(row.created_at),
})
