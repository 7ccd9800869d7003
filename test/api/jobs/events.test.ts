import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { openapiDocument } from '../../../src/api/openapi-document.ts'
import { STREAMS_MAX, STREAMS_PER_ACCOUNT_MAX, Streams } from '../../../src/api/streams.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { cancelJob, startJob } from '../../../src/jobs/job-state.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { openHttpServer } from '../../support/http-server.ts'
import { giveResults, MIXED, seedFiledJob, seedJob } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'
import { schemaChecks } from '../contract/schemas.ts'

const EVENTS = '/v1/jobs/job_a/events'

describe('the events of a job', () => {
  test('have the progress at once and after each change, until the job has finished', async () => {
    const { database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const response = await request(EVENTS)
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
    await giveResults(database, 'job_a', 4, 2)
    await clock.advance(2 * SECOND)
    expect(events.at(-1)).toMatchObject({ event: 'progress', data: { processed_emails: 4 } })
    expect(isDone()).toBe(false)
    await giveResults(database, 'job_a', 6, 4)
    await clock.advance(2 * SECOND)
    expect(events.at(-1)).toMatchObject({
      event: 'end',
      data: {
        status: 'completed',
        progress: 100,
        processed_emails: 6,
        rate_per_second: null,
        seconds_left: null,
        classes: { deliverable: 1, risky: 2, undeliverable: 1, unknown: 2 },
      },
    })
    expect(isDone()).toBe(true)
    expect(events.filter(({ event }) => event === 'end')).toHaveLength(1)
  })

  test('have the remaining time, and what the job waits for', async () => {
    const { database, request, clock } = await createTestService()
    await seedFiledJob(database, 'job_a', ['slow', 'slow'])
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ due_at: clock.now() + MINUTE, egress: 'a' })
      .execute()
    const { events } = follow(await request(EVENTS))
    await clock.advance(0)
    expect(events).toMatchObject([
      {
        data: {
          rate_per_second: null,
          seconds_left: 60,
          waiting_for: [{ operator: 'slow', emails: 2, reason: 'retrying' }],
        },
      },
    ])
  })

  test('match the schema of the document', async () => {
    const { app, service, database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const { events } = follow(await request(EVENTS))
    await clock.advance(3 * SECOND)
    await giveResults(database, 'job_a', 6, 2)
    await clock.advance(3 * SECOND)
    const { answer } = schemaChecks(openapiDocument(service, app) as never)
    const fault = answer({ $ref: '#/components/schemas/JobProgress' })
    expect(events.length).toBeGreaterThan(1)
    expect(events.map(({ data }) => fault(data))).toEqual(events.map(() => null))
    expect(fault({ ...events[0]?.data, rate_per_second: 'fast' })).not.toBeNull()
  })

  test('of a finished job are only the end', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const body = await (await request(EVENTS)).text()
    expect(body).toMatch(/^retry: 3000\n\nevent: end\ndata: \{"status":"completed",[^\n]*\}\n\n$/)
  })

  test('are at most two a second, however often the job changes', async () => {
    const woken: (() => void)[] = []
    const { database, request, clock } = await createServiceWithWorker(woken)
    const texts = Array.from({ length: 100 }, (_, n) => `valid${n}@a.example`)
    await seedJob(database, { texts, done: 1 })
    const { events } = follow(await request(EVENTS))
    for (let done = 2; done <= 81; done++) {
      await giveResults(database, 'job_a', done, done - 1)
      for (const wake of woken.splice(0)) wake()
      await clock.advance(50)
    }
    // Four seconds, plus the event at the start.
    expect(events.length).toBeGreaterThan(6)
    expect(events.length).toBeLessThanOrEqual(9)
  })

  test('are not sent while nothing changes', async () => {
    const { database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 0 })
    const { events } = follow(await request(EVENTS))
    await clock.advance(60 * SECOND)
    // The second one has a rate of zero, which was not known before.
    expect(events.map(({ data }) => data.rate_per_second)).toEqual([null, 0])
  })

  test('end when the job is cancelled or deleted', async () => {
    for (const end of [cancelJob, deleteJob]) {
      const { database, request, clock } = await createTestService()
      await seedJob(database, { texts: MIXED, done: 2 })
      const { events, isDone } = follow(await request(EVENTS))
      await clock.advance(0)
      await end(database, 'job_a')
      await clock.advance(2 * SECOND)
      expect(events.at(-1)).toMatchObject({ event: 'end', data: { status: 'cancelled' } })
      expect(isDone()).toBe(true)
    }
  })

  test('end at once when the service stops, without an end event', async () => {
    const { service, database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const { events, isDone } = follow(await request(EVENTS))
    // The last use of the key is written in the meantime.
    await clock.advance(60 * SECOND + 100)
    service.streams.end()
    await drainEventLoop()
    expect(isDone()).toBe(true)
    expect(events.map(({ event }) => event)).toEqual(['progress', 'progress'])
    expect(clock.pending).toBe(0)
    expect(await (await request(EVENTS)).text()).toBe('retry: 3000\n\n')
  })

  test('end with a complete body and do not delay a server that stops', async () => {
    const { app, service, database, key } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const server = await openHttpServer({
      limits: { stallMs: 60_000 },
      paths: outer => outer.get(EVENTS, c => app.fetch(c.req.raw, c.env as object)),
    })
    const socket = await server.open()
    const received = text(socket)
    socket.write(`GET ${EVENTS} HTTP/1.1\r\nHost: ev.test\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    await once(socket, 'data')
    service.streams.end()
    await server.stop(60_000)
    expect(await received).toMatch(/event: progress\n.*\r\n0\r\n\r\n$/s)
  })

  test('of a job of another account return 404', async () => {
    const { database, request, addAccount, addKey } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_other' })
    expect((await request(EVENTS, { key })).status).toBe(404)
  })
})

describe('the limit of open streams', () => {
  test('applies to each account, and a closed stream frees its slot', async () => {
    const { database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const open = []
    for (let n = 0; n < STREAMS_PER_ACCOUNT_MAX; n++) open.push(await request(EVENTS))
    const refused = await request(EVENTS)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('Retry-After')).toBe('5')
    expect(await refused.json()).toMatchObject({
      code: 'rate_limit',
      error: expect.stringMatching(
        /^20 streams of this account are open, which is the maximum\. Close one/,
      ),
    })
    expect((await request(EVENTS, { method: 'HEAD' })).status).toBe(200)
    // One stream that is not read, and one that is.
    await open[0]?.body?.cancel()
    const { leave } = follow(open[1] as Response)
    await clock.advance(0)
    await leave()
    expect((await request(EVENTS)).status).toBe(200)
    expect((await request(EVENTS)).status).toBe(200)
    expect((await request(EVENTS)).status).toBe(429)
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

/** A service whose worker reports commits on demand. */
async function createServiceWithWorker(woken: (() => void)[]) {
  const made = await createTestService()
  const changed = (_: string, signal: AbortSignal) =>
    new Promise<null>(resolve => {
      woken.push(() => resolve(null))
      signal.addEventListener('abort', () => resolve(null))
    })
  Object.assign(made.service.worker, { changed })
  return made
}
