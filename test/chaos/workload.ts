import { setTimeout } from 'node:timers/promises'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { wholeAnswer } from '../support/service-process.ts'

/** What clients were told with 200. A promise of the service is anything in here. */
export type Acknowledged = {
  /** Reason by address. Each was asked for under an Idempotency-Key until it was answered. */
  readonly singles: Map<string, string>
  /** The same, asked for once without a key: more may be in the history than clients know of. */
  readonly singlesWithoutKey: Map<string, string>
  /** Address by verification ID. */
  readonly asyncSingles: Map<string, string>
  /** Reasons in the order of rows, by job ID and by address. */
  readonly instantLists: Map<string, Map<string, string>>
  /** Addresses in the order of rows, by job ID. */
  readonly batches: Map<string, readonly string[]>
}

export type Workload = {
  readonly acknowledged: Acknowledged
  /** Statuses other than 200, and how often each came. */
  readonly refusals: ReadonlyMap<number, number>
  /** Resolves with the next acknowledgement. */
  next(): Promise<void>
  /** Resolves when there is one more acknowledgement of each kind. */
  everyKind(): Promise<void>
  /** Resolves when all that was asked for under a key is acknowledged. */
  stop(): Promise<void>
}

export type Target = { readonly url: string }

const BATCH_ROWS = 100
const INSTANT_ROWS = 5
/** Between two requests of one client, and before a request is repeated. */
const PAUSE_MS = 20

/**
 * Clients that ask for all that the service promises something about, until they are stopped. `target` gives the
 * service of the moment: it may be killed and started again.
 */
export function startWorkload(target: () => Target, key: string): Workload {
  const acknowledged: Acknowledged = {
    ...{ singles: new Map(), singlesWithoutKey: new Map(), asyncSingles: new Map() },
    ...{ instantLists: new Map(), batches: new Map() },
  }
  const refusals = new Map<number, number>()
  const kinds = Object.values(acknowledged)
  let isStopped = false
  let next = Promise.withResolvers<void>()

  async function ask(path: string, body: object, idempotencyKey: string | null) {
    const headers = {
      ...{ Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey }),
    }
    const text = JSON.stringify(body)
    const init = { method: 'POST', headers, body: text }
    const answer = await wholeAnswer(`${target().url}${path}`, init)
    if (answer === null) return null
    if (answer.status === 200) {
      // Once the client has noted it.
      setImmediate(next.resolve)
      next = Promise.withResolvers()
      return JSON.parse(answer.text) as Answer
    }
    refusals.set(answer.status, (refusals.get(answer.status) ?? 0) + 1)
    // A request under the same key may still be in flight, or storage cannot be written.
    if (![409, 503, 507].includes(answer.status)) throw new Error(answer.text)
    return null
  }
  async function askUntilAnswered(path: string, body: object, idempotencyKey: string) {
    for (;;) {
      const answer = await ask(path, body, idempotencyKey)
      if (answer !== null) return answer
      await setTimeout(PAUSE_MS)
    }
  }
  const repeat = async (work: (n: number) => Promise<void>) => {
    for (let n = 0; !isStopped; n++) {
      await work(n)
      await setTimeout(PAUSE_MS)
    }
  }
  const single = (client: number) =>
    repeat(async n => {
      const email = addressOf(`single${client}`, n)
      const { reason } = await askUntilAnswered('/v1/verify/single', { email }, email)
      acknowledged.singles.set(email, reason)
    })
  const singleWithoutKey = (client: number, domain?: string) =>
    repeat(async n => {
      const email = addressOf(`unkeyed${client}`, n, domain)
      const answer = await ask('/v1/verify/single', { email }, null)
      if (answer !== null) acknowledged.singlesWithoutKey.set(email, answer.reason)
    })
  const asyncSingle = () =>
    repeat(async n => {
      const email = addressOf('async', n)
      const body = { email, async: true }
      const answer = await askUntilAnswered('/v1/verify/single', body, email)
      acknowledged.asyncSingles.set(answer.verification_id, email)
    })
  const instantList = () =>
    repeat(async n => {
      const emails = rowsOf(`instant${n}`, INSTANT_ROWS)
      const answer = await askUntilAnswered('/v1/verify/bulk', { emails }, `instant ${n}`)
      const reasons = answer.results.map(({ email, reason }) => [email, reason] as const)
      acknowledged.instantLists.set(answer.job_id, new Map(reasons))
    })
  const batch = (client: number) =>
    repeat(async n => {
      const emails = rowsOf(`batch${client}n${n}`, BATCH_ROWS)
      const idempotencyKey = `batch ${client} ${n}`
      const { job_id } = await askUntilAnswered('/v1/verify/batch', { emails }, idempotencyKey)
      acknowledged.batches.set(job_id, emails)
      while (!isStopped && !(await isCompleted(job_id))) await setTimeout(PAUSE_MS)
    })
  async function isCompleted(jobId: string): Promise<boolean> {
    const headers = { Authorization: `Bearer ${key}` }
    const answer = await wholeAnswer(`${target().url}/v1/jobs/${jobId}`, { headers })
    if (answer?.status === 404) throw new Error(`${jobId} was acknowledged and is gone`)
    return answer?.status === 200 && JSON.parse(answer.text).status === 'completed'
  }
  const clients = Promise.all([
    ...[0, 1, 2].map(single),
    ...[0, 1].map(client => singleWithoutKey(client)),
    // It takes three seconds, is unknown and costs nothing: what was reserved for it goes back.
    singleWithoutKey(2, 'later.test'),
    ...[asyncSingle(), instantList(), batch(0), batch(1)],
  ])
  /** Rejects with what a client met that must not be. */
  const failed = new Promise<never>((_, reject) => clients.catch(reject))
  failed.catch(() => {})
  return {
    ...{ acknowledged, refusals },
    next: () => Promise.race([next.promise, failed]),
    async everyKind() {
      const before = kinds.map(({ size }) => size)
      while (kinds.some(({ size }, n) => size === before[n])) await this.next()
    },
    async stop() {
      isStopped = true
      await clients
    },
  }
}

