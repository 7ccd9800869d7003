import { hostname } from 'node:os'
import type { Hono } from 'hono'
import { createUsageLedger, type UsageLedger } from '../accounts/credits/usage-ledger.ts'
import { mergePlans, type Plan } from '../accounts/plan.ts'
import type { Env } from '../api/context.ts'
import { createMetrics } from '../api/metrics.ts'
import { monitoringApp } from '../api/monitoring.ts'
import type { MonitoringDeps } from '../api/service.ts'
import { openCatchAll } from '../cluster/catch-all.ts'
import { openLearnedReplies } from '../cluster/learned-replies.ts'
import { type Membership, startMembership } from '../cluster/membership.ts'
import { openSharedRates } from '../cluster/rate-control/rate-coordinator.ts'
import type { MemberRole } from '../cluster/tables.ts'
import { openWitnesses } from '../cluster/witnesses.ts'
import type { Config } from '../config/settings.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { ListeningPool } from '../db/postgres/listening-pool.ts'
import { startClockSync } from '../db/synchronize-clock.ts'
import { unusableServer } from '../db/unusable.ts'
import { localCache } from '../engine/batched-cache.ts'
import type { Engine } from '../engine/engine.ts'
import type { ListLoader } from '../engine/lists.ts'
import { readMachineStatus } from '../engine/machine-status.ts'
import type { ResultCache } from '../engine/result-cache.ts'
import { FeedbackKnowledge } from '../feedback/knowledge.ts'
import { ListWorker } from '../jobs/list/list-worker.ts'
import { memberClaims } from '../jobs/member-claims.ts'
import { watchCancellations } from '../jobs/worker/cancellation-poller.ts'
import { startUnpinning } from '../jobs/worker/unpin-items.ts'
import type { JobWorker } from '../jobs/worker/worker-deps.ts'
import { systemClock } from '../platform/clock.ts'
import { writeLog } from '../platform/log.ts'
import { Priority } from '../platform/priority.ts'
import { systemRandom } from '../platform/random.ts'
import { createBossQueue, QUEUE_CONNECTIONS } from '../queue/boss-queue.ts'
import { createMemoryQueue } from '../queue/memory-queue.ts'
import type { Queue } from '../queue/queue.ts'
import { type ClusterDeps, composeEngine, type ExternalDeps, getNetwork } from './engine.ts'
import { COMPOSE_LOG } from './telemetry.ts'
import { checkTimings, DEFAULT_TIMINGS, type Timings } from './timings.ts'

export type WorkDeps = {
  /** `sqlite:FILE`, or `postgres://…` for a cluster. */
  readonly databaseUrl: string
  /** Public URL without a trailing slash. */
  readonly baseUrl: string
  readonly version: string
  readonly lists: ListLoader
  /** Tests pass shorter ones. */
  readonly timings?: Timings
  /** Tests pass one that shares connections. */
  readonly openDatabase?: typeof openDatabase
}

/** The background services that process jobs. */
export interface WorkerServices {
  readonly database: Database
  readonly worker: JobWorker
  /** Member ID in the cluster; null on SQLite. */
  readonly member: () => string | null
  /** Starts the drain: no new work starts, work in flight finishes. */
  stopSoon(): void
  /** Stops work, writes pending results, releases claims and closes all resources. */
  close(): Promise<void>
}

/** The background services with what the API uses. */
export interface Services extends WorkerServices {
  readonly plans: ReadonlyMap<string, Plan>
  readonly ledger: UsageLedger
  readonly engine: Engine
  readonly feedback: FeedbackKnowledge
  readonly priority: Priority
  /** Queue of webhook deliveries. */
  readonly queue: Queue
}

/** Services of `ev worker`, with monitoring. */
export interface MonitoredWorker extends WorkerServices {
  /** Serves only health and metrics. */
  readonly watch: Pick<Hono<Env>, 'fetch'>
}

