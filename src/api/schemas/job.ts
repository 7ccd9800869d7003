import { z } from '@hono/zod-openapi'
import { pageFields } from '../cursor.ts'
import { BulkItem, hostFields, ITEM_EXAMPLE, SingleResult } from './result.ts'

// Jobs as they are answered; unknown values are null, so that each state has the same fields.

export const JOB_STATES = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const
const JOB_TYPES = ['single', 'bulk', 'batch', 'file'] as const

const time = z.string().openapi({ format: 'date-time' })

const id = z.string().optional().openapi({ description: 'The id that it was submitted with.' })
const erased = z.literal(true).optional().openapi({
  description: 'The address was erased; of its result only the class is left.',
})

const JobItem = z.object({ id, ...BulkItem.shape, erased }).openapi('JobItem')

const Summary = z
  .object({
    total: z.int().min(0),
    valid: z.int().min(0).openapi({ description: 'Rows that are deliverable or risky.' }),
    invalid: z.int().min(0).openapi({ description: 'Rows that are undeliverable.' }),
    unknown: z.int().min(0).openapi({ description: 'Rows that nothing was found out about.' }),
    failed: z.int().min(0).openapi({
      description:
        'What could not be verified by a fault of ours; in a job that was cancelled or failed also what was never tried.',
    }),
  })
  .openapi('JobSummary')

const perClass = z.int().min(0)

const classes = z
  .object({ deliverable: perClass, risky: perClass, undeliverable: perClass, unknown: perClass })
  .openapi({ description: 'They sum up to the rows that are done.' })

const statusFields = {
  success: z.literal(true),
  job_id: z.string(),
  status: z.enum(JOB_STATES),
  progress: z.int().min(0).max(100).openapi({ description: '100 only when completed.' }),
  total_emails: z.int().min(0),
  processed_emails: z.int().min(0),
  estimated_time: z.string().nullable().openapi({ description: 'How long it will go on.' }),
  created_at: time,
  started_at: time.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  sandbox: z.literal(true).optional().openapi({ description: 'Its results are simulated.' }),
}

const dataFields = { summary: Summary, completed_at: time.nullable() }

const results = z.array(JobItem).openapi({
  description: 'In the order of the list, when the job is completed, or with `partial=true`.',
})

export const JobStatus = z
  .object({ ...statusFields, data: z.object({ results, ...dataFields }) })
  .openapi('JobStatus')

const status_detail = z.string().optional().openapi({
  description:
    'Why most rows wait, such as a DNS server that fails its check or an operator that wants a pause; only while they do.',
})
/** Why rows wait at one operator. */
export const WAIT_REASONS = [
  'refused',
  'throttled',
  'unknown_users',
  'asked_again_later',
  'pace',
] as const

export type WaitReason = (typeof WAIT_REASONS)[number]

const waiting_for = z
  .array(
    z.object({
      operator: z.string(),
      emails: z.int().min(0),
      reason: z.enum(WAIT_REASONS).openapi({
        description:
          '`refused`: the operator refuses us. `throttled`: it asked us to slow down. `unknown_users`: it knew none of many recipients in a row. `asked_again_later`: mail servers asked us to come back, or other domains at the same address come first. `pace`: they are asked at the pace that the operator accepts.',
      }),
      until: time.nullable().openapi({ description: 'Until when at least; null: in turn.' }),
    }),
  )
  .optional()
  .openapi({ description: 'Where most rows wait, by operator; while the job is not finished.' })
const jobFields = {
  ...statusFields,
  status_detail,
  waiting_for,
  type: z.enum(JOB_TYPES),
  name: z.string().nullable(),
}
const download_url = z.string().nullable().openapi({
  description: 'The URL of the results, with an API key; null: the job is not completed.',
})
const jobData = { ...dataFields, classes, download_url }

export const JobAnswer = z
  .object({ ...jobFields, data: z.object({ results: results.optional(), ...jobData }) })
  .openapi('Job')

const { success: _, ...listedFields } = jobFields

export const JobPage = z
  .object({
    success: z.literal(true),
    data: z.object({
      items: z.array(z.object({ ...listedFields, data: z.object(jobData) }).openapi('ListedJob')),
      ...pageFields,
    }),
  })
  .openapi('JobPage')

const { evidence: _evidence, sandbox: _sandbox, ...resultFields } = SingleResult.shape

/** A row of a download in JSON. */
export const DownloadRow = z
  .object({
    row: z.int().min(1).openapi({ description: 'Its place in the list.' }),
    id,
    ...resultFields,
    operator: hostFields.operator.optional(),
    smtp_code: hostFields.smtp_code.optional(),
    smtp_text: hostFields.smtp_text.optional(),
    erased,
    input: z.record(z.string(), z.string()).optional().openapi({
      description: 'The cells of an uploaded file, by the names of their columns.',
    }),
  })
  .openapi('DownloadRow')

const started = {
  ...{ success: true as const, job_id: 'job_xyz789' },
  ...{ total_emails: 1000, created_at: '2026-03-21T10:29:00.000Z' },
  started_at: '2026-03-21T10:29:01.000Z',
  error: null,
}

const processing = {
  ...started,
  ...{ status: 'processing' as const, progress: 42, processed_emails: 420 },
  estimated_time: '2 minutes',
}

const counts = { total: 1000, valid: 300, invalid: 100, unknown: 20, failed: 0 }
const classCounts = { deliverable: 250, risky: 50, undeliverable: 100, unknown: 20 }

export const STATUS_EXAMPLE = {
  ...{ ...started, total_emails: 1, status: 'completed' as const, progress: 100 },
  ...{ processed_emails: 1, estimated_time: null },
  data: {
    results: [ITEM_EXAMPLE],
    summary: { total: 1, valid: 1, invalid: 0, unknown: 0, failed: 0 },
    completed_at: '2026-03-21T10:31:00.000Z',
  },
}

export const JOB_EXAMPLE = {
  ...processing,
  ...{ type: 'batch' as const, name: 'March list' },
  data: { summary: counts, completed_at: null, classes: classCounts, download_url: null },
}

export const CANCELLED_EXAMPLE = {
  ...JOB_EXAMPLE,
  ...{ status: 'cancelled' as const, estimated_time: null },
  data: {
    summary: { ...counts, failed: 580 },
    ...{ completed_at: '2026-03-21T10:31:00.000Z', classes: classCounts, download_url: null },
  },
}

export const RESUMED_EXAMPLE = JOB_EXAMPLE

/** How a job stands, told while somebody listens. */
export const JobProgress = z
  .object({
    status: z.enum(JOB_STATES),
    progress: statusFields.progress,
    total_emails: z.int().min(0),
    processed_emails: z.int().min(0),
    classes,
    rate_per_second: z.number().min(0).nullable().openapi({
      description: 'Rows a second, over the last ten seconds; null when that is not known yet.',
    }),
    seconds_left: z.int().min(0).nullable().openapi({
      description: 'At that rate; null when it is not known, or the job has ended.',
    }),
    summary: Summary,
  })
  .openapi('JobProgress')

export const PROGRESS_EXAMPLE = {
  ...{ status: 'processing' as const, progress: 42, total_emails: 1000, processed_emails: 420 },
  classes: classCounts,
  ...{ rate_per_second: 4.5, seconds_left: 129, summary: counts },
}

const { success: __, ...listed } = JOB_EXAMPLE

export const PAGE_EXAMPLE = {
  success: true as const,
  data: { items: [listed], next_cursor: null, has_more: false },
}
