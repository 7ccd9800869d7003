import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { codeOf } from '../../support/guarded-route.ts'
import { MIXED } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'
import type { ZoneEntry } from '../../support/zone.ts'

const NEW = { name: 'CI', scopes: ['jobs:read'] }

/** A service, requests that create API keys, and the number of keys that they have created. */
async function making(zone: Readonly<Record<string, ZoneEntry>> = {}) {
  const h = await createTestService({ engine: { zone } })
  const ask = (key: string | null, o: Parameters<typeof h.request>[1] & { path?: string } = {}) =>
    h.request(o.path ?? '/v1/keys', {
      body: NEW,
      ...o,
      headers: { ...(key !== null && { 'Idempotency-Key': key }), ...o.headers },
    })
  const things = async () => {
    const { keys } = (await h.json('/v1/keys')).data as { keys: { name: string }[] }
    return keys.filter(({ name }) => name === NEW.name).length
  }
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
    const { ask, things, service } = await making()
    const { secretBox } = service
    const broken = {
      ...secretBox,
      encrypt: () => {
        throw new Error('broken')
      },
    }
    Object.assign(service, { secretBox: broken })
    expect((await ask('k')).status).toBe(500)
    expect(await things()).toBe(0)
    Object.assign(service, { secretBox })
    expect((await ask('k')).status).toBe(201)
    expect(await things()).toBe(1)
  })
})

describe('a response that cannot be stored', () => {
  const HOOK = { url: 'https://app.test/hook', events: ['batch.completed'] }

  test.each<[string, object, table: 'api_key' | 'webhook' | 'job']>([
    ['/v1/keys', NEW, 'api_key'],
    ['/v1/webhooks', HOOK, 'webhook'],
    ['/v1/verify/batch', { emails: MIXED }, 'job'],
  ])('leaves nothing of its request: %s', async (path, body, table) => {
    const { ask, database, credits } = await making({ 'app.test': { A: ['8.8.8.8'] } })
    const state = async () => [
      await database.db.selectFrom(table).select('id').execute(),
      await credits(),
    ]
    const run = (statement: string) => sql.raw(statement).execute(database.db)
    const before = await state()
    await run("create trigger full before insert on replay begin select raise(abort, 'full'); end")
    expect((await ask('k', { path, body })).status).toBe(500)
    expect(await state()).toEqual(before)
    await run('drop trigger full')
    const answer = await ask('k', { path, body })
    expect([answer.ok, answer.headers.get('Idempotency-Replayed')]).toEqual([true, null])
    expect((await state())[0]).toHaveLength((before[0] as unknown[]).length + 1)
  })
})

describe('another request under the same key', () => {
  test.each([
    ['another body', { body: { ...NEW, name: 'other' } }],
    ['another path', { path: '/v1/webhooks' }],
    ['another query', { path: '/v1/keys?include=flags' }],
  ])('is refused: %s', async (_, options) => {
    const { ask, things } = await making()
    await ask('k')
    const answer = await ask('k', options)
    expect([answer.status, await codeOf(answer)]).toEqual([422, 'idempotency_mismatch'])
    expect(await things()).toBe(1)
  })

  test('is refused in the sandbox, if it can be simulated', async () => {
    const { ask } = await making()
    const list = { path: '/v1/verify/batch', body: { emails: MIXED } }
    expect((await ask('k', list)).status).toBe(200)
    const answer = await ask('k', { ...list, headers: { 'X-EV-Sandbox': 'true' } })
    expect([answer.status, await codeOf(answer)]).toEqual([422, 'idempotency_mismatch'])
  })

  test('with a rotated secret is refused: the scope is the API key', async () => {
    const { ask, json } = await making()
    await ask('k')
    const { data } = await json('/v1/keys/key_1/rotate', { body: {} })
    const { key } = data as { key: string }
    expect((await ask('k', { key })).headers.get('Idempotency-Replayed')).toBe('true')
    expect((await ask('k', { key, body: { ...NEW, name: 'b' } })).status).toBe(422)
  })

  test('is accepted after one that was refused', async () => {
    const { ask } = await making()
    expect((await ask('k', { body: { name: 'x' } })).status).toBe(400)
    expect((await ask('k')).status).toBe(201)
  })

  test('with another API key is independent', async () => {
    const { ask, things, addKey } = await making()
    await ask('k')
    expect((await ask('k', { key: await addKey() })).status).toBe(201)
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
  expect(row?.answer).not.toContain('ev_live_')
})
