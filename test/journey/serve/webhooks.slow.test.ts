import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Delivery,
  EvApiError,
  EvClient,
  type NewWebhook,
  verifyWebhook,
  type WebhookEvent,
} from '../../../src/client/client.ts'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, runEv, towards } from '../../support/cli.ts'
import { type CliService, startService } from '../../support/cli-service.ts'
import {
  type How,
  type Received,
  type Receiver,
  startReceiver,
} from '../../support/http-receiver.ts'

// Events as they leave the service and come in at a real receiver, whose name the DNS of the mail world knows.

let world: Simulator
let service: CliService
let receiver: Receiver
const home = emptyFolder()

beforeAll(async () => {
  receiver = await startReceiver()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  world = await startSimulator(SCENARIO)
  const receivers = ['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem']
  service = await startService(home, [...towards(world), '--plan', 'team', ...receivers])
})

afterAll(async () => {
  const ended = await service.end('SIGTERM')
  await Promise.all([world.close(), receiver.close()])
  expect(ended.code, ended.stderr).toBe(0)
})

/** What the receiver does at each path; 204 where nothing is said. */
const ways = new Map<string, (request: Received, nth: number) => Answered | Promise<Answered>>()
type Answered = Exclude<How, (...given: never[]) => unknown>

beforeEach(() => {
  ways.clear()
  receiver.received.length = 0
  receiver.answer(request => {
    const nth = at(request.path).length
    return ways.get(request.path)?.(request, nth) ?? 204
  })
})

afterEach(async () => {
  for (const { id } of await client().webhooks.list()) await client().webhooks.delete(id)
})

const SCENARIO: Scenario = {
  mailboxes: ['user*'],
  domains: {
    'polite.test': { mx: [[10, 'mx.polite.test']] },
    'hook.example': { a: ['127.0.0.1'] },
    'inside.example': { a: ['10.0.0.7'] },
  },
  hosts: { 'mx.polite.test': { behavior: 'polite' } },
}

const FEW_CREDITS = 20
const CONFIG = {
  'ip-limits': { 'single-per-minute': 10_000, 'bulk-per-hour': 1_000 },
  plans: {
    team: { requests: 1_000, per: 'second' },
    few: { requests: 1_000, per: 'second', 'credits-per-day': FEW_CREDITS },
  },
}

const client = (apiKey = service.key) => new EvClient({ apiKey, baseUrl: service.url, retries: 0 })
const sandbox = () => new EvClient({ apiKey: service.key, baseUrl: service.url, sandbox: true })

const urlOf = (path: string) => new URL(path, receiver.url).href
/** What came in at a path so far. */
const at = (path: string) => receiver.received.filter(request => request.path === path)

/** What came in at a path, once it is so many. */
async function arrived(path: string, count: number): Promise<readonly Received[]> {
  await expect.poll(() => at(path).length, PATIENCE).toBeGreaterThanOrEqual(count)
  expect(at(path)).toHaveLength(count)
  return at(path)
}
const PATIENCE = { interval: 20 }

type Kind = NewWebhook['events'][number]

const subscribe = (path: string, events: Kind[], of = client()) =>
  of.webhooks.create({ url: urlOf(path), events })

/** The event of a request, whose signatures hold: by our client, by the library of the standard, and by hand. */
async function believed({ body, headers }: Received, secret: string): Promise<WebhookEvent> {
  const event = await verifyWebhook(body, headers, secret, { requireTimestamp: true })
  expect(standardOf(secret, { body, headers })).toEqual(event)
  expect(headers['x-ev-signature']).toBe(createHmac('sha256', secret).update(body).digest('hex'))
  expect(headers['webhook-id']).toBe(event.event_id)
  return event
}

const standardOf = (secret: string, { body, headers }: Pick<Received, 'body' | 'headers'>) =>
  new StandardWebhook(secret).verify(body, headers as Record<string, string>)

