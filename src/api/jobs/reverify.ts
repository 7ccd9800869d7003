import { z } from '@hono/zod-openapi'
import { CLASSES } from '../../engine/verdict/reason.ts'
import { type Job, parseOrigin } from '../../jobs/job-store.ts'
import { type ComparedResult, findChanges } from '../../jobs/reverify/changes.ts'
import { inheritOptions, reverifyJob } from '../../jobs/reverify/reverify-job.ts'
import { OLDER_THAN_DAYS_MAX } from '../../jobs/reverify/selection.ts'
import { DAY } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import type { ApiDeps } from '../api-deps.ts'
import { presentJobWebhook } from '../lists/job-options.ts'
import { type ListLimitDeps, requireDiskSpace } from '../lists/limits.ts'
import { type QueueDeps, readListOptions } from '../lists/queue.ts'
import { answerWith, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { namesQuery, pageFields } from '../query.ts'
import { newRouter, route } from '../route.ts'
import { json, successBody } from '../schemas/answers.ts'
import { time } from '../schemas/fields.ts'
import { JobAnswer } from '../schemas/job.ts'
import { resultsQuery } from '../schemas/job-results.ts'
import { plainFields } from '../schemas/result.ts'
import { BatchRequest, webhook } from '../schemas/verify.ts'
import { type JobViewDeps, presentJob } from './job-view.ts'
import { jobParams, type LoadJobDeps, loadJob, noSuchJob } from './load-job.ts'
import { type OutlookDeps, queuedOutlook } from './outlook.ts'
import { parseRowCursor, toRowCursor } from './row-view.ts'

export type ReverifyDeps = Pick<
  ApiDeps,
  'changes' | 'clock' | 'database' | 'guard' | 'ledger' | 'random'
> &
  ListLimitDeps &
  QueueDeps &
  IdempotencyDeps &
  JobViewDeps &
  LoadJobDeps &
  OutlookDeps

// Schemas of jobs that verify a list again, and of what has changed.

/** The conditions of rows to verify again; rows that match one of them are verified. */
const selectionFields = {
  only: z
    .array(z.enum(CLASSES))
    .min(1)
    .max(CLASSES.length)
    .optional()
    .openapi({
      description: 'Re-verify the rows with these classes.',
      example: ['unknown'],
    }),
  older_than_days: z.int().min(1).max(OLDER_THAN_DAYS_MAX).optional().openapi({
    description: 'Re-verify the rows whose results are older than this number of days.',
    example: 90,
  }),
}

const { check_smtp, metadata, notify, webhook_url } = BatchRequest.shape

export const ReverifyRequest = z
  .strictObject({ ...selectionFields, check_smtp, metadata, notify, webhook_url })
  .openapi('ReverifyRequest')

const ReverifyJob = JobAnswer.extend({ webhook_secret: webhook.webhook_secret }).openapi(
  'ReverifyJob',
)

const REVERIFY_EXAMPLE = {
  job_id: 'job_abc123',
  previous_job_id: 'job_xyz789',
  status: 'queued' as const,
  started_at: null,
}

const compared = z.object({
  class: z.enum(CLASSES).openapi({ example: 'deliverable' }),
  reason: plainFields.reason,
  checked_at: time.nullable().openapi({
    description: 'When the result was determined. Null if the address was erased.',
  }),
})

const count = z.int().min(0)

const ChangePage = successBody(
  z.object({
    previous_job_id: z.string().nullable().openapi({
      description: 'The job that this job re-verifies. Null for a new list.',
      example: 'job_xyz789',
    }),
    verified: count.openapi({ description: 'Rows re-verified so far.', example: 120 }),
    changed: count.openapi({ description: 'Rows whose class has changed.', example: 45 }),
    counts: z
      .array(
        z.object({
          from: z.enum(CLASSES).openapi({ example: 'unknown' }),
          to: z.enum(CLASSES).openapi({ example: 'deliverable' }),
          count: count.openapi({ example: 30 }),
        }),
      )
      .openapi({ description: 'Rows by class before and after. They add up to `verified`.' }),
    items: z.array(
      z
        .object({
          row: z.int().min(1).openapi({ example: 12 }),
          email: z.string().openapi({
            description: 'Empty if the address was erased.',
            example: 'user@example.com',
          }),
          before: compared,
          after: compared,
        })
        .openapi('Change'),
    ),
    ...pageFields,
  }),
).openapi('ChangePage')

const changesQuery = {
  from: namesQuery(CLASSES, {
    description: 'Only rows that had one of these classes',
    example: 'unknown',
  }),
  to: namesQuery(CLASSES, {
    description: 'Only rows that have one of these classes now',
    example: 'undeliverable',
  }),
}

/** The values that differ from the examples of the fields, so that the counts add up. */
const CHANGES_EXAMPLE = {
  data: {
    counts: [
      { from: 'deliverable' as const, to: 'undeliverable' as const, count: 15 },
      { from: 'unknown' as const, to: 'deliverable' as const, count: 30 },
      { from: 'unknown' as const, to: 'unknown' as const, count: 75 },
    ],
    items: [
      {
        before: {
          class: 'unknown' as const,
          reason: 'timeout' as const,
          checked_at: '2026-02-21T10:30:00.000Z',
        },
      },
    ],
  },
}

/** Fits the largest metadata, as in the requests of lists. */
const BODY_MAX = 64 * 1024

/** Routes that verify a list again and report what has changed. */
export function reverifyRoutes(service: ReverifyDeps) {
  const router = newRouter()

  const reverify = route(service, 'POST /v1/jobs/{id}/reverify', {
    id: 'reverifyJob',
    summary: 'Re-verify a list',
    description:
      "Creates a job with all rows of a finished list. It re-verifies the rows that match `only` or `older_than_days`, or all rows if you set neither, without using cached results. The other rows keep their result and cost nothing. Rows without a result are always re-verified, rows that aren't addresses never. The name, `check_smtp` and `metadata` of the list apply unless you set them. The re-verification of a simulated list is simulated too.",
    scope: 'verify:bulk',
    counts: 'bulk',
    idempotent: true,
    afterBody: requireDiskSpace(service),
    params: jobParams,
    body: {
      schema: ReverifyRequest,
      example: { only: ['unknown'], older_than_days: 90 },
      max: BODY_MAX,
      required: false,
    },
    answer: json(ReverifyJob, 'The new job', REVERIFY_EXAMPLE),
    status: 201,
    errors: [
      ...(['job_not_reverifiable', 'empty_list', 'invalid_webhook_url'] as const),
      ...(['quota_exceeded', 'concurrent_jobs_exceeded', 'stored_rows_exceeded'] as const),
      'insufficient_storage',
    ],
  })
  router.handle(reverify, async c => {
    const { id } = c.req.valid('param')
    const job = await loadJob(c, service, id)
    // A request to the sandbox must not cause a charge.
    if (c.get('sandbox') && job.sandbox === 0) noSuchJob(id)
    const { only, older_than_days, ...given } = c.req.valid('json')
    const inherited = inheritOptions(job)
    const read = await readListOptions(c, service, {
      ...given,
      check_smtp: given.check_smtp ?? inherited.checkSmtp,
      metadata: given.metadata ?? inherited.metadata,
    })
    const options = { ...inherited, ...read, forceRefresh: true }
    const { key, plan } = c.get('caller')
    const selection = { classes: only, checkedBefore: checkedBefore(service, older_than_days) }
    const input = { job, plan, keyId: key.id, selection, options }
    if (job.sandbox === 0) await c.get('admitted').countList()
    return answerWith<Job>(
      c,
      service,
      beforeCommit => reverifyJob(service, input, beforeCommit),
      created => ({
        status: 201,
        body: {
          ...presentJob(service, created, queuedOutlook(service, created)),
          ...presentJobWebhook(options),
        },
      }),
    )
  })

  const changes = route(service, 'GET /v1/jobs/{id}/changes', {
    id: 'listChanges',
    summary: 'List the rows whose class has changed',
    description:
      'Compares a re-verification with the previous results. `items` contains the rows whose class has changed, in the order of the list; `counts` contains all re-verified rows, regardless of filters. It works while the job is running, and after the previous job was deleted. A page can be short or empty while `has_more` is true: continue with `next_cursor`.',
    scope: 'jobs:read',
    params: jobParams,
    query: z.object({
      limit: resultsQuery.limit,
      cursor: resultsQuery.cursor,
      ...changesQuery,
    }),
    answer: json(ChangePage, 'The counts and one page of rows', CHANGES_EXAMPLE),
  })
  router.handle(changes, async c => {
    const { limit, cursor, from, to } = c.req.valid('query')
    const job = await loadJob(c, service, c.req.valid('param').id)
    const { previousJobId } = parseOrigin(job)
    const page = { jobId: job.id, after: parseRowCursor(cursor), max: limit, from, to }
    const isNew = previousJobId === null
    const counts = isNew ? [] : await service.changes.get(job)
    const found = isNew ? NO_CHANGES : await findChanges(service.database, page)
    // The counts of a job that was deleted in the meantime are incomplete.
    await loadJob(c, service, job.id)
    const data = {
      previous_job_id: previousJobId,
      verified: sum(counts),
      changed: sum(counts.filter(one => one.from !== one.to)),
      counts: counts.map(one => ({ ...one })),
      items: found.rows.map(({ position, text, before, after }) => ({
        row: position,
        email: text,
        before: present(before),
        after: present(after),
      })),
      next_cursor: found.next === null ? null : toRowCursor(found.next),
      has_more: found.next !== null,
    }
    return c.json({ success: true as const, data }, 200)
  })

  return router
}

const NO_CHANGES: Awaited<ReturnType<typeof findChanges>> = { rows: [], next: null }

const checkedBefore = ({ clock }: ReverifyDeps, days: number | undefined) =>
  days === undefined ? undefined : clock.now() - days * DAY

const sum = (counts: readonly { readonly count: number }[]) =>
  counts.reduce((total, { count }) => total + count, 0)

const present = ({ class: klass, reason, checkedAt }: ComparedResult) => ({
  class: klass,
  reason,
  checked_at: checkedAt === null ? null : isoTime(checkedAt),
})
