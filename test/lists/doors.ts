import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { DEFAULT_TIMINGS, type Timings } from '../../src/compose/timings.ts'
import { createEngine, type EngineOptions } from '../../src/index.ts'
import { type Clock, DAY, MINUTE, SECOND, sleep, systemClock } from '../../src/platform/clock.ts'
import { emptyFolder, startEv } from '../support/cli.ts'
import { type FakeClock, fakeClock, letTimePass } from '../support/clock.ts'
import { rowsIn } from '../support/csv.ts'
import { tempFolder, tempSqlite } from '../support/database.ts'
import { FAST_TIMINGS } from '../support/fast-timings.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
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
  /** Replaces the DNS or the connections by ones that fail. */
  readonly breaks?: (mail: ListMail) => Partial<Network>
}

type Network = Pick<ListMail, 'resolver' | 'dial'>

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
/**
 * Turns of the event loop, of a millisecond or more: together longer than a service delays the work
 * of a list after a request, also on a busy machine.
 */
const QUIET_TURNS = 80
const QUIET_STEP_MS = 5 * SECOND
/** Settings of every list: the addresses and names of tests may be dialed, at any rate. */
const COMMON = {
  helo: 'probe.test',
  allowRanges: ['192.0.2.0/24'],
  specialDomains: true,
  sessionsPerSecond: 1_000,
}

/** What a list needs: its mail servers, the clock that they and ev share, and random numbers. */
function prepare<C extends Clock>({ mail: createMail, breaks }: ListRequest, clock: C) {
  const mail = startMail(createMail, clock)
  const { resolver, dial } = mail
  const network = { resolver, dial, ...breaks?.(mail) }
  return { mail, network, clock, random: countedRandom() }
}

/** Creates an engine with a fake clock. */
export function createListEngine(request: ListRequest) {
  const { mail, network, clock, random } = prepare(request, fakeClock())
  const engine = createEngine({ ...COMMON, ...request.options, ...network, clock, random })
  onTestFinished(() => engine.close())
  return { engine, mail, clock }
}

export const throughEngine: Door = {
  name: 'verifyMany',
  members: 1,
  yieldsToRequests: false,
  async verify(request) {
    const { engine, mail, clock } = createListEngine(request)
    const found = new Map<string, string[]>()
    const collect = async () => {
      for await (const { email, verdict } of engine.verifyMany(request.texts)) {
        found.set(email, [...(found.get(email) ?? []), verdict.reason])
      }
    }
    await untilDone(clock, collect())
    const reasons = request.texts.map(text => found.get(text)?.shift() ?? null)
    const surplus = [...found.values()].flat()
    if (surplus.length > 0) throw new Error(`${surplus.length} results belong to no row`)
    await untilDone(clock, engine.close())
    return { reasons, mail }
  },
}

/** Prepares a folder with a list and its settings, in which `ev bulk` can run several times. */
export function prepareBulk(request: ListRequest) {
  const { mail, network, clock, random } = prepare(request, fakeClock())
  const home = emptyFolder()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(toFile(request.options)))
  let texts: readonly string[] = []
  /** Replaces the list. */
  const setList = (list: readonly string[]) => {
    texts = list
    writeFileSync(join(home, 'list.csv'), ['email', ...texts, ''].join('\n'))
  }
  setList(request.texts)
  const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
  return {
    mail,
    clock,
    setList,
    start: () => startEv(args, { home, context: { clock, random, externalDeps: network } }),
    /** Returns the reasons in the output, whose rows must be those of the list. */
    readReasons() {
      const rows = rowsIn(join(home, 'out.csv'))
      if (`${rows.map(({ email }) => email)}` !== `${texts}`) {
        throw new Error('the output has other rows than the list')
      }
      return rows.map(row => row.ev_reason ?? null)
    },
  }
}

export const throughBulk: Door = {
  name: 'ev bulk',
  members: 1,
  yieldsToRequests: false,
  async verify(request) {
    const { mail, clock, start, readReasons } = prepareBulk(request)
    const ran = await untilSettled(clock, mail, start().ended)
    if (ran.code !== 0) throw new Error(`ev bulk ended with ${ran.code}: ${ran.stderr}`)
    return { reasons: readReasons(), mail }
  },
}

