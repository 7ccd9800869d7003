import { z } from '@hono/zod-openapi'
import { URL_LENGTH_MAX } from '../../outbound/url-policy.ts'
import { SECOND } from '../../platform/clock.ts'
import { CUSTOM_HEADERS_MAX } from '../../webhooks/custom-headers.ts'
import {
  DESCRIPTION_LENGTH_MAX,
  DISABLED_REASONS,
  type DisabledCode,
  SECRET_GRACE_MAX_MS,
  SECRET_GRACE_MS,
} from '../../webhooks/endpoint.ts'
import { EVENT_KINDS, isEventKind } from '../../webhooks/event-types.ts'
import { successBody } from './answers.ts'
import { time, total } from './fields.ts'

// Schemas of webhook endpoints.

const DISABLED_CODES = Object.keys(DISABLED_REASONS) as [DisabledCode, ...DisabledCode[]]

const url = z.string().max(URL_LENGTH_MAX).openapi({
  description: 'An https URL that the service can reach, with a public address.',
  example: 'https://app.example.com/hook',
})

/** Each event twice: a repeated one counts once. */
const EVENTS_MAX = 2 * EVENT_KINDS.length
/** Enough for a name to be reported as unknown. */
const EVENT_LENGTH_MAX = 200

const events = z
  .array(z.string().max(EVENT_LENGTH_MAX))
  .max(EVENTS_MAX)
  .transform((names, ctx) => {
    const kinds = [...new Set(names)].filter(isEventKind)
    const unknown = names.find(kind => !isEventKind(kind))
    if (kinds.length > 0 && unknown === undefined) return kinds
    const what = unknown === undefined ? 'is empty' : `has ${JSON.stringify(unknown)}`
    const message = `${what}; it takes ${EVENT_KINDS.join(', ')}`
    ctx.addIssue({ code: 'custom', message, params: { code: 'invalid_event' } })
    return z.NEVER
  })
  .openapi({
    type: 'array',
    items: { type: 'string', enum: EVENT_KINDS },
    example: ['batch.completed'],
    minItems: 1,
    maxItems: EVENTS_MAX,
  })

const description = z
  .string()
  .trim()
  .max(DESCRIPTION_LENGTH_MAX)
  .nullable()
  .openapi({ description: 'Human-readable description.', example: 'Shop' })

const HEADERS =
  "Custom headers to send with each event, such as `Authorization`: up to 10, each value with up to 2,000 printable ASCII characters. Values are stored encrypted and never returned. You can't set headers that HTTP or the service sets."

/** Those of an endpoint and as many that replace them. */
const HEADERS_MAX = 2 * CUSTOM_HEADERS_MAX
/** Longer ones are refused without their name, which `checkHeaders` repeats. */
const HEADER_LENGTH_MAX = 8_192

const headerValue = z.string().max(HEADER_LENGTH_MAX)

const headersOf = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string().max(HEADER_LENGTH_MAX), value)
    .refine(headers => Object.keys(headers).length <= HEADERS_MAX, {
      error: `must have at most ${HEADERS_MAX} headers`,
    })

export const NewWebhookRequest = z
  .strictObject({
    url,
    events,
    active: z.boolean().default(true).openapi({ example: true }),
    description: description.default(null),
    headers: headersOf(headerValue)
      .default({})
      .openapi({
        description: HEADERS,
        maxProperties: HEADERS_MAX,
        example: { Authorization: 'Bearer 4f9c21' },
      }),
  })
  .openapi('NewWebhook')

export const WebhookPatchRequest = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    active: z.boolean().optional().openapi({
      description: 'Set to true to enable the endpoint, even if the service disabled it.',
      example: true,
    }),
    description: description.optional(),
    headers: headersOf(headerValue.nullable())
      .optional()
      .openapi({
        maxProperties: HEADERS_MAX,
        example: { Authorization: 'Bearer 4f9c21' },
        description: `${HEADERS} Set a header to null to remove it. Headers that you omit keep their values, unless you change the origin of the URL: then they are removed.`,
      }),
  })
  .openapi('WebhookPatch')

