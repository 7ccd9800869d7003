import { type OpenAPIHono, z } from '@hono/zod-openapi'
import { EVENT_KINDS, type SentKind, TEST_KIND } from '../../webhooks/event.ts'
import type { Env } from '../context.ts'
import { EVENTS, type SentEvent } from '../schemas/event.ts'

/** Documents the requests that webhook receivers get. */
export function describeCallbacks({ openAPIRegistry }: OpenAPIHono<Env>): void {
  for (const kind of EVENT_KINDS) openAPIRegistry.registerWebhook(describeEvent(kind, EVENTS[kind]))
  openAPIRegistry.registerWebhook(describeEvent(TEST_KIND, TEST))
}

const TEST: SentEvent = {
  description: 'A test event for an endpoint.',
  data: z.object({ webhook_id: z.string(), message: z.string() }),
  example: { webhook_id: 'wh_8f3a2c1d', message: 'Test event' },
}

const describeEvent = (kind: SentKind, { description, data, example }: SentEvent) => ({
  method: 'post' as const,
  path: kind,
  operationId: `on${kind.replace(/(?:^|\.)./g, part => part.slice(-1).toUpperCase())}`,
  // A receiver checks the signature instead.
  security: [],
  summary: description,
  description:
    'Sent to your endpoint, and sent again until it answers with 2xx. The same event can arrive more than once, with the same `event_id` and the same bytes.',
  tags: ['Webhooks'],
  request: {
    headers: SIGNED,
    body: {
      content: {
        'application/json': {
          schema: envelopeSchema(kind, data),
          example: { event: kind, ...ENVELOPE, data: example },
        },
      },
      required: true,
    },
  },
  responses: {
    '2XX': { description: 'The event has arrived. The response body is ignored.' },
    410: { description: 'The endpoint wants no more events: the service disables it.' },
    default: { description: 'The event is sent again after 1 min, 5 min, 30 min, 2 h and 24 h.' },
  },
})

const header = (description: string) => z.string().openapi({ description })

const SIGNED = z.object({
  'X-EV-Signature': header(
    'HMAC-SHA256 of the raw body in lowercase hexadecimal, keyed with the whole text of the secret.',
  ),
  'webhook-id': header('The `event_id`.'),
  'webhook-timestamp': header('Time of this attempt in Unix seconds.'),
  'webhook-signature': header(
    '`v1,` followed by a signature of Standard Webhooks. During a rotation there is one for each secret, separated by a space.',
  ),
})

const envelopeSchema = (kind: SentKind, data: z.ZodType) =>
  z.object({
    event: z.literal(kind),
    event_id: z.string().openapi({ description: 'Identical for all attempts.' }),
    timestamp: z.string().openapi({ format: 'date-time', description: 'When the event happened.' }),
    sandbox: z
      .literal(true)
      .optional()
      .openapi({ description: 'Only present if the event is simulated.' }),
    data,
  })

const ENVELOPE = { event_id: 'evt_abc123', timestamp: '2026-03-21T10:30:00.000Z' }
