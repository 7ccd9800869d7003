import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EvClient, type NewWebhook, verifyWebhook } from '../../src/client/client.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { type Received, type Receiver, startReceiver } from '../support/http-receiver.ts'
import { xorshift } from '../support/random.ts'
import { beginService, wholeAnswer } from '../support/service-process.ts'

// The tests use the sandbox, which emits the same events and finishes at once, so that kills often
// hit the end of a job.

/** Twenty kills find more faults than four, and take a minute. */
const KILLS = Number(process.env.EV_KILLS ?? 4)
const SEED = Number(process.env.EV_SEED ?? 20_261_121)
/** Requests that an endpoint may have in flight. */
const CONNECTIONS_MAX = 4
const ROWS = 20
const EVENTS_MIN = 200
/** Pause between two submissions. */
const PAUSE_MS = 25
/** Longest time from the start of a process to the kill. */
const LIFE_MS_MAX = 2_000

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver({ name: '127.0.0.1' })
})
afterAll(() => receiver.close())

/** While it is set, requests are accepted and not answered. */
let gate: PromiseWithResolvers<void> | null = null
const answered = new Set<Received>()
beforeEach(() => {
  receiver.received.length = 0
  answered.clear()
  receiver.answer(async request => {
    if (gate === null) answered.add(request)
    // The sender is killed before the gate opens.
    await gate?.promise
    return 204
  })
})

test('each job emits one event, delivered with the same bytes each time, whenever the service is killed', async () => {
  const run = await startRun({ '/jobs': 'batch.completed' })
  const jobs: string[] = []
  const submitter = repeatUntilDone(run, 0, async n => {
    const emails = Array.from({ length: ROWS }, (_, row) => `valid${row}@d${n}.example`)
    const { job_id = '' } = await submit(run, '/v1/verify/batch', `batch ${n}`, { emails })
    jobs.push(job_id)
  })
  await killRepeatedly(run)
  await submitter
  const { events, deliveries } = await stopWhenIdle(run)

  expect(jobs.length).toBeGreaterThan(KILLS)
  expect(events.map(({ body }) => JSON.parse(body).data.job_id).toSorted()).toEqual(jobs.toSorted())
  expect(deliveries).toHaveLength(jobs.length)
  await expectArrivals(run, deliveries)
})

test('no endpoint misses an event, whenever the service is killed', async () => {
  const paths = ['/a', '/b', '/c', '/d', '/e']
  const run = await startRun(
    Object.fromEntries(paths.map(path => [path, 'verification.completed'])),
  )
  const ids: string[] = []
  const submitter = repeatUntilDone(run, EVENTS_MIN, async n => {
    const body = { email: `valid${n}@d${n % 7}.example`, async: true }
    const { verification_id = '' } = await submit(run, '/v1/verify/single', `single ${n}`, body)
    ids.push(verification_id)
  })
  await killRepeatedly(run)
  await submitter
  const { events, deliveries } = await stopWhenIdle(run)

  expect(ids.length).toBeGreaterThanOrEqual(EVENTS_MIN)
  expect(events.map(({ body }) => JSON.parse(body).data.verification_id).toSorted()).toEqual(
    ids.toSorted(),
  )
  expect(deliveries).toHaveLength(ids.length * paths.length)
  await expectArrivals(run, deliveries)
})

/** A service that is killed repeatedly while it gets work, and its webhooks. */
type KilledService = {
  readonly home: string
  service: ReturnType<typeof beginService>
  readonly key: string
  readonly endpoints: readonly { readonly path: string; readonly secret: string }[]
  /** Number of accepted submissions. */
  accepted: number
  isDone: boolean
}

/** Starts a service with endpoints by path, each subscribed to one kind of event. */
async function startRun(
  hooks: Record<string, NewWebhook['events'][number]>,
): Promise<KilledService> {
  const home = emptyFolder()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  const service = beginService(home, ARGS)
  await service.isUp
  const client = new EvClient({ apiKey: service.key, baseUrl: service.url })
  const endpoints = []
  for (const [path, kind] of Object.entries(hooks)) {
    const url = new URL(path, receiver.url).href
    const { secret } = await client.webhooks.create({ url, events: [kind] })
    endpoints.push({ path, secret })
  }
  return { home, service, key: service.key, endpoints, accepted: 0, isDone: false }
}

const ARGS = [
  ...['--plan', 'team', '--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem'],
]

const CONFIG = {
  'ip-limits': { 'single-per-minute': 100_000, 'bulk-per-hour': 100_000 },
  plans: { team: { requests: 1_000, per: 'second' } },
}

/** Repeats until the kills are over, and at least `min` times. */
async function repeatUntilDone(
  run: KilledService,
  min: number,
  work: (n: number) => Promise<void>,
) {
  for (let n = 0; n < min || !run.isDone; n++) {
    await work(n)
    await setTimeout(PAUSE_MS)
  }
}