export const SecretRotation = z
  .strictObject({
    grace_period_seconds: z
      .int()
      .min(0)
      .max(SECRET_GRACE_MAX_MS / SECOND)
      .default(SECRET_GRACE_MS / SECOND)
      .openapi({
        description: 'Seconds for which events are also signed with the current secret.',
        example: 86_400,
      }),
  })
  .openapi('SecretRotation')

const fields = {
  id: z.string().openapi({ example: 'wh_8f3a2c1d' }),
  url: z.string().openapi({ example: 'https://app.example.com/hook' }),
  events: z.array(z.enum(EVENT_KINDS)).openapi({ example: ['batch.completed'] }),
  active: z.boolean().openapi({ example: true }),
  description: z.string().nullable().openapi({ example: null }),
  job_id: z.string().optional().openapi({
    description:
      'The only job whose events are sent to this endpoint. Only present if it was created with `webhook_url`.',
    example: 'job_xyz789',
  }),
  header_names: z.array(z.string()).openapi({
    description: 'Names of the custom headers. Their values are never returned.',
    example: ['Authorization'],
  }),
}

const rest = {
  created_at: time,
  updated_at: time,
  disabled_reason: z.string().nullable().openapi({
    description: "Why the service disabled the endpoint, as text. Null if it didn't.",
    example: null,
  }),
  disabled_code: z.enum(DISABLED_CODES).nullable().openapi({
    example: null,
    description:
      "Why the service disabled the endpoint. `gone`: the endpoint responded with 410. `failing`: all attempts failed for five days. Null if it didn't disable the endpoint.",
  }),
  failing_since: time.nullable().openapi({
    example: null,
    description:
      'When the endpoint started to fail. Null if the last attempt succeeded. The service disables an endpoint that has failed for five days.',
  }),
  success_rate: z.number().min(0).max(1).nullable().openapi({
    description:
      'Share of successful attempts in `daily_attempts`, from 0 to 1. Null if there were none.',
    example: 0.975,
  }),
  daily_attempts: z
    .array(
      z.object({
        date: z.string().openapi({ format: 'date', description: 'UTC.', example: '2026-03-21' }),
        delivered: z.int().min(0).openapi({ example: 39 }),
        failed: z.int().min(0).openapi({ example: 1 }),
      }),
    )
    .openapi({
      description:
        'Attempts by day, oldest first: the last seven days on which events were sent. Tests are not counted.',
    }),
}

const previous_secret_expires_at = time.openapi({
  description:
    'When the previous secret expires. Until then, `webhook-signature` also contains a signature with it. Absent if there is no previous secret.',
  example: '2026-03-22T10:30:00.000Z',
})

const Webhook = z
  .object({
    ...fields,
    secret_hint: z.string().openapi({
      description: 'Last characters of the secret.',
      example: 'LaSw',
    }),
    ...rest,
    previous_secret_expires_at: previous_secret_expires_at.optional(),
  })
  .openapi('Webhook')

const withSecret = {
  ...fields,
  secret: z.string().openapi({
    description:
      'The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this whole text). Returned only once.',
    example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }),
  ...rest,
}

export const CreatedWebhook = successBody(z.object(withSecret)).openapi('CreatedWebhook')

export const RotatedWebhook = successBody(
  z.object({ ...withSecret, previous_secret_expires_at }),
).openapi('RotatedWebhook')

export const WebhookAnswer = successBody(Webhook).openapi('WebhookAnswer')

export const WebhookList = successBody(z.object({ webhooks: z.array(Webhook), total })).openapi(
  'WebhookList',
)

export const EventList = successBody(
  z.object({
    events: z.array(
      z.object({
        event: z.enum(EVENT_KINDS),
        description: z.string(),
        schema: z.record(z.string(), z.unknown()).openapi({
          description: 'JSON Schema of `data`.',
        }),
        example: z
          .record(z.string(), z.unknown())
          .openapi({ description: 'Example of the complete body.' }),
      }),
    ),
  }),
).openapi('EventList')

/** A request for a webhook: the fields that most webhooks have. */
export const NEW_WEBHOOK_EXAMPLE = {
  url: 'https://app.example.com/hook',
  active: true,
  headers: { Authorization: 'Bearer 4f9c21' },
}
