import { z } from '@hono/zod-openapi'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { CLASSES, REASONS } from '../../engine/verdict/reason.ts'
import { SORT_FIELDS } from '../../jobs/results/sorted-results.ts'
import { flagQuery, namesQuery } from '../query.ts'
import { pageBody, successBody } from './answers.ts'
import { time } from './fields.ts'
import { DownloadRow } from './job.ts'
import { hostFields, plainFields, RESULT_EXAMPLE, SingleResult } from './result.ts'

// Schemas of the rows of a job and of their breakdown.

const shown = {
  class: z.enum(CLASSES).nullable().openapi({ example: 'deliverable' }),
  action: z.union([plainFields.action, z.null()]),
  action_reason: z.string().nullable().openapi({ example: RESULT_EXAMPLE.action_reason }),
  valid: plainFields.valid.nullable(),
  deliverable: plainFields.deliverable.nullable(),
  // A named schema with `nullable` would be documented as never null.
  risk_level: z.union([plainFields.risk_level, z.null()]),
  reason: z.union([plainFields.reason, z.null()]),
  cached: z.boolean().nullable().openapi({ example: false }),
  confidence: z.int().min(0).max(100).nullable().openapi({ example: 95 }),
  did_you_mean: z.string().nullable().openapi({ example: null }),
  ...hostFields,
  checked_at: time.nullable(),
  checked_by: z.string().nullable().openapi({
    description:
      'Who obtained the result: `ev`, `sandbox` for a simulated one, or the service whose result the list brought with it.',
    example: 'ev',
  }),
}

const ResultRow = z
  .object({
    row: DownloadRow.shape.row,
    email: plainFields.email,
    ...shown,
    erased: DownloadRow.shape.erased,
  })
  .openapi('ResultRow', {
    description: 'A row of a list. Fields of the result are null until the row has a result.',
  })

const resultPage = pageBody(ResultRow)

export const ResultPage = resultPage
  .extend({
    data: resultPage.shape.data.extend({
      total: z.int().min(0).optional().openapi({
        description: 'Number of rows that match the filter. Only with `count` or `sort`.',
        example: 420,
      }),
      offset: z.int().min(0).optional().openapi({
        description: 'Number of these rows before this page. Only with `count` or `sort`.',
        example: 50,
      }),
    }),
  })
  .openapi('ResultPage')

export const ResultRowAnswer = successBody(
  z.object({
    row: DownloadRow.shape.row,
    email: plainFields.email,
    result: z
      .union([SingleResult, z.null()])
      .openapi({ description: 'Null while the row has no result, and if the address was erased.' }),
    erased: DownloadRow.shape.erased,
  }),
).openapi('ResultRowAnswer')

/** A page in the browser shows fewer; programs that need all rows use the download. */
const ROWS_MAX = 500

/** A cursor has the sorted value of a row in it, up to 100 characters that are escaped twice. */
const CURSOR_LENGTH_MAX = 1_000

export const resultsQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(ROWS_MAX)
    .default(50)
    .openapi({ description: 'Maximum number of rows.' }),
  cursor: z.string().max(CURSOR_LENGTH_MAX).optional().openapi({
    description: '`next_cursor` of the previous page. Omit it to start with the first row.',
  }),
  after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().openapi({
    type: 'integer',
    description: 'Start after the row with this number. Use either `after` or `cursor`.',
  }),
  class: namesQuery(CLASSES, {
    description: 'Only rows of these classes',
    example: 'deliverable,risky',
  }),
  action: namesQuery(ACTIONS, {
    description: 'Only rows with these actions, by the action policy of the account',
    example: 'send,send_with_care',
  }),
  reason: namesQuery(REASONS, {
    description: 'Only rows with these reasons',
    example: 'timeout,greylisted',
  }),
  search: z.string().max(1_000).optional().openapi({
    description: 'Only rows with this text in the address, case-insensitive.',
    example: '@example.com',
  }),
  sort: z.enum(SORT_FIELDS).default('row').openapi({
    description:
      'row: the order of the list. class: from deliverable to unknown. reason: by its name in plain words. Rows without a value come last in both orders.',
  }),
  order: z.enum(['asc', 'desc']).default('asc').openapi({ description: 'Direction of `sort`.' }),
  count: flagQuery('Set to true to get `total` and `offset`.'),
}

export type ResultsQuery = z.output<z.ZodObject<typeof resultsQuery>>