type WiredService = Awaited<ReturnType<typeof createWiredService>>

/** Prepares a service with a fake clock, which can be started several times on its database. */
export function prepareService(request: ListRequest) {
  const { mail, network, clock, random } = prepare(request, fakeClock())
  const databaseUrl = tempSqlite(join(tempFolder(), 'ev.sqlite'))
  const start = (key?: string) =>
    createWiredService({
      ...network,
      databaseUrl,
      clock,
      random,
      file: toFile(request.options),
      timings: DEFAULT_TIMINGS,
      settings: UNLIMITED,
      key,
    })
  return { mail, clock, start }
}

export const throughService: Door = {
  name: 'HTTP',
  members: 1,
  yieldsToRequests: true,
  async verify(request) {
    const { mail, clock, start } = prepareService(request)
    const service = await start()
    const reasons = await untilSettled(clock, mail, submitAndRead(service, clock, request.texts))
    await untilSettled(clock, mail, service.close())
    return { reasons, mail }
  },
}

/** Open sessions can finish even on a busy machine. */
const MEMBER_TIMINGS: Timings = {
  ...FAST_TIMINGS,
  worker: { ...FAST_TIMINGS.worker, drainMs: MINUTE },
}

/** Creates a database and mail servers for members of a cluster, which have the real clock. */
export async function prepareMembers(request: ListRequest) {
  const { mail, network } = prepare(request, systemClock)
  const databaseUrl = await tempPostgres()
  let key: string | undefined
  /** Starts another member. Its connection to PostgreSQL may go through a proxy. */
  async function join(url = databaseUrl): Promise<WiredService> {
    const member = await createWiredService({
      ...network,
      databaseUrl: url,
      file: toFile(request.options),
      settings: UNLIMITED,
      timings: MEMBER_TIMINGS,
      key,
    })
    key = member.key
    return member
  }
  return { mail, databaseUrl, join }
}

export const throughMembers: Door = {
  name: 'HTTP with two members on PostgreSQL',
  members: 2,
  yieldsToRequests: true,
  async verify(request) {
    const { mail, join } = await prepareMembers(request)
    const [one, other] = [await join(), await join()]
    const reasons = await submitAndRead(one, systemClock, request.texts)
    await Promise.all([one.close(), other.close()])
    return { reasons, mail }
  },
}

const UNLIMITED = { limits: 'off' }

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

/** Waits until a job of a service is finished. */
export async function untilFinished(
  service: WiredService,
  clock: Clock,
  jobId: string,
): Promise<void> {
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
  const isSettled = watchPromise(promise)
  await letTimePass(clock, isSettled, { stepMs: STEP_MS, maxMs: DAY })
  return promise
}

/**
 * Advances the clock of a list until the promise settles. Files, and requests that go before lists,
 * take real time: until nothing was asked of a mail server for some of it, the clock advances slowly.
 */
export async function untilSettled<T>(
  clock: FakeClock,
  mail: ListMail,
  promise: Promise<T>,
): Promise<T> {
  const isSettled = watchPromise(promise)
  for (let quietTurns = 0; !isSettled(); ) {
    const isQuiet = quietTurns > QUIET_TURNS
    const isBusy = await advance(clock, mail, isQuiet ? QUIET_STEP_MS : STEP_MS)
    quietTurns = isBusy ? 0 : quietTurns + 1
    if (!isBusy && !isQuiet) await setTimeout(1)
  }
  return promise
}

/** Advances the clock of a list slowly until a condition holds, so that it can be interrupted. */
export async function untilTrue(
  clock: FakeClock,
  mail: ListMail,
  condition: () => boolean,
): Promise<void> {
  while (!condition()) {
    if (!(await advance(clock, mail, STEP_MS))) await setTimeout(1)
  }
}

/** Advances the clock, and returns whether anything is or was asked of a mail server. */
async function advance(clock: FakeClock, mail: ListMail, ms: number): Promise<boolean> {
  const before = mail.activity()
  await clock.advance(ms)
  await drainEventLoop()
  return mail.open() > 0 || mail.activity() > before
}

function watchPromise(promise: Promise<unknown>): () => boolean {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  promise.then(settle, settle)
  return () => isSettled
}

/** The settings as the content of a config file. */
function toFile(options: ListOptions = {}): Record<string, unknown> {
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