async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** What the log has of an endpoint, once that is so. */
async function logged(webhookId: string, isSo: (log: Delivery[]) => boolean): Promise<Delivery[]> {
  let log: Delivery[] = []
  const read = async () => {
    log = await gathered(client().webhooks.deliveries(webhookId))
    return isSo(log)
  }
  await expect.poll(read, PATIENCE).toBe(true)
  return log
}

describe('what happens', () => {
  test('is sent to its subscribers and recorded in the delivery log', async () => {
    const hook = await subscribe('/jobs', ['batch.completed'])
    const { job_id } = await client().batch(['user1@polite.test', 'gone1@polite.test'])
    const [request] = await arrived('/jobs', 1)
    const event = await believed(request as Received, hook.secret)
    expect(event).toEqual({
      event: 'batch.completed',
      event_id: expect.stringMatching(/^evt_/),
      timestamp: expect.any(String),
      data: {
        ...{ job_id, total: 2, valid: 1, invalid: 1, risky: 0, unknown: 0, failed: 0 },
        download_url: `${service.url}/v1/jobs/${job_id}/download`,
      },
    })

    const [delivery] = await logged(hook.id, log => log[0]?.status === 'delivered')
    expect(delivery).toMatchObject({
      ...{ webhook_id: hook.id, event: 'batch.completed', event_id: event.event_id },
      ...{ attempt: 1, trigger: 'scheduled', status_code: 204, error: null },
    })
    const whole = await client().webhooks.delivery(hook.id, delivery?.id ?? '')
    expect(whole.request).toMatchObject({ url: hook.url, body: request?.body.toString() })
    expect(whole.attempts).toMatchObject([{ number: 1, url: hook.url, status_code: 204 }])
    expect(JSON.stringify(whole)).not.toContain(request?.headers['x-ev-signature'])
  })

  test('in the sandbox is marked as sandbox', async () => {
    const hook = await subscribe('/simulated', ['batch.completed', 'verification.completed'])
    const { job_id } = await sandbox().batch(['valid@polite.test', 'risky@polite.test'])
    const [request] = await arrived('/simulated', 1)
    expect(await believed(request as Received, hook.secret)).toMatchObject({
      ...{ event: 'batch.completed', sandbox: true, data: { job_id, valid: 1, risky: 1 } },
    })
  })

  test('to an asynchronous verification is sent with its result', async () => {
    const hook = await subscribe('/single', ['verification.completed'])
    const { verification_id } = await client().verify.later('user2@polite.test')
    const [request] = await arrived('/single', 1)
    const event = await believed(request as Received, hook.secret)
    expect(event).not.toHaveProperty('sandbox')
    expect(event.data).toMatchObject({
      ...{ verification_id, email: 'user2@polite.test', reason: 'accepted_email', valid: true },
    })
  })

  test('is sent while the endpoint is enabled, and not while it is disabled', async () => {
    const hook = await subscribe('/off', ['verification.completed'])
    await client().webhooks.update(hook.id, { active: false })
    await subscribe('/on', ['verification.completed'])
    await client().verify.later('user3@polite.test')
    await arrived('/on', 1)
    await client().webhooks.update(hook.id, { active: true })
    await client().verify.later('user4@polite.test')
    await arrived('/on', 2)
    await arrived('/off', 1)
  })
})

test('an endpoint can be tested, whatever its state', async () => {
  const hook = await subscribe('/tried', ['batch.failed'])
  expect(await client().webhooks.test(hook.id)).toMatchObject({
    ...{ event: 'webhook.test', status: 'delivered', status_code: 204, error: null },
  })
  ways.set('/tried', () => ({ status: 500, body: 'no luck' }))
  expect(await sandbox().webhooks.test(hook.id)).toMatchObject({
    ...{ status: 'failed', status_code: 500, response_excerpt: 'no luck' },
  })
  const events = await Promise.all(
    (await arrived('/tried', 2)).map(request => believed(request, hook.secret)),
  )
  const data = { webhook_id: hook.id, message: 'Test event' }
  expect(events).toMatchObject([
    { event: 'webhook.test', data },
    { event: 'webhook.test', sandbox: true, data },
  ])
  expect(events[0]).not.toHaveProperty('sandbox')
  const log = await logged(hook.id, ({ length }) => length === 2)
  expect(log.map(({ trigger }) => trigger)).toEqual(['test', 'test'])
})

