import { z } from '@hono/zod-openapi'
import { expect, test } from 'vitest'
import { newRouter, route } from '../../src/api/route.ts'
import { json } from '../../src/api/schemas/answers.ts'
import { createTestService } from '../support/service.ts'

const Count = z.object({ count: z.number() })
const answer = json(Count, 'The count', { count: 1 })
const base = { id: 'one', summary: 'One', scope: 'jobs:write', answer } as const

type Description = {
  readonly method: string
  readonly path: string
  readonly tags: readonly string[]
  readonly parameters: readonly { readonly $ref: string }[]
  readonly responses: object
}

/** The parts of a route that are in the document, but not in its type. */
const describeRoute = (declared: { readonly describe: () => object }) =>
  declared.describe() as Description

test('the method, the path and the tag come from the target and the scope', async () => {
  const { service } = await createTestService()
  const { method, path, tags } = describeRoute(route(service, 'PATCH /v1/one/{id}', base))
  expect({ method, path, tags }).toEqual({ method: 'patch', path: '/v1/one/{id}', tags: ['Jobs'] })
})

const params = z.object({ id: z.string() })

test.each([
  ['a read has no errors of a body', 'GET /v1/one', {}, []],
  ['a write has those of a body', 'POST /v1/one', {}, ['408', '413', '415']],
  ['what a path parameter names may not exist', 'GET /v1/one/{id}', { params }, ['404']],
  [
    'a repeated request may differ',
    'POST /v1/one',
    { idempotent: true },
    ['408', '409', '413', '415', '422'],
  ],
  ['a route adds its own errors', 'GET /v1/one', { errors: ['job_not_ready'] }, ['409']],
] as const)('errors: %s', async (_, target, options, statuses) => {
  const { service } = await createTestService()
  const always = ['200', '400', '401', '403', '417', '429', '431', '500', '503']
  const { responses } = describeRoute(route(service, target, { ...base, ...options }))
  expect(Object.keys(responses)).toEqual([...always, ...statuses].sort())
})

test('routes refer to the request headers that their middleware reads', async () => {
  const { service } = await createTestService()
  const names = (declared: Parameters<typeof describeRoute>[0]) =>
    describeRoute(declared).parameters.map(({ $ref }) => /[^/]+$/.exec($ref)?.[0])
  expect(names(route(service, 'POST /v1/one', { ...base, scope: 'keys:write' }))).toEqual([])
  expect(names(route(service, 'POST /v1/one', base))).toEqual(['X-EV-Sandbox'])
  expect(names(route(service, 'POST /v1/one', { ...base, idempotent: true }))).toEqual([
    ...['X-EV-Sandbox', 'Idempotency-Key'],
  ])
  const verification = { ...base, counts: 'bulk', idempotent: true } as const
  expect(names(route(service, 'POST /v1/one', verification))).toEqual([
    'X-EV-Sandbox',
    'X-EV-Sandbox-Delay',
    'Idempotency-Key',
  ])
})

test('types of examples, parameters and responses are checked', async () => {
  const { service } = await createTestService()
  const body = { schema: Count, example: { count: 1 }, max: 100 }
  const query = z.object({ limit: z.coerce.number() })
  const one = route(service, 'POST /v1/one', { ...base, query, body })
  const router = newRouter()
  router.handle(one, c => {
    const count = c.req.valid('query').limit + c.req.valid('json').count
    return c.json({ count }, 200)
  })
  // @ts-expect-error the response has another type
  router.handle(one, c => c.json({ count: 'one' }, 200))
  // @ts-expect-error the status is not declared
  router.handle(one, c => c.json({ count: 1 }, 201))
  // @ts-expect-error the query has no such parameter
  router.handle(one, c => c.json({ count: c.req.valid('query').offset }, 200))
  // @ts-expect-error the example violates the schema
  route(service, 'POST /v1/one', { ...base, body: { ...body, example: { count: 'one' } } })
  // @ts-expect-error there is no such error code
  route(service, 'POST /v1/one', { ...base, errors: ['not_there'] })
})

test.each([
  ['POST', '/v1/verify/batch', { isVerification: true, takesList: true }],
  ['POST', '/v1/verify/bulk/', { isVerification: true, takesList: true }],
  ['POST', '/v1/verify/file?dry_run=true', { isVerification: true, takesList: true }],
  ['POST', '/v1/verify/url', { isVerification: true }],
  ['POST', '/v1/verify/single?include=flags', { isVerification: true }],
  ['POST', '/v1/verify', { isVerification: true }],
  ['POST', '/v1/verify/form', { isVerification: true }],
  ['POST', '/mcp', { isVerification: true }],
  ['GET', '/v1/verify', {}],
  ['POST', '/v1/jobs', {}],
  ['POST', '/v1/verify/singles', {}],
])('the server knows before the app runs what %s %s is', async (method, url, facts) => {
  const { service } = await createTestService()
  const { isVerification = false, takesList = false } = service.routes.find(method, url)
  expect({ isVerification, takesList }).toEqual({
    isVerification: false,
    takesList: false,
    ...facts,
  })
})
