import { hostname } from 'node:os'
import type { Hono } from 'hono'
import { createUsageLedger, type UsageLedger } from '../accounts/credits/usage-ledger.ts'
import { mergePlans, type Plan } from '../accounts/plan.ts'
import type { Env } from '../api/context.ts'
import { createMetrics } from '../api/monitoring/metrics.ts'
import type { MonitoringDeps } from '../api/monitoring/monitored.ts'
import { monitoringApp } from '../api/monitoring/monitoring-app.ts'
import { openCatchAll } from '../cluster/catch-all.ts'
import { type Membership, startMembership } from '../cluster/membership.ts'
import { openSharedRates } from '../cluster/rate-control/rate-coordinator.ts'
import type { MemberRole } from '../cluster/tables.ts'
import type { Config } from '../config/settings.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { ListeningPool } from '../db/postgres/listening-pool.ts'
import { unusableServer } from '../db/unusable.ts'
import { localCache } from '../engine/batched-cache.ts'
import type { Engine } from '../engine/engine.ts'
import type { ListLoader } from '../engine/lists.ts'
import type { ResultCache } from '../engine/result-cache.ts'
import { memberClaims } from '../jobs/member-claims.ts'
import { watchCancellations } from '../jobs/worker/cancellation-poller.ts'
import { startReconcile } from '../jobs/worker/reconcile.ts'
import { type JobWorker, startWorker } from '../jobs/worker/start-worker.ts'
import { systemClock } from '../platform/clock.ts'
import { Priority } from '../platform/priority.ts'
import { systemRandom } from '../platform/random.ts'
import { bossQueue, QUEUE_CONNECTIONS } from '../queue/boss-queue.ts'
import { memoryQueue } from '../queue/memory-queue.ts'
import type { Queue } from '../queue/queue.ts'
import { type ClusterDeps, composeEngine, type ExternalDeps } from './engine.ts'
import { checkTimings, DEFAULT_TIMINGS, type Timings } from './timings.ts'

export type WorkDeps = {
  /** `sqlite:FILE`, or `postgres://…` where others work too. */
  readonly databaseUrl: string
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  readonly version: string
  readonly lists: ListLoader
  /** Shorter ones for tests. */
  readonly timings?: Timings
}

/** What works on jobs by itself. */
export interface WorkerServices {
  readonly database: Database
  readonly worker: JobWorker
  /** Under which ID it is known now to others that work on the database; null: nobody else does. */
  readonly member: () => string | null
  /** Begins nothing new from now on; what is under way comes to its end. */
  stopSoon(): void
  /** Ends work, writes what is not written yet, gives back what it had in hand, and closes everything. */
  close(): Promise<void>
}

/** The same, with what a service asks by itself. */
export interface Services extends WorkerServices {
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>
  readonly ledger: UsageLedger
  readonly engine: Engine
  readonly priority: Priority
  /** Where deliveries find their turn. */
  readonly queue: Queue
}

/** `ev worker`: what works on jobs, with what tells how it is. */
export interface WatchedWorker extends WorkerServices {
  /** Answers health and metrics alone. */
  readonly watch: Pick<Hono<Env>, 'fetch'>
}

/** `ev worker`: works on the jobs of accounts, and has no API. */
export async function composeWorker(
  config: Config,
  externalDeps: ExternalDeps,
  deps: WorkDeps,
): Promise<WatchedWorker> {
  const work = await composeWork({ ...config, work: true }, externalDeps, {
    ...deps,
    role: 'worker',
  })
  const { clock = systemClock, random = systemRandom, log } = externalDeps
  const { trustProxy, metricsToken } = config
  let isStopping = false
  const watched: MonitoringDeps = {
    ...{ clock, random, log, database: work.database, engine: work.engine, worker: work.worker },
    settings: { baseUrl: deps.baseUrl, version: deps.version, trustProxy, metricsToken },
    // It takes no lists.
    disk: async () => ({ freeBytes: null, isLow: false }),
    isStopping: () => isStopping,
  }
  return {
    ...work,
    watch: monitoringApp(watched, createMetrics(watched)),
    stopSoon() {
      isStopping = true
      work.stopSoon()
    },
  }
}

type OwnDeps = WorkDeps & { readonly role: MemberRole }

/** Builds from settings and doors what works on jobs. */
export async function composeWork(
  config: Config,
  externalDeps: ExternalDeps,
  deps: OwnDeps,
): Promise<Services> {
  const { timings = DEFAULT_TIMINGS } = deps
  checkTimings(timings)
  const clock = externalDeps.clock ?? systemClock
  const database = await openDatabase(deps.databaseUrl, clock, {
    timings: timings.pool,
    connections: config.databaseConnections - QUEUE_CONNECTIONS,
  })
  let shared: Shared | null = null
  try {
    // A file is worked on by one process, which has nothing in common with others.
    if (database.dialect === 'postgres') shared = await join(database, config, externalDeps, deps)
    return build({ database, shared }, config, externalDeps, deps)
  } catch (error) {
    await shared?.close()
    await database.close()
    throw error
  }
}

