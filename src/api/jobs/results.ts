import { z } from '@hono/zod-openapi'
import { presentRow } from '../../engine/verdict/present-result.ts'
import { findResults, type ResultRow } from '../../jobs/results/result-store.ts'
import { ApiError } from '../errors/api-error.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import { RESULTS_EXAMPLE, ResultPage, resultsQuery } from '../schemas/job-results.ts'
import type { Service } from '../service.ts'
import { toRow } from './job-row.ts'
import { jobParams, loadJob } from './load-job.ts'
import { parseRowCursor, plainRow, toRowCursor } from './row-view.ts'

/** Route that lists the rows of a job page by page. */
export function resultRoutes(service: Service) {
  const results = route(service, 'GET /v1/jobs/{id}/results', {
    id: 'listResults',
    summary: 'List the rows of a job',
    description:
      'Rows in the order of the list, also while the job is running: fields are null if a row has no result yet. A search in a long list stops after a while: the page then has fewer rows than requested, or none, although `has_more` is true; continue at `next_cursor`. To get all rows, use the download.',
    scope: 'jobs:read',
    params: jobParams,
    query: z.object(resultsQuery),
    answer: json(ResultPage, 'One page of rows', RESULTS_EXAMPLE),
  })
  return newRouter().openapi(results, async c => {
    const { limit, cursor, after, class: classes, reason, search } = c.req.valid('query')
    const job = await loadJob(c, service, c.req.valid('param').id)
    const searchText = search?.trim()
    const { rows, next } = await findResults(service.database, {
      ...{ jobId: job.id, after: startRow(cursor, after), max: limit },
      ...(classes === undefined ? {} : { classes }),
      ...(reason === undefined ? {} : { reasons: reason }),
      ...(searchText ? { search: searchText } : {}),
    })
    const next_cursor = next === null ? null : toRowCursor(next)
    const data = { items: rows.map(present), next_cursor, has_more: next !== null }
    return c.json({ success: true as const, data }, 200)
  })
}

function present(stored: ResultRow) {
  const [row] = toRow(stored)
  const head = { row: stored.position, email: stored.text }
  if (row === undefined) return { ...head, ...NO_RESULT }
  if (row.result !== null) return { ...head, ...presentRow(row.result) }
  const { valid, deliverable, risk_level, reason, cached, confidence } = plainRow(row)
  const known = { class: row.class, valid, deliverable, risk_level, reason, cached, confidence }
  return { ...head, ...NO_RESULT, ...known, erased: true as const }
}

const NO_RESULT = {
  ...{ class: null, valid: null, deliverable: null, risk_level: null, reason: null, cached: null },
  ...{ confidence: null, did_you_mean: null, operator: null, mx_host: null },
  ...{ smtp_code: null, smtp_text: null, checked_at: null },
}

/** Returns the row after which the page starts; 0 for the first page. */
function startRow(cursor: string | undefined, after: number | undefined): number {
  if (after === undefined || cursor === undefined) return after ?? parseRowCursor(cursor)
  throw new ApiError(
    'invalid_request',
    '"cursor" and "after" both set the start. Send only one of them.',
  )
}
