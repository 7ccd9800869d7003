import { gzipSync } from 'node:zlib'
import { Hono, type MiddlewareHandler } from 'hono'
import { describe, expect, test } from 'vitest'
import type { Caller, Env } from '../../../src/api/context.ts'
import type { ApiError } from '../../../src/api/errors/api-error.ts'
import {
  createLargeListLimit,
  LARGE_ACCOUNT_MAX,
  LARGE_BYTES,
  LARGE_MAX,
} from '../../../src/api/lists/limits.ts'
import { leavePlaces } from '../../../src/api/middleware/admission.ts'
import { readJson } from '../../../src/api/middleware/body.ts'
import { codeOf, limitOf } from '../../support/guarded-route.ts'
import { createUploadService } from '../../support/list-form.ts'
import { drainEventLoop, waitUntil } from '../../support/wait.ts'
import { createWiredService } from '../../support/wired-service.ts'

/** Limits large lists by the account in a header, as routes do. */
function limited(): MiddlewareHandler<Env> {
  const limit = createLargeListLimit()
  return async (c, next) => {
    c.set('caller', { account: { id: c.req.header('Account') ?? 'acc_a' } } as Caller)
    try {
      limit(c)
      await next()
    } finally {
      leavePlaces(c)
    }
  }
}

function tooBusy() {
  const over: (() => void)[] = []
  const app = new Hono<Env>()
  app.onError((error, c) => {
    const { code, retryAfterS } = error as ApiError
    return c.json({ code, retryAfterS }, 503)
  })
  app.post('/', limited(), async c => {
    await new Promise<void>(resolve => over.push(resolve))
    return c.text('done')
  })
  let account = 0
  /** Without a name, each is of another account. */
  const send = (length: number | null, name = `acc_${++account}`) =>
    Promise.resolve(
      app.request('/', {
        method: 'POST',
        headers: { Account: name, ...(length !== null && { 'Content-Length': String(length) }) },
      }),
    )
  return { send, over }
}

test('large lists above the limit are refused temporarily, small ones never', async () => {
  const { send, over } = tooBusy()
  const taken = Array.from({ length: LARGE_MAX }, () => send(LARGE_BYTES + 1))
  await drainEventLoop()
  const refused = await send(LARGE_BYTES + 1)
  expect(refused.status).toBe(503)
  expect(await refused.json()).toEqual({ code: 'service_unavailable', retryAfterS: 2 })
  const small = Array.from({ length: 100 }, () => send(LARGE_BYTES))
  await drainEventLoop()
  expect(over).toHaveLength(LARGE_MAX + 100)
  for (const end of over) end()
  const statuses = (await Promise.all([...taken, ...small])).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200]))
  const again = send(LARGE_BYTES + 1)
  await drainEventLoop()
  over.at(-1)?.()
  expect((await again).status).toBe(200)
})

test('one account holds a part of the places for large lists', async () => {
  const { send, over } = tooBusy()
  const taken = Array.from({ length: LARGE_ACCOUNT_MAX }, () => send(null, 'acc_slow'))
  await drainEventLoop()
  const refused = await send(null, 'acc_slow')
  expect(await refused.json()).toEqual({ code: 'rate_limit', retryAfterS: 2 })
  const others = Array.from({ length: LARGE_MAX - LARGE_ACCOUNT_MAX }, () => send(null))
  await drainEventLoop()
  expect(over).toHaveLength(LARGE_MAX)
  for (const end of over) end()
  await Promise.all([...taken, ...others])
})

test('a list without Content-Length counts as large', async () => {
  const { send, over } = tooBusy()
  const taken = Array.from({ length: LARGE_MAX }, () => send(null))
  await drainEventLoop()
  expect((await send(null)).status).toBe(503)
  for (const end of over) end()
  await Promise.all(taken)
})

test('a list that turns out to be short leaves its place once it is read', async () => {
  const app = new Hono<Env>()
  const ends: (() => void)[] = []
  app.post('/', limited(), async c => {
    await readJson(c, { bytesMax: 2 * LARGE_BYTES, kind: 'json' })
    await new Promise<void>(resolve => ends.push(resolve))
    return c.text('done')
  })
  const body = gzipSync('{"emails":[]}')
  const headers = { 'Content-Encoding': 'gzip' }
  const sent: Promise<Response>[] = []
  while (sent.length < 2 * LARGE_MAX) {
    sent.push(Promise.resolve(app.request('/', { method: 'POST', body, headers })))
    await waitUntil(() => ends.length === sent.length)
  }
  for (const end of ends) end()
  expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(sent.map(() => 200))
})

test('large bodies are parsed one at a time, and a small one concurrently', async () => {
  const app = new Hono<Env>()
  const parsed: string[] = []
  const ends: (() => void)[] = []
  app.post('/:name', limited(), async c => {
    await readJson(c, { bytesMax: 2 * LARGE_BYTES, kind: 'json' })
    parsed.push(c.req.param('name'))
    await new Promise<void>(resolve => ends.push(resolve))
    return c.text('done')
  })
  const send = (name: string, length: number) => {
    const body = JSON.stringify('x'.repeat(length))
    const headers = { 'Content-Length': `${body.length}`, Account: name }
    return Promise.resolve(app.request(`/${name}`, { method: 'POST', body, headers }))
  }
  const large = ['a', 'b', 'c'].map(name => send(name, LARGE_BYTES))
  await drainEventLoop()
  expect(parsed).toHaveLength(1)
  void send('small', 10)
  await drainEventLoop()
  expect(parsed).toEqual(['a', 'small'])
  for (const name of ['b', 'c']) {
    ends[parsed.length === 2 ? 0 : parsed.length - 1]?.()
    await drainEventLoop()
    expect(parsed.at(-1)).toBe(name)
  }
  for (const end of ends) end()
  expect((await Promise.all(large)).map(({ status }) => status)).toEqual([200, 200, 200])
})

