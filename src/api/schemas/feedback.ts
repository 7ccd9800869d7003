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
