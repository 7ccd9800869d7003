import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { Env } from '../../../src/api/context.ts'
import type { ApiError } from '../../../src/api/errors/api-error.ts'
import {
  LARGE_BYTES,
  LARGE_MAX,
  limitConcurrency,
} from '../../../src/api/lists/list-concurrency.ts'
import { readJson } from '../../../src/api/middleware/body.ts'
import { drainEventLoop } from '../../support/wait.ts'

function tooBusy() {
  const over: (() => void)[] = []
  const app = new Hono<Env>()
  app.onError((error, c) => {
    const { code, retryAfterS } = error as ApiError
    return c.json({ code, retryAfterS }, 503)
  })
  app.post('/', limitConcurrency(), async c => {
    await new Promise<void>(resolve => over.push(resolve))
    return c.text('done')
  })
  const send = (length: number | null) =>
    Promise.resolve(
      app.request('/', {
        method: 'POST',
        headers: length === null ? {} : { 'Content-Length': String(length) },
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

test('a list without Content-Length counts as large', async () => {
  const { send, over } = tooBusy()
  const taken = Array.from({ length: LARGE_MAX }, () => send(null))
  await drainEventLoop()
  expect((await send(null)).status).toBe(503)
  for (const end of over) end()
  await Promise.all(taken)
})

test('large bodies are parsed one at a time, and a small one concurrently', async () => {
  const app = new Hono<Env>()
  const parsed: string[] = []
  const ends: (() => void)[] = []
  app.post('/:name', limitConcurrency(), async c => {
    await readJson(c, { bytesMax: 2 * LARGE_BYTES, kind: 'json' })
    parsed.push(c.req.param('name'))
    await new Promise<void>(resolve => ends.push(resolve))
    return c.text('done')
  })
  const send = (name: string, length: number) => {
    const body = JSON.stringify('x'.repeat(length))
    const headers = { 'Content-Length': `${body.length}` }
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