function build(
  { database, shared }: { readonly database: Database; readonly shared: Shared | null },
  config: Config,
  externalDeps: ExternalDeps,
  { lists, baseUrl, timings = DEFAULT_TIMINGS }: OwnDeps,
): Services {
  const { clock = systemClock, random = systemRandom, log } = externalDeps
  const plans = mergePlans(config.plans)
  const member = () => shared?.cluster.id ?? null
  const ledger = createUsageLedger({ database, clock, random, log, plans, member })
  const sandbox = composeEngine(config, externalDeps, { sandbox: true, lists })
  // The event loop has a time of its own, whatever the clock is.
  const priority = new Priority(systemClock)
  const worker = startWorker({
    ...{ database, log, random, ledger, baseUrl, priority },
    ...(shared === null ? {} : { queue: shared.queue, cluster: shared.cluster }),
    engineFor: job => (job.sandbox === 1 ? sandbox : engine),
    egresses: askingFor(config),
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: () => true,
    timings: timings.worker,
  })
  let isStopping = false
  const cache: ResultCache = {
    ...worker.cache,
    // At the end the worker writes nothing more.
    set: async entries => {
      if (!isStopping) await worker.cache.set(entries)
    },
  }
  const layeredCache = shared === null ? cache : localCache(cache, clock)
  const engine = composeEngine(config, externalDeps, {
    ...{ lists, ...(config.cache ? { cache: layeredCache } : {}) },
    ...(shared === null ? {} : { cluster: shared.common }),
  })
  const { egressPool } = engine
  const watch =
    shared === null
      ? watchAlone(database, worker, externalDeps, timings)
      : config.work
        ? startReconcile({
            ...{ database, queue: shared.queue, egressPool, random, log },
            egresses: shared.common.egresses,
            timings: timings.cluster,
          })
        : null
  return {
    ...{ database, plans, ledger, engine, priority, worker, member },
    queue: shared?.queue ?? memoryQueue(clock, log, timings.queue),
    stopSoon() {
      isStopping = true
      priority.stop()
      void watch?.stop()
      void worker.stop()
    },
    async close() {
      isStopping = true
      priority.stop()
      await Promise.all([watch?.stop(), worker.stop()])
      await ledger.stop()
      await Promise.all([engine.close(), sandbox.close()])
      await shared?.close()
      await database.close()
    },
  }
}

/** What this process has in common with others that work on the same database. */
type Shared = {
  readonly queue: Queue
  readonly cluster: Membership
  readonly common: ClusterDeps
  /** Tells the others what they do not know yet, gives back what it has in hand, and leaves. */
  close(): Promise<void>
}

async function join(
  database: Database,
  config: Config,
  { clock = systemClock, random = systemRandom, log }: ExternalDeps,
  { role, version, databaseUrl, timings = DEFAULT_TIMINGS }: OwnDeps,
): Promise<Shared> {
  const options = { max: QUEUE_CONNECTIONS, name: 'ev queue', timings: timings.pool }
  const queue = await bossQueue({
    database: new ListeningPool(databaseUrl, clock, options),
    ...{ clock, log, random, timings: timings.queue },
  }).catch(error => {
    throw unusableServer(databaseUrl, error)
  })
  const own = { role, version, name: `${hostname()}:${process.pid}`, egresses: askingFor(config) }
  const cluster = await startMembership({
    claims: memberClaims,
    ...{ ...own, database, random, log, timings: timings.cluster },
  }).catch(async error => {
    await queue.close()
    throw error
  })
  const paces = openSharedRates({ database, log, member: () => cluster.id, timings: timings.rates })
  const catchAll = openCatchAll({ database, log, timings: timings.catchAll })
  return {
    ...{ queue, cluster },
    common: { rateStates: paces, catchAll, egresses: () => cluster.egresses() },
    async close() {
      await Promise.all([paces.close(), catchAll.close(), queue.close()])
      await cluster.stop()
    },
  }
}

/** Egresses that addresses of lists are asked by; single ones are asked wherever somebody waits for them. */
const askingFor = ({ egresses, work }: Config) => (work ? egresses.map(({ name }) => name) : [])

function watchAlone(
  database: Database,
  worker: JobWorker,
  { log }: ExternalDeps,
  timings: Timings,
) {
  return watchCancellations(database, worker, log, timings.worker.withdrawalLookMs)
}
