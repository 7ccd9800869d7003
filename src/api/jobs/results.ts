import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { ActionPolicy } from '../../engine/verdict/action.ts'
import { presentResult, presentRow } from '../../engine/verdict/present-result.ts'
import type { Job } from '../../jobs/job-store.ts'
import {
  findResults,
  type ResultRow,
  type RowConditions,
  readRows,
} from '../../jobs/results/result-store.ts'
import {
  findSortedResults,
  type RowOrder,
  type SortedOptions,
  type SortedPage,
  type SortedPosition,
  type SortField,
} from '../../jobs/results/sorted-results.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import { clientAborted, type Env } from '../context.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { toPageBody } from '../query.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import {
  ResultPage,
  ResultRowAnswer,
  type ResultsQuery,
  resultsQuery,
} from '../schemas/job-results.ts'
import { toRow } from './job-row.ts'
import { jobParams, type LoadJobDeps, loadJob } from './load-job.ts'
import {
  parseRowStart,
  parseSortedCursor,
  plainRow,
  type RowStart,
  toRowCursor,
  toSortedCursor,
} from './row-view.ts'

export type ResultDeps = Pick<ApiDeps, 'database' | 'guard'> & LoadJobDeps & ActionPolicyDeps

/** Routes of the rows of a job: one page, and one row with its evidence. */
export function resultRoutes(service: ResultDeps) {
  const router = newRouter()
  router.include(pageRoutes(service))
  router.include(rowRoutes(service))
  return router
}

function pageRoutes(service: ResultDeps) {
  const results = route(service, 'GET /v1/jobs/{id}/results', {
    id: 'listResults',
    summary: 'List the rows of a job',
    description:
      'Returns rows in the order of the list. It works while the job is running: fields of rows without a result are null. In a long list, a page of a search can be short or empty while `has_more` is true: continue with `next_cursor`. With `sort` or `count`, pages are full, but sorting, and counting the rows that match a reason or a search, reads the whole list: a few seconds for a million rows. To get all rows, use the download.',
    scope: 'jobs:read',
    params: jobParams,
    query: z.object(resultsQuery),
    answer: json(ResultPage, 'One page of rows'),
  })
  return newRouter().handle(results, async c => {
    const query = c.req.valid('query')
    const job = await loadJob(c, service, c.req.valid('param').id)
    const order: RowOrder = { field: query.sort, isDescending: query.order === 'desc' }
    const policy = getActionPolicy(c, service)
    const find = isListOrder(order) ? findListPage : findSortedPage
    const { rows, next, ...counts } = await find(c, service, { job, order, query })
    const { success, data } = toPageBody(
      rows.map(row => presentStored(row, policy)),
      next,
    )
    return c.json({ success, data: { ...data, ...counts } }, 200)
  })
}

type PageRequest = {
  readonly job: Job
  readonly order: RowOrder
  readonly query: ResultsQuery
}

type FoundPage = {
  readonly rows: readonly ResultRow[]
  readonly next: string | null
  readonly total?: number
  readonly offset?: number
}

/** Finds a page in the order of the list, and counts the matching rows if it is asked to. */
async function findListPage(
  c: Context<Env>,
  service: ResultDeps,
  { job, order, query }: PageRequest,
): Promise<FoundPage> {
  const conditions = toConditions(query, getActionPolicy(c, service))
  const { after, ...start } = startRow(query)
  const page = { jobId: job.id, max: query.limit, ...conditions }
  if (!query.count) {
    const { rows, next } = await findResults(service.database, { ...page, after })
    return { rows, next: next === null ? null : toRowCursor(next) }
  }
  const total = knownTotal(job, conditions)
  // Without a filter, the number of a row says how many are before it.
  const isWhole = Object.keys(conditions).length === 0
  const offset = start.offset ?? (isWhole ? Math.min(after, job.total) : null)
  if (total === null || offset === null) {
    const from = { key: null, position: after }
    const { last, ...found } = await findSorted(c, service, { ...page, order, after: from })
    const end = found.offset + found.rows.length
    return { ...found, next: last === null ? null : toRowCursor(last.position, end) }
  }
  // The page is full, however many rows are scanned for it.
  const scannedMax = Number.POSITIVE_INFINITY
  const { rows, next } = await findResults(service.database, { ...page, after, scannedMax })
  const end = offset + rows.length
  return { rows, total, offset, next: next === null ? null : toRowCursor(next, end) }
}

