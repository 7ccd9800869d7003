import { createRoute, z } from '@hono/zod-openapi'
import { presentRow } from '../../engine/verdict/present-result.ts'
import { findResults, type ResultRow } from '../../jobs/results/result-store.ts'
import { ApiError } from '../errors/api-error.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { RESULTS_EXAMPLE, ResultPage, resultsQuery } from '../schemas/job-results.ts'
import type { Service } from '../service.ts'
import { toRow } from './job-row.ts'
import { loadJob } from './load-job.ts'
import { plainRow } from './row-view.ts'

/** The rows of a job, page by page, for whoever looks at them. */
export function resultRoutes(service: Service) {
  const results = createRoute({
    ...{ method: 'get', path: '/v1/jobs/{id}/results', operationId: 'listResults' },
    summary: 'The rows of a job, page by page',
    description:
      'In the order of the list, also while the job is under way: all is null where a row has no result yet. In a long list a search ends after a while: then a page has fewer rows than were asked for, or none, and `has_more` is true all the same; the next page goes on from there. Who wants all rows takes the download.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'jobs:read', counts: null, bodyMax: 0 }),
    request: { params, query: z.object(resultsQuery) },
    responses: {
      200: json(ResultPage, 'One page of them', RESULTS_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  } as const)
  return newRouter().openapi(results, async c => {
    const { limit, cursor, after, class: classes, reason, search } = c.req.valid('query')
    const job = await loadJob(c, service, c.req.valid('param').id)
    const sought = search?.trim()
    const { rows, next } = await findResults(service.database, {
      ...{ jobId: job.id, after: beginOf(cursor, after), max: limit },
      ...(classes === undefined ? {} : { classes }),
      ...(reason === undefined ? {} : { reasons: reason }),
      ...(sought ? { search: sought } : {}),
    })
    const next_cursor = next === null ? null : cursorOf(next)
    const data = { items: rows.map(present), next_cursor, has_more: next !== null }
    return c.json({ success: true as const, data }, 200)
  })
}

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })

function present(found: ResultRow) {
  const [row] = toRow(found)
  const place = { row: found.position, email: found.text }
  if (row === undefined) return { ...place, ...NOTHING_YET }
  if (row.result !== null) return { ...place, ...presentRow(row.result) }
  const { valid, deliverable, risk_level, reason, cached, confidence } = plainRow(row)
  const known = { class: row.class, valid, deliverable, risk_level, reason, cached, confidence }
  return { ...place, ...NOTHING_YET, ...known, erased: true as const }
}

const NOTHING_YET = {
  ...{ class: null, valid: null, deliverable: null, risk_level: null, reason: null, cached: null },
  ...{ confidence: null, did_you_mean: null, operator: null, mx_host: null },
  ...{ smtp_code: null, smtp_text: null, checked_at: null },
}

/** The row behind which a page begins; 0: with the first one. */
function beginOf(cursor: string | undefined, after: number | undefined): number {
  if (cursor === undefined) return after ?? 0
  if (after !== undefined) {
    throw new ApiError('invalid_request', '"cursor" and "after" both say where to begin: send one')
  }
  const position = positionOf(cursor)
  if (position !== null) return position
  throw new ApiError(
    'invalid_request',
    '"cursor" must be the `next_cursor` of an earlier answer, or be left out to begin with the first row',
  )
}

function positionOf(cursor: string): number | null {
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  const digits = /^\[(\d{1,15})\]$/.exec(text)?.[1]
  return digits === undefined ? null : Number(digits)
}

const cursorOf = (position: number) => Buffer.from(`[${position}]`).toString('base64url')