test('during a rotation both secrets verify the events, and no event is lost', async () => {
  const hook = await subscribe('/rotated', ['verification.completed'])
  const { secret } = await client().webhooks.rotateSecret(hook.id, { grace_period_seconds: 3_600 })
  await client().verify.later('user5@polite.test')
  const [during] = (await arrived('/rotated', 1)) as [Received]
  const { event_id } = await believed(during, secret)
  expect(standardOf(hook.secret, during)).toMatchObject({ event_id })

  const last = await client().webhooks.rotateSecret(hook.id, { grace_period_seconds: 0 })
  await client().verify.later('user6@polite.test')
  const [, after] = (await arrived('/rotated', 2)) as [Received, Received]
  await believed(after, last.secret)
  expect(() => standardOf(secret, after)).toThrow('No matching signature')
})

test('a failed delivery is retried later, or at once on request, with the same bytes', async () => {
  const hook = await subscribe('/flaky', ['verification.completed'])
  ways.set('/flaky', (_, nth) => (nth === 1 ? { status: 500, body: 'not now' } : 204))
  await client().verify.later('user7@polite.test')
  const [failed] = await logged(hook.id, log => log[0]?.status === 'retry_scheduled')
  expect(failed).toMatchObject({ attempt: 1, trigger: 'scheduled', status_code: 500 })
  // A minute after the end of the first attempt, which was a moment ago.
  const waitMs = Date.parse(failed?.next_attempt_at ?? '') - Date.now()
  expect(waitMs).toBeGreaterThan(30_000)
  expect(waitMs).toBeLessThanOrEqual(60_000)

  const retried = await client().webhooks.retry(hook.id, failed?.id ?? '')
  expect(retried).toMatchObject({ id: failed?.id, status: 'pending', trigger: 'manual' })
  const [first, second] = (await arrived('/flaky', 2)) as [Received, Received]
  expect(second.body).toEqual(first.body)
  expect(await believed(second, hook.secret)).toEqual(await believed(first, hook.secret))
  await logged(hook.id, log => log[0]?.status === 'delivered')
  const { attempts } = await client().webhooks.delivery(hook.id, failed?.id ?? '')
  expect(attempts).toMatchObject([
    { number: 1, trigger: 'scheduled', status_code: 500, response_excerpt: 'not now' },
    { number: 2, trigger: 'manual', status_code: 204 },
  ])
})

test('a deleted endpoint receives nothing more: neither queued deliveries nor due retries', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const [waiting, retrying, control] = await Promise.all(
    ['/waiting', '/retrying', '/control'].map(path => subscribe(path, ['verification.completed'])),
  )
  ways.set('/waiting', () => held.then(() => 500))
  for (const path of ['/retrying', '/control']) ways.set(path, (_, nth) => (nth === 1 ? 500 : 204))
  for (let n = 0; n < 6; n++) await client().verify.later(`user8n${n}@polite.test`)
  await arrived('/waiting', 4)
  await Promise.all(['/retrying', '/control'].map(path => arrived(path, 6)))
  for (const { id = '' } of [retrying ?? {}, control ?? {}]) {
    await logged(id, log => log.filter(one => one.status === 'delivered').length === 5)
  }

  for (const { id = '' } of [waiting ?? {}, retrying ?? {}]) await client().webhooks.delete(id)
  release()
  makeRetriesDue()
  await arrived('/control', 7)
  // Whatever else was due would have been found with it, or before the next event.
  await client().verify.later('user9@polite.test')
  await arrived('/control', 8)
  expect(at('/waiting')).toHaveLength(4)
  expect(at('/retrying')).toHaveLength(6)
  const error = await client()
    .webhooks.get(waiting?.id ?? '')
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ status: 404 })
})

/** As if their minute were over. */
function makeRetriesDue(): void {
  const database = new Sqlite(join(home, 'data', 'ev.sqlite'))
  database.exec("update delivery set due_at = 0 where state = 'retry_scheduled'")
  database.close()
}

