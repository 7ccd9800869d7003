import { z } from '@hono/zod-openapi'
import { WAIT_REASONS } from '../../jobs/waits/wait-report.ts'
import { pageFields } from '../query.ts'
import { successBody } from './answers.ts'
import { BulkItem, hostFields, ITEM_EXAMPLE, SingleResult } from './result.ts'

// Schemas of jobs. Unknown values are null, so that every state has the same fields.

export const JOB_STATES = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const
const JOB_TYPES = ['single', 'bulk', 'batch', 'file'] as const

const time = z.string().openapi({ format: 'date-time' })

const id = z.string().optional().openapi({ description: 'Your ID, as submitted with the address.' })
const erased = z.literal(true).optional().openapi({
  description: 'True if the address was erased. Only the class of its result is kept.',
})

const JobItem = z.object({ id, ...BulkItem.shape, erased }).openapi('JobItem')

const Summary = z
  .object({
    total: z.int().min(0),
    valid: z.int().min(0).openapi({ description: 'Deliverable or risky rows.' }),
    invalid: z.int().min(0).openapi({ description: 'Undeliverable rows.' }),
    unknown: z.int().min(0).openapi({ description: 'Rows without a conclusive result.' }),
    failed: z.int().min(0).openapi({
      description:
        'Rows that could not be verified because of an internal error. In a cancelled or failed job, also rows that were never tried.',
    }),
  })
  .openapi('JobSummary')

const perClass = z.int().min(0)

const classes = z
  .object({ deliverable: perClass, risky: perClass, undeliverable: perClass, unknown: perClass })
  .openapi({ description: 'Processed rows by class.' })

const statusFields = {
  success: z.literal(true),
  job_id: z.string(),
  status: z.enum(JOB_STATES),
  progress: z
    .int()
    .min(0)
    .max(100)
    .openapi({ description: 'Percentage of processed rows. 100 only when the job is completed.' }),
  total_emails: z.int().min(0),
  processed_emails: z.int().min(0),
  estimated_time: z.string().nullable().openapi({ description: 'Estimated remaining time.' }),
  created_at: time,
  started_at: time.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  sandbox: z.literal(true).optional().openapi({ description: 'The results are simulated.' }),
}

const dataFields = { summary: Summary, completed_at: time.nullable() }

const results = z.array(JobItem).openapi({
  description:
    'Results in the order of the list. Empty until the job is completed, unless you set `partial=true`.',
})

export const JobStatus = z
  .object({ ...statusFields, data: z.object({ results, ...dataFields }) })
  .openapi('JobStatus')

