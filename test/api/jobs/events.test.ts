import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { STREAMS_MAX, STREAMS_PER_ACCOUNT_MAX, Streams } from '../../../src/api/streams.ts'
import { SECOND, sleep } from '../../../src/platform/clock.ts'
import { mail, toRecipients } from '../../support/engine.ts'
import { openHttpServer } from '../../support/http-server.ts'
import { MIXED } from '../../support/job-rows.ts'
import { createHalfwayList, createSimulatedList } from '../../support/list-service.ts'
import type { MxSession } from '../../support/mx.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'
import { schemaChecks } from '../contract/schemas.ts'

const EVENTS = '/v1/jobs/:id/events'

describe('the events of a job', () => {
  test('have the progress at once and after each change, until the job has finished', async () => {
    const { path, request, clock, finish, json } = await createHalfwayList()
    const response = await request(`${path}/events`)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    const { events, isDone } = follow(response)
    await clock.advance(0)
    expect(events).toEqual([
      {
        event: 'progress',
        data: {
          status: 'processing',
          progress: 33,
          total_emails: 6,
          processed_emails: 2,
          classes: { deliverable: 1, risky: 1, undeliverable: 0, unknown: 0 },
          rate_per_second: null,
          seconds_left: 6,
          summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 0 },
        },
      },
    ])
    expect(isDone()).toBe(false)
    await finish()
    await clock.advance(2 * SECOND)
    expect(events.at(-1)).toMatchObject({
      event: 'end',
      data: {
        status: 'completed',
        progress: 100,
        processed_emails: 6,
        rate_per_second: null,
        seconds_left: null,
        classes: { deliverable: 5, risky: 1, undeliverable: 0, unknown: 0 },
      },
    })
    expect(isDone()).toBe(true)
    expect(events.filter(({ event }) => event === 'end')).toHaveLength(1)
    const { answer } = schemaChecks((await json('/openapi.json')) as never)
    const fault = answer({ $ref: '#/components/schemas/JobProgress' })
    expect(events.map(({ data }) => fault(data))).toEqual(events.map(() => null))
    expect(fault({ ...events[0]?.data, rate_per_second: 'fast' })).not.toBeNull()
  })

  test('have the remaining time, and what the job waits for', async () => {
    const { submit, request, clock } = await createTestService({
      works: true,
      engine: {
        zone: mail('grey.test', '192.0.2.2'),
        script: toRecipients(() => '450 4.2.0 Greylisted, try again in 60 seconds'),
      },
    })
    const id = await submit(['ann@grey.test', 'bob@grey.test'])
    await clock.advance(SECOND)
    const { events } = follow(await request(`/v1/jobs/${id}/events`))
    await clock.advance(0)
    expect(events).toMatchObject([
      {
        data: {
          rate_per_second: null,
          seconds_left: expect.any(Number),
          waiting_for: [{ operator: 'grey.test', emails: 2, reason: 'retrying' }],
        },
      },
    ])
  })

  test('of a finished job are only the end', async () => {
    const { path, request } = await createSimulatedList(MIXED)
    const body = await (await request(`${path}/events`)).text()
    expect(body).toMatch(/^retry: 3000\n\nevent: end\ndata: \{"status":"completed",[^\n]*\}\n\n$/)
  })

  test('are at most two a second, however often the job changes', async () => {
    // Ten servers at a time reply, 100 ms after each other.
    const delayMs = (server: number) => (server < 10 ? 100 * server : SECOND)
    const domains = Array.from({ length: 50 }, (_, n) => `d${n}.test`)
    const zone = Object.assign({}, ...domains.map((name, n) => mail(name, `192.0.2.${n + 100}`)))
    const script = async (line: string, { to }: MxSession) => {
      if (!line.startsWith('RCPT')) return undefined
      await sleep(clock, delayMs(domains.indexOf(to.host.slice('mx.'.length))))
      return line.includes('<user@') ? '250 Ok' : '550 5.1.1 No such user'
    }
    const { submit, request, clock, json } = await createTestService({
      works: true,
      engine: { zone, script },
    })
    const path = `/v1/jobs/${await submit(domains.map(domain => `user@${domain}`))}`
    const { events } = follow(await request(`${path}/events`))
    for (let n = 0; n < 80; n++) await clock.advance(50)
    expect((await json(path)).processed_emails).toBeGreaterThan(15)
    // Four seconds, plus the event at the start.
    expect(events.length).toBeGreaterThan(6)
    expect(events.length).toBeLessThanOrEqual(9)
  })

  test('are not sent while nothing changes', async () => {
    const { submit, request, clock } = await createTestService()
    const { events } = follow(await request(`/v1/jobs/${await submit(MIXED)}/events`))
    await clock.advance(60 * SECOND)
    // The second one has a rate of zero, which was not known before.
    expect(events.map(({ data }) => data.rate_per_second)).toEqual([null, 0])
  })

  test.each([
    ['cancelled', { method: 'POST', below: '/cancel' }],
    ['deleted', { method: 'DELETE', below: '' }],
  ])('end when the job is %s', async (_, { method, below }) => {
    const { path, request, clock } = await createHalfwayList()
    const { events, isDone } = follow(await request(`${path}/events`))
    await clock.advance(0)
    await request(`${path}${below}`, { method })
    await clock.advance(2 * SECOND)
    expect(events.at(-1)).toMatchObject({ event: 'end', data: { status: 'cancelled' } })
    expect(isDone()).toBe(true)
  })

  test('end at once when the service stops, without an end event', async () => {
    const { path, service, request, clock } = await createHalfwayList()
    const { events, isDone } = follow(await request(`${path}/events`))
    await clock.advance(30 * SECOND)
    service.streams.end()
    await drainEventLoop()
    expect(isDone()).toBe(true)
    expect(new Set(events.map(({ event }) => event))).toEqual(new Set(['progress']))
    expect(await (await request(`${path}/events`)).text()).toBe('retry: 3000\n\n')
  })

  test('end with a complete body and do not delay a server that stops', async () => {
    const { path, app, service, key } = await createHalfwayList()
    const server = await openHttpServer({
      limits: { stallMs: 60_000 },
      paths: outer => outer.get(EVENTS, c => app.fetch(c.req.raw, c.env as object)),
    })
    const socket = await server.open()
    const received = text(socket)
    socket.write(
      `GET ${path}/events HTTP/1.1\r\nHost: ev.test\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    )
    await once(socket, 'data')
    service.streams.end()
    await server.stop(60_000)
    expect(await received).toMatch(/event: progress\n.*\r\n0\r\n\r\n$/s)
  })

  test.each(['revoked', 'rotated', 'without the scope', 'expired'])(
    'end without an end event when their key is %s',
    async how => {
      const { path, request, addKey, clock } = await createHalfwayList()
      const expiresAt = how === 'expired' ? clock.now() + 5 * SECOND : null
      const key = await addKey({ id: 'key_2', scopes: ['jobs:read'], expiresAt })
      const { events, isDone } = follow(await request(`${path}/events`, { key }))
      await clock.advance(3 * SECOND)
      expect(isDone()).toBe(false)
      const path2 = '/v1/keys/key_2'
      if (how === 'revoked') await request(path2, { method: 'DELETE' })
      if (how === 'rotated') await request(`${path2}/rotate`, { method: 'POST' })
      if (how === 'without the scope')
        await request(path2, { method: 'PATCH', body: { scopes: ['account:read'] } })
      await clock.advance(3 * SECOND)
      expect(isDone()).toBe(true)
      expect(new Set(events.map(({ event }) => event))).toEqual(new Set(['progress']))
    },
  )

  test('of a job of another account return 404', async () => {
    const { path, request, addAccount, addKey } = await createHalfwayList()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_other' })
    expect((await request(`${path}/events`, { key })).status).toBe(404)
  })
})

describe('the limit of open streams', () => {
  test('applies to each account, and a closed stream frees its slot', async () => {
    const { path, request, clock } = await createHalfwayList()
    const open = []
    for (let n = 0; n < STREAMS_PER_ACCOUNT_MAX; n++) open.push(await request(`${path}/events`))
    const refused = await request(`${path}/events`)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('Retry-After')).toBe('5')
    expect(await refused.json()).toMatchObject({
      code: 'rate_limit',
      error: expect.stringMatching(
        /^20 streams of this account are open, which is the maximum\. Close one/,
      ),
    })
    expect((await request(`${path}/events`, { method: 'HEAD' })).status).toBe(200)
    // One stream that is not read, and one that is.
    await open[0]?.body?.cancel()
    const { leave } = follow(open[1] as Response)
    await clock.advance(0)
    await leave()
    expect((await request(`${path}/events`)).status).toBe(200)
    expect((await request(`${path}/events`)).status).toBe(200)
    expect((await request(`${path}/events`)).status).toBe(429)
  })

  test('applies to all accounts together', () => {
    const streams = new Streams()
    const places = Array.from({ length: STREAMS_MAX }, (_, n) => streams.enter(`acc_${n}`))
    expect(() => streams.enter('acc_new')).toThrow(/1000 streams are open/)
    places[0]?.leave()
    places[0]?.leave()
    streams.enter('acc_new')
    expect(() => streams.enter('acc_newer')).toThrow(
      expect.objectContaining({ code: 'service_unavailable' }),
    )
  })
})

type StreamedEvent = { event: string; data: Record<string, unknown> }

/** Reads a stream; its events are added to `events` as they arrive. */
function follow(response: Response) {
  const events: StreamedEvent[] = []
  let isDone = false
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const read = async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const [, event, data] =
        /^event: (.*)\ndata: (.*)\n\n$/.exec(new TextDecoder().decode(value)) ?? []
      if (event !== undefined && data !== undefined) events.push({ event, data: JSON.parse(data) })
    }
    isDone = true
  }
  void read()
  return { events, isDone: () => isDone, leave: () => reader.cancel() }
}
