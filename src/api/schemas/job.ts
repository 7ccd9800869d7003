import { z } from '@hono/zod-openapi'
import { WAIT_REASONS } from '../../jobs/waits/wait-report.ts'
import { pageFields } from '../query.ts'
import { successBody } from './answers.ts'
import { time } from './fields.ts'
import { BulkItem, hostFields, SingleResult } from './result.ts'

// Schemas of jobs. Unknown values are null, so that every state has the same fields.

export const JOB_STATES = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const
const JOB_TYPES = ['single', 'bulk', 'batch', 'file'] as const

const id = z
  .string()
  .optional()
  .openapi({ description: 'Your ID, as submitted with the address.', example: 'crm-17' })
const erased = z.literal(true).optional().openapi({
  description: 'True if the address was erased. Only the class of its result is kept.',
})

const JobItem = z.object({ id, ...BulkItem.shape, erased }).openapi('JobItem')

const Summary = z
  .object({
    total: z.int().min(0).openapi({ example: 1_000 }),
    valid: z.int().min(0).openapi({ description: 'Deliverable or risky rows.', example: 300 }),
    invalid: z.int().min(0).openapi({ description: 'Undeliverable rows.', example: 100 }),
    unknown: z
      .int()
      .min(0)
      .openapi({ description: 'Rows without a conclusive result.', example: 20 }),
    failed: z.int().min(0).openapi({
      description:
        'Rows that could not be verified because of an internal error. In a cancelled or failed job, also rows that were never tried.',
      example: 0,
    }),
  })
  .openapi('JobSummary')

const perClass = (example: number) => z.int().min(0).openapi({ example })

const classes = z
  .object({
    deliverable: perClass(250),
    risky: perClass(50),
    undeliverable: perClass(100),
    unknown: perClass(20),
  })
  .openapi({ description: 'Processed rows by class.' })

const statusFields = {
  success: z.literal(true),
  job_id: z.string().openapi({ example: 'job_xyz789' }),
  status: z.enum(JOB_STATES).openapi({ example: 'processing' }),
  progress: z.int().min(0).max(100).openapi({
    description: 'Percentage of processed rows. 100 only when the job is completed.',
    example: 42,
  }),
  total_emails: z.int().min(0).openapi({ example: 1_000 }),
  processed_emails: z.int().min(0).openapi({ example: 420 }),
  estimated_time: z
    .string()
    .nullable()
    .openapi({ description: 'Estimated remaining time.', example: '2 minutes' }),
  created_at: time.openapi({ example: '2026-03-21T10:29:00.000Z' }),
  started_at: time.nullable().openapi({ example: '2026-03-21T10:29:01.000Z' }),
  error: z
    .object({
      code: z.string().openapi({ example: 'server_error' }),
      message: z.string().openapi({ example: 'The list cannot be read.' }),
    })
    .nullable()
    .openapi({ example: null }),
  sandbox: z.literal(true).optional().openapi({ description: 'The results are simulated.' }),
}

const dataFields = { summary: Summary, completed_at: time.nullable().openapi({ example: null }) }

const results = z.array(JobItem).openapi({
  description:
    'Results in the order of the list. Empty until the job is completed, unless you set `partial=true`.',
})

export const JobStatus = z
  .object({ ...statusFields, data: z.object({ results, ...dataFields }) })
  .openapi('JobStatus')

const WAIT =
  '12 addresses at slow.example: the mail server deferred them. Next attempt at 2026-03-21T10:35:00.000Z.'

const status_detail = z.string().optional().openapi({
  description:
    'Why the job is waiting, for example because a mail provider limits the rate. Only present while it waits.',
  example: WAIT,
})
const waiting_for = z
  .array(
    z.object({
      operator: z.string().nullable().openapi({
        description: "The mail provider. Null if the cause isn't a provider.",
        example: 'slow.example',
      }),
      emails: z.int().min(0).openapi({ example: 12 }),
      reason: z.enum(WAIT_REASONS).openapi({
        example: 'retrying',
        description:
          '`refused`: the provider blocks the service. `throttled`: the provider asked to slow down. `unknown_users`: the provider rejected many recipients in a row as unknown. `retrying`: mail servers asked for a later retry, as greylists do. `postponed`: not asked yet, for example because other domains at the same IP address come first. `rate_limited`: addresses are probed at the rate that the provider accepts, in turn with other lists. `dns_retry`: the lookup of their domains failed, and is repeated. `dns_check`: the DNS server fails its check. `no_worker`: no process works on lists. `queued`: the list has not started.',
      }),
      until: time.nullable().openapi({
        description: 'Earliest time of the next attempt. Null if not known.',
        example: '2026-03-21T10:35:00.000Z',
      }),
      detail: z.string().openapi({ description: 'The cause as a sentence.', example: WAIT }),
    }),
  )
  .optional()
  .openapi({
    description:
      'What the job waits for: the causes that affect most rows. Only present while rows wait.',
  })
