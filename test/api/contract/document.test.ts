import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { SENT_KINDS } from '../../../src/webhooks/event-types.ts'
import {
  bareApi,
  examplesOf,
  isOfInterface,
  type Media,
  type Place,
  PROVIDER_PATH,
  placesOf,
  type Schema,
} from './document.ts'
import { schemaChecks } from './schemas.ts'

const { app, document } = bareApi()
const places = placesOf(document)
const { answer, request } = schemaChecks(document)

/** All operations of the interface. */
const OPERATIONS = [
  ...['POST /v1/verify/single', 'POST /v1/verify', 'POST /v1/verify/bulk', 'POST /v1/verify/batch'],
  ...[
    'POST /v1/verify/file',
    'POST /v1/verify/url',
    'POST /v1/verify/form',
    'GET /v1/verify/bulk/status/{id}',
    'GET /v1/verify/bulk/download/{id}',
  ],
  ...['GET /v1/jobs', 'GET /v1/jobs/{id}', 'DELETE /v1/jobs/{id}', 'POST /v1/jobs/{id}/cancel'],
  'POST /v1/jobs/{id}/finish',
  'POST /v1/jobs/{id}/download_url',
  'GET /v1/jobs/{id}/results',
  'GET /v1/jobs/{id}/results/{row}',
  'GET /v1/jobs/{id}/breakdown',
  'GET /v1/domains/{domain}',
  ...['GET /v1/jobs/{id}/events', 'POST /v1/jobs/{id}/resume'],
  ...['POST /v1/jobs/{id}/reverify', 'GET /v1/jobs/{id}/changes'],
  ...['GET /v1/schedules', 'POST /v1/schedules', 'GET /v1/schedules/{id}'],
  ...['PATCH /v1/schedules/{id}', 'DELETE /v1/schedules/{id}'],
  ...['GET /v1/jobs/{id}/download', 'GET /v1/history', 'GET /v1/credits', 'GET /v1/stats'],
  ...['GET /v1/limits', 'GET /v1/account', 'PATCH /v1/account'],
  ...[
    'GET /v1/keys',
    'POST /v1/keys',
    'GET /v1/keys/{id}',
    'PATCH /v1/keys/{id}',
    'DELETE /v1/keys/{id}',
  ],
  ...['GET /v1/people', 'POST /v1/people', 'PATCH /v1/people/{id}', 'DELETE /v1/people/{id}'],
  ...['POST /v1/people/{id}/link', 'DELETE /v1/people/{id}/two-factor'],
  ...['POST /v1/keys/{id}/rotate', 'GET /v1/webhooks', 'POST /v1/webhooks'],
  ...['GET /v1/webhooks/events', 'GET /v1/webhooks/{id}', 'PATCH /v1/webhooks/{id}'],
  ...['PUT /v1/webhooks/{id}', 'DELETE /v1/webhooks/{id}', 'POST /v1/webhooks/{id}/test'],
  ...['POST /v1/webhooks/{id}/secret', 'POST /v1/webhooks/{id}/recover'],
  ...[
    'GET /v1/webhooks/{id}/deliveries',
    'GET /v1/webhooks/{id}/deliveries/{delivery_id}',
    'POST /v1/webhooks/{id}/deliveries/{delivery_id}/retry',
  ],
  ...['GET /v1/events', 'GET /v1/events/{id}', 'GET /v1/audit', 'POST /v1/feedback'],
  ...['GET /v1/feedback/sources', 'POST /v1/feedback/sources', 'DELETE /v1/feedback/sources/{id}'],
  'POST /v1/feedback/{provider}/{id}',
  'GET /v1/feedback/report',
  ...['GET /v1/accounts', 'POST /v1/accounts', 'GET /v1/accounts/{id}', 'GET /v1/plans'],
  ...['PATCH /v1/accounts/{id}', 'POST /v1/accounts/{id}/keys'],
  ...['GET /livez', 'GET /readyz', 'GET /health'],
]

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
  })

  test('has every operation of the interface, and no other', () => {
    expect(placesOf(document).map(nameOf).toSorted()).toEqual(OPERATIONS.toSorted())
  })

  test('has every path under /v1 of the service', () => {
    const known = app.routes
      .filter(({ method, path }) => method !== 'ALL' && path.startsWith('/v1/'))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
    expect([...new Set(known)].toSorted()).toEqual(
      places
        .filter(({ path }) => path.startsWith('/v1/'))
        .map(nameOf)
        .toSorted(),
    )
  })

  test('has a unique name for each operation', () => {
    const ids = places.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every(id => /^[a-z][A-Za-z]+$/.test(id))).toBe(true)
  })

  test('describes every tag that it uses', () => {
    const { tags } = document as unknown as { tags: { name: string }[] }
    const used = places.flatMap(({ operation }) => (operation as { tags?: string[] }).tags ?? [])
    expect([...new Set(used)].toSorted()).toEqual(tags.map(({ name }) => name).toSorted())
  })
})