/** Finds a page of sorted rows, and counts the matching rows on the way. */
async function findSortedPage(
  c: Context<Env>,
  service: ResultDeps,
  { job, order, query }: PageRequest,
): Promise<FoundPage> {
  const page = {
    jobId: job.id,
    max: query.limit,
    order,
    ...toConditions(query, getActionPolicy(c, service)),
  }
  const after = startPosition(order.field, query)
  const { last, ...found } = await findSorted(c, service, { ...page, after })
  return { ...found, next: last === null ? null : toSortedCursor(order.field, last) }
}

function toConditions(
  { class: classes, action: actions, reason: reasons, search }: ResultsQuery,
  policy: ActionPolicy,
): RowConditions {
  const text = search?.trim()
  return omitUndefined({
    classes,
    decided: actions === undefined ? undefined : { actions, policy },
    reasons,
    search: text || undefined,
  })
}

/** Finds sorted rows while the client is connected. */
async function findSorted(
  c: Context<Env>,
  { database }: ResultDeps,
  options: Omit<SortedOptions, 'signal'>,
): Promise<SortedPage> {
  const { signal } = c.req.raw
  const found = await findSortedResults(database, { ...options, signal })
  if (signal.aborted) throw clientAborted()
  return found
}

/** Returns the number of matching rows if the counters of the job have it, which needs no scan. */
function knownTotal(job: Job, conditions: RowConditions): number | null {
  const { classes, reasons, search, decided } = conditions
  if (reasons !== undefined || search !== undefined || decided !== undefined) return null
  return classes?.reduce((sum, one) => sum + job[one], 0) ?? job.total
}

/** The order in which the database has the rows. */
const isListOrder = ({ field, isDescending }: RowOrder) => field === 'row' && !isDescending

function rowRoutes(service: ResultDeps) {
  const row = route(service, 'GET /v1/jobs/{id}/results/{row}', {
    id: 'getResult',
    summary: 'Get a row of a job with its evidence',
    description:
      'The result has `flags` and `evidence`, as in `POST /v1/verify/single?include=flags,evidence`. A list does not record the SMTP dialogue: its addresses share connections.',
    scope: 'jobs:read',
    params: rowParams,
    answer: json(ResultRowAnswer, 'The row'),
  })
  return newRouter().handle(row, async c => {
    const { id, row: position } = c.req.valid('param')
    const job = await loadJob(c, service, id)
    const [stored] = await readRows(service.database, job.id, [position])
    if (stored === undefined) {
      throw requestError('row_not_found', { position, total: job.total })
    }
    const policy = getActionPolicy(c, service)
    return c.json({ success: true as const, data: presentWhole(stored, policy) }, 200)
  })
}

const rowParams = jobParams.extend({
  row: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).openapi({
    type: 'integer',
    description: 'Number of the row in the list, from 1.',
    example: 12,
  }),
})

function presentStored(stored: ResultRow, policy: ActionPolicy) {
  const [row] = toRow(stored)
  const head = { row: stored.position, email: stored.text }
  if (row === undefined) return { ...head, ...NO_RESULT }
  if (row.result !== null) return { ...head, ...presentRow(row.result, policy) }
  const plain = plainRow(row, policy)
  const { action, action_reason, valid, deliverable, risk_level, reason, cached, confidence } =
    plain
  const decided = { class: row.class, action, action_reason }
  const known = { valid, deliverable, risk_level, reason, cached, confidence }
  return { ...head, ...NO_RESULT, ...decided, ...known, erased: true as const }
}

const NO_RESULT = {
  class: null,
  action: null,
  action_reason: null,
  valid: null,
  deliverable: null,
  risk_level: null,
  reason: null,
  cached: null,
  confidence: null,
  did_you_mean: null,
  operator: null,
  mx_host: null,
  smtp_code: null,
  smtp_text: null,
  checked_at: null,
  checked_by: null,
}

function presentWhole(stored: ResultRow, policy: ActionPolicy) {
  const [row] = toRow(stored)
  const result = row === undefined || row.result === null ? null : row.result
  return {
    row: stored.position,
    email: stored.text,
    result: result === null ? null : presentResult(result, ['flags', 'evidence'], policy),
    ...(row !== undefined && result === null ? { erased: true as const } : {}),
  }
}

/** Returns where a page in the order of the list starts. */
function startRow({ cursor, after }: ResultsQuery): RowStart {
  if (after === undefined) return parseRowStart(cursor)
  if (cursor === undefined) return { after, offset: null }
  throw invalidRequest('"cursor" and "after" both set the start. Send only one of them.')
}

/** Returns the position after which a page of sorted rows starts; null for the first page. */
function startPosition(field: SortField, { cursor, after }: ResultsQuery): SortedPosition | null {
  if (after === undefined) return parseSortedCursor(field, cursor)
  throw invalidRequest(
    '"after" is a row in the order of the list. Omit it, or omit "sort" and "order".',
  )
}