const MIN = 500e6
const LISTS: [path: string, body: object][] = [
  ['/v1/verify/bulk', { emails: ['valid@a.test'] }],
  ['/v1/verify/batch', { emails: ['valid@a.test'] }],
]

/** A service on a disk whose free space is set by the test. */
async function services() {
  const disk: { freeBytes: number | null } = { freeBytes: 5e9 }
  const asked: string[] = []
  const read = async (folder: string) => {
    asked.push(folder)
    if (disk.freeBytes === null) throw new Error('EIO')
    return disk.freeBytes
  }
  const service = await createUploadService({ freeDisk: { minBytes: MIN, read } })
  /** The levels of the log lines about the disk. */
  const levels = () =>
    service.lines.filter(({ message }) => message !== 'request').map(({ level }) => level)
  return { ...service, disk, levels, asked }
}

describe('on a disk with less free space than the setting', () => {
  test.each(LISTS)('%s is refused with 507, live and in the sandbox', async (path, body) => {
    const { request, disk, database, asked, service } = await services()
    disk.freeBytes = MIN - 1
    for (const headers of [{}, { 'X-EV-Sandbox': 'true' }]) {
      const answer = await request(path, { body, headers })
      expect(answer.status).toBe(507)
      expect(answer.headers.get('Retry-After')).toBe('60')
      expect(await answer.json()).toMatchObject({
        code: 'insufficient_storage',
        error:
          'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.',
      })
    }
    expect(await database.db.selectFrom('job').select('id').execute()).toEqual([])
    const { dataDir } = service.settings
    expect(asked).toEqual([dataDir, dataDir])
    disk.freeBytes = MIN
    expect((await request(path, { body })).status).toBe(200)
  })

  test('a file is refused before it is stored, also with dry_run', async () => {
    const { upload, disk, left } = await services()
    disk.freeBytes = 0
    const fields: Readonly<Record<string, string>>[] = [{}, { dry_run: 'true' }]
    for (const field of fields) {
      const answer = await upload('email\nvalid@a.test\n', field)
      expect([answer.status, await codeOf(answer)]).toEqual([507, 'insufficient_storage'])
    }
    expect(left()).toEqual([])
  })

  test('a refusal does not count against the ten lists an hour', async () => {
    const { request, disk } = await services()
    const body = { emails: ['valid@a.test'] }
    disk.freeBytes = 0
    for (let n = 0; n < 12; n++) {
      const answer = await request('/v1/verify/batch', { body })
      expect(answer.status).toBe(507)
      expect(limitOf(answer).limit).toBe(500)
    }
    disk.freeBytes = MIN
    expect((await request('/v1/verify/batch', { body })).status).toBe(200)
  })

  test('a response under an Idempotency-Key is repeated', async () => {
    const { request, disk } = await services()
    const o = { body: { emails: ['valid@a.test'] }, headers: { 'Idempotency-Key': 'once' } }
    const first = await (await request('/v1/verify/batch', o)).json()
    disk.freeBytes = 0
    const again = await request('/v1/verify/batch', o)
    expect([again.status, await again.json()]).toEqual([200, first])
  })

  test('single verifications work, and lists can be read and deleted', async () => {
    const { request, json, disk } = await services()
    const { job_id } = await json('/v1/verify/batch', { body: { emails: ['valid@a.test'] } })
    disk.freeBytes = 0
    expect(await json('/v1/verify/single', { body: { email: 'ann@a.test' } })).toMatchObject({
      reason: 'accepted_email',
    })
    expect((await request(`/v1/jobs/${job_id}`)).status).toBe(200)
    expect((await request(`/v1/jobs/${job_id}`, { method: 'DELETE' })).status).toBe(204)
  })

  test('readiness, health and metrics say so, and the service stays ready', async () => {
    const { json, request, disk, levels } = await services()
    const metric = async () => {
      const text = await (await request('/metrics', { ip: '127.0.0.1' })).text()
      return /^ev_disk_low \d$/m.exec(text)?.[0]
    }
    expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
    expect(await json('/health')).toMatchObject({ status: 'ok', disk: 'ok' })
    expect(await metric()).toBe('ev_disk_low 0')
    disk.freeBytes = MIN - 1
    const ready = await request('/readyz')
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ok', disk: 'low' }])
    expect(await json('/health')).toMatchObject({ status: 'failing', disk: 'low' })
    expect(await metric()).toBe('ev_disk_low 1')
    // Logged once at the start and once at the end.
    expect(levels()).toEqual(['error'])
    disk.freeBytes = MIN
    expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
    expect(levels()).toEqual(['error', 'info'])
  })
})

test.each([
  [499_999_999, 507],
  [500_000_000, 200],
])('by default, with %d bytes free a list is answered with %d', async (free, status) => {
  const { key, fetch } = await createWiredService({ freeBytes: async () => free })
  const answer = await fetch('https://ev.example.com/v1/verify/batch', {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ emails: ['valid@a.test'] }),
  })
  expect(answer.status).toBe(status)
})

test('if the free space is unknown nothing is refused', async () => {
  const { request, json, disk } = await services()
  disk.freeBytes = null
  const answer = await request('/v1/verify/batch', { body: { emails: ['valid@a.test'] } })
  expect(answer.status).toBe(200)
  expect(await json('/readyz')).toEqual({ status: 'ok', disk: 'ok' })
})
