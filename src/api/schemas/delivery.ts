import { z } from '@hono/zod-openapi'
import { DELIVERY_ERRORS } from '../../webhooks/endpoint.ts'
import { SENT_KINDS, TEST_KIND } from '../../webhooks/event-types.ts'
import { TIME_LENGTH_MAX, timeInput } from '../query.ts'
import { pageBody, successBody } from './answers.ts'
import { time } from './fields.ts'

// Schemas of webhook deliveries.

const STATES = ['pending', 'delivered', 'retry_scheduled', 'failed'] as const
const TRIGGERS = ['scheduled', 'manual', 'test'] as const

const outcome = {
  status_code: z.int().nullable().openapi({
    description: 'HTTP status of the response. Null if there was no response.',
    example: 500,
  }),
  duration_ms: z.int().min(0).nullable().openapi({ example: 120 }),
  error: z.string().nullable().openapi({
    description: 'What went wrong, as text. Null if the attempt succeeded.',
    example: 'It answered 500. Only a status from 200 to 299 confirms delivery.',
  }),
  error_code: z.enum(DELIVERY_ERRORS).nullable().openapi({
    example: 'http_status',
    description:
      "What went wrong. Null if the attempt succeeded. `http_status`: the response was not 2xx. `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response within 30 seconds. `connection_failed`: no connection, or it was closed before the response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has no address or could not be resolved. `address_not_public`: the host has a private address. `invalid_url`: the URL isn't valid. `invalid_response`: the response was not HTTP/1.1 or was too long. `secret_unreadable`: the signing secret cannot be read. `interrupted`: the service was stopped before the response. `request_failed`: any other failure.",
  }),
}

const trigger = z.enum(TRIGGERS).openapi({
  example: 'scheduled',
  description:
    '`scheduled`: sent because the event happened. `manual`: resent on request. `test`: a test event.',
})

const row = {
  id: z.string().openapi({ example: 'dlv_01' }),
  webhook_id: z.string().openapi({ example: 'wh_8f3a2c1d' }),
  event_id: z.string().openapi({
    description: 'Identical for all attempts and endpoints.',
    example: 'evt_abc123',
  }),
  event: z.enum(SENT_KINDS).openapi({ example: 'batch.completed' }),
  status: z.enum(STATES).openapi({
    example: 'retry_scheduled',
    description:
      '`pending`: about to be sent. `delivered`: the endpoint responded with 2xx. `retry_scheduled`: the last attempt failed and another one is scheduled. `failed`: all attempts failed.',
  }),
  attempt: z.int().min(0).openapi({
    description: 'Number of attempts. A manual retry restarts it at 0.',
    example: 2,
  }),
  trigger,
  ...outcome,
  next_attempt_at: time.nullable().openapi({
    description: 'When the next attempt is due. Null if there is none.',
    example: '2026-03-21T10:36:00.000Z',
  }),
  created_at: time,
  expires_at: time.nullable().openapi({
    example: null,
    description:
      "When the delivery is deleted. After that, it can't be retried. Null until it is finished.",
  }),
}

export const Delivery = z.object(row).openapi('Delivery')

const headers = z
  .record(z.string(), z.string())
  .openapi({ example: { 'content-type': 'text/plain' } })

const Attempt = z
  .object({
    number: z.int().min(1).openapi({ example: 1 }),
    trigger,
    started_at: time,
    url: z.string().openapi({ example: 'https://app.example.com/hook' }),
    ...outcome,
    duration_ms: z.int().min(0).openapi({ example: 120 }),
    response_excerpt: z.string().nullable().openapi({
      description: 'Start of the response body. Null if there was no response.',
      example: 'Internal Server Error',
    }),
    response_headers: headers.nullable().openapi({ description: 'Null if there was no response.' }),
  })
  .openapi('DeliveryAttempt')

const SIGNED_HEADERS = {
  'Content-Type': 'application/json',
  'User-Agent': 'ev/1.0.0',
  'X-EV-Signature': '04cd2a0b1f3c5f5b6ad9f6a3a1e5f3a7c8e1e4b3f3a5f1d2c0b9a8f7e6d5c4b3',
  'webhook-id': 'evt_abc123',
  'webhook-timestamp': '1774089060',
  'webhook-signature': 'v1,4b0XJ6m3hT2c5mVwq8oYkqS1zj0kq1p3m9o2yZ5Qn1c=',
}

