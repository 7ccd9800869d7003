import { z } from '@hono/zod-openapi'
import { type EventKind, type SentKind, TEST_KIND } from '../../webhooks/event.ts'
import { metadata, previous_job_id, schedule_id } from './job.ts'
import { plainFields, RESULT_EXAMPLE } from './result.ts'

// Schemas of webhook events by type.

const count = z.int().min(0)

const quota = z.object({
  plan: z.string(),
  limit: count,
  used: count,
  remaining: count,
  threshold_percent: z.int().min(0).max(100),
  resets_at: z.string().openapi({ format: 'date-time' }),
})

/** An event type with its documentation. */
export type SentEvent = {
  readonly description: string
  readonly data: z.ZodType
  /** An example of `data`. */
  readonly example: object
}

export const EVENTS: Readonly<Record<EventKind, SentEvent>> = {
  'batch.completed': {
    description:
      'A list is finished. Here, `valid` counts deliverable rows only; `summary.valid` of the job also counts risky rows.',
    data: z.object({
      job_id: z.string(),
      total: count,
      valid: count.describe('Deliverable rows. `summary.valid` of the job is `valid` + `risky`.'),
      invalid: count.describe('Undeliverable rows.'),
      risky: count,
      unknown: count,
      failed: count,
      download_url: z.string().describe('URL of the results. Requires an API key.'),
      metadata,
      previous_job_id,
      schedule_id,
    }),
    example: {
      job_id: 'job_xyz789',
      total: 10000,
      valid: 8400,
      invalid: 1200,
      risky: 300,
      unknown: 90,
      failed: 10,
      download_url: 'https://api.example.com/v1/jobs/job_xyz789/download',
      metadata: { customer: '42' },
    },
  },
  'batch.failed': {
    description: 'A list could not be completed.',
    data: z.object({
      job_id: z.string(),
      total: count,
      processed: count,
      error: z.string(),
      message: z.string(),
      metadata,
      previous_job_id,
      schedule_id,
    }),
    example: {
      job_id: 'job_xyz789',
      total: 10000,
      processed: 4200,
      error: 'server_error',
      message: 'The job could not be finished',
      metadata: { customer: '42' },
    },
  },
  'verification.completed': {
    description: 'The verification of a single address with `"async": true` is finished.',
    data: z.object({ verification_id: z.string(), ...plainFields, metadata }),
    example: { verification_id: 'ver_01', ...RESULT_EXAMPLE, metadata: { customer: '42' } },
  },
  'quota.warning': {
    description: 'You have used 80 or 95 percent of your credits for the period.',
    data: quota,
    example: {
      plan: 'free',
      limit: 100,
      used: 80,
      remaining: 20,
      threshold_percent: 80,
      resets_at: '2026-03-22T00:00:00.000Z',
    },
  },
  'quota.exceeded': {
    description: 'You have used all of your credits for the period.',
    data: quota,
    example: {
      plan: 'free',
      limit: 100,
      used: 100,
      remaining: 0,
      threshold_percent: 100,
      resets_at: '2026-03-22T00:00:00.000Z',
    },
  },
}

/** Returns the documented example of an event type to send as a test; null for `webhook.test`. */
export const exampleOf = (kind: SentKind) =>
  kind === TEST_KIND ? null : { kind, data: EVENTS[kind].example }