describe('where events go', () => {
  test('a redirect is a failure, and is not followed', async () => {
    const elsewhere = await startReceiver()
    const hook = await subscribe('/moved', ['verification.completed'])
    ways.set('/moved', () => ({ status: 307, headers: { location: elsewhere.url } }))
    await client().verify.later('user10@polite.test')
    const [delivery] = await logged(hook.id, log => log[0]?.status === 'retry_scheduled')
    expect(delivery).toMatchObject({
      status_code: 307,
      error: expect.stringContaining('Redirects are not followed'),
    })
    expect(elsewhere.connections.came).toBe(0)
    await elsewhere.close()
  })

  test.each([
    ['an address of a private network', 'https://10.0.0.7/hook'],
    ['a name that has one', 'https://inside.example/hook'],
    ['the metadata of a cloud', 'https://169.254.169.254/latest/meta-data'],
    ['an address in another notation', 'https://0xa9fea9fe/hook'],
    ['plain HTTP', 'http://hook.example/hook'],
  ])('%s is refused when it is saved', async (_, url) => {
    expect(await refusal(client(), url)).toMatchObject({ status: 400, code: 'invalid_webhook_url' })
  })

  test('this machine is rejected unless its addresses are allowed', async () => {
    const guarded = emptyFolder()
    const other = await startService(guarded, towards(world))
    const asking = new EvClient({ apiKey: other.key, baseUrl: other.url })
    for (const url of [receiver.url, `https://127.0.0.1:${receiver.port}/hook`]) {
      const error = await refusal(asking, url)
      expect(error).toMatchObject({ status: 400, code: 'invalid_webhook_url' })
    }
    expect(await asking.webhooks.list()).toEqual([])
    expect((await other.end('SIGTERM')).code).toBe(0)
  })

  async function refusal(asking: EvClient, url: string): Promise<unknown> {
    const error = await asking.webhooks
      .create({ url, events: ['batch.completed'] })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EvApiError)
    return error
  }
})

test('credits emit events at 80 %, at 95 % and when they are used up, once each', async () => {
  const own = client(await keyOf('Few'))
  const hook = await subscribe('/quota', ['quota.warning', 'quota.exceeded'], own)
  for (let n = 0; n < FEW_CREDITS; n++) await own.verify.single(`user11n${n}@polite.test`)
  for (let n = 0; n < 3; n++) {
    const error = await own.verify
      .single(`user12n${n}@polite.test`)
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status: 429, code: 'quota_exceeded' })
  }
  const told = new Map<number, Quota>()
  for (const request of await arrived('/quota', 3)) {
    const event = (await believed(request, hook.secret)) as Quota
    told.set(event.data.threshold_percent, event)
  }
  expect([...told.keys()].toSorted((a, b) => a - b)).toEqual([80, 95, 100])
  for (const [percent, { event, data }] of told) {
    expect(event).toBe(percent === 100 ? 'quota.exceeded' : 'quota.warning')
    expect(data).toMatchObject({
      plan: 'few',
      limit: FEW_CREDITS,
      remaining: FEW_CREDITS - data.used,
    })
    // Use is entered in groups, so it may be a little beyond.
    expect(data.used).toBeGreaterThanOrEqual((FEW_CREDITS * percent) / 100)
  }
  expect(await gathered(own.webhooks.deliveries(hook.id))).toHaveLength(3)
})

type Quota = Extract<WebhookEvent, { event: 'quota.warning' | 'quota.exceeded' }>

/** A key of another account, which has few credits. */
async function keyOf(account: string): Promise<string> {
  const made = ['accounts', 'create', '--name', account, '--plan', 'few', '--data-dir', 'data']
  expect(await runEv(made, { home })).toMatchObject({ code: 0 })
  const key = ['keys', 'create', '--name', 'one', '--account', account, '--json']
  const ran = await runEv([...key, '--data-dir', 'data'], { home })
  expect(ran.code, ran.stderr).toBe(0)
  return (JSON.parse(ran.stdout) as { key: string }).key
}