type Answer = {
  readonly reason: string
  readonly job_id: string
  readonly verification_id: string
  readonly results: readonly { readonly email: string; readonly reason: string }[]
}

const DOMAINS = 20
const isCatchAll = (domain: number) => domain % 10 === 7
const isUnknownUser = (n: number) => n % 11 === 3

const addressOf = (name: string, n: number, domain = `d${n % DOMAINS}.test`) =>
  `${isUnknownUser(n) ? 'gone' : 'user'}.${name}.${n}@${domain}`

const rowsOf = (name: string, rows: number) =>
  Array.from({ length: rows }, (_, n) => addressOf(name, n))

/** What the mail servers of `WORKLOAD_WORLD` say of an address of a list. */
export function reasonInWorld(email: string): string {
  const domain = Number(/@d(\d+)\.test$/.exec(email)?.[1])
  if (isCatchAll(domain)) return 'catch_all'
  return email.startsWith('gone') ? 'rejected_email' : 'accepted_email'
}

const NAMES = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)

/** Polite hosts, some that accept every recipient, and one that answers late and for now. */
export const WORKLOAD_WORLD: Scenario = {
  roundTripMs: 10,
  mailboxes: ['user*'],
  domains: Object.fromEntries(
    [...NAMES, 'later.test'].map(name => [name, { mx: [[10, `mx.${name}`]] as const }]),
  ),
  hosts: {
    ...Object.fromEntries(
      NAMES.map((name, n) => [`mx.${name}`, { behavior: isCatchAll(n) ? 'catch-all' : 'polite' }]),
    ),
    'mx.later.test': {
      behavior: 'polite',
      rules: [{ on: 'RCPT', afterMs: 3_000, reply: '451 4.3.0 not now' }],
    },
  },
}

/** The config file of a service that holds no client of the workload to a rate. */
export const WORKLOAD_CONFIG = {
  'ip-limits': { 'single-per-minute': 1_000_000, 'bulk-per-hour': 1_000_000 },
  plans: {
    team: { requests: 10_000, per: 'second', 'credits-per-day': 1_000_000 },
    flooded: { requests: 20, per: 'minute', 'credits-per-day': 1_000_000 },
  },
}
