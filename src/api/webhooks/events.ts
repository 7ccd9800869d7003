import { z } from '@hono/zod-openapi'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import { webhookError } from '../../webhooks/errors.ts'
import { findEvent, getEventPage } from '../../webhooks/event-store.ts'
import { buildEventExample, SENT_KINDS, type SentKind } from '../../webhooks/event-types.ts'
import { presentDelivery } from '../../webhooks/present.ts'
import type { EventTable } from '../../webhooks/tables.ts'
import type { ApiDeps } from '../api-deps.ts'
import { pageQuery, parseCursor, timeFilter, toPage, toPageBody } from '../query.ts'
import { newRouter, route } from '../route.ts'
import { json, pageBody, successBody } from '../schemas/answers.ts'
import { Delivery } from '../schemas/delivery.ts'
import { idParams, time } from '../schemas/fields.ts'

export type EventDeps = Pick<ApiDeps, 'database' | 'guard'>

// Schemas of events that were emitted.

const fields = {
  event_id: z.string().openapi({ example: 'evt_abc123' }),
  event: z.enum(SENT_KINDS).openapi({ example: 'batch.completed' }),
  timestamp: time,
  sandbox: z.boolean().openapi({ description: 'Whether the event is simulated.', example: false }),
  data: z.record(z.string(), z.unknown()).openapi({
    description: 'Data of the event. For its JSON Schema, see `GET /v1/webhooks/events`.',
    example: buildEventExample('batch.completed'),
  }),
}

const EmittedEvent = z.object(fields).openapi('EmittedEvent')

const EmittedEventPage = pageBody(EmittedEvent).openapi('EmittedEventPage')

const EmittedEventAnswer = successBody(
  z.object({
    ...fields,
    deliveries: z.array(Delivery).openapi({
      description: 'Deliveries of the event, one for each subscribed endpoint that still exists.',
    }),
  }),
).openapi('EmittedEventAnswer')

const eventFilters = {
  event: z.enum(SENT_KINDS).optional().openapi({ description: 'Only events of this type.' }),
  since: timeFilter('Start of the time range, inclusive.'),
  until: timeFilter('End of the time range, exclusive.'),
}

/** Routes that list and get emitted events. */
export function eventRoutes(service: EventDeps) {
  const router = newRouter()

  const list = route(service, 'GET /v1/events', {
    id: 'listEmittedEvents',
    summary: 'List events, newest first',
    description:
      'Returns the events for webhook endpoints, including simulated and test events. An event is created only if an active endpoint is subscribed to it. It is deleted with its last delivery.',
    scope: 'webhooks:read',
    query: z.object({ ...pageQuery, ...eventFilters }),
    answer: json(EmittedEventPage, 'One page of events'),
  })
  router.handle(list, async c => {
    const { limit, cursor, event: kind, since, until } = c.req.valid('query')
    const found = await getEventPage(service.database, {
      accountId: c.get('caller').account.id,
      kind,
      since,
      until,
      before: parseCursor(cursor),
      max: limit + 1,
    })
    const { rows, next } = toPage(found, limit)
    return c.json(toPageBody(rows.map(presentEvent), next), 200)
  })

  const read = route(service, 'GET /v1/events/{id}', {
    id: 'getEmittedEvent',
    summary: 'Get an event with its deliveries',
    scope: 'webhooks:read',
    params: eventParams,
    answer: json(EmittedEventAnswer, 'The event'),
  })
  router.handle(read, async c => {
    const { account } = c.get('caller')
    const { id } = c.req.valid('param')
    const found = await findEvent(service.database, account.id, id)
    if (found === null) throw webhookError('event_not_found', { id })
    const webhooks = await listWebhooks(service.database, account.id)
    const deliveries = found.deliveries.flatMap(row => {
      const webhook = webhooks.find(({ id }) => id === row.webhook_id)
      return webhook === undefined
        ? []
        : [presentDelivery(row, webhook, service.database.steadyClock)]
    })
    return c.json(
      { success: true as const, data: { ...presentEvent(found.event), deliveries } },
      200,
    )
  })

  return router
}

const eventParams = idParams('ID of the event.', 'evt_abc123')

/** An event as it is sent, but always with `sandbox`. */
function presentEvent({ id, kind, body }: EventTable) {
  const { timestamp, sandbox = false, data } = JSON.parse(body)
  return { event_id: id, event: kind as SentKind, timestamp, sandbox, data }
}
