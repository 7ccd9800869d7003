import { z } from '@hono/zod-openapi'
import { FEEDBACK_KINDS, FEEDBACK_TEXT_MAX } from '../../feedback/feedback.ts'
import { FEEDBACK_ITEMS_MAX } from '../../feedback/record-feedback.ts'

const FeedbackItem = z
  .strictObject({
    email: z.string().max(1_000).openapi({ description: 'The recipient.' }),
    kind: z.enum(FEEDBACK_KINDS).openapi({ description: 'What happened to the message.' }),
    code: z
      .int()
      .min(200)
      .max(599)
      .optional()
      .openapi({ description: 'SMTP reply code of a bounce.', example: 550 }),
    enhanced_code: z
      .string()
      .max(20)
      .optional()
      .openapi({ description: 'Enhanced status code (RFC 3463).', example: '5.1.1' }),
    text: z
      .string()
      .max(10_000)
      .optional()
      .openapi({
        description: `Diagnostic text of a bounce. ${FEEDBACK_TEXT_MAX} characters are stored.`,
      }),
    occurred_at: z.iso
      .datetime({ offset: true })
      .optional()
      .openapi({ description: 'When it happened. Default: now.' }),
    id: z.string().min(1).max(255).optional().openapi({
      description:
        'ID of the event in your system. An item with the ID of an earlier one is a duplicate. Without it, an item that equals an earlier one is.',
    }),
  })
  .openapi('FeedbackItem')

export const FeedbackRequest = z
  .strictObject({ items: z.array(FeedbackItem).min(1).max(FEEDBACK_ITEMS_MAX) })
  .openapi('FeedbackRequest')

const RecordedFeedback = z
  .object({
    received: z.int().min(0),
    recorded: z.int().min(0),
    duplicates: z.int().min(0).openapi({ description: 'Items that were recorded before.' }),
    rejected: z
      .array(z.object({ index: z.int().min(0), error: z.string() }))
      .openapi({ description: 'Invalid items, by their index in the request.' }),
  })
  .openapi('RecordedFeedback')

export const FeedbackAnswer = z
  .object({ success: z.literal(true), data: RecordedFeedback })
  .openapi('FeedbackAnswer')

export const FEEDBACK_REQUEST_EXAMPLE = {
  items: [
    {
      email: 'ann@example.com',
      kind: 'bounced' as const,
      code: 550,
      enhanced_code: '5.1.1',
      text: 'User unknown',
      occurred_at: '2026-03-21T10:30:00Z',
    },
    { email: 'bob@example.com', kind: 'delivered' as const },
  ],
}

export const FEEDBACK_EXAMPLE = {
  success: true as const,
  data: { received: 2, recorded: 2, duplicates: 0, rejected: [] },
}

/** Operators of the report: those with the most verdicts. */
export const REPORT_OPERATORS_MAX = 100
/** Days with feedback in the report: the last ones. */
export const REPORT_DAYS_MAX = 30

const share = (description: string) => z.number().min(0).max(1).openapi({ description })

const binFields = {
  count: z.int().openapi({ description: 'Verdicts with a known outcome.' }),
  predicted: share('Mean confidence.'),
  observed: share('Share of correct verdicts.'),
}

const rowFields = {
  ...binFields,
  brier_score: share('Mean squared difference of confidence and outcome. 0 is best.'),
  calibration_error: share(
    'Expected calibration error: mean difference of confidence and share of correct verdicts in ten ranges of confidence. 0 is best.',
  ),
}

const CalibrationFigures = z.object(rowFields).openapi('CalibrationFigures')

const CalibrationBin = z.object(binFields).openapi('CalibrationBin')

const FeedbackReport = z
  .object({
    total: CalibrationFigures,
    fixed_confidence: CalibrationFigures.openapi({
      description: 'The same verdicts with the fixed confidence of their reasons.',
    }),
    bins: z.array(CalibrationBin).openapi({
      description:
        'The verdicts by confidence in ranges of 10 %, lowest first, without empty ones.',
    }),
    fixed_bins: z
      .array(CalibrationBin)
      .openapi({ description: 'The same with the fixed confidence.' }),
    outcomes: z
      .object({
        predicted_bounces: z
          .int()
          .openapi({ description: 'Mail that bounced, and was not deliverable by its verdict.' }),
        missed_bounces: z
          .int()
          .openapi({ description: 'Mail that bounced, and was deliverable by its verdict.' }),
        kept_deliveries: z
          .int()
          .openapi({ description: 'Mail that arrived, and was deliverable by its verdict.' }),
        lost_deliveries: z
          .int()
          .openapi({ description: 'Mail that arrived, and was not deliverable by its verdict.' }),
      })
      .openapi({ description: 'What verdicts predicted, by the field `deliverable`.' }),
    reasons: z.array(z.object({ reason: z.string(), ...rowFields })).openapi({
      description:
        'By reason, most verdicts first. Verdicts of catch-all domains with enough reports are counted by risk, such as `catch_all/low`.',
    }),
    operators: z
      .array(z.object({ reason: z.string(), operator: z.string().nullable(), ...rowFields }))
      .openapi({
        description: `By reason and operator, most verdicts first, at most ${REPORT_OPERATORS_MAX}.`,
      }),
    received: z
      .array(
        z.object({
          date: z.iso.date().openapi({ description: 'Day in UTC.' }),
          source: z.string().openapi({
            description: '`api`, `import` for `ev feedback import`, or the provider of a source.',
          }),
          delivered: z.int().min(0),
          bounced: z.int().min(0),
          complained: z.int().min(0),
        }),
      )
      .openapi({
        description: `Recorded feedback by day and source, newest first, at most ${REPORT_DAYS_MAX} rows.`,
      }),
  })
  .openapi('FeedbackReport')

export const FeedbackReportAnswer = z
  .object({ success: z.literal(true), data: FeedbackReport })
  .openapi('FeedbackReportAnswer')

const FIGURES_EXAMPLE = {
  ...{ count: 1_200, predicted: 0.943, observed: 0.951 },
  ...{ brier_score: 0.044, calibration_error: 0.012 },
}

export const REPORT_EXAMPLE = {
  success: true as const,
  data: {
    total: FIGURES_EXAMPLE,
    fixed_confidence: { ...FIGURES_EXAMPLE, predicted: 0.902, calibration_error: 0.049 },
    bins: [
      { count: 80, predicted: 0.41, observed: 0.4 },
      { count: 1_120, predicted: 0.981, observed: 0.99 },
    ],
    fixed_bins: [{ count: 1_200, predicted: 0.902, observed: 0.951 }],
    outcomes: {
      ...{ predicted_bounces: 96, missed_bounces: 14 },
      ...{ kept_deliveries: 1_045, lost_deliveries: 45 },
    },
    reasons: [{ reason: 'accepted_email', ...FIGURES_EXAMPLE }],
    operators: [{ reason: 'accepted_email', operator: 'google', ...FIGURES_EXAMPLE }],
    received: [
      {
        ...{ date: '2026-03-21', source: 'api', delivered: 1_090, bounced: 110 },
        complained: 2,
      },
    ],
  },
}
