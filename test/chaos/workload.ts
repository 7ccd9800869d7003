import { setTimeout } from 'node:timers/promises'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { wholeAnswer } from '../support/service-process.ts'

/** Results that clients received with 200. The service must not lose any of them. */
export type Acknowledged = {
  /** Reason by address. Each was requested under an Idempotency-Key until it was answered. */
  readonly singles: Map<string, string>
  /** The same, requested once without a key: the history may have more of them. */
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
  /** Number of responses by status, without 200. */
  readonly refusals: ReadonlyMap<number, number>
  /** Resolves with the next acknowledgement. */
  next(): Promise<void>
  /** Resolves when there is one more acknowledgement of each kind. */
  everyKind(): Promise<void>
  /** Resolves when all requests under a key are acknowledged. */
  stop(): Promise<void>
}

export type Target = { readonly url: string }

const BATCH_ROWS = 100
const INSTANT_ROWS = 5
/** Pause between two requests of a client, and before a retry. */
const PAUSE_MS = 20

/**
 * Starts clients that send every kind of request until they are stopped. `target` returns the
 * current service, which may be killed and restarted.
 */
export function startWorkload(target: () => Target, key: string): Workload {
  const acknowledged: Acknowledged = {
    singles: new Map(),
    singlesWithoutKey: new Map(),
    asyncSingles: new Map(),
    instantLists: new Map(),
    batches: new Map(),
  }
  const refusals = new Map<number, number>()
  const kinds = Object.values(acknowledged)
  let isStopped = false
  let next = Promise.withResolvers<void>()

  async function send(path: string, body: object, idempotencyKey: string | null) {
    const headers = {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      ...(idempotencyKey === null ? {} : { 'Idempotency-Key': idempotencyKey }),
    }
    const text = JSON.stringify(body)
    const init = { method: 'POST', headers, body: text }
    const response = await wholeAnswer(`${target().url}${path}`, init)
    if (response === null) return null
    if (response.status === 200) {
      // This resolves after the client has recorded the response.
      setImmediate(next.resolve)
      next = Promise.withResolvers()
      return JSON.parse(response.text) as ResponseBody
    }
    refusals.set(response.status, (refusals.get(response.status) ?? 0) + 1)
    // A request under the same key may still be in flight, or storage cannot be written.
    if (![409, 503, 507].includes(response.status)) throw new Error(response.text)
    return null
  }
  async function sendUntilAnswered(path: string, body: object, idempotencyKey: string) {
    for (;;) {
      const response = await send(path, body, idempotencyKey)
      if (response !== null) return response
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
      const { reason } = await sendUntilAnswered('/v1/verify/single', { email }, email)
      acknowledged.singles.set(email, reason)
    })
  const singleWithoutKey = (client: number, domain?: string) =>
    repeat(async n => {
      const email = addressOf(`unkeyed${client}`, n, domain)
      const response = await send('/v1/verify/single', { email }, null)
      if (response !== null) acknowledged.singlesWithoutKey.set(email, response.reason)
    })
  const asyncSingle = () =>
    repeat(async n => {
      const email = addressOf('async', n)
      const body = { email, async: true }
      const response = await sendUntilAnswered('/v1/verify/single', body, email)
      acknowledged.asyncSingles.set(response.verification_id, email)
    })
  const instantList = () =>
    repeat(async n => {
      const emails = rowsOf(`instant${n}`, INSTANT_ROWS)
      const response = await sendUntilAnswered('/v1/verify/bulk', { emails }, `instant ${n}`)
      const reasons = response.results.map(({ email, reason }) => [email, reason] as const)
      acknowledged.instantLists.set(response.job_id, new Map(reasons))
    })
  const batch = (client: number) =>
    repeat(async n => {
      const emails = rowsOf(`batch${client}n${n}`, BATCH_ROWS)
      const idempotencyKey = `batch ${client} ${n}`
      const { job_id } = await sendUntilAnswered('/v1/verify/batch', { emails }, idempotencyKey)
      acknowledged.batches.set(job_id, emails)
      while (!isStopped && !(await isCompleted(job_id))) await setTimeout(PAUSE_MS)
    })
  async function isCompleted(jobId: string): Promise<boolean> {
    const headers = { Authorization: `Bearer ${key}` }
    const response = await wholeAnswer(`${target().url}/v1/jobs/${jobId}`, { headers })
    if (response?.status === 404) throw new Error(`${jobId} was acknowledged and is gone`)
    return response?.status === 200 && JSON.parse(response.text).status === 'completed'
  }
  const clients = Promise.all([
    ...[0, 1, 2].map(single),
    ...[0, 1].map(client => singleWithoutKey(client)),
    // It takes three seconds, is unknown and costs nothing: its reservation is released.
    singleWithoutKey(2, 'later.test'),
    ...[asyncSingle(), instantList(), batch(0), batch(1)],
  ])
  /** Rejects if a client gets an unexpected response. */
  const failed = new Promise<never>((_, reject) => clients.catch(reject))
  failed.catch(() => {})
  return {
    acknowledged,
    refusals,
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

type ResponseBody = {
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

/** Returns the expected reason of an address of a list in `WORKLOAD_SCENARIO`. */
export function expectedReason(email: string): string {
  const domain = Number(/@d(\d+)\.test$/.exec(email)?.[1])
  if (isCatchAll(domain)) return 'catch_all'
  return email.startsWith('gone') ? 'rejected_email' : 'accepted_email'
}

const NAMES = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)

/** Polite hosts, some catch-all hosts, and one that defers each recipient after a delay. */
export const WORKLOAD_SCENARIO: Scenario = {
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

/** The config file of a service that does not limit the clients of the workload. */
export const WORKLOAD_CONFIG = {
  'ip-limits': { 'single-per-minute': 1_000_000, 'bulk-per-hour': 1_000_000 },
  plans: {
    team: { requests: 10_000, per: 'second', 'credits-per-day': 1_000_000 },
    flooded: { requests: 20, per: 'minute', 'credits-per-day': 1_000_000 },
  },
}