const rate_per_second = z.number().min(0).nullable().openapi({
  description:
    'Rows per second over the last 30 seconds, or since your previous request if that is longer ago. Null if not known yet.',
  example: 4.5,
})
const seconds_left = z.int().min(0).nullable().openapi({
  description: 'Estimated remaining seconds. Null if unknown or if the job has finished.',
  example: 129,
})
/** The metadata of a job. */
const metadata = z.record(z.string(), z.string()).openapi({
  description: 'Metadata of the job. Empty if none was submitted.',
  example: { customer: '42' },
})

const previous_job_id = z.string().optional().openapi({
  description: 'The job that this job re-verifies. Only present in a re-verification.',
  example: 'job_def456',
})

const schedule_id = z.string().optional().openapi({
  description: 'The schedule that created the job. Only present in a scheduled job.',
  example: 'sch_abc123',
})

const jobFields = {
  ...statusFields,
  status_detail,
  rate_per_second: rate_per_second.optional(),
  seconds_left: seconds_left.optional(),
  waiting_for,
  type: z.enum(JOB_TYPES).openapi({ example: 'batch' }),
  name: z.string().nullable().openapi({ example: 'March list' }),
  metadata,
  webhook_id: z.string().optional().openapi({
    description:
      'ID of the endpoint for `webhook_url`. Only present if the job was created with one.',
    example: 'wh_8f3a2c1d',
  }),
  previous_job_id,
  schedule_id,
  finish_requested_at: time.optional().openapi({
    description:
      'When the job was asked to finish without further retries. Only present if it was.',
    example: '2026-03-21T10:31:00.000Z',
  }),
}
const download_url = z.string().nullable().openapi({
  description: 'URL of the results. Requires an API key. Null if the job is not completed.',
  example: null,
})
const no_address = z.int().min(0).openapi({
  description: 'Rows without an address. They also count as `unknown`.',
  example: 0,
})
const jobData = { ...dataFields, classes, no_address, download_url }

export const JobAnswer = z
  .object({ ...jobFields, data: z.object({ results: results.optional(), ...jobData }) })
  .openapi('Job')

const { success: _, ...listedFields } = jobFields

export const JobPage = successBody(
  z.object({
    items: z.array(z.object({ ...listedFields, data: z.object(jobData) }).openapi('ListedJob')),
    ...pageFields,
  }),
).openapi('JobPage')

const { evidence: _evidence, sandbox: _sandbox, ...resultFields } = SingleResult.shape

/** A row of a JSON download. */
export const DownloadRow = z
  .object({
    row: z
      .int()
      .min(1)
      .openapi({ description: 'Number of the row in the list, from 1.', example: 1 }),
    id,
    ...resultFields,
    operator: hostFields.operator.optional(),
    smtp_code: hostFields.smtp_code.optional(),
    smtp_text: hostFields.smtp_text.optional(),
    previous_class: resultFields.class.optional().openapi({
      description: 'Class before the re-verification.',
      example: 'unknown',
    }),
    previous_reason: resultFields.reason.optional().openapi({ example: 'timeout' }),
    erased,
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
    input: z
      .record(z.string(), z.string())
      .optional()
      .openapi({
        description: 'Cells of the uploaded file by column name.',
        example: { Name: 'Ann Lee', Email: 'user@example.com' },
      }),
  })
  .openapi('DownloadRow')

/** The values of a completed list of one row that differ from the examples of the fields. */
export const STATUS_EXAMPLE = {
  total_emails: 1,
  status: 'completed' as const,
  progress: 100,
  processed_emails: 1,
  estimated_time: null,
  data: {
    summary: { total: 1, valid: 1, invalid: 0, unknown: 0 },
    completed_at: '2026-03-21T10:31:00.000Z',
  },
}

/** The values of a job with its outlook that differ from the examples of the fields. */
export const OPEN_JOB_EXAMPLE = { rate_per_second: 4.5, seconds_left: 129, waiting_for: [{}] }

export const CANCELLED_EXAMPLE = {
  status: 'cancelled' as const,
  estimated_time: null,
  data: { summary: { failed: 580 }, completed_at: '2026-03-21T10:31:00.000Z' },
}

/** The progress of a job, sent as server-sent events. */
export const JobProgress = z
  .object({
    status: statusFields.status,
    progress: statusFields.progress,
    total_emails: statusFields.total_emails,
    processed_emails: statusFields.processed_emails,
    classes,
    rate_per_second,
    seconds_left,
    waiting_for,
    summary: Summary,
  })
  .openapi('JobProgress')

export const PROGRESS_EXAMPLE = {
  status: 'processing' as const,
  progress: 42,
  total_emails: 1000,
  processed_emails: 420,
  classes: { deliverable: 250, risky: 50, undeliverable: 100, unknown: 20 },
  rate_per_second: 4.5,
  seconds_left: 129,
  summary: { total: 1000, valid: 300, invalid: 100, unknown: 20, failed: 0 },
}
