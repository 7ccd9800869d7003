import { z } from '@hono/zod-openapi'
import { OLDER_THAN_DAYS_MAX } from '../../jobs/reverify/selection.ts'
import { namesQuery, pageFields } from '../query.ts'
import { JobAnswer, RESUMED_EXAMPLE } from './job.ts'
import { plainFields, STATUSES } from './result.ts'
import { BatchRequest, webhook } from './verify.ts'

// Schemas of jobs that verify a list again, and of what has changed.

/** The conditions of rows to verify again; rows that match one of them are verified. */
const selectionFields = {
  only: z.array(z.enum(STATUSES)).min(1).optional().openapi({
    description: 'Verify rows with results of these classes.',
  }),
  older_than_days: z.int().min(1).max(OLDER_THAN_DAYS_MAX).optional().openapi({
    description: 'Verify rows whose result was determined longer ago.',
  }),
}

const { check_smtp, metadata, notify, webhook_url } = BatchRequest.shape

export const ReverifyRequest = z
  .strictObject({ ...selectionFields, check_smtp, metadata, notify, webhook_url })
  .openapi('ReverifyRequest')

export const REVERIFY_REQUEST_EXAMPLE = { only: ['unknown' as const], older_than_days: 90 }

export const ReverifyJob = JobAnswer.extend({ webhook_secret: webhook.webhook_secret }).openapi(
  'ReverifyJob',
)

export const REVERIFY_EXAMPLE = {
  ...RESUMED_EXAMPLE,
  ...{ job_id: 'job_abc123', previous_job_id: 'job_xyz789', status: 'queued' as const },
  started_at: null,
}

const compared = z.object({
  class: z.enum(STATUSES),
  reason: plainFields.reason,
  checked_at: z.string().nullable().openapi({
    format: 'date-time',
    description: 'When the result was determined. Null if the address was erased.',
  }),
})

const count = z.int().min(0)

export const ChangePage = z
  .object({
    success: z.literal(true),
    data: z.object({
      previous_job_id: z.string().nullable().openapi({
        description: 'The job that this one verifies again. Null if it is a new list.',
      }),
      verified: count.openapi({ description: 'Rows that were verified again so far.' }),
      changed: count.openapi({ description: 'Those whose class has changed.' }),
      counts: z
        .array(z.object({ from: z.enum(STATUSES), to: z.enum(STATUSES), count }))
        .openapi({ description: 'Rows by class before and after. They add up to `verified`.' }),
      items: z.array(
        z
          .object({
            row: z.int().min(1),
            email: z.string().openapi({ description: 'Empty if the address was erased.' }),
            before: compared,
            after: compared,
          })
          .openapi('Change'),
      ),
      ...pageFields,
    }),
  })
  .openapi('ChangePage')

export const changesQuery = {
  from: namesQuery(STATUSES, {
    description: 'Only rows that had one of these classes',
    example: 'unknown',
  }),
  to: namesQuery(STATUSES, {
    description: 'Only rows that have one of these classes now',
    example: 'undeliverable',
  }),
}

export const CHANGES_EXAMPLE = {
  success: true as const,
  data: {
    ...{ previous_job_id: 'job_xyz789', verified: 120, changed: 45 },
    counts: [
      { from: 'deliverable' as const, to: 'undeliverable' as const, count: 15 },
      { from: 'unknown' as const, to: 'deliverable' as const, count: 30 },
      { from: 'unknown' as const, to: 'unknown' as const, count: 75 },
    ],
    items: [
      {
        ...{ row: 12, email: 'user@example.com' },
        before: {
          ...{ class: 'unknown' as const, reason: 'timeout' as const },
          checked_at: '2026-02-21T10:30:00.000Z',
        },
        after: {
          ...{ class: 'deliverable' as const, reason: 'accepted_email' as const },
          checked_at: '2026-03-21T10:30:00.000Z',
        },
      },
    ],
    ...{ next_cursor: 'WzEyXQ', has_more: true },
  },
}
