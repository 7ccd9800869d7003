import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from './context.ts'
import { ERROR_SCHEMAS, EXAMPLE_COMPONENTS, RESPONSE_COMPONENTS } from './schemas/error.ts'
import { PARAMETER_COMPONENTS, RESPONSE_HEADERS } from './schemas/headers.ts'
import type { Service } from './service.ts'
import { describeCallbacks } from './webhooks/openapi-callbacks.ts'

/** Builds the OpenAPI document from the schemas that validate requests. */
export function openapiDocument(
  { settings }: Pick<Service, 'settings'>,
  app: OpenAPIHono<Env>,
): ReturnType<typeof app.getOpenAPI31Document> {
  registerComponents(app)
  describeCallbacks(app)
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'ev',
      version: settings.version,
      description: DESCRIPTION,
      license: LICENSE,
    },
    servers: [{ url: settings.baseUrl }],
    tags: TAGS,
  })
}

/** Registers what operations refer to by name. */
function registerComponents({ openAPIRegistry: registry }: OpenAPIHono<Env>): void {
  registry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `ev_live_…`, or `ev_pub_…` for forms on websites',
  })
  for (const [name, schema] of Object.entries(ERROR_SCHEMAS)) registry.register(name, schema)
  for (const [name, header] of Object.entries(RESPONSE_HEADERS)) {
    registry.registerComponent('headers', name, header)
  }
  for (const [name, parameter] of PARAMETER_COMPONENTS) {
    registry.registerComponent('parameters', name, parameter)
  }
  for (const [name, response] of RESPONSE_COMPONENTS) {
    registry.registerComponent('responses', name, response)
  }
  for (const [name, example] of EXAMPLE_COMPONENTS) {
    registry.registerComponent('examples', name, example)
  }
}

/** The types of the generator lack `identifier`, an SPDX expression. */
const LICENSE = { name: 'MIT', identifier: 'MIT' }

const DESCRIPTION = [
  'Checks whether email addresses can receive mail.',
  'In addition to the headers of each response, all responses have `Cache-Control: no-store` and security headers: `Content-Security-Policy`, `X-Content-Type-Options`, `Referrer-Policy`, `Access-Control-Allow-Origin`, `Access-Control-Expose-Headers`, and with HTTPS `Strict-Transport-Security`.',
  'A path that does not exist gets 404 `not_found`, and another method of an existing path 405 `method_not_allowed` with the header `Allow`.',
].join(' ')

const TAGS = [
  { name: 'Verification', description: 'Verify single addresses and lists' },
  { name: 'Jobs', description: 'Track lists and get their results' },
  { name: 'Webhooks', description: 'Manage endpoints that receive events' },
  { name: 'Feedback', description: 'Report bounces and deliveries' },
  { name: 'Account', description: 'Credits, limits, history, statistics and audit log' },
  { name: 'Keys', description: 'Manage API keys' },
  { name: 'Accounts', description: 'Manage all accounts, with a key of an admin account' },
  { name: 'Service', description: 'Health of the service' },
]