/** Builds `ev worker`, which processes jobs and serves no API. */
export async function composeWorker(
  config: Config,
  externalDeps: ExternalDeps,
  deps: WorkDeps,
): Promise<MonitoredWorker> {
  const work = await composeWork({ ...config, work: true }, externalDeps, {
    ...deps,
    role: 'worker',
  })
  const { clock = systemClock, random = systemRandom, log } = externalDeps
  const { trustProxy, metricsToken } = config
  let isStopping = false
  const watched: MonitoringDeps = {
    clock,
    random,
    log,
    database: work.database,
    engine: work.engine,
    worker: work.worker,
    settings: { baseUrl: deps.baseUrl, version: deps.version, trustProxy, metricsToken },
    machine: () =>
      readMachineStatus(work.engine, { smtpPort: config.smtpPort, findPortFailure: () => null }),
    // A worker accepts no lists.
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

type MemberDeps = WorkDeps & { readonly role: MemberRole }

/** Builds the background services that process jobs. */
export async function composeWork(
  config: Config,
  externalDeps: ExternalDeps,
  deps: MemberDeps,
): Promise<Services> {
  const { timings = DEFAULT_TIMINGS } = deps
  checkTimings(timings)
  const clock = externalDeps.clock ?? systemClock
  const open = deps.openDatabase ?? openDatabase
  const database = await open(deps.databaseUrl, clock, {
    timings: timings.pool,
    connections: config.databaseConnections - QUEUE_CONNECTIONS,
  })
  let shared: Shared | null = null
  try {
    // A SQLite file belongs to one process: there is no cluster to join.
    if (database.dialect === 'postgres') {
      shared = await joinCluster(database, config, externalDeps, deps)
    }
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
  { lists, baseUrl, timings = DEFAULT_TIMINGS }: MemberDeps,
): Services {
  const { clock = systemClock, random = systemRandom, log } = externalDeps
  const plans = mergePlans(config.plans)
  const member = () => shared?.cluster.id ?? null
  const ledger = createUsageLedger({ database, clock, random, log, plans, member })
  const feedback = new FeedbackKnowledge(database, config)
  const sandbox = composeEngine(config, externalDeps, { sandbox: true, lists })
  // Measures the real event loop, so it takes the real clock.
  const priority = new Priority(systemClock)
  const worker = new ListWorker({
    database,
    log,
    random,
    ledger,
    baseUrl,
    actionPolicy: config.actionPolicy,
    priority,
    feedback,
    ...(shared === null ? {} : { queue: shared.queue, cluster: shared.cluster }),
    engineFor: job => (job.sandbox === 1 ? sandbox : engine),
    egresses: probingEgresses(config),
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: true,
    onFinishing: job => writeLog(log, COMPOSE_LOG.jobFinishing, { job }),
    timings: timings.worker,
  })
  let isStopping = false
  const cache: ResultCache = {
    ...worker.cache,
    // The worker writes nothing during shutdown.
    set: async entries => {
      if (!isStopping) await worker.cache.set(entries)
    },
  }
  const stores = { database, log, network: getNetwork(config) }
  const learnedReplies = openLearnedReplies(stores)
  const witnesses = openWitnesses(stores)
  // An answer is visible here before its batch is committed.
  const layeredCache = localCache(cache, clock)
  const engine = composeEngine(config, externalDeps, {
    lists,
    learnedReplies,
    // Without a cache, a list that is deleted leaves no address behind.
    ...(config.cache ? { cache: layeredCache, witnesses } : {}),
    ...(shared === null ? {} : { cluster: shared.clusterDeps }),
  })
  const { egressPool } = engine
  const poller = watchCancellations(database, worker, log, timings.worker.cancellationPollMs)
  const unpinning =
    shared === null || !config.work
      ? null
      : startUnpinning({
          database,
          egressPool,
          random,
          log,
          egresses: shared.clusterDeps.egresses,
          timings: timings.cluster,
        })
  const clockSync = startClockSync(database, log)
  return {
    database,
    plans,
    ledger,
    engine,
    priority,
    worker,
    member,
    feedback,
    queue: shared?.queue ?? createMemoryQueue(database.steadyClock, log, timings.queue),
    stopSoon() {
      isStopping = true
      priority.stop()
      void poller.stop()
      void unpinning?.stop()
      void worker.stop()
    },
    async close() {
      isStopping = true
      priority.stop()
      await Promise.all([poller.stop(), unpinning?.stop(), worker.stop(), clockSync.stop()])
      await ledger.stop()
      await Promise.all([engine.close(), sandbox.close()])
      await Promise.all([learnedReplies.close(), witnesses.close()])
      await shared?.close()
      await database.close()
    },
  }
}

/** State shared with the other members of the cluster. */
type Shared = {
  readonly queue: Queue
  readonly cluster: Membership
  readonly clusterDeps: ClusterDeps
  /** Writes pending shared state, releases claims and deregisters the member. */
  close(): Promise<void>
}

async function joinCluster(
  database: Database,
  config: Config,
  { clock = systemClock, random = systemRandom, log }: ExternalDeps,
  { role, version, databaseUrl, timings = DEFAULT_TIMINGS }: MemberDeps,
): Promise<Shared> {
  const options = { max: QUEUE_CONNECTIONS, name: 'ev queue', timings: timings.pool }
  const queue = await createBossQueue({
    database: new ListeningPool(databaseUrl, clock, options),
    clock: database.steadyClock,
    log,
    random,
    timings: timings.queue,
  }).catch(error => {
    throw unusableServer(databaseUrl, error)
  })
  const name = `${hostname()}:${process.pid}`
  const cluster = await startMembership({
    claims: memberClaims,
    role,
    version,
    name,
    egresses: probingEgresses(config),
    database,
    random,
    log,
    timings: timings.cluster,
  }).catch(async error => {
    await queue.close()
    throw error
  })
  const rateStates = openSharedRates({
    database,
    log,
    member: () => cluster.id,
    timings: timings.rates,
  })
  const catchAll = openCatchAll({ database, log, timings: timings.catchAll })
  return {
    queue,
    cluster,
    clusterDeps: { rateStates, catchAll, egresses: () => cluster.egresses() },
    async close() {
      await Promise.all([rateStates.close(), catchAll.close(), queue.close()])
      await cluster.stop()
    },
  }
}

/**
 * Egresses that probe for jobs. Single verifications use the egresses of the process that serves
 * them.
 */
const probingEgresses = ({ egresses, work }: Config) =>
  work ? egresses.map(({ name }) => name) : []
