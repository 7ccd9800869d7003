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
import { emptyFolder, runEv, simulatorFlags } from '../../support/cli.ts'
import { type CliService, startService } from '../../support/cli-service.ts'
import {
  type How,
  type Received,
  type Receiver,
  startReceiver,
} from '../../support/http-receiver.ts'

// Events that a real receiver gets; the DNS of the simulator resolves its name.

let simulator: Simulator
let service: CliService
let receiver: Receiver
const home = emptyFolder()

beforeAll(async () => {
  receiver = await startReceiver()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  simulator = await startSimulator(SCENARIO)
  const receivers = ['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem']
  service = await startService(home, [...simulatorFlags(simulator), '--plan', 'team', ...receivers])
})

afterAll(async () => {
  const ended = await service.end('SIGTERM')
  await Promise.all([simulator.close(), receiver.close()])
  expect(ended.code, ended.stderr).toBe(0)
})

/** The responses of the receiver by path; the default is 204. */
const handlers = new Map<string, (request: Received, nth: number) => Answered | Promise<Answered>>()
type Answered = Exclude<How, (...given: never[]) => unknown>

beforeEach(() => {
  handlers.clear()
  receiver.received.length = 0
  receiver.answer(request => {
    const nth = requestsTo(request.path).length
    return handlers.get(request.path)?.(request, nth) ?? 204
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
/** Returns the requests to a path so far. */
const requestsTo = (path: string) => receiver.received.filter(request => request.path === path)

/** Waits for `count` requests to a path and returns them. */
async function untilReceived(path: string, count: number): Promise<readonly Received[]> {
  await expect.poll(() => requestsTo(path).length, POLLING).toBeGreaterThanOrEqual(count)
  expect(requestsTo(path)).toHaveLength(count)
  return requestsTo(path)
}
const POLLING = { interval: 20 }

type Kind = NewWebhook['events'][number]

const subscribe = (path: string, events: Kind[], of = client()) =>
  of.webhooks.create({ url: urlOf(path), events })

/** Returns the event of a request whose signatures are valid for two libraries and by hand. */
async function verifyRequest({ body, headers }: Received, secret: string): Promise<WebhookEvent> {
  const event = await verifyWebhook(body, headers, secret, { requireTimestamp: true })
  expect(verifyStandard(secret, { body, headers })).toEqual(event)
  expect(headers['x-ev-signature']).toBe(createHmac('sha256', secret).update(body).digest('hex'))
  expect(headers['webhook-id']).toBe(event.event_id)
  return event
}

const verifyStandard = (secret: string, { body, headers }: Pick<Received, 'body' | 'headers'>) =>
  new StandardWebhook(secret).verify(body, headers as Record<string, string>)

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Waits until the delivery log of an endpoint meets a condition, and returns it. */
async function untilLogged(
  webhookId: string,
  isMet: (log: Delivery[]) => boolean,
): Promise<Delivery[]> {
  let log: Delivery[] = []
  const read = async () => {
    log = await collect(client().webhooks.deliveries(webhookId))
    return isMet(log)
  }
  await expect.poll(read, POLLING).toBe(true)
  return log
}

describe('an event', () => {
  test('is sent to its subscribers and recorded in the delivery log', async () => {
    const hook = await subscribe('/jobs', ['batch.completed'])
    const { job_id } = await client().batch(['user1@polite.test', 'gone1@polite.test'])
    const [request] = await untilReceived('/jobs', 1)
    const event = await verifyRequest(request as Received, hook.secret)
    expect(event).toEqual({
      event: 'batch.completed',
      event_id: expect.stringMatching(/^evt_/),
      timestamp: expect.any(String),
      data: {
        job_id,
        total: 2,
        valid: 1,
        invalid: 1,
        risky: 0,
        unknown: 0,
        failed: 0,
        download_url: `${service.url}/v1/jobs/${job_id}/download`,
        metadata: {},
      },
    })

    const [delivery] = await untilLogged(hook.id, log => log[0]?.status === 'delivered')
    expect(delivery).toMatchObject({
      webhook_id: hook.id,
      event: 'batch.completed',
      event_id: event.event_id,
      attempt: 1,
      trigger: 'scheduled',
      status_code: 204,
      error: null,
    })
    const details = await client().webhooks.delivery(hook.id, delivery?.id ?? '')
    expect(details.request).toMatchObject({ url: hook.url, body: request?.body.toString() })
    expect(details.attempts).toMatchObject([{ number: 1, url: hook.url, status_code: 204 }])
    // Only a key that may change webhooks sees the signature.
    expect(JSON.stringify(details)).toContain(request?.headers['x-ev-signature'])
  })

  test('in the sandbox is marked as sandbox', async () => {
    const hook = await subscribe('/simulated', ['batch.completed', 'verification.completed'])
    const { job_id } = await sandbox().batch(['valid@polite.test', 'risky@polite.test'])
    const [request] = await untilReceived('/simulated', 1)
    expect(await verifyRequest(request as Received, hook.secret)).toMatchObject({
      event: 'batch.completed',
      sandbox: true,
      data: { job_id, valid: 1, risky: 1 },
    })
  })

  test('of an asynchronous verification is sent with its result', async () => {
    const hook = await subscribe('/single', ['verification.completed'])
    const { verification_id } = await client().verify.later('user2@polite.test')
    const [request] = await untilReceived('/single', 1)
    const event = await verifyRequest(request as Received, hook.secret)
    expect(event).not.toHaveProperty('sandbox')
    expect(event.data).toMatchObject({
      verification_id,
      email: 'user2@polite.test',
      reason: 'accepted_email',
      valid: true,
    })
  })

  test('is sent while the endpoint is enabled, and not while it is disabled', async () => {
    const hook = await subscribe('/off', ['verification.completed'])
    await client().webhooks.update(hook.id, { active: false })
    await subscribe('/on', ['verification.completed'])
    await client().verify.later('user3@polite.test')
    await untilReceived('/on', 1)
    await client().webhooks.update(hook.id, { active: true })
    await client().verify.later('user4@polite.test')
    await untilReceived('/on', 2)
    await untilReceived('/off', 1)
  })
})

test('an endpoint can be tested, whatever its state', async () => {
  const hook = await subscribe('/tried', ['batch.failed'])
  expect(await client().webhooks.test(hook.id)).toMatchObject({
    event: 'webhook.test',
    status: 'delivered',
    status_code: 204,
    error: null,
  })
  handlers.set('/tried', () => ({ status: 500, body: 'no luck' }))
  expect(await sandbox().webhooks.test(hook.id)).toMatchObject({
    status: 'failed',
    status_code: 500,
    response_excerpt: 'no luck',
  })
  const events = await Promise.all(
    (await untilReceived('/tried', 2)).map(request => verifyRequest(request, hook.secret)),
  )
  const data = { webhook_id: hook.id, message: 'Test event' }
  expect(events).toMatchObject([
    { event: 'webhook.test', data },
    { event: 'webhook.test', sandbox: true, data },
  ])
  expect(events[0]).not.toHaveProperty('sandbox')
  const log = await untilLogged(hook.id, ({ length }) => length === 2)
  expect(log.map(({ trigger }) => trigger)).toEqual(['test', 'test'])
})

test('during a rotation both secrets verify the events, and no event is lost', async () => {
  const hook = await subscribe('/rotated', ['verification.completed'])
  const { secret } = await client().webhooks.rotateSecret(hook.id, { grace_period_seconds: 3_600 })
  await client().verify.later('user5@polite.test')
  const [during] = (await untilReceived('/rotated', 1)) as [Received]
  const { event_id } = await verifyRequest(during, secret)
  expect(verifyStandard(hook.secret, during)).toMatchObject({ event_id })

  const last = await client().webhooks.rotateSecret(hook.id, { grace_period_seconds: 0 })
  await client().verify.later('user6@polite.test')
  const [, after] = (await untilReceived('/rotated', 2)) as [Received, Received]
  await verifyRequest(after, last.secret)
  expect(() => verifyStandard(secret, after)).toThrow('No matching signature')
})

test('a failed delivery is retried later, or at once on request, with the same bytes', async () => {
  const hook = await subscribe('/flaky', ['verification.completed'])
  handlers.set('/flaky', (_, nth) => (nth === 1 ? { status: 500, body: 'not now' } : 204))
  await client().verify.later('user7@polite.test')
  const [failed] = await untilLogged(hook.id, log => log[0]?.status === 'retry_scheduled')
  expect(failed).toMatchObject({ attempt: 1, trigger: 'scheduled', status_code: 500 })
  // The retry is due a minute after the end of the first attempt, which was a moment ago.
  const waitMs = Date.parse(failed?.next_attempt_at ?? '') - Date.now()
  expect(waitMs).toBeGreaterThan(30_000)
  // The clocks of the service and of this process differ by milliseconds.
  expect(waitMs).toBeLessThan(61_000)

  const retried = await client().webhooks.retry(hook.id, failed?.id ?? '')
  expect(retried).toMatchObject({ id: failed?.id, status: 'pending', trigger: 'manual' })
  const [first, second] = (await untilReceived('/flaky', 2)) as [Received, Received]
  expect(second.body).toEqual(first.body)
  expect(await verifyRequest(second, hook.secret)).toEqual(await verifyRequest(first, hook.secret))
  await untilLogged(hook.id, log => log[0]?.status === 'delivered')
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
  handlers.set('/waiting', () => held.then(() => 500))
  for (const path of ['/retrying', '/control'])
    handlers.set(path, (_, nth) => (nth === 1 ? 500 : 204))
  for (let n = 0; n < 6; n++) await client().verify.later(`user8n${n}@polite.test`)
  await untilReceived('/waiting', 4)
  await Promise.all(['/retrying', '/control'].map(path => untilReceived(path, 6)))
  for (const { id = '' } of [retrying ?? {}, control ?? {}]) {
    await untilLogged(id, log => log.filter(one => one.status === 'delivered').length === 5)
  }

  for (const { id = '' } of [waiting ?? {}, retrying ?? {}]) await client().webhooks.delete(id)
  release()
  makeRetriesDue()
  await untilReceived('/control', 7)
  // Other due deliveries would have been sent with it, or before the next event.
  await client().verify.later('user9@polite.test')
  await untilReceived('/control', 8)
  expect(requestsTo('/waiting')).toHaveLength(4)
  expect(requestsTo('/retrying')).toHaveLength(6)
  const error = await client()
    .webhooks.get(waiting?.id ?? '')
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ status: 404 })
})

/** Makes all scheduled retries due now. */
function makeRetriesDue(): void {
  const database = new Sqlite(join(home, 'data', 'ev.sqlite'))
  database.exec("update delivery set due_at = 0 where state = 'retry_scheduled'")
  database.close()
}

describe('the destination of events', () => {
  test('a redirect is a failure, and is not followed', async () => {
    const elsewhere = await startReceiver()
    const hook = await subscribe('/moved', ['verification.completed'])
    handlers.set('/moved', () => ({ status: 307, headers: { location: elsewhere.url } }))
    await client().verify.later('user10@polite.test')
    const [delivery] = await untilLogged(hook.id, log => log[0]?.status === 'retry_scheduled')
    expect(delivery).toMatchObject({
      status_code: 307,
      error: expect.stringContaining('Redirects are not followed'),
    })
    expect(elsewhere.connections.opened).toBe(0)
    await elsewhere.close()
  })

  test.each([
    ['an address of a private network', 'https://10.0.0.7/hook'],
    ['a name with a private address', 'https://inside.example/hook'],
    ['the metadata address of a cloud', 'https://169.254.169.254/latest/meta-data'],
    ['an address in another notation', 'https://0xa9fea9fe/hook'],
    ['plain HTTP', 'http://hook.example/hook'],
  ])('%s is rejected when the webhook is saved', async (_, url) => {
    expect(await getRejection(client(), url)).toMatchObject({
      status: 400,
      code: 'invalid_webhook_url',
    })
  })

  test('this machine is rejected unless its addresses are allowed', async () => {
    const guarded = emptyFolder()
    const other = await startService(guarded, simulatorFlags(simulator))
    const otherClient = new EvClient({ apiKey: other.key, baseUrl: other.url })
    for (const url of [receiver.url, `https://127.0.0.1:${receiver.port}/hook`]) {
      const error = await getRejection(otherClient, url)
      expect(error).toMatchObject({ status: 400, code: 'invalid_webhook_url' })
    }
    expect(await otherClient.webhooks.list()).toEqual([])
    expect((await other.end('SIGTERM')).code).toBe(0)
  })

  async function getRejection(otherClient: EvClient, url: string): Promise<unknown> {
    const error = await otherClient.webhooks
      .create({ url, events: ['batch.completed'] })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EvApiError)
    return error
  }
})

test('credits emit events at 80%, at 95% and when they are used up, once each', async () => {
  const fewClient = client(await createKey('Few'))
  const hook = await subscribe('/quota', ['quota.warning', 'quota.exceeded'], fewClient)
  for (let n = 0; n < FEW_CREDITS; n++) await fewClient.verify.single(`user11n${n}@polite.test`)
  for (let n = 0; n < 3; n++) {
    const error = await fewClient.verify
      .single(`user12n${n}@polite.test`)
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status: 429, code: 'quota_exceeded' })
  }
  const byPercent = new Map<number, Quota>()
  for (const request of await untilReceived('/quota', 3)) {
    const event = (await verifyRequest(request, hook.secret)) as Quota
    byPercent.set(event.data.threshold_percent, event)
  }
  expect([...byPercent.keys()].toSorted((a, b) => a - b)).toEqual([80, 95, 100])
  for (const [percent, { event, data }] of byPercent) {
    expect(event).toBe(percent === 100 ? 'quota.exceeded' : 'quota.warning')
    expect(data).toMatchObject({
      plan: 'few',
      limit: FEW_CREDITS,
      remaining: FEW_CREDITS - data.used,
    })
    // Usage is stored in groups, so it may exceed the threshold a little.
    expect(data.used).toBeGreaterThanOrEqual((FEW_CREDITS * percent) / 100)
  }
  expect(await collect(fewClient.webhooks.deliveries(hook.id))).toHaveLength(3)
})

type Quota = Extract<WebhookEvent, { event: 'quota.warning' | 'quota.exceeded' }>

/** Creates an account with few credits, and returns its key. */
async function createKey(account: string): Promise<string> {
  const made = ['accounts', 'create', '--name', account, '--plan', 'few', '--data-dir', 'data']
  expect(await runEv(made, { home })).toMatchObject({ code: 0 })
  const key = ['keys', 'create', '--name', 'one', '--account', account, '--json']
  const result = await runEv([...key, '--data-dir', 'data'], { home })
  expect(result.code, result.stderr).toBe(0)
  return (JSON.parse(result.stdout) as { key: string }).key
}
