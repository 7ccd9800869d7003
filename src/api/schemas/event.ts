import { z } from '@hono/zod-openapi'
import type { EventKind } from '../../webhooks/event.ts'
import { plainFields, RESULT_EXAMPLE } from './result.ts'

// What is told by webhooks, by kind of event.

const count = z.int().min(0)

const quota = z.object({
  plan: z.string(),
  limit: count,
  used: count,
  remaining: count,
  threshold_percent: z.int().min(0).max(100),
  resets_at: z.string().openapi({ format: 'date-time' }),
})

/** A kind of event, described. */
export type SentEvent = {
  readonly description: string
  readonly data: z.ZodType
  /** The data of one. */
  readonly example: object
}

export const EVENTS: Readonly<Record<EventKind, SentEvent>> = {
  'batch.completed': {
    description:
      'A list is verified. `valid` are the deliverable ones, beside `risky`; `summary.valid` of the job counts both.',
    data: z.object({
      job_id: z.string(),
      total: count,
      valid: count.openapi({
        description: 'Rows that are deliverable; `summary.valid` of the job is `valid` + `risky`.',
      }),
      invalid: count.openapi({ description: 'Rows that are undeliverable.' }),
      risky: count,
      ...{ unknown: count, failed: count },
      download_url: z.string().openapi({ description: 'The URL of the results, with an API key.' }),
    }),
    example: {
      ...{ job_id: 'job_xyz789', total: 10000, valid: 8400, invalid: 1200, risky: 300 },
      ...{ unknown: 90, failed: 10 },
      download_url: 'https://api.example.com/v1/jobs/job_xyz789/download',
    },
  },
  'batch.failed': {
    description: 'A list could not be finished.',
    data: z.object({
      ...{ job_id: z.string(), total: count, processed: count },
      ...{ error: z.string(), message: z.string() },
    }),
    example: {
      ...{ job_id: 'job_xyz789', total: 10000, processed: 4200 },
      ...{ error: 'server_error', message: 'The job could not be finished' },
    },
  },
  'verification.completed': {
    description: 'A single address that was submitted with `"async": true` is verified.',
    data: z.object({ verification_id: z.string(), ...plainFields }),
    example: { verification_id: 'ver_01', ...RESULT_EXAMPLE },
  },
  'quota.warning': {
    description: 'The credits of the period come to their end: at 80 and at 95 per cent.',
    data: quota,
    example: {
      ...{ plan: 'free', limit: 100, used: 80, remaining: 20, threshold_percent: 80 },
      resets_at: '2026-03-22T00:00:00.000Z',
    },
  },
  'quota.exceeded': {
    description: 'The credits of the period are used up.',
    data: quota,
    example: {
      ...{ plan: 'free', limit: 100, used: 100, remaining: 0, threshold_percent: 100 },
      resets_at: '2026-03-22T00:00:00.000Z',
    },
  },
}