describe('what is valid', () => {
  const NAMES = ['valid', 'valid_emails', 'syntax_valid', 'smtp_valid']

  /** All properties with one of these names: path and description. */
  function described(value: unknown, place: string): [place: string, says: unknown][] {
    if (typeof value !== 'object' || value === null) return []
    const { properties } = value as { properties?: Record<string, { description?: unknown }> }
    const own = NAMES.flatMap(name => {
      const property = properties?.[name]
      return property === undefined ? [] : [[`${place}.${name}`, property.description] as const]
    })
    const below = Object.entries(value)
      .filter(([key]) => key !== 'example' && key !== 'examples')
      .flatMap(([key, one]) => described(one, `${place}.${key}`))
    return [...own.map(([at, says]): [string, unknown] => [at, says]), ...below]
  }

  test('is described wherever it occurs, as the word means different things', () => {
    const found = described(document, '')
    expect(found.length).toBeGreaterThan(10)
    expect(found.filter(([, says]) => typeof says !== 'string')).toEqual([])
  })
})

describe('an event in the document', () => {
  const { webhooks } = document as unknown as {
    webhooks: Record<string, { post: Place['operation'] }>
  }

  test('is described for each type, as the request that a receiver gets', () => {
    expect(Object.keys(webhooks)).toEqual([...SENT_KINDS])
    for (const { post } of Object.values(webhooks)) {
      expect(post.parameters?.map(({ name }) => name)).toEqual([
        ...['X-EV-Signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
      ])
      expect(Object.keys(post.responses)).toEqual(['410', '2XX', 'default'])
    }
  })

  test.each(Object.entries(webhooks))('%s has the fields that are sent', async (kind, { post }) => {
    const media = post.requestBody?.content['application/json'] as Media
    const fits = answer(media.schema)
    for (const [name, value] of examplesOf(media)) expect([name, fits(value)]).toEqual([name, null])
    const file = `../../../fixtures/api/event-${kind.replace('.', '-')}.json`
    const sent = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'))
    expect(fits(sent)).toBeNull()
    expect(fits({ ...sent, sandbox: true })).toBeNull()
    expect(fits({ ...sent, data: {} })).not.toBeNull()
  })
})

describe.each(places.map(place => [nameOf(place), place] as const))('%s', (_, place) => {
  const { path, operation } = place
  const { requestBody, responses, security, summary } = operation
  const statuses = Object.keys(responses)
  const isOfApi = isOfInterface(place)

  test('has a summary, and needs a key under /v1', () => {
    expect(summary).toMatch(/^[A-Z]/)
    expect(security ?? []).toEqual(isOfApi ? [{ bearer: [] }] : [])
  })

  test('lists its possible errors', () => {
    const ofKey = isOfApi ? ['401', '429'] : []
    // Every domain has an answer.
    const ofPath = path.includes('{') && !path.includes('{domain}') ? ['404'] : []
    // Also without a documented body: one that is sent must be readable.
    const ofBody = place.method === 'GET' ? [] : ['408', '413', '415']
    const ofRepeat = idempotent(place) ? ['409', '422'] : []
    expect(statuses).toEqual(
      expect.arrayContaining([...ALWAYS, ...ofKey, ...ofPath, ...ofBody, ...ofRepeat]),
    )
  })

  test('declares the headers of each response', () => {
    for (const [status, { headers = {} }] of Object.entries(responses)) {
      expect(Object.keys(headers)).toEqual(expect.arrayContaining(COMMON_HEADERS))
      expect(headers).toSatisfy(
        (all: object) => !['429', '503', '507'].includes(status) || 'Retry-After' in all,
      )
    }
  })

  test('takes the sandbox header under /v1, unless it manages keys, people or accounts', () => {
    const names = operation.parameters?.map(({ name }) => name) ?? []
    const managed =
      /^(\w+ \/v1\/(keys|accounts|plans)|(POST|PATCH|DELETE) \/v1\/people|PATCH \/v1\/account$)/
    expect(names.includes('X-EV-Sandbox')).toBe(isOfApi && !managed.test(`${place.method} ${path}`))
  })

  test('describes the Idempotency-Key and its scope if it accepts one', () => {
    const header = operation.parameters?.find(({ name }) => name === 'Idempotency-Key')
    expect(header !== undefined).toBe(idempotent(place))
    if (header !== undefined) expect(header.description).toContain('for one API key and all paths')
  })

  test('has an example of its request and of each response', () => {
    const without = Object.entries(responses).filter(
      ([, { content = {} }]) =>
        Object.keys(content).length > 0 &&
        Object.values(content).every(media => examplesOf(media).length === 0),
    )
    expect(without.map(([status]) => status)).toEqual([])
    for (const media of Object.values(requestBody?.content ?? {})) {
      expect(examplesOf(media)).not.toEqual([])
    }
  })

  test.skipIf(path === PROVIDER_PATH)(
    'accepts no field in its body that its schema does not name',
    () => {
      for (const { schema } of Object.values(requestBody?.content ?? {})) {
        const name = /[^/]+$/.exec(String(schema.$ref))?.[0] ?? ''
        expect(document.components.schemas[name]).toMatchObject({ additionalProperties: false })
      }
    },
  )

  test('has examples that fit its schemas', () => {
    for (const [type, media] of Object.entries(requestBody?.content ?? {})) {
      if (!type.endsWith('json')) continue
      for (const [name, value] of examplesOf(media)) {
        expect([name, request(media.schema)(value)]).toEqual([name, null])
      }
    }
    for (const { content = {} } of Object.values(responses)) {
      for (const media of Object.values(content)) {
        for (const [name, value] of examplesOf(media)) {
          expect([name, answer(media.schema)(value)]).toEqual([name, null])
        }
      }
    }
  })
})

/** Statuses that every operation can have. */
const ALWAYS = ['400', '403', '417', '431', '500', '503']

/** Headers of every response (section 8 of the specification), and the ID of the request. */
const COMMON_HEADERS = [
  ...['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Request-Id'],
]

function nameOf({ method, path }: Place): string {
  return `${method} ${path}`
}

/** POST requests create things, once for each Idempotency-Key; these can be repeated. */
const idempotent = ({ method, path }: Place): boolean =>
  method === 'POST' && path !== PROVIDER_PATH && !/(cancel|finish|form)$/.test(path)

describe('the fields of all schemas', () => {
  /** Fields whose examples are those of whole bodies. */
  const WITHOUT = [
    // The types of events, each with its description, schema and example.
    ...['event', 'description', 'schema', 'example'].map(name => `EventList.data.events[].${name}`),
    // The sandbox has one body for each error.
    ...['error', 'message', 'retry_after'].map(name => `SimulatedError.${name}`),
  ]

  test('have an example', () => {
    const without = Object.entries(document.components.schemas).flatMap(([name, schema]) =>
      fieldsWithoutExample(schema as FieldSchema, name),
    )
    expect(without.toSorted()).toEqual(WITHOUT.toSorted())
  })
})

type FieldSchema = Schema & {
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly items?: FieldSchema
  readonly allOf?: readonly FieldSchema[]
  readonly anyOf?: readonly FieldSchema[]
  readonly oneOf?: readonly FieldSchema[]
}

/** The paths of the fields without an example; a value that has only one form needs none. */
function fieldsWithoutExample(schema: FieldSchema, path: string): string[] {
  const { properties, items, allOf, anyOf, oneOf } = schema
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([name, field]) =>
      fieldsWithoutExample(field, `${path}.${name}`),
    )
  }
  if ('example' in schema || '$ref' in schema || 'const' in schema) return []
  if (allOf !== undefined) {
    const parts = allOf.filter(part => '$ref' in part || part.properties !== undefined)
    return parts.flatMap(part => fieldsWithoutExample(part, path))
  }
  const kinds = (anyOf ?? oneOf)?.filter(({ type }) => type !== 'null')
  if (kinds !== undefined) return kinds.flatMap(kind => fieldsWithoutExample(kind, path))
  if (items !== undefined) return fieldsWithoutExample(items, `${path}[]`)
  return Array.isArray(schema.enum) && schema.enum.length === 1 ? [] : [path]
}
