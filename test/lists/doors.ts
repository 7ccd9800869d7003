import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { DEFAULT_TIMINGS } from '../../src/compose/timings.ts'
import { createEngine, type EngineOptions } from '../../src/index.ts'
import { type Clock, DAY, MINUTE, SECOND, sleep, systemClock } from '../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { type FakeClock, fakeClock, letTimePass } from '../support/clock.ts'
import { rowsIn } from '../support/csv.ts'
import { tempPostgres } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { drainEventLoop } from '../support/wait.ts'
import { createWiredService } from '../support/wired-service.ts'
import { type CreateMail, type ListMail, startMail } from './list-mail.ts'

/** The options of a list, which each door takes in its own form. */
export type ListOptions = Pick<
  EngineOptions,
  | 'sessionsPerOperator'
  | 'sessionsPerSecond'
  | 'recipientsPerSession'
  | 'concurrency'
  | 'greylistDelayMs'
  | 'operators'
> & { readonly egresses?: readonly { readonly name: string }[] }

/** A list and the mail servers of its addresses. */
export type ListRequest = {
  readonly texts: readonly string[]
  readonly mail: CreateMail
  readonly options?: ListOptions
}

export type Verified = {
  /** The reason of each row, in the order of the list; null without a result. */
  readonly reasons: readonly (string | null)[]
  readonly mail: ListMail
}

/** A public way to verify a list. */
export type Door = {
  readonly name: string
  /** Processes that verify the list together. */
  readonly members: number
  /** Whether work on lists gives way to requests, so that fewer connections overlap. */
  readonly yieldsToRequests: boolean
  verify(request: ListRequest): Promise<Verified>
}

const STEP_MS = 50
/** Longer than a service delays the work of a list after a request, in real time. */
const QUIET_MS = 100
const QUIET_STEP_MS = 5 * SECOND
/** Settings of every list: the addresses and names of tests may be dialed, at any rate. */
const COMMON = {
  helo: 'probe.test',
  allowRanges: ['192.0.2.0/24'],
  specialDomains: true,
  sessionsPerSecond: 1_000,
}

export const throughEngine: Door = {
  name: 'verifyMany',
  members: 1,
  yieldsToRequests: false,
  async verify({ texts, mail: createMail, options = {} }) {
    const clock = fakeClock()
    const mail = startMail(createMail, clock)
    const { resolver, dial } = mail
    const engine = createEngine({
      ...COMMON,
      ...options,
      clock,
      random: countedRandom(),
      resolver,
      dial,
    })
    onTestFinished(() => engine.close())
    const found = new Map<string, string[]>()
    const collect = async () => {
      for await (const { email, verdict } of engine.verifyMany(texts)) {
        found.set(email, [...(found.get(email) ?? []), verdict.reason])
      }
    }
    await untilDone(clock, collect())
    const reasons = texts.map(text => found.get(text)?.shift() ?? null)
    const surplus = [...found.values()].flat()
    if (surplus.length > 0) throw new Error(`${surplus.length} results belong to no row`)
    await untilDone(clock, engine.close())
    return { reasons, mail }
  },
}

export const throughBulk: Door = {
  name: 'ev bulk',
  members: 1,
  yieldsToRequests: false,
  async verify({ texts, mail: createMail, options = {} }) {
    const clock = fakeClock()
    const mail = startMail(createMail, clock)
    const { resolver, dial } = mail
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), ['email', ...texts, ''].join('\n'))
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(toFile(options)))
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
    const context = { clock, random: countedRandom(), externalDeps: { resolver, dial } }
    const ran = await untilSettled(clock, mail, runEv(args, { home, context }))
    if (ran.code !== 0) throw new Error(`ev bulk ended with ${ran.code}: ${ran.stderr}`)
    const rows = rowsIn(join(home, 'out.csv'))
    if (`${rows.map(({ email }) => email)}` !== `${texts}`) throw new Error('the rows differ')
    const reasons = rows.map(row => row.ev_reason ?? null)
    return { reasons, mail }
  },
}

