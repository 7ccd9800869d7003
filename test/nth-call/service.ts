import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { EvClient } from '../../src/client/client.ts'
import { SECOND, sleep } from '../../src/platform/clock.ts'
import type { Random } from '../../src/platform/random.ts'
import type { ListMail } from '../lists/list-mail.ts'
import { tempFolder } from '../support/database.ts'
import {
  Calls,
  failingClock,
  failingDial,
  failingResolver,
  failingTransport,
} from '../support/nth-call.ts'
import { countedRandom } from '../support/random.ts'
import { type FakeTransport, fakeTransport } from '../support/webhook-transport.ts'
import { createWiredService } from '../support/wired-service.ts'
import type { Backend, Row, RunClock } from './backends.ts'
import { describeState } from './service-state.ts'
import { startSmallMail } from './small-list.ts'

/** What remains while services start and stop: the database, the mail servers and the receiver. */
export type World = RunClock & {
  readonly home: string
  readonly databaseUrl: string
  /** Continues after a restart, so that no ID is drawn twice. */
  readonly random: Random
  readonly mail: ListMail
  readonly receiver: FakeTransport
  /** Reads the database. The statement is not counted. */
  readonly rows: (text: string) => Promise<readonly Row[]>
  readonly isShared: boolean
}

type Service = Awaited<ReturnType<typeof createWiredService>>

/** Sends a POST request of the account with an Idempotency-Key. */
export type Request = (path: string, body: object, idempotencyKey: string) => Promise<Response>

/** What a client does at a service. */
export type Story = {
  /** What happened before the calls are counted. */
  readonly before?: (world: World, client: EvClient, sandbox: EvClient) => Promise<unknown>
  /** Returns what is wrong with the responses. Repeated if it rejects, after a restart. */
  readonly act: (client: EvClient, request: Request) => Promise<readonly string[]>
  /** Returns what is wrong afterwards, beside what is wrong with any service. */
  readonly check: (world: World, client: EvClient, calls: Calls) => Promise<readonly string[]>
}

const FILE = {
  helo: 'probe.test',
  'allow-ranges': ['192.0.2.0/24'],
  'special-domains': true,
  'sessions-per-second': 1_000,
  'greylist-delay': 1,
  plans: { enterprise: { 'credits-per-day': 1_000 } },
}

const HOOK = {
  url: 'https://hook.test/ev',
  events: ['batch.completed', 'verification.completed'] as const,
}

type Start = (world: World, calls: Calls, key?: string) => Promise<Service>

/**
 * Prepares a service. The function runs the story with the calls, of which one may fail, restarts
 * the service, and returns what is wrong when nothing is left to do.
 */
export async function prepareServiceRuns(
  backend: Backend,
  story: Story,
): Promise<(calls: Calls) => Promise<readonly string[]>> {
  const folder = tempFolder()
  const callsByDatabase = new Map<string, Calls>()
  backend.watch(name => callsByDatabase.get(name))
  const start: Start = async (world, calls, key) => {
    const { home, databaseUrl, clock, random, mail, receiver } = world
    callsByDatabase.set(backend.nameOf(databaseUrl), calls)
    const service = await createWiredService({
      databaseUrl,
      clock: failingClock(clock, calls),
      random,
      resolver: failingResolver(mail.resolver, calls),
      dial: failingDial(mail.dial({ name: 'default' }), calls),
      transport: failingTransport(receiver, calls),
      file: FILE,
      timings: backend.timings,
      settings: { dataDir: home, limits: 'off', fastSandboxRetries: 'on' },
      key,
    })
    // Work on lists waits for requests in real time.
    service.service.priority.stop()
    return service
  }
  const createWorld = (home: string, databaseUrl: string): World => {
    const run = backend.startClock()
    return {
      ...run,
      home,
      databaseUrl,
      random: countedRandom(),
      mail: startSmallMail(run.clock),
      receiver: fakeTransport(),
      rows: text => backend.read(databaseUrl, text),
      isShared: backend.isShared,
    }
  }
  const home = join(folder, 'origin')
  mkdirSync(home)
  const origin = createWorld(home, await backend.create(home))
  const key = await prepareOrigin(origin, start, story)
  let runs = 0
  return async calls => {
    const home = join(folder, `${++runs}`)
    mkdirSync(home)
    copyFileSync(join(origin.home, 'secret'), join(home, 'secret'))
    const world = createWorld(home, await backend.copy(origin.databaseUrl, home))
    try {
      return await runStory({ ...world, key }, calls, story, start)
    } finally {
      callsByDatabase.delete(backend.nameOf(world.databaseUrl))
      await backend.drop(world.databaseUrl)
      rmSync(home, { recursive: true, force: true })
    }
  }
}

