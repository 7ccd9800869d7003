import { z } from '@hono/zod-openapi'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { CLASSES, REASONS } from '../../engine/verdict/reason.ts'
import { LIMIT_KINDS } from '../middleware/rate-limit-buckets.ts'
import { namesQuery, timeFilter } from '../query.ts'
import { pageBody, successBody } from './answers.ts'
import { plainFields } from './result.ts'

// Schemas of history, credits, limits and statistics.

export const SOURCES = ['single', 'bulk', 'batch', 'file'] as const
export const PERIODS = ['day', 'week', 'month'] as const

const time = z.string().openapi({ format: 'date-time' })

const HistoryRow = z
  .object({
    id: z.string(),
    email: plainFields.email,
    valid: plainFields.valid,
    deliverable: plainFields.deliverable,
    risk_level: plainFields.risk_level,
    reason: plainFields.reason,
    action: z.enum(ACTIONS).openapi({
      description:
        'What to do with the address, by the reason and the action policy of the account.',
    }),
    cached: plainFields.cached,
    source: z.enum(SOURCES),
    job_id: z
      .string()
      .nullable()
      .openapi({ description: 'Job of the verification. Null for single verifications.' }),
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
    account_id: z.string(),
    api_key_id: z.string(),
    api_key_name: z.string(),
    plan: z.string(),
    credits_balance: z.int().min(0).nullable().openapi({
      description:
        'Credits you can use now. Reserved credits are already subtracted. Null if the plan has no limit.',
    }),
    credits_consumed: z
      .int()
      .min(0)
      .openapi({ description: 'Credits charged in the current period.' }),
    credits_held: z.int().min(0).openapi({
      description:
        'Credits reserved for verifications in progress. Unused credits are returned to the balance.',
    }),
    credits_added: z.int().min(0).nullable().openapi({
      description: 'Credits of the plan per period. Null if the plan has no limit.',
    }),
    period: z.literal('day'),
    resets_at: time.openapi({ description: 'End of the current period.' }),
    last_updated: time,
  }),
).openapi('Credits')

export const LIMIT_NAMES = [
  ...LIMIT_KINDS,
  ...(['credits', 'concurrent_jobs', 'stored_rows', 'stored_feedback'] as const),
] as const

const Limit = z
  .object({
    name: z.enum(LIMIT_NAMES).openapi({ description: 'Machine-readable limit name.' }),
    text: z.string().openapi({ description: 'Human-readable limit name.' }),
    limit: z.int().min(0).openapi({ description: 'The maximum within a window, or at any time.' }),
    remaining: z.int().min(0).openapi({ description: 'How much is left.' }),
    window_seconds: z.number().min(0).nullable().openapi({
      description: 'Length of the window. Null for limits that apply at any time.',
    }),
    resets_at: time.nullable().openapi({
      description: 'End of the current window. Null for limits that apply at any time.',
    }),
  })
  .openapi('Limit')

export const Limits = successBody(z.object({ limits: z.array(Limit) })).openapi('Limits')

const counts = {
  verifications: z.int().min(0),
  cached: z.int().min(0).openapi({ description: 'Verifications answered from the cache.' }),
  credits: z.int().min(0),
  ...Object.fromEntries(CLASSES.map(name => [name, z.int().min(0)])),
} as { readonly [Name in 'verifications' | 'cached' | 'credits' | Status]: z.ZodInt }

type Status = (typeof CLASSES)[number]

const Counts = z.object(counts).openapi('Counts')

export const Stats = successBody(
  z.object({
    period: z.enum(PERIODS),
    from: time,
    to: time,
    total: Counts,
    previous: Counts,
    days: z.array(z.object({ date: z.string().openapi({ format: 'date' }), ...counts })),
    keys: z.array(z.object({ key_id: z.string(), key_name: z.string().nullable(), ...counts })),
  }),
).openapi('Stats')

export const HISTORY_EXAMPLE = {
  success: true as const,
  data: {
    items: [
      {
        id: 'ver_01',
        email: 'user@example.com',
        valid: true,
        deliverable: true,
        risk_level: 'low' as const,
        reason: 'accepted_email' as const,
        action: 'send' as const,
        cached: false,
        source: 'single' as const,
        job_id: null,
        created_at: '2026-03-21T10:30:00.000Z',
      },
    ],
    next_cursor: 'WzE3NzQwODkwMDAwMDAsInZlcl8wMSJd',
    has_more: true,
  },
}

export const CREDITS_EXAMPLE = {
  success: true as const,
  data: {
    account_id: 'acc_01',
    api_key_id: 'key_01',
    api_key_name: 'CI',
    plan: 'free',
    credits_balance: 20,
    credits_consumed: 80,
    credits_held: 0,
    credits_added: 100,
    period: 'day' as const,
    resets_at: '2026-03-22T00:00:00.000Z',
    last_updated: '2026-03-21T10:30:00.000Z',
  },
}

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

const counted = {
  verifications: 3,
  cached: 1,
  credits: 2,
  deliverable: 2,
  undeliverable: 1,
  risky: 0,
  unknown: 0,
}

export const STATS_EXAMPLE = {
  success: true as const,
  data: {
    period: 'day' as const,
    from: '2026-03-21T00:00:00.000Z',
    to: '2026-03-22T00:00:00.000Z',
    total: counted,
    previous: counted,
    days: [{ date: '2026-03-21', ...counted }],
    keys: [{ key_id: 'key_01', key_name: 'CI', ...counted }],
  },
}
