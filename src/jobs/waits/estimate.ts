import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatEstimate } from '../../platform/format.ts'
import type { JobOptions } from '../job-store.ts'
import { countWaitingAt, unroutedRows } from './backlog.ts'

/** Number of addresses to probe at an operator. */
type Demand = { readonly operator: string; readonly addresses: number }

/** Simulated results are not probed, but they are stored. */
const SIMULATED_PER_SECOND = 5_000
/** The scheduler has up to 1,000 DNS lookups in flight (`ROUTING_MAX`), and a slow one takes a second. */
const LOOKUPS_PER_SECOND = 1_000
/** The DNS lookups and the first SMTP session. */
const STARTUP_MS = 5 * SECOND
/** Duration of one connection: greeting delays of a second and more are common. */
const CONNECTION_S = 2
/** Operators with a backlog that is counted. */
const SLOWEST_MAX = 5

/** Estimates the duration of a list from the number of addresses of each domain, in words. */
export async function estimatedTime(
  deps: EstimateDeps,
  o: {
    /** Null if there is no job. */
    readonly jobId: string | null
    readonly domains: ReadonlyMap<string, number>
    readonly sandbox: boolean
    readonly checkSmtp: boolean
  },
): Promise<string> {
  if (o.sandbox) return formatEstimate(simulatedMs(total(o.domains.values())))
  if (!o.checkSmtp) return formatEstimate(typicalMs(deps.engine, total(o.domains.values()), o))
  const demands = groupByOperator(deps.engine, o.domains)
  return formatEstimate(STARTUP_MS + (await probingMs(deps, o.jobId, demands)))
}

type EstimateDeps = {
  readonly engine: Engine
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Typical duration for a number of addresses, in ms: half of a list is at one operator, and the
 * others are probed at the same time. Without SMTP it is the time of the DNS lookups.
 */
export function typicalMs(
  { egressPool }: Engine,
  addresses: number,
  { checkSmtp }: Pick<JobOptions, 'checkSmtp'>,
): number {
  if (!checkSmtp) return STARTUP_MS + (addresses / LOOKUPS_PER_SECOND) * SECOND
  const { sessionsPerSecond, recipientsPerSession } = egressPool.limitsFor(TYPICAL_OPERATOR)
  const perSecond = sessionsPerSecond * recipientsPerSession
  return STARTUP_MS + ((addresses * SHARE_OF_LARGEST) / perSecond) * SECOND
}

const SHARE_OF_LARGEST = 0.5
/** An operator that the table of rate limits does not have. */
const TYPICAL_OPERATOR = 'example.com'

/** Duration of a simulated list, in ms. */
export const simulatedMs = (addresses: number) => (addresses / SIMULATED_PER_SECOND) * SECOND

/** Groups addresses by operator, as far as it is known before DNS lookups. */
function groupByOperator(engine: Engine, domains: ReadonlyMap<string, number>): Demand[] {
  const byOperator = new Map<string, number>()
  for (const [domain, count] of domains) {
    const operator = engine.likelyOperator(domain)
    byOperator.set(operator, (byOperator.get(operator) ?? 0) + count)
  }
  return [...byOperator].map(([operator, addresses]) => ({ operator, addresses }))
}

/**
 * Estimates how long mail servers take for a list, in ms. Operators are probed at the same time, so
 * it is the time of the slowest one, or that of all connections if there are many operators.
 */
export async function probingMs(
  { engine, database, clock }: EstimateDeps,
  jobId: string | null,
  demands: readonly Demand[],
): Promise<number> {
  const now = clock.now()
  const unrouted = await unroutedRows(database, jobId)
  const all = Math.max(1, total(demands.map(({ addresses }) => addresses)))
  const slowest = demands
    .map(demand => ({ ...demand, ms: operatorMs(engine, demand, now) }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, SLOWEST_MAX)
  let longest = connectionsMs(engine, demands)
  for (const { operator, addresses } of slowest) {
    const { rows, jobs } = await countWaitingAt(database, operator, jobId)
    // Unrouted rows are assumed to be distributed like this list.
    const others = rows + unrouted * (addresses / all)
    // Lists take turns: each of the others delays this one by no more than its own size.
    const ahead = Math.min(others, addresses * Math.max(1, jobs))
    const ms = operatorMs(engine, { operator, addresses: addresses + ahead }, now)
    longest = Math.max(longest, ms)
  }
  return longest
}

/** Time of all connections at the concurrency of the engine. */
function connectionsMs({ egressPool, concurrency }: Engine, demands: readonly Demand[]): number {
  const connections = demands.map(({ operator, addresses }) =>
    Math.ceil(addresses / egressPool.limitsFor(operator).recipientsPerSession),
  )
  return (total(connections) / concurrency) * CONNECTION_S * SECOND
}

/** Time of one operator at the rate that it currently accepts, in ms. */
function operatorMs(engine: Engine, { operator, addresses }: Demand, now: number): number {
  const { egressPool } = engine
  const limits = egressPool.limitsFor(operator)
  const known = engine.rateStatus(operator)
  const connections = Math.ceil(addresses / limits.recipientsPerSession)
  const sessions = Math.max(1, known?.sessionsAllowed ?? limits.sessionsMax)
  const perSecond = Math.min(
    known?.sessionsPerSecond ?? limits.sessionsPerSecond,
    sessions / CONNECTION_S,
  )
  const egresses = egressPool.sharesLists(operator)
    ? Math.max(1, egressPool.ranked(operator).length)
    : 1
  const pausedMs = Math.max(0, (known?.pause?.until ?? 0) - now)
  return pausedMs + (connections / (perSecond * egresses)) * SECOND
}

const total = (counts: Iterable<number>) => [...counts].reduce((sum, count) => sum + count, 0)