/**
 * Creates what each run starts with: an account, a webhook, and what the story has before. Returns
 * the key of the account.
 */
async function prepareOrigin(world: World, start: Start, story: Story): Promise<string> {
  const calls = new Calls(null)
  const service = await world.run(calls, start(world, calls))
  const client = clientOf(service, world)
  await world.run(calls, client.webhooks.create({ ...HOOK, events: [...HOOK.events] }))
  const sandbox = clientOf(service, world, true)
  await world.run(calls, story.before?.(world, client, sandbox) ?? Promise.resolve())
  await world.run(calls, service.close())
  return service.key
}

const clientOf = (
  { key, fetch }: Pick<Service, 'key' | 'fetch'>,
  { clock }: World,
  sandbox = false,
) =>
  new EvClient({
    sandbox,
    apiKey: key,
    baseUrl: 'https://ev.test',
    fetch,
    sleep: (ms, signal) => sleep(clock, ms, signal),
  })

/** As a client of the API does, it repeats a request that the service cannot store at present. */
const requestTo =
  ({ key, fetch }: Pick<Service, 'key' | 'fetch'>, { clock }: World): Request =>
  async (path, body, idempotencyKey) => {
    for (let tries = 1; ; tries++) {
      const response = await fetch(`https://ev.test${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: {
          Authorization: `Bearer ${key}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': idempotencyKey,
        },
      })
      if (response.status !== UNAVAILABLE || tries === TRIES_MAX) return response
      await sleep(clock, SECOND)
    }
  }

const UNAVAILABLE = 503
const TRIES_MAX = 3

async function runStory(
  world: World & { readonly key: string },
  calls: Calls,
  { act, check }: Story,
  start: Start,
): Promise<string[]> {
  const { mail, key } = world
  const none = new Calls(null)
  const run = <T>(work: Promise<T>) => world.run(calls, work)
  const found: string[] = []
  let service = await run(start(world, calls, key)).catch(() => {
    // A supervisor starts it again.
    calls.end()
    return run(start(world, none, key))
  })
  const restart = async () => {
    await run(service.close()).catch((error: unknown) => found.push(`close: ${error}`))
    calls.end()
    service = await run(start(world, none, key))
  }
  const actOnce = () => run(act(clientOf(service, world), requestTo(service, world)))
  const answered = await actOnce().catch(async () => {
    await restart()
    return actOnce()
  })
  found.push(...answered)
  found.push(...(await run(waitForRest(world))).map(open => `is not done: ${open}`))
  await restart()
  found.push(...(await run(waitForRest(world))).map(open => `is not done after a restart: ${open}`))
  found.push(...(await describeState(world, calls)))
  found.push(...(await run(check(world, clientOf(service, world), calls))))
  await run(service.close())
  if (mail.open() > 0) found.push(`${mail.open()} connections are open`)
  return found
}

/**
 * Waits until no list, delivery or reservation is open, or nothing changes any more. Returns what is
 * open then.
 */
async function waitForRest({ clock, pollMs, restMaxMs, rows }: World): Promise<readonly string[]> {
  let seen = ''
  let changedAt = clock.monotonicNow()
  for (;;) {
    const open = (await rows(OPEN_WORK)).map(({ what }) => String(what))
    if (open.length === 0) return []
    const now = clock.monotonicNow()
    if (`${open}` !== seen) changedAt = now
    if (now - changedAt > restMaxMs) return [...open, `at ${clock.now()}`]
    seen = `${open}`
    await sleep(clock, pollMs)
  }
}

const OPEN_WORK = `
  select 'job ' || id || ' ' || state || ', ' || held || ' held' as what
    from job where finished_at is null and state <> 'loading'
  union all select 'row ' || text || ' ' || state || ', tries ' || tries || ', due at '
      || coalesce(cast(due_at as text), 'none') || ', held by ' || coalesce(holder, 'none')
    from item where state not in ('done', 'same')
  union all select 'delivery ' || id || ' ' || state || ', attempt ' || attempt || ' ' || coalesce(error, '')
    from delivery where state in ('pending', 'retry_scheduled')
  union all select 'credit ' || account_id || ', ' || held || ' held' from credit where held <> 0
  union all select 'reservation of ' || member_id || ', ' || amount from hold`
