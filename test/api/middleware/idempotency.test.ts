import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { deleteReplaysBefore } from '../../../src/accounts/retention.ts'
import type { Env } from '../../../src/api/context.ts'
import { commitResponse, repeatStored } from '../../../src/api/middleware/idempotency.ts'
import { write } from '../../../src/db/database.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { addGuardedRoute, codeOf } from '../../support/guarded-route.ts'
import { createTestService } from '../../support/service.ts'

/** A route that creates something at each request: an account, which can be counted. */
async function making(o: { fails?: () => boolean } = {}) {
  const h = await createTestService()
  let made = 0
  const handler = (c: Context<Env>) =>
    commitResponse(c, h.service, async trx => {
      const id = `made_${++made}`
      await createAccount(trx, { id, name: 'x', plan: 'free', now: 0 })
      if (o.fails?.()) throw new Error('broken')
      return { status: 201, body: { id, secret: 'shown once' }, headers: { Location: `/v1/${id}` } }
    })
  addGuardedRoute(h, '/v1/things', { handler, idempotent: true })
  addGuardedRoute(h, '/v1/others', { handler, idempotent: true })
  const ask = (key: string | null, o: Parameters<typeof h.request>[1] & { path?: string } = {}) =>
    h.request(o.path ?? '/v1/things', {
      body: { a: 1 },
      ...o,
      headers: { ...(key !== null && { 'Idempotency-Key': key }), ...o.headers },
    })
  const things = async () =>
    (await h.database.db.selectFrom('account').select('id').execute()).filter(({ id }) =>
      id.startsWith('made_'),
    ).length
  return { ...h, ask, things }
}

const seen = async (answer: Response) => [
  answer.status,
  answer.headers.get('Location'),
  answer.headers.get('Content-Type'),
  await answer.text(),
]

describe('the same request under the same key', () => {
  test('has its effect once, and the same response byte for byte', async () => {
    const { ask, things } = await making()
    const first = await ask('k')
    const second = await ask('k')
    expect(first.headers.get('Idempotency-Replayed')).toBeNull()
    expect(second.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await seen(second)).toEqual(await seen(first))
    expect(await things()).toBe(1)
  })

  test('fifty times at once has its effect once; early repeats are told to retry', async () => {
    const { ask, things } = await making()
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask('k')))
    const codes = answers.map(({ status }) => status)
    expect(codes.filter(status => status === 201)).toHaveLength(1)
    expect(new Set(codes)).toEqual(new Set([201, 409]))
    const early = answers.find(({ status }) => status === 409) as Response
    expect(await codeOf(early)).toBe('idempotency_in_progress')
    expect(early.headers.get('Retry-After')).toBe('1')
    expect(await things()).toBe(1)
    // No other request started it either.
    expect(await (await ask('next')).json()).toMatchObject({ id: 'made_2' })
  })

  test('is a new request after a day', async () => {
    const { ask, things, clock } = await making()
    await ask('k')
    await clock.advance(DAY - 1)
    expect((await ask('k')).headers.get('Idempotency-Replayed')).toBe('true')
    await clock.advance(1)
    expect((await ask('k')).headers.get('Idempotency-Replayed')).toBeNull()
    expect(await things()).toBe(2)
  })

  test('is executed again after a failure, which leaves nothing', async () => {
    let fails = true
    const { ask, things } = await making({ fails: () => fails })
    expect((await ask('k')).status).toBe(500)
    expect(await things()).toBe(0)
    fails = false
    expect((await ask('k')).status).toBe(201)
    expect(await things()).toBe(1)
  })
})

describe('another request under the same key', () => {
  test.each([
    ['another body', { body: { a: 2 } }],
    ['another path', { path: '/v1/others' }],
    ['another query', { path: '/v1/things?include=flags' }],
    ['the sandbox', { headers: { 'X-EV-Sandbox': 'true' } }],
  ])('is refused: %s', async (_, options) => {
    const { ask, things } = await making()
    await ask('k')
    const answer = await ask('k', options)
    expect([answer.status, await codeOf(answer)]).toEqual([422, 'idempotency_mismatch'])
    expect(await things()).toBe(1)
  })

  test('with a rotated secret is refused: the scope is the API key', async () => {
    const { ask, json } = await making()
    await ask('k')
    const { data } = await json('/v1/keys/key_1/rotate', { body: {} })
    const { key } = data as { key: string }
    expect((await ask('k', { key })).headers.get('Idempotency-Replayed')).toBe('true')
    expect((await ask('k', { key, body: { a: 2 } })).status).toBe(422)
  })

  test('is accepted after one that was refused', async () => {
    const { ask } = await making()
    expect((await ask('k', { path: '/v1/keys', body: { name: 'x' } })).status).toBe(400)
    expect((await ask('k')).status).toBe(201)
  })

  test('with another API key is independent', async () => {
    const { ask, things, addKey } = await making()
    await ask('k')
    expect((await ask('k', { key: await addKey(), body: { a: 2 } })).status).toBe(201)
    expect(await things()).toBe(2)
  })
})

test('each request without a key has its effect', async () => {
  const { ask, things } = await making()
  await ask(null)
  await ask(null)
  expect(await things()).toBe(2)
})

test.each([
  ['none', ''],
  ['too long', 'x'.repeat(256)],
  ['not ASCII', 'caf\u00e9'],
])('a key that is %s is refused', async (_, key) => {
  const { ask } = await making()
  const answer = await ask(key)
  expect([answer.status, await codeOf(answer)]).toEqual([400, 'invalid_request'])
})

test('a key of 255 characters is accepted', async () => {
  const { ask } = await making()
  expect((await ask(`a b~!${'x'.repeat(250)}`)).status).toBe(201)
})

test('a stored response is encrypted in the database', async () => {
  const { ask, database } = await making()
  await ask('k')
  const [row] = await database.db.selectFrom('replay').selectAll().execute()
  expect(row).toMatchObject({ key_id: 'key_1', idempotency_key: 'k', status: 201 })
  expect(row?.answer).not.toContain('shown')
})

test('a stored response can be deleted after a day', async () => {
  const { ask, database, clock } = await making()
  await ask('old')
  await clock.advance(DAY)
  await ask('new')
  await write(database, trx => deleteReplaysBefore(trx, clock.now() - DAY, 10))
  const rows = await database.db.selectFrom('replay').select('idempotency_key').execute()
  expect(rows).toEqual([{ idempotency_key: 'new' }])
})

test('a stream is identified by its content', async () => {
  const h = await createTestService()
  let made = 0
  const handler = async (c: Context<Env>) => {
    const body = createHash('sha256')
      .update(await c.req.text())
      .digest()
    const known = repeatStored(c, h.service, body)
    if (known !== null) return known
    return commitResponse(c, h.service, async () => ({ status: 200, body: { made: ++made } }))
  }
  addGuardedRoute(h, '/v1/file', { body: 'stream', handler, idempotent: true })
  const ask = (body: string) =>
    h.request('/v1/file', {
      body,
      headers: { 'Content-Type': 'text/csv', 'Idempotency-Key': 'k' },
    })
  expect(await (await ask('a,b')).json()).toEqual({ made: 1 })
  expect(await (await ask('a,b')).json()).toEqual({ made: 1 })
  expect((await ask('a,c')).status).toBe(422)
})
