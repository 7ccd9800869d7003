import { z } from '@hono/zod-openapi'
import { buildJsonSchema } from '../platform/json-fields.ts'
import {
  buildEventExample,
  EVENT_TYPES,
  SENT_KINDS,
  type SentKind,
} from '../webhooks/event-types.ts'
import type { ApiDeps } from './api-deps.ts'
import { completeExamples } from './examples.ts'
import type { Router } from './route.ts'
import { ERROR_SCHEMAS, EXAMPLE_COMPONENTS, RESPONSE_COMPONENTS } from './schemas/error.ts'
import { PARAMETER_COMPONENTS, RESPONSE_HEADERS } from './schemas/headers.ts'
import { JobProgress } from './schemas/job.ts'
import { VerifyStep } from './verify/follow.ts'

/** Builds the OpenAPI document from the schemas that validate requests. */
export function openapiDocument(
  { settings }: Pick<ApiDeps, 'settings'>,
  app: Router,
): ReturnType<typeof app.getOpenAPI31Document> {
  app.describeOperations()
  registerComponents(app)
  describeCallbacks(app)
  const document = app.getOpenAPI31Document({
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
  completeExamples(document as unknown as Parameters<typeof completeExamples>[0])
  return document
}

/** The data of server-sent events, which operations refer to by name. */
const EVENT_SCHEMAS = { VerifyStep, JobProgress }

/** Registers what operations refer to by name. */
function registerComponents({ openAPIRegistry: registry }: Router): void {
  registry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `ev_live_…`, or `ev_pub_…` for forms on websites',
  })
  for (const [name, schema] of Object.entries(EVENT_SCHEMAS)) registry.register(name, schema)
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
  'Find out whether email addresses can receive mail.',
  'Every response also has `Cache-Control: no-store` and security headers: `Content-Security-Policy`, `X-Content-Type-Options`, `Referrer-Policy`, `Access-Control-Allow-Origin`, `Access-Control-Expose-Headers` and, over HTTPS, `Strict-Transport-Security`.',
  'An unknown path returns 404 `not_found`. An unsupported method returns 405 `method_not_allowed`, and the header `Allow` lists the supported ones.',
].join(' ')

const TAGS = [
  { name: 'Verification', description: 'Verify single addresses and lists' },
  { name: 'Jobs', description: 'Track lists and get their results' },
  { name: 'Webhooks', description: 'Manage endpoints that receive events' },
  { name: 'Feedback', description: 'Report bounces and deliveries' },
  { name: 'Account', description: 'Credits, limits, history, statistics and audit log' },
  { name: 'Keys', description: 'Manage API keys' },
  { name: 'People', description: 'Manage people who sign in to the dashboard' },
  { name: 'Accounts', description: 'Manage all accounts, with a key of an admin account' },
  { name: 'Service', description: 'Health of the service' },
]

/** Documents the requests that webhook receivers get. */
function describeCallbacks({ openAPIRegistry }: Router): void {
  for (const kind of SENT_KINDS) openAPIRegistry.registerWebhook(describeEvent(kind))
}

const describeEvent = (kind: SentKind) => ({
  method: 'post' as const,
  path: kind,
  operationId: `on${kind.replace(/(?:^|\.)./g, part => part.slice(-1).toUpperCase())}`,
  // A receiver checks the signature instead.
  security: [],
  // A summary is plain text.
  summary: EVENT_TYPES[kind].description.replaceAll('`', ''),
  description:
    'Sent to your endpoint until it responds with 2xx. The same event can arrive more than once: copies have the same `event_id` and the same body.',
  tags: ['Webhooks'],
  request: {
    headers: SIGNED,
    body: {
      content: {
        'application/json': {
          schema: envelopeSchema(kind),
          example: { event: kind, ...ENVELOPE, data: buildEventExample(kind) },
        },
      },
      required: true,
    },
  },
  responses: {
    '2XX': { description: 'You received the event. The response body is ignored.' },
    410: { description: "You don't want any more events. The service disables the endpoint." },
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

const envelopeSchema = (kind: SentKind) => ({
  type: 'object' as const,
  properties: {
    event: { type: 'string' as const, enum: [kind] },
    event_id: { type: 'string' as const, description: 'Identical for all attempts.' },
    timestamp: {
      type: 'string' as const,
      format: 'date-time',
      description: 'When the event happened.',
    },
    sandbox: {
      type: 'boolean' as const,
      enum: [true],
      description: 'Only present if the event is simulated.',
    },
    data: buildJsonSchema(EVENT_TYPES[kind].data, name => ({
      $ref: `#/components/schemas/${name}`,
    })),
  },
  required: ['event', 'event_id', 'timestamp', 'data'],
})

const ENVELOPE = { event_id: 'evt_abc123', timestamp: '2026-03-21T10:30:00.000Z' }