const count = z.int().min(0)

const example = (number: number) => count.openapi({ example: number })

const classCounts = z
  .object({
    deliverable: example(250),
    risky: example(50),
    undeliverable: example(100),
    unknown: example(20),
  })
  .openapi('ClassCounts')

const rate = z.number().min(0).max(1)

const bounces = z
  .object({
    addresses: count.openapi({ description: 'Addresses that are mailed.', example: 300 }),
    bounce_rate: rate.openapi({
      description: 'Expected share of the mail that bounces, 0 to 1.',
      example: 0.05,
    }),
    bounce_rate_min: rate.openapi({
      description: 'The rate of one mailing is between this and `bounce_rate_max` in 95% of cases.',
      example: 0.0142,
    }),
    bounce_rate_max: rate.openapi({ example: 0.1612 }),
  })
  .openapi('BounceProjection')

const projection = z
  .object({
    before: bounces.openapi({ description: 'Mail to every address.' }),
    after: bounces.openapi({
      description: 'Mail to the addresses with the actions `send` and `send_with_care`.',
    }),
    selected: bounces.optional().openapi({
      description:
        'Mail to the addresses with the actions of the query. Only present with `action`.',
    }),
    reports: count.openapi({
      description:
        'Bounces and deliveries that the account reported about such results, weighted by their age. With 0, the rates are assumptions.',
      example: 0,
    }),
    complaint_rate: rate.nullable().openapi({
      description:
        'Reported complaints of the last 30 days for each reported delivery. Null without deliveries. Verification predicts no complaints.',
      example: null,
    }),
    limits: z
      .object({
        ses_bounce_review: rate.openapi({ example: 0.05 }),
        ses_bounce_pause: rate.openapi({ example: 0.1 }),
        gmail_complaints: rate.openapi({ example: 0.003 }),
      })
      .openapi({ description: 'Limits of Amazon SES and Gmail, for comparison.' }),
  })
  .openapi('ListProjection')

export const BreakdownQuery = z.object({
  action: namesQuery(ACTIONS, {
    description: 'Also project the bounces of mail to the rows with these actions',
    example: 'send',
  }),
})

export const Breakdown = successBody(
  z.object({
    total: count.openapi({ description: 'Rows of the list.', example: 1_000 }),
    done: count.openapi({
      description: 'Rows with a result. The counts of each group add up to this number.',
      example: 420,
    }),
    classes: classCounts,
    reasons: z
      .array(
        z.object({
          reason: plainFields.reason,
          class: z.enum(CLASSES).openapi({ example: 'deliverable' }),
          count: example(250),
        }),
      )
      .openapi({
        description:
          'Rows by reason and class. `catch_all` can occur with two classes, because feedback makes some of its addresses deliverable.',
      }),
    operators: z.array(
      z.object({
        operator: z.string().nullable().openapi({
          example: 'google.com',
          description:
            'Provider that runs the mail servers. Null if no mail server was looked up or the results are simulated.',
        }),
        count: example(300),
        classes: classCounts,
      }),
    ),
    operators_left: count.openapi({
      description: "Rows of all operators that aren't listed.",
      example: 80,
    }),
    actions: z
      .object({
        send: example(250),
        send_with_care: example(50),
        retry_later: example(20),
        suppress: example(100),
      })
      .openapi({ description: 'Rows by action, by the action policy of the account.' }),
    projection,
  }),
).openapi('Breakdown')

/** The values that differ from the examples of the fields, so that the counts add up. */
export const BREAKDOWN_EXAMPLE = {
  data: {
    reasons: [
      { reason: 'accepted_email' as const, class: 'deliverable' as const, count: 250 },
      { reason: 'rejected_email' as const, class: 'undeliverable' as const, count: 100 },
      { reason: 'catch_all' as const, class: 'risky' as const, count: 50 },
      { reason: 'timeout' as const, class: 'unknown' as const, count: 20 },
    ],
    operators: [
      {
        operator: 'google.com',
        count: 300,
        classes: { deliverable: 230, risky: 20, undeliverable: 50, unknown: 0 },
      },
      {
        operator: null,
        count: 40,
        classes: { deliverable: 0, risky: 0, undeliverable: 40, unknown: 0 },
      },
    ],
    projection: {
      before: {
        addresses: 420,
        bounce_rate: 0.2764,
        bounce_rate_min: 0.2353,
        bounce_rate_max: 0.3216,
      },
    },
  },
}
