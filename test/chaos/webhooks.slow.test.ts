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

// What is simulated has events as what is not, and is over at once: its end is easily hit.

/** Twenty show more than four, and take a minute. */
const KILLS = Number(process.env.EV_KILLS ?? 4)
const SEED = Number(process.env.EV_SEED ?? 20_261_121)
/** Requests that an endpoint may have under way. */
const CONNECTIONS_MAX = 4
const ROWS = 20
const EVENTS_MIN = 200
/** Between what is handed in. */
const PACE_MS = 25
/** From the start of a process to its end. */
const LIFE_MS_MAX = 2_000

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver({ name: '127.0.0.1' })
})
afterAll(() => receiver.close())

/** While there is one, requests are taken and not answered. */
let hold: PromiseWithResolvers<void> | null = null
const answered = new Set<Received>()
beforeEach(() => {
  receiver.received.length = 0
  answered.clear()
  receiver.answer(async request => {
    if (hold === null) answered.add(request)
    // Whoever asked is killed by the time that it is let go.
    await hold?.promise
    return 204
  })
})

test('each job has one event, which arrives with the same bytes each time, whenever the service is killed', async () => {
  const siege = await begin({ '/jobs': 'batch.completed' })
  const jobs: string[] = []
  const submitter = onAndOn(siege, 0, async n => {
    const emails = Array.from({ length: ROWS }, (_, row) => `valid${row}@d${n}.example`)
    const { job_id = '' } = await submit(siege, '/v1/verify/batch', `batch ${n}`, { emails })
    jobs.push(job_id)
  })
  await killAgainAndAgain(siege)
  await submitter
  const { events, deliveries } = await atPeace(siege)

  expect(jobs.length).toBeGreaterThan(KILLS)
  expect(events.map(({ body }) => JSON.parse(body).data.job_id).toSorted()).toEqual(jobs.toSorted())
  expect(deliveries).toHaveLength(jobs.length)
  await expectArrivals(siege, deliveries)
})

test('no event is lost to any of several endpoints, whenever the service is killed', async () => {
  const paths = ['/a', '/b', '/c', '/d', '/e']
  const siege = await begin(Object.fromEntries(paths.map(path => [path, 'verification.completed'])))
  const ids: string[] = []
  const submitter = onAndOn(siege, EVENTS_MIN, async n => {
    const body = { email: `valid${n}@d${n % 7}.example`, async: true }
    const { verification_id = '' } = await submit(siege, '/v1/verify/single', `single ${n}`, body)
    ids.push(verification_id)
  })
  await killAgainAndAgain(siege)
  await submitter
  const { events, deliveries } = await atPeace(siege)

  expect(ids.length).toBeGreaterThanOrEqual(EVENTS_MIN)
  expect(events.map(({ body }) => JSON.parse(body).data.verification_id).toSorted()).toEqual(
    ids.toSorted(),
  )
  expect(deliveries).toHaveLength(ids.length * paths.length)
  await expectArrivals(siege, deliveries)
})

/** A service that is killed again and again while it is handed work, and its webhooks. */
type Siege = {
  readonly home: string
  service: ReturnType<typeof beginService>
  readonly key: string
  readonly endpoints: readonly { readonly path: string; readonly secret: string }[]
  /** How often it took work. */
  taken: number
  isDone: boolean
}

/** Endpoints by their paths, each subscribed to one kind of event. */
async function begin(hooks: Record<string, NewWebhook['events'][number]>): Promise<Siege> {
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
  return { home, service, key: service.key, endpoints, taken: 0, isDone: false }
}

const ARGS = [
  ...['--plan', 'team', '--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem'],
]

const CONFIG = {
  'ip-limits': { 'single-per-minute': 100_000, 'bulk-per-hour': 100_000 },
  plans: { team: { requests: 1_000, per: 'second' } },
}

/** Until the killing is over, and so many times at least. */
async function onAndOn(siege: Siege, min: number, work: (n: number) => Promise<void>) {
  for (let n = 0; n < min || !siege.isDone; n++) {
    await work(n)
    await setTimeout(PACE_MS)
  }
}

type Taken = { readonly job_id?: string; readonly verification_id?: string }

/** Hands in what is to be simulated, under one key, until a whole answer comes. */
async function submit(siege: Siege, path: string, idempotencyKey: string, what: object) {
  const body = JSON.stringify(what)
  const headers = {
    ...{ Authorization: `Bearer ${siege.key}`, 'Content-Type': 'application/json' },
    ...{ 'X-EV-Sandbox': 'true', 'Idempotency-Key': idempotencyKey },
  }
  for (;;) {
    const answer = await wholeAnswer(`${siege.service.url}${path}`, {
      ...{ method: 'POST', headers, body },
    })
    if (answer?.status === 200) {
      siege.taken++
      return JSON.parse(answer.text) as Taken
    }
    // Its first request may still be under way, or the service starts.
    if (answer !== null) expect([409, 503], answer.text).toContain(answer.status)
    await setTimeout(PACE_MS)
  }
}

async function killAgainAndAgain(siege: Siege): Promise<void> {
  const entropy = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    await MOMENTS[kills % MOMENTS.length]?.(siege, entropy)
    const ran = await siege.service.end('SIGKILL')
    expect(ran, ran.stderr).toMatchObject({ signal: 'SIGKILL' })
    hold?.resolve()
    hold = null
    siege.service = beginService(siege.home, ARGS)
    siege.service.isUp.catch(() => {})
  }
  await siege.service.isUp
  siege.isDone = true
}

/** When it is killed; each resolves when the moment is there. */
const MOMENTS: readonly ((siege: Siege, entropy: () => number) => Promise<unknown>)[] = [
  // While requests are under way.
  async ({ service }, entropy) => {
    await service.isUp
    hold = Promise.withResolvers()
    await more(() => receiver.received.length)
    await setTimeout(entropy() * 100)
  },
  // Around a job's end: what is simulated is over a few milliseconds after it was taken.
  async (siege, entropy) => {
    await siege.service.isUp
    await more(() => siege.taken)
    await setTimeout(entropy() * 60)
  },
  // Around the answer to a request, and the writing down of it.
  async ({ service }, entropy) => {
    await service.isUp
    await more(() => receiver.received.length)
    await setTimeout(entropy() * 15)
  },
  // At any time, before it listens too.
  (_, entropy) => setTimeout(entropy() * LIFE_MS_MAX),
]

/** Resolves when there is more of something. */
async function more(count: () => number): Promise<void> {
  const before = count()
  await expect.poll(count, { interval: 2 }).toBeGreaterThan(before)
}

/** Waits until everything is done, ends the service, and gives what is in its database. */
async function atPeace({ home, service }: Siege) {
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

/** Each was taken at least once, with the bytes that are in the database and signatures that hold; more often only what a kill cut off. */
async function expectArrivals({ endpoints }: Siege, deliveries: readonly Delivery[]) {
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