export const throughService: Door = {
  name: 'HTTP',
  members: 1,
  yieldsToRequests: true,
  async verify({ texts, mail: createMail, options = {} }) {
    const clock = fakeClock()
    const mail = startMail(createMail, clock)
    const { resolver, dial } = mail
    const service = await createWiredService({
      clock,
      random: countedRandom(),
      resolver,
      dial,
      file: toFile(options),
      timings: DEFAULT_TIMINGS,
      settings: UNLIMITED,
    })
    const reasons = await untilSettled(clock, mail, submitAndRead(service, clock, texts))
    await untilSettled(clock, mail, service.close())
    return { reasons, mail }
  },
}

export const throughMembers: Door = {
  name: 'HTTP with two members on PostgreSQL',
  members: 2,
  yieldsToRequests: true,
  async verify({ texts, mail: createMail, options = {} }) {
    const mail = startMail(createMail, systemClock)
    const { resolver, dial } = mail
    const databaseUrl = await tempPostgres()
    const member = { databaseUrl, resolver, dial, file: toFile(options), settings: UNLIMITED }
    const one = await createWiredService(member)
    const other = await createWiredService({ ...member, key: one.key })
    const reasons = await submitAndRead(one, systemClock, texts)
    await Promise.all([one.close(), other.close()])
    return { reasons, mail }
  },
}

const UNLIMITED = { limits: 'off' }

type WiredService = Awaited<ReturnType<typeof createWiredService>>

/** Interval of the poll for a finished list. Hours of a fake clock pass in few polls. */
const pollIntervalMs = (clock: Clock) => (clock === systemClock ? 50 : MINUTE)

/** Creates a client of a service without a port. */
export const clientOf = ({ key, fetch }: Pick<WiredService, 'key' | 'fetch'>) =>
  new EvClient({ apiKey: key, baseUrl: 'https://ev.test', fetch })

/** Submits a list, waits until it is finished, and returns the reasons of its rows. */
async function submitAndRead(service: WiredService, clock: Clock, texts: readonly string[]) {
  const { job_id } = await clientOf(service).batch([...texts])
  await untilFinished(service, clock, job_id)
  return readReasons(service, job_id)
}

export async function untilFinished(service: WiredService, clock: Clock, jobId: string) {
  const client = clientOf(service)
  for (;;) {
    const job = await client.jobs.get(jobId)
    if (job.status === 'completed') return
    await sleep(clock, pollIntervalMs(clock))
  }
}

/** Returns the reason of each row of a job, in the order of the list; null without a result. */
export async function readReasons(service: WiredService, jobId: string) {
  const reasons: (string | null)[] = []
  for await (const { reason } of clientOf(service).jobs.rows(jobId)) reasons.push(reason ?? null)
  return reasons
}

/** Advances the clock until a promise settles that waits for nothing else. */
export async function untilDone<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  promise.then(settle, settle)
  await letTimePass(clock, () => isSettled, { stepMs: STEP_MS, maxMs: DAY })
  return promise
}

/**
 * Advances the clock until the promise settles. Files, and requests that go before lists, take real
 * time: until nothing was asked of a mail server for some of it, the clock advances slowly.
 */
export async function untilSettled<T>(
  clock: FakeClock,
  mail: ListMail,
  promise: Promise<T>,
): Promise<T> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  promise.then(settle, settle)
  let quietSince = performance.now()
  while (!isSettled) {
    const before = mail.activity()
    const isQuiet = performance.now() - quietSince > QUIET_MS
    await clock.advance(isQuiet ? QUIET_STEP_MS : STEP_MS)
    await drainEventLoop()
    if (mail.open() > 0 || mail.activity() > before) quietSince = performance.now()
    else if (!isQuiet) await setTimeout(1)
  }
  return promise
}

/** The settings as the content of a config file. */
function toFile(options: ListOptions): Record<string, unknown> {
  const { allowRanges, ...common } = COMMON
  const { greylistDelayMs, ...others } = { ...common, ...options }
  return {
    ...(toKebab(others) as Record<string, unknown>),
    'allow-ranges': allowRanges,
    ...(greylistDelayMs !== undefined && { 'greylist-delay': Number(greylistDelayMs) / SECOND }),
  }
}

/** Converts the names of settings to those of the config file; names that users give have no capitals. */
function toKebab(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toKebab)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, one]) => [
    key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`),
    toKebab(one),
  ])
  return Object.fromEntries(entries)
}