const status_detail = z.string().optional().openapi({
  description:
    'Why the job is waiting, for example because a mail provider limits the rate. Only present while it waits.',
})
const waiting_for = z
  .array(
    z.object({
      operator: z.string().nullable().openapi({
        description: "The mail provider. Null if the cause isn't a provider.",
      }),
      emails: z.int().min(0),
      reason: z.enum(WAIT_REASONS).openapi({
        description:
          '`refused`: the provider blocks the service. `throttled`: the provider asked to slow down. `unknown_users`: the provider rejected many recipients in a row as unknown. `retrying`: mail servers asked for a later retry, as greylists do. `postponed`: not asked yet, for example because other domains at the same IP address come first. `rate_limited`: addresses are probed at the rate that the provider accepts, in turn with other lists. `dns_check`: the DNS server fails its check. `no_worker`: no process works on lists. `queued`: the list has not started.',
      }),
      until: time.nullable().openapi({
        description: 'Earliest time of the next attempt. Null if not known.',
      }),
      detail: z.string().openapi({ description: 'The cause as a sentence.' }),
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
})
const seconds_left = z.int().min(0).nullable().openapi({
  description: 'Estimated remaining seconds. Null if unknown or if the job has finished.',
})
/** The metadata of a job. */
const metadata = z.record(z.string(), z.string()).openapi({
  description: 'Metadata of the job. Empty if none was submitted.',
})

const previous_job_id = z.string().optional().openapi({
  description: 'The job that this job re-verifies. Only present in a re-verification.',
})

const schedule_id = z.string().optional().openapi({
  description: 'The schedule that created the job. Only present in a scheduled job.',
})

const jobFields = {
  ...statusFields,
  status_detail,
  rate_per_second: rate_per_second.optional(),
  seconds_left: seconds_left.optional(),
  waiting_for,
  type: z.enum(JOB_TYPES),
  name: z.string().nullable(),
  metadata,
  webhook_id: z.string().optional().openapi({
    description:
      'ID of the endpoint for `webhook_url`. Only present if the job was created with one.',
  }),
  previous_job_id,
  schedule_id,
  finish_requested_at: time.optional().openapi({
    description:
      'When the job was asked to finish without further retries. Only present if it was.',
  }),
}
const download_url = z.string().nullable().openapi({
  description: 'URL of the results. Requires an API key. Null if the job is not completed.',
})
const no_address = z.int().min(0).openapi({
  description: 'Rows without an address. They also count as `unknown`.',
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
    row: z.int().min(1).openapi({ description: 'Number of the row in the list, from 1.' }),
    id,
    ...resultFields,
    operator: hostFields.operator.optional(),
    smtp_code: hostFields.smtp_code.optional(),
    smtp_text: hostFields.smtp_text.optional(),
    previous_class: resultFields.class.optional().openapi({
      description: 'Class before the re-verification.',
    }),
    previous_reason: resultFields.reason.optional(),
    erased,
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
    input: z.record(z.string(), z.string()).optional().openapi({
      description: 'Cells of the uploaded file by column name.',
    }),
  })
  .openapi('DownloadRow')

const started = {
  success: true as const,
  job_id: 'job_xyz789',
  total_emails: 1000,
  created_at: '2026-03-21T10:29:00.000Z',
  started_at: '2026-03-21T10:29:01.000Z',
  error: null,
}

const processing = {
  ...started,
  status: 'processing' as const,
  progress: 42,
  processed_emails: 420,
  estimated_time: '2 minutes',
}

const OUTLOOK_EXAMPLE = {
  rate_per_second: 4.5,
  seconds_left: 129,
  waiting_for: [
    {
      operator: 'slow.example',
      emails: 12,
      reason: 'retrying' as const,
      until: '2026-03-21T10:35:00.000Z',
      detail:
        '12 addresses at slow.example: the mail server deferred them. Next attempt at 2026-03-21T10:35:00.000Z.',
    },
  ],
}

const counts = { total: 1000, valid: 300, invalid: 100, unknown: 20, failed: 0 }
const classCounts = { deliverable: 250, risky: 50, undeliverable: 100, unknown: 20 }

export const STATUS_EXAMPLE = {
  ...started,
  total_emails: 1,
  status: 'completed' as const,
  progress: 100,
  processed_emails: 1,
  estimated_time: null,
  data: {
    results: [ITEM_EXAMPLE],
    summary: { total: 1, valid: 1, invalid: 0, unknown: 0, failed: 0 },
    completed_at: '2026-03-21T10:31:00.000Z',
  },
}

const JOB_EXAMPLE = {
  ...processing,
  type: 'batch' as const,
  name: 'March list',
  metadata: { customer: '42' },
  data: {
    summary: counts,
    completed_at: null,
    classes: classCounts,
    no_address: 0,
    download_url: null,
  },
}

/** A job with its outlook. */
export const OPEN_JOB_EXAMPLE = { ...JOB_EXAMPLE, ...OUTLOOK_EXAMPLE }

export const CANCELLED_EXAMPLE = {
  ...JOB_EXAMPLE,
  status: 'cancelled' as const,
  estimated_time: null,
  data: {
    summary: { ...counts, failed: 580 },
    completed_at: '2026-03-21T10:31:00.000Z',
    classes: classCounts,
    no_address: 0,
    download_url: null,
  },
}

export const FINISHED_EXAMPLE = {
  ...JOB_EXAMPLE,
  finish_requested_at: '2026-03-21T10:31:00.000Z',
}

export const RESUMED_EXAMPLE = JOB_EXAMPLE

/** The progress of a job, sent as server-sent events. */
export const JobProgress = z
  .object({
    status: z.enum(JOB_STATES),
    progress: statusFields.progress,
    total_emails: z.int().min(0),
    processed_emails: z.int().min(0),
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
  classes: classCounts,
  rate_per_second: 4.5,
  seconds_left: 129,
  summary: counts,
}

const { success: __, ...listed } = JOB_EXAMPLE

export const PAGE_EXAMPLE = {
  success: true as const,
  data: { items: [listed], next_cursor: null, has_more: false },
}
