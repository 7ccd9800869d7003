import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from './context.ts'
import { newRouter } from './router.ts'
import type { Service } from './service.ts'
import { describeCallbacks } from './webhooks/openapi-callbacks.ts'

/** The description of all paths, made from the schemas that check them. */
export function openapiRoutes(service: Service, app: OpenAPIHono<Env>) {
  let text: string | undefined
  return newRouter().get('/openapi.json', c => {
    text ??= JSON.stringify(openapiDocument(service, app))
    return c.body(text, 200, { 'Content-Type': 'application/json' })
  })
}

export function openapiDocument({ settings }: Service, app: OpenAPIHono<Env>) {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `ev_live_…`',
  })
  describeCallbacks(app)
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'ev',
      version: settings.version,
      description:
        'Finds out whether email addresses can receive mail. Every answer has `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` and `X-Request-Id`.',
      license: { name: 'MIT' },
    },
    servers: [{ url: settings.baseUrl }],
    tags: TAGS,
  })
}

const TAGS = [
  { name: 'Verification', description: 'One address, or a list' },
  { name: 'Jobs', description: 'Lists that are worked on, and their results' },
  { name: 'Webhooks', description: 'Where events are sent' },
  { name: 'Account', description: 'Credits, history and numbers' },
  { name: 'Keys', description: 'Who may ask' },
  { name: 'Service', description: 'How the service is' },
]
