import { createRoute, z } from '@hono/zod-openapi'
import type { Verification } from '../../accounts/credits/history.ts'
import { historyPage } from '../../accounts/credits/history-page.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import type { Reason, Risk } from '../../engine/verdict/reason.ts'
import { cursorAt, pageQuery, positionOf } from '../cursor.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { HISTORY_EXAMPLE, HistoryPage, historyFilters, type SOURCES } from '../schemas/account.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import type { Service } from '../service.ts'

/** What an account verified. */
export function historyRoutes(service: Service) {
  const history = createRoute({
    ...{ method: 'get', path: '/v1/history', operationId: 'listHistory' },
    summary: 'What was verified, the newest first',
    description:
      'One row for each address that was verified, kept for as long as the operator says. With `X-EV-Sandbox: true` the simulated ones, else the others. Where something is sought in a long history, a page may have few rows or none and still `has_more`: the search goes on at `next_cursor`.',
    tags: ['Account'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'account:read', counts: null, bodyMax: 0 }),
    request: { query: z.object({ ...pageQuery, ...historyFilters }) },
    responses: {
      200: json(HistoryPage, 'One page of it', HISTORY_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(history, async c => {
    const { limit, cursor, class: classes, ...chosen } = c.req.valid('query')
    const { rows, next } = await historyPage(service.database, {
      accountId: c.get('caller').account.id,
      sandbox: c.get('sandbox'),
      before: positionOf(cursor),
      max: limit,
      ...given({ ...chosen, classes }),
    })
    const data = {
      items: rows.map(presentRow),
      next_cursor: next === null ? null : cursorAt(next),
      has_more: next !== null,
    }
    return c.json({ success: true as const, data }, 200)
  })
}

/** Without what is left out. */
const given = <Part extends object>(part: Part) =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Part]?: Exclude<Part[Name], undefined>
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
