import { z } from '@hono/zod-openapi'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { CLASSES, type Class, REASONS } from '../../engine/verdict/reason.ts'
import { LIMIT_KINDS } from '../middleware/rate-limit-buckets.ts'
import { namesQuery, timeFilter } from '../query.ts'
import { pageBody, successBody } from './answers.ts'
import { time } from './fields.ts'
import { plainFields } from './result.ts'

// Schemas of history, credits, limits and statistics.

export const SOURCES = ['single', 'bulk', 'batch', 'file'] as const
export const PERIODS = ['day', 'week', 'month'] as const

const HistoryRow = z
  .object({
    id: z.string().openapi({ example: 'ver_01' }),
    email: plainFields.email,
    valid: plainFields.valid,
    deliverable: plainFields.deliverable,
    risk_level: plainFields.risk_level,
    reason: plainFields.reason,
    action: z.enum(ACTIONS).openapi({
      description:
        'What to do with the address, by the reason and the action policy of the account.',
      example: 'send',
    }),
    cached: plainFields.cached,
    source: z.enum(SOURCES).openapi({ example: 'single' }),
    job_id: z.string().nullable().openapi({
      description: 'Job of the verification. Null for single verifications.',
      example: null,
    }),
    created_at: time,
  })
  .openapi('Verification')

export const HistoryPage = pageBody(HistoryRow).openapi('HistoryPage')

export const historyFilters = {
  email: z
    .string()
    .max(1_000)
    .optional()
    .openapi({ description: 'The exact address, case-insensitive.' }),
  search: z
    .string()
    .min(1)
    .max(320)
    .optional()
    .openapi({ description: 'A part of the address, case-insensitive.', example: 'example.com' }),
  class: namesQuery(CLASSES, {
    description: 'Only results of these classes',
    example: 'deliverable,risky',
  }),
  reason: z.enum(REASONS).optional().openapi({ description: 'Only results with this reason.' }),
  source: z
    .enum(SOURCES)
    .optional()
    .openapi({ description: 'Only verifications with this source.' }),
  since: timeFilter('Start of the time range, inclusive.'),
  until: timeFilter('End of the time range, exclusive.'),
}

export const Credits = successBody(
  z.object({
    account_id: z.string().openapi({ example: 'acc_01' }),
    api_key_id: z.string().openapi({ example: 'key_01' }),
    api_key_name: z.string().openapi({ example: 'CI' }),
    plan: z.string().openapi({ example: 'free' }),
    credits_balance: z.int().min(0).nullable().openapi({
      description:
        'Credits you can use now. Reserved credits are already subtracted. Null if the plan has no limit.',
      example: 20,
    }),
    credits_consumed: z
      .int()
      .min(0)
      .openapi({ description: 'Credits charged in the current period.', example: 80 }),
    credits_held: z.int().min(0).openapi({
      description:
        'Credits reserved for verifications in progress. Unused credits are returned to the balance.',
      example: 0,
    }),
    credits_added: z.int().min(0).nullable().openapi({
      description: 'Credits of the plan per period. Null if the plan has no limit.',
      example: 100,
    }),
    period: z.literal('day'),
    resets_at: time.openapi({
      description: 'End of the current period.',
      example: '2026-03-22T00:00:00.000Z',
    }),
    last_updated: time,
  }),
).openapi('Credits')

export const LIMIT_NAMES = [
  ...LIMIT_KINDS,
  ...(['credits', 'concurrent_jobs', 'stored_rows', 'stored_feedback'] as const),
] as const

const Limit = z
  .object({
    name: z.enum(LIMIT_NAMES).openapi({
      description: 'Machine-readable limit name.',
      example: 'credits',
    }),
    text: z.string().openapi({
      description: 'Human-readable limit name.',
      example: 'Daily verifications of your plan',
    }),
    limit: z.int().min(0).openapi({
      description: 'The maximum within a window, or at any time.',
      example: 100,
    }),
    remaining: z.int().min(0).openapi({ description: 'How much is left.', example: 20 }),
    window_seconds: z.number().min(0).nullable().openapi({
      description: 'Length of the window. Null for limits that apply at any time.',
      example: 86_400,
    }),
    resets_at: time.nullable().openapi({
      description: 'End of the current window. Null for limits that apply at any time.',
      example: '2026-03-22T00:00:00.000Z',
    }),
  })
  .openapi('Limit')

export const Limits = successBody(z.object({ limits: z.array(Limit) })).openapi('Limits')

const count = (example: number) => z.int().min(0).openapi({ example })

const counts = {
  verifications: count(3),
  cached: count(1).openapi({ description: 'Verifications answered from the cache.' }),
  credits: count(2),
  deliverable: count(2),
  risky: count(0),
  undeliverable: count(1),
  unknown: count(0),
} satisfies Readonly<Record<Class, z.ZodInt>> & Readonly<Record<string, z.ZodInt>>

const Counts = z.object(counts).openapi('Counts')

export const Stats = successBody(
  z.object({
    period: z.enum(PERIODS).openapi({ example: 'day' }),
    from: time.openapi({ example: '2026-03-21T00:00:00.000Z' }),
    to: time.openapi({ example: '2026-03-22T00:00:00.000Z' }),
    total: Counts,
    previous: Counts,
    days: z.array(
      z.object({ date: z.string().openapi({ format: 'date', example: '2026-03-21' }), ...counts }),
    ),
    keys: z.array(
      z.object({
        key_id: z.string().openapi({ example: 'key_01' }),
        key_name: z.string().nullable().openapi({ example: 'CI' }),
        ...counts,
      }),
    ),
  }),
).openapi('Stats')

export const LIMITS_EXAMPLE = {
  success: true as const,
  data: {
    limits: [
      {
        name: 'ip:single' as const,
        text: 'Single verifications from your IP address',
        limit: 100,
        remaining: 99,
        window_seconds: 60,
        resets_at: '2026-03-21T10:31:00.000Z',
      },
      {
        name: 'credits' as const,
        text: 'Daily verifications of your plan',
        limit: 100,
        remaining: 20,
        window_seconds: 86_400,
        resets_at: '2026-03-22T00:00:00.000Z',
      },
      {
        name: 'concurrent_jobs' as const,
        text: 'Unfinished lists of your account',
        limit: 10,
        remaining: 9,
        window_seconds: null,
        resets_at: null,
      },
      {
        name: 'stored_rows' as const,
        text: 'Stored rows of your account',
        limit: 100_000,
        remaining: 95_000,
        window_seconds: null,
        resets_at: null,
      },
      {
        name: 'stored_feedback' as const,
        text: 'Stored feedback of your account',
        limit: 100_000,
        remaining: 99_000,
        window_seconds: null,
        resets_at: null,
      },
    ],
  },
}
