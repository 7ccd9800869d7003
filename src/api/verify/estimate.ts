import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import { countWaitingAt, unroutedRows } from '../../jobs/backlog.ts'
import type { JobOptions } from '../../jobs/job-store.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatEstimate } from '../../platform/format.ts'

/** Addresses to be asked, by the operator of their mail servers. */
export type Demand = { readonly operator: string; readonly addresses: number }

/** Nobody is asked, but each result is written down. */
const SIMULATED_PER_SECOND = 5_000
/** A list has up to 1,000 DNS lookups in flight (`work/route/route-items.ts`), and a slow one takes a second. */
const LOOKED_UP_PER_SECOND = 1_000
/** Looking up where mail goes, and the first conversation. */
const BEGINNING_MS = 5 * SECOND
/** How long one connection takes: greeting pauses of a second and more are common. */
const CONNECTION_S = 2
/** Operators whose queue is counted. */
const SLOWEST_MAX = 5

/** How long a list takes in which each domain has so many addresses, in words. */
export async function estimatedTime(
  deps: EstimateDeps,
  o: {
    /** Null: it is no job. */
    readonly jobId: string | null
    readonly domains: ReadonlyMap<string, number>
    readonly sandbox: boolean
    readonly checkSmtp: boolean
  },
): Promise<string> {
  if (o.sandbox) return simulatedTime(sumOf(o.domains.values()))
  if (!o.checkSmtp) return formatEstimate(usualMs(deps.engine, sumOf(o.domains.values()), o))
  const demands = demandsOf(deps.engine, o.domains)
  return formatEstimate(BEGINNING_MS + (await askingMs(deps, o.jobId, demands)))
}

export type EstimateDeps = {
  readonly engine: Engine
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
}

/**
 * How long so many addresses commonly take, in ms: half of a list is at one operator, and the others are
 * asked at the same time. Without mail servers it is the time of their DNS lookups.
 */
export function usualMs(
  { egressPool }: Engine,
  addresses: number,
  { checkSmtp }: Pick<JobOptions, 'checkSmtp'>,
): number {
  if (!checkSmtp) return BEGINNING_MS + (addresses / LOOKED_UP_PER_SECOND) * SECOND
  const { sessionsPerSecond, recipientsPerSession } = egressPool.row(USUAL_OPERATOR)
  const perSecond = sessionsPerSecond * recipientsPerSession
  return BEGINNING_MS + ((addresses * SHARE_OF_LARGEST) / perSecond) * SECOND
}

const SHARE_OF_LARGEST = 0.5
/** An operator without a row of its own in the table of paces. */
const USUAL_OPERATOR = 'example.com'

/** How long it takes to simulate so many, in words. */
export const simulatedTime = (addresses: number) =>
  formatEstimate((addresses / SIMULATED_PER_SECOND) * SECOND)

/** By operator, as far as it is known before the DNS is asked. */
function demandsOf(engine: Engine, domains: ReadonlyMap<string, number>): Demand[] {
  const byOperator = new Map<string, number>()
  for (const [domain, count] of domains) {
    const operator = engine.likelyOperator(domain)
    byOperator.set(operator, (byOperator.get(operator) ?? 0) + count)
  }
  return [...byOperator].map(([operator, addresses]) => ({ operator, addresses }))
}

/**
 * How long mail servers take over a list, in ms. Operators are asked at the same time, so it is the time of
 * the slowest one, or that of all connections where there are many operators.
 */
export async function askingMs(
  { engine, database, clock }: EstimateDeps,
  jobId: string | null,
  demands: readonly Demand[],
): Promise<number> {
  const now = clock.now()
  const unrouted = await unroutedRows(database, jobId)
  const all = Math.max(1, sumOf(demands.map(({ addresses }) => addresses)))
  const slowest = demands
    .map(demand => ({ ...demand, ms: operatorMs(engine, demand, now) }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, SLOWEST_MAX)
  let longest = connectionsMs(engine, demands)
  for (const { operator, addresses } of slowest) {
    const { rows, jobs } = await countWaitingAt(database, operator, jobId)
    // What has no operator yet is taken to be spread as this list is.
    const others = rows + unrouted * (addresses / all)
    // Lists are asked in turn: each of the others delays this one by no more than its own size.
    const ahead = Math.min(others, addresses * Math.max(1, jobs))
    const ms = operatorMs(engine, { operator, addresses: addresses + ahead }, now)
    longest = Math.max(longest, ms)
  }
  return longest
}

/** The time of all connections, so many at once. */
function connectionsMs({ egressPool, concurrency }: Engine, demands: readonly Demand[]): number {
  const connections = demands.map(({ operator, addresses }) =>
    Math.ceil(addresses / egressPool.row(operator).recipientsPerSession),
  )
  return (sumOf(connections) / concurrency) * CONNECTION_S * SECOND
}

/** How long one operator takes, at the pace that it accepts at present, in ms. */
function operatorMs(engine: Engine, { operator, addresses }: Demand, now: number): number {
  const { egressPool } = engine
  const row = egressPool.row(operator)
  const known = engine.rateStatus(operator)
  const connections = Math.ceil(addresses / row.recipientsPerSession)
  const sessions = Math.max(1, known?.sessionsAllowed ?? row.sessionsMax)
  const perSecond = Math.min(
    known?.sessionsPerSecond ?? row.sessionsPerSecond,
    sessions / CONNECTION_S,
  )
  const egresses = egressPool.sharesLists(operator)
    ? Math.max(1, egressPool.ranked(operator).length)
    : 1
  const pausedMs = Math.max(0, (known?.pause?.until ?? 0) - now)
  return pausedMs + (connections / (perSecond * egresses)) * SECOND
}

const sumOf = (counts: Iterable<number>) => [...counts].reduce((sum, count) => sum + count, 0)
