import { z } from '@hono/zod-openapi'
import { describe, expect, test } from 'vitest'
import { findNearestName } from '../../../src/platform/nearest-name.ts'
import { addGuardedRoute } from '../../support/guarded-route.ts'
import { createUploadService, form } from '../../support/list-form.ts'
import { createTestService } from '../../support/service.ts'
import { bareApi, isOfInterface, placesOf } from '../contract/document.ts'

const places = placesOf(bareApi().document).filter(isOfInterface)
const urlOf = (path: string) => path.replace(/\{\w+\}/g, 'x')
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

type FormParts = Parameters<typeof form>[0]

const sentenceOf = async (response: Response) => {
  const body = (await response.json()) as { code: string; error: string }
  return [response.status, body.code, body.error]
}

describe('an unknown name', () => {
  test('is refused as a query parameter by each operation', async () => {
    const { request } = await createTestService({ isAdmin: true })
    for (const place of places) {
      const { method } = place
      const response = await request(`${urlOf(place.path)}?no_such_name=1`, { method })
      expect([nameOf(place), ...(await sentenceOf(response))]).toEqual([
        ...[nameOf(place), 400, 'invalid_request'],
        expect.stringMatching(/^"no_such_name" is not a known parameter\. The query takes \w/),
      ])
    }
  })

  const written = places.filter(
    ({ path, method }) => method !== 'GET' && path !== '/v1/verify/file',
  )
  test('is refused as a field of the body by each operation that takes one', async () => {
    const { request } = await createTestService({ isAdmin: true })
    for (const place of written) {
      const { method } = place
      const response = await request(urlOf(place.path), { method, body: { no_such_name: 1 } })
      expect([nameOf(place), ...(await sentenceOf(response))]).toEqual([
        ...[nameOf(place), 400, 'invalid_request'],
        expect.stringMatching(/^"no_such_name" is not a known field\. The body takes \w/),
      ])
    }
  })

  test.each([
    ['before', (deps: FormParts) => deps],
    ['behind', (deps: FormParts) => deps.toReversed()],
  ])('POST /v1/verify/file refuses it as a field %s the file', async (_, ordered) => {
    const { send, job, left } = await createUploadService()
    const deps = ordered([
      ['no_such_name', '1'],
      ['file', { file: 'email\na@a.test\n' }],
    ])
    expect(await sentenceOf(await send(form(deps)))).toEqual([
      ...[400, 'invalid_request'],
      expect.stringMatching(/^"no_such_name" is not a known field\. The form takes file, column, /),
    ])
    expect([await job(), left()]).toEqual([undefined, []])
  })

  test('is refused with the nearest known name', async () => {
    const { request } = await createTestService()
    const sentence = async (path: string, body?: object) =>
      (await sentenceOf(await request(path, body === undefined ? {} : { body })))[2]
    expect(await sentence('/v1/verify/single', { email: 'ann@a.test', checkSmtp: false })).toBe(
      '"checkSmtp" is not a known field. Did you mean "check_smtp"? The body takes email, check_smtp, force_refresh, async, metadata, webhook_url.',
    )
    expect(await sentence('/v1/verify/single?includes=flags', { email: 'ann@a.test' })).toBe(
      '"includes" is not a known parameter. Did you mean "include"? The query takes include.',
    )
    expect(await sentence('/v1/verify/bulk', { email: ['ann@a.test'] })).toMatch(
      /^"email" is not a known field\. Did you mean "emails"\? /,
    )
    expect(await sentence('/v1/jobs?limt=5')).toMatch(/Did you mean "limit"\?/)
    expect(await sentence('/v1/credits?limit=5')).toBe(
      '"limit" is not a known parameter. The query takes no parameters.',
    )
  })

  test('is refused within a list of items, with its path', async () => {
    const { request, database } = await createTestService()
    const items = [{ email: 'ann@a.test' }, { email: 'bob@a.test', ident: '1' }]
    const response = await request('/v1/verify/batch', { body: { items } })
    expect(await sentenceOf(response)).toEqual([
      ...[400, 'invalid_request'],
      '"items[1].ident" is not a known field. "items[1]" takes email, id.',
    ])
    expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  })

  test('is only reported to a caller with a key, and does not count against the ten lists an hour', async () => {
    const { request } = await createTestService()
    const body = { emails: ['nonsense'] }
    const path = '/v1/verify/bulk?sort=asc'
    expect((await request(path, { body, key: null })).status).toBe(401)
    for (let n = 0; n < 12; n++) expect((await request(path, { body })).status).toBe(400)
    expect((await request('/v1/verify/bulk', { body })).status).toBe(200)
  })

  test('is sanitized and truncated in the error', async () => {
    const { request } = await createTestService()
    const body = { email: 'ann@a.test', [`a\u001b[2J${'x'.repeat(500)}`]: 1 }
    const [, , sentence] = await sentenceOf(await request('/v1/verify/single', { body }))
    expect(sentence).toMatch(/^"a.{30,60} is not a known field\. The body takes/)
    expect(sentence).not.toContain('\u001b')
  })

  test('is accepted by the health paths', async () => {
    const { request } = await createTestService()
    expect((await request('/livez?probe=1', { key: null })).status).toBe(200)
  })
})

describe('a schema within a schema', () => {
  const inner = z.strictObject({ max: z.int() }).nullable().optional()
  const rows = z.array(z.strictObject({ to: z.string() })).default([])
  const ask = async (body: unknown) => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room', { schemas: { body: z.strictObject({ limit: inner, rows }) } })
    return h.request('/v1/room', { body })
  }

  test.each<[unknown, string]>([
    [{ limit: { mx: 1, max: 1 } }, '"limit.mx" is not a known field. Did you mean "max"?'],
    [{ limit: { max: 1 }, rows: [{ to: 'a' }, { from: 'b' }] }, '"rows[1].from" is not a known'],
    [{ toString: 1 }, '"toString" is not a known field. The body takes limit, rows.'],
    [{ limit: 7, rest: 1 }, '"rest" is not a known field.'],
    [{ limit: 7 }, '"limit" is 7; it must be an object.'],
    [[], 'The body is []; it must be an object.'],
    [null, 'The body is null; it must be an object.'],
  ])('is checked: %j', async (body, sentence) => {
    const [status, code, message] = await sentenceOf(await ask(body))
    expect([status, code]).toEqual([400, 'invalid_request'])
    expect(message).toContain(sentence)
  })

  test.each([{ limit: null }, {}, { rows: [{ to: 'a' }] }])('accepts %j', async body => {
    expect((await ask(body)).status).toBe(200)
  })
})

describe('the nearest name', () => {
  const known = ['email', 'emails', 'check_smtp', 'force_refresh', 'webhook_url', 'limit']
  test.each([
    ['emial', 'email'],
    ['Emails', 'emails'],
    ['chek_smtp', 'check_smtp'],
    ['forceRefresh', 'force_refresh'],
    ['webhook-url', 'webhook_url'],
    ['limits', 'limit'],
    ['sort', null],
    ['x', null],
    ['', null],
    ['x'.repeat(100_000), null],
  ])('of %j is %j', (given, nearest) => {
    expect(findNearestName(given, known)).toBe(nearest)
  })
})
