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

// Schemas of webhook endpoints.

const DISABLED_CODES = Object.keys(DISABLED_REASONS) as [DisabledCode, ...DisabledCode[]]

const time = z.string().openapi({ format: 'date-time' })

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
    minItems: 1,
    maxItems: EVENTS_MAX,
  })

const description = z
  .string()
  .trim()
  .max(DESCRIPTION_LENGTH_MAX)
  .nullable()
  .openapi({ description: 'Human-readable description.' })

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
    active: z.boolean().default(true),
    description: description.default(null),
    headers: headersOf(headerValue).default({}).openapi({
      description: HEADERS,
      maxProperties: HEADERS_MAX,
    }),
  })
  .openapi('NewWebhook')

export const WebhookPatchRequest = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    active: z.boolean().optional().openapi({
      description: 'Set to true to enable the endpoint, even if the service disabled it.',
    }),
    description: description.optional(),
    headers: headersOf(headerValue.nullable())
      .optional()
      .openapi({
        maxProperties: HEADERS_MAX,
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
      }),
  })
  .openapi('SecretRotation')

const fields = {
  id: z.string(),
  url: z.string(),
  events: z.array(z.enum(EVENT_KINDS)),
  active: z.boolean(),
  description: z.string().nullable(),
  job_id: z.string().optional().openapi({
    description:
      'The only job whose events are sent to this endpoint. Only present if it was created with `webhook_url`.',
  }),
  header_names: z.array(z.string()).openapi({
    description: 'Names of the custom headers. Their values are never returned.',
  }),
}

const rest = {
  created_at: time,
  updated_at: time,
  disabled_reason: z.string().nullable().openapi({
    description: "Why the service disabled the endpoint, as text. Null if it didn't.",
  }),
  disabled_code: z.enum(DISABLED_CODES).nullable().openapi({
    description:
      "Why the service disabled the endpoint. `gone`: the endpoint responded with 410. `failing`: all attempts failed for five days. Null if it didn't disable the endpoint.",
  }),
  failing_since: time.nullable().openapi({
    description:
      'When the endpoint started to fail. Null if the last attempt succeeded. The service disables an endpoint that has failed for five days.',
  }),
  success_rate: z.number().min(0).max(1).nullable().openapi({
    description:
      'Share of successful attempts in `daily_attempts`, from 0 to 1. Null if there were none.',
  }),
  daily_attempts: z
    .array(
      z.object({
        date: z.string().openapi({ format: 'date', description: 'UTC.' }),
        delivered: z.int().min(0),
        failed: z.int().min(0),
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
})

const Webhook = z
  .object({
    ...fields,
    secret_hint: z.string().openapi({ description: 'Last characters of the secret.' }),
    ...rest,
    previous_secret_expires_at: previous_secret_expires_at.optional(),
  })
  .openapi('Webhook')

const withSecret = {
  ...fields,
  secret: z.string().openapi({
    description:
      'The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this whole text). Returned only once.',
  }),
  ...rest,
}

export const CreatedWebhook = successBody(z.object(withSecret)).openapi('CreatedWebhook')

export const RotatedWebhook = successBody(
  z.object({ ...withSecret, previous_secret_expires_at }),
).openapi('RotatedWebhook')

export const WebhookAnswer = successBody(Webhook).openapi('WebhookAnswer')

export const WebhookList = successBody(
  z.object({ webhooks: z.array(Webhook), total: z.int().min(0) }),
).openapi('WebhookList')

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

const example = {
  id: 'wh_8f3a2c1d',
  url: 'https://app.example.com/hook',
  events: ['batch.completed' as const],
  active: true,
  description: null,
  header_names: ['Authorization'],
}
const exampleRest = {
  created_at: '2026-03-21T10:30:00.000Z',
  updated_at: '2026-03-21T10:30:00.000Z',
  disabled_reason: null,
  disabled_code: null,
  failing_since: null,
  success_rate: 0.975,
  daily_attempts: [{ date: '2026-03-21', delivered: 39, failed: 1 }],
}
const shown = { ...example, secret_hint: 'LaSw', ...exampleRest }

export const NEW_WEBHOOK_EXAMPLE = {
  url: 'https://app.example.com/hook',
  events: ['batch.completed' as const],
  active: true,
  headers: { Authorization: 'Bearer 4f9c21' },
}
export const CREATED_WEBHOOK_EXAMPLE = {
  success: true as const,
  data: { ...example, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', ...exampleRest },
}
export const SECRET_ROTATION_EXAMPLE = { grace_period_seconds: 86_400 }
export const ROTATED_WEBHOOK_EXAMPLE = {
  success: true as const,
  data: {
    ...CREATED_WEBHOOK_EXAMPLE.data,
    previous_secret_expires_at: '2026-03-22T10:30:00.000Z',
  },
}
export const WEBHOOK_EXAMPLE = { success: true as const, data: shown }
export const WEBHOOK_LIST_EXAMPLE = {
  success: true as const,
  data: { webhooks: [shown], total: 1 },
}
