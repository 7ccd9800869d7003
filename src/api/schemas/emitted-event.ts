import { z } from '@hono/zod-openapi'
import { SENT_KINDS } from '../../webhooks/event.ts'
import { pageFields } from '../cursor.ts'
import { Delivery, SHOWN_DELIVERY } from './delivery.ts'
import { EVENTS } from './event.ts'
import { timeFilter } from './names.ts'

// Schemas of events that were emitted.

const fields = {
  event_id: z.string(),
  event: z.enum(SENT_KINDS),
  timestamp: z.string().openapi({ format: 'date-time' }),
  sandbox: z.boolean().openapi({ description: 'Whether it is a simulated event.' }),
  data: z.record(z.string(), z.unknown()).openapi({
    description: 'As sent to the endpoints. `GET /v1/webhooks/events` has its JSON Schema.',
  }),
}

const EmittedEvent = z.object(fields).openapi('EmittedEvent')

export const EmittedEventPage = z
  .object({
    success: z.literal(true),
    data: z.object({ items: z.array(EmittedEvent), ...pageFields }),
  })
  .openapi('EmittedEventPage')

export const EmittedEventAnswer = z
  .object({
    success: z.literal(true),
    data: z.object({
      ...fields,
      deliveries: z.array(Delivery).openapi({
        description: 'Its deliveries, one for each endpoint that was subscribed and still exists.',
      }),
    }),
  })
  .openapi('EmittedEventAnswer')

export const eventFilters = {
  event: z.enum(SENT_KINDS).optional().openapi({ description: 'Only events of this type.' }),
  since: timeFilter('Start of the time range, inclusive.'),
  until: timeFilter('End of the time range, exclusive.'),
}

const shown = {
  ...{ event_id: 'evt_abc123', event: 'batch.completed' as const },
  ...{ timestamp: '2026-03-21T10:30:00.000Z', sandbox: false },
  data: { ...EVENTS['batch.completed'].example },
}

export const EVENT_PAGE_EXAMPLE = {
  success: true as const,
  data: { items: [shown], next_cursor: 'WzE3NzQwODkwMDAwMDAsImV2dF9hYmMxMjMiXQ', has_more: true },
}

export const EVENT_EXAMPLE = {
  success: true as const,
  data: { ...shown, deliveries: [SHOWN_DELIVERY] },
}