const DeliveryDetail = z
  .object({
    ...row,
    request: z.object({
      url: z.string().openapi({ example: 'https://app.example.com/hook' }),
      headers: headers.openapi({
        example: SIGNED_HEADERS,
        description:
          'Headers of the last attempt. The values of custom headers are hidden. Signatures are included only if the key has the scope `webhooks:write`.',
      }),
      body: z.string().openapi({
        description: 'The body, exactly as sent and signed.',
        example:
          '{"event":"batch.completed","event_id":"evt_abc123","timestamp":"2026-03-21T10:30:00.000Z","data":{"job_id":"job_xyz789"}}',
      }),
    }),
    response: z
      .object({
        status_code: z.int().openapi({ example: 500 }),
        headers,
        body: z.string().openapi({
          description: 'Start of the response body.',
          example: 'Internal Server Error',
        }),
      })
      .nullable()
      .openapi({ description: 'Response to the last attempt. Null if there was none.' }),
    attempts: z.array(Attempt).openapi({ description: 'The last 60 attempts, oldest first.' }),
  })
  .openapi('DeliveryDetail')

export const DeliveryPage = pageBody(Delivery).openapi('DeliveryPage')

export const DeliveryAnswer = successBody(Delivery).openapi('DeliveryAnswer')
export const DeliveryDetailAnswer = successBody(DeliveryDetail).openapi('DeliveryDetailAnswer')

export const deliveryFilters = {
  status: z.enum(STATES).optional().openapi({ description: 'Only deliveries with this status.' }),
  event: z
    .enum(SENT_KINDS)
    .optional()
    .openapi({ description: 'Only deliveries of this event type.' }),
  search: z.string().trim().min(1).max(200).optional().openapi({
    description:
      'Only deliveries with this text in the body, ID, status code or error, case-insensitive. A search checks up to 100,000 deliveries: while `has_more` is true, continue with `next_cursor`, even if the page is empty.',
  }),
}

export const WebhookTestRequest = z
  .strictObject({
    event: z.enum(SENT_KINDS).default(TEST_KIND).openapi({
      description: 'Send the example of this event type. Default: `webhook.test`.',
      example: 'batch.completed',
    }),
  })
  .openapi('WebhookTestRequest')

export const WebhookTest = successBody(
  z.object({
    delivery_id: row.id,
    event_id: row.event_id,
    event: row.event,
    status: z.enum(['delivered', 'failed']).openapi({ example: 'delivered' }),
    status_code: outcome.status_code.openapi({ example: 200 }),
    error: outcome.error.openapi({ example: null }),
    error_code: outcome.error_code.openapi({ example: null }),
    duration_ms: z.int().min(0).openapi({ example: 84 }),
    response_excerpt: z.string().nullable().openapi({ example: 'ok' }),
  }),
).openapi('WebhookTest')

export const RecoveryRequest = z
  .strictObject({
    since: timeInput()
      .transform(text => Date.parse(text))
      .openapi({
        type: 'string',
        format: 'date-time',
        maxLength: TIME_LENGTH_MAX,
        description: 'Resend events from this time on.',
        example: '2026-03-21T00:00:00Z',
      }),
  })
  .openapi('Recovery')

export const Recovered = successBody(
  z.object({
    recovered: z.int().min(0).openapi({
      description: 'Number of events that are resent.',
      example: 12,
    }),
  }),
).openapi('Recovered')

/** A delivery that is retried at once, whose attempts were the last of an earlier series. */
export const DELIVERY_EXAMPLE = {
  data: {
    status: 'pending' as const,
    attempt: 0,
    trigger: 'manual' as const,
    next_attempt_at: '2026-03-21T10:32:00.000Z',
  },
}

/** A delivery with its attempts. */
export const ATTEMPTED_EXAMPLE = {
  data: {
    attempts: [{ number: 1 }, { number: 2, started_at: '2026-03-21T10:31:00.000Z' }],
  },
}
