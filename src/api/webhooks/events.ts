import { z } from '@hono/zod-openapi'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import type { SentKind } from '../../webhooks/event.ts'
import { findEvent, getEventPage } from '../../webhooks/event-store.ts'
import type { EventTable } from '../../webhooks/tables.ts'
import { pageQuery, parseCursor, toPage } from '../cursor.ts'
import { ApiError } from '../errors/api-error.ts'
import { route } from '../route.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import {
  EmittedEventAnswer,
  EmittedEventPage,
  EVENT_EXAMPLE,
  EVENT_PAGE_EXAMPLE,
  eventFilters,
} from '../schemas/emitted-event.ts'
import type { Service } from '../service.ts'
import { presentDelivery } from './delivery-view.ts'

/** Routes that list and get emitted events. */
export function eventRoutes(service: Service) {
  const router = newRouter()

  const list = route(service, 'GET /v1/events', {
    id: 'listEmittedEvents',
    summary: 'List events, newest first',
    description:
      'Events that were emitted for webhook endpoints, including simulated and test events. An event is emitted if at least one active endpoint is subscribed to it, and kept until its last delivery is deleted.',
    scope: 'webhooks:read',
    query: z.object({ ...pageQuery, ...eventFilters }),
    answer: json(EmittedEventPage, 'One page of events', EVENT_PAGE_EXAMPLE),
  })
  router.openapi(list, async c => {
    const { limit, cursor, event: kind, since, until } = c.req.valid('query')
    const found = await getEventPage(service.database, {
      ...{ accountId: c.get('caller').account.id, kind, since, until },
      ...{ before: parseCursor(cursor), max: limit + 1 },
    })
    const { rows, next } = toPage(found, limit)
    const data = { items: rows.map(presentEvent), next_cursor: next, has_more: next !== null }
    return c.json({ success: true as const, data }, 200)
  })

  const read = route(service, 'GET /v1/events/{id}', {
    id: 'getEmittedEvent',
    summary: 'Get an event with its deliveries',
    scope: 'webhooks:read',
    params: eventParams,
    answer: json(EmittedEventAnswer, 'The event', EVENT_EXAMPLE),
  })
  router.openapi(read, async c => {
    const { account } = c.get('caller')
    const found = await findEvent(service.database, account.id, c.req.valid('param').id)
    if (found === null) throw new ApiError('not_found', 'Event not found.')
    const webhooks = await listWebhooks(service.database, account.id)
    const deliveries = found.deliveries.flatMap(row => {
      const webhook = webhooks.find(({ id }) => id === row.webhook_id)
      return webhook === undefined ? [] : [presentDelivery(row, webhook)]
    })
    return c.json(
      { success: true as const, data: { ...presentEvent(found.event), deliveries } },
      200,
    )
  })

  return router
}

const eventParams = z.object({
  id: z.string().max(100).openapi({ description: 'ID of the event.', example: 'evt_abc123' }),
})

/** An event as it is sent, but always with `sandbox`. */
function presentEvent({ id, kind, body }: EventTable) {
  const { timestamp, sandbox = false, data } = JSON.parse(body)
  return { event_id: id, event: kind as SentKind, timestamp, sandbox, data }
}
