import { createRoute, z } from '@hono/zod-openapi'
import { EVENT_KINDS } from '../../webhooks/event.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { EVENTS } from '../schemas/event.ts'
import { EventList } from '../schemas/webhook.ts'
import type { Service } from '../service.ts'

/** What can be subscribed to. */
export function catalogueRoutes(service: Service) {
  const list = createRoute({
    ...{ method: 'get', path: '/v1/webhooks/events', operationId: 'listEvents' },
    summary: 'The events that there are',
    description:
      'What can be subscribed to, with the JSON Schema of its data and an example as it is sent. `webhook.test` is not among them: it is sent when an endpoint is tried out.',
    tags: ['Webhooks'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'webhooks:read', counts: null, bodyMax: 0 }),
    responses: {
      200: json(EventList, 'The events', CATALOGUE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(list, c => c.json(CATALOGUE, 200))
}

const CATALOGUE = {
  success: true as const,
  data: {
    events: EVENT_KINDS.map(event => {
      const { description, data, example } = EVENTS[event]
      const envelope = { event, event_id: 'evt_abc123', timestamp: '2026-03-21T10:30:00.000Z' }
      return {
        ...{ event, description, example: { ...envelope, data: example } },
        schema: z.toJSONSchema(data) as Record<string, unknown>,
      }
    }),
  },
}
