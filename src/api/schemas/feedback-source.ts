import { z } from '@hono/zod-openapi'
import { PROVIDER_NAMES } from '../../feedback/providers/providers.ts'

// Schemas of feedback sources.

const provider = z.enum(PROVIDER_NAMES).openapi({ description: 'The email provider.' })

/** Fits the longest key, an RSA key in PEM by mistake. */
const KEY_LENGTH_MAX = 4_000

export const NewFeedbackSourceRequest = z
  .strictObject({
    provider,
    key: z.string().max(KEY_LENGTH_MAX).optional().openapi({
      description:
        'What authenticates the provider: for `ses` the ARN of the SNS topic, for `sendgrid` the verification key of the Event Webhook, for `mailgun` the HTTP webhook signing key. Omitted for `postmark` and `sparkpost`: then a password is returned.',
    }),
  })
  .openapi('NewFeedbackSource')

const fields = {
  id: z.string(),
  provider,
  url: z.string().openapi({ description: 'The URL to set at the provider.' }),
}
const rest = {
  created_at: z.string().openapi({ format: 'date-time' }),
  last_received_at: z.string().nullable().openapi({
    format: 'date-time',
    description: 'When the provider last sent an authentic request. Null if it never did.',
  }),
}
const key_hint = z.string().openapi({
  description: 'For `ses` the ARN of the topic, otherwise the last characters of the key.',
})

const FeedbackSource = z.object({ ...fields, key_hint, ...rest }).openapi('FeedbackSource')

export const CreatedFeedbackSource = z
  .object({
    success: z.literal(true),
    data: z.object({
      ...fields,
      key_hint,
      basic_auth: z.object({ username: z.string(), password: z.string() }).nullable().openapi({
        description:
          'HTTP Basic authentication to set at the provider. Null for a provider with a key of its own. Returned only once.',
      }),
      ...rest,
    }),
  })
  .openapi('CreatedFeedbackSource')

export const FeedbackSourceList = z
  .object({
    success: z.literal(true),
    data: z.object({ sources: z.array(FeedbackSource), total: z.int().min(0) }),
  })
  .openapi('FeedbackSourceList')

export const NEW_FEEDBACK_SOURCE_EXAMPLE = {
  provider: 'ses' as const,
  key: 'arn:aws:sns:us-east-1:123456789012:ses-feedback',
}

const example = {
  ...{ id: 'fbs_8f3a2c1d7b5e4096a1c3', provider: 'ses' as const },
  url: 'https://ev.example.com/v1/feedback/ses/fbs_8f3a2c1d7b5e4096a1c3',
  key_hint: NEW_FEEDBACK_SOURCE_EXAMPLE.key,
}
const times = { created_at: '2026-03-21T10:30:00.000Z', last_received_at: null }

export const CREATED_FEEDBACK_SOURCE_EXAMPLE = {
  success: true as const,
  data: { ...example, basic_auth: null, ...times },
}
export const FEEDBACK_SOURCE_LIST_EXAMPLE = {
  success: true as const,
  data: { sources: [{ ...example, ...times }], total: 1 },
}