type Accepted = { readonly job_id?: string; readonly verification_id?: string }

/** Submits sandbox work under one idempotency key until a complete response arrives. */
async function submit(run: KilledService, path: string, idempotencyKey: string, input: object) {
  const body = JSON.stringify(input)
  const headers = {
    Authorization: `Bearer ${run.key}`,
    'Content-Type': 'application/json',
    'X-EV-Sandbox': 'true',
    'Idempotency-Key': idempotencyKey,
  }
  for (;;) {
    const response = await wholeAnswer(`${run.service.url}${path}`, {
      method: 'POST',
      headers,
      body,
    })
    if (response?.status === 200) {
      run.accepted++
      return JSON.parse(response.text) as Accepted
    }
    // The first request may still be in flight, or the service is starting.
    if (response !== null) expect([409, 503], response.text).toContain(response.status)
    await setTimeout(PAUSE_MS)
  }
}

async function killRepeatedly(run: KilledService): Promise<void> {
  const random = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    await KILL_TIMES[kills % KILL_TIMES.length]?.(run, random)
    const result = await run.service.end('SIGKILL')
    expect(result, result.stderr).toMatchObject({ signal: 'SIGKILL' })
    gate?.resolve()
    gate = null
    run.service = beginService(run.home, ARGS)
    run.service.isUp.catch(() => {})
  }
  await run.service.isUp
  run.isDone = true
}

/** Times of the kill; each function resolves at its time. */
const KILL_TIMES: readonly ((run: KilledService, random: () => number) => Promise<unknown>)[] = [
  // While requests are in flight.
  async ({ service }, random) => {
    await service.isUp
    gate = Promise.withResolvers()
    await untilIncreased(() => receiver.received.length)
    await setTimeout(random() * 100)
  },
  // Around the end of a job, a few milliseconds after its submission.
  async (run, random) => {
    await run.service.isUp
    await untilIncreased(() => run.accepted)
    await setTimeout(random() * 60)
  },
  // Around the response of an endpoint and the storage of its result.
  async ({ service }, random) => {
    await service.isUp
    await untilIncreased(() => receiver.received.length)
    await setTimeout(random() * 15)
  },
  // At any time, even before the service listens.
  (_, random) => setTimeout(random() * LIFE_MS_MAX),
]

/** Resolves when the count has increased. */
async function untilIncreased(count: () => number): Promise<void> {
  const before = count()
  await expect.poll(count, { interval: 2 }).toBeGreaterThan(before)
}

/** Waits until all work is done, stops the service, and returns its events and deliveries. */
async function stopWhenIdle({ home, service }: KilledService) {
  const database = new Sqlite(join(home, 'data', 'ev.sqlite'), { readonly: true })
  const open = database
    .prepare(
      `select (select count(*) from job where finished_at is null)
      + (select count(*) from delivery where state <> 'delivered')`,
    )
    .pluck()
  await expect.poll(() => open.get(), { interval: 50 }).toBe(0)
  const ended = await service.end('SIGTERM')
  expect(ended.code, ended.stderr).toBe(0)
  const events = database.prepare('select id, body from event').all() as Event[]
  const deliveries = database
    .prepare(
      `select event.id, event.body, webhook.url from delivery
      join event on event.id = delivery.event_id join webhook on webhook.id = delivery.webhook_id`,
    )
    .all() as Delivery[]
  database.close()
  return { events, deliveries }
}

type Event = { readonly id: string; readonly body: string }
type Delivery = Event & { readonly url: string }

/**
 * Asserts that each delivery was answered at least once, with the stored bytes and valid
 * signatures, and that only requests that a kill cut off were repeated.
 */
async function expectArrivals({ endpoints }: KilledService, deliveries: readonly Delivery[]) {
  const keyOf = (path: string, id: unknown) => `${path} ${id}`
  const arrived = Map.groupBy(receiver.received, ({ path, headers }) =>
    keyOf(path, headers['webhook-id']),
  )
  for (const { id, body, url } of deliveries) {
    const path = new URL(url).pathname
    const requests = arrived.get(keyOf(path, id)) ?? []
    expect(
      requests.some(request => answered.has(request)),
      `${id} at ${path}`,
    ).toBe(true)
    const secret = endpoints.find(one => one.path === path)?.secret ?? ''
    for (const request of requests) {
      expect(request.body.toString()).toBe(body)
      const now = () => request.at
      const event = await verifyWebhook(request.body, request.headers, secret, { now })
      expect(event.event_id).toBe(id)
    }
    arrived.delete(keyOf(path, id))
  }
  expect([...arrived.keys()]).toEqual([])
  const repeated = receiver.received.length - deliveries.length
  expect(repeated).toBeLessThanOrEqual(KILLS * CONNECTIONS_MAX * endpoints.length)
}
