import { hostname } from 'node:os'
import type { Hono } from 'hono'
import { type Plan, plansWith } from './account/plan.ts'
import { systemClock } from './base/clock.ts'
import { Priority } from './base/priority.ts'
import { systemRandom } from './base/random.ts'
import type { Config } from './config/settings.ts'
import type { Engine } from './engine/engine.ts'
import type { Lists } from './engine/lists.ts'
import type { ResultMemory } from './engine/memory.ts'
import { nearMemory } from './engine/near-memory.ts'
import type { Env } from './http/context.ts'
import { createMetrics } from './http/watch/metrics.ts'
import { watchApp } from './http/watch/watch-app.ts'
import type { Watched } from './http/watch/watched.ts'
import { bossQueue, QUEUE_CONNECTIONS } from './queue/boss-queue.ts'
import { memoryQueue } from './queue/memory-queue.ts'
import type { Queue } from './queue/queue.ts'
import { openCatchAll } from './store/cluster/catch-all.ts'
import { openPaces } from './store/cluster/pace/paces.ts'
import type { MemberRole } from './store/cluster/tables.ts'
import { type Database, openDatabase } from './store/database.ts'
import { unusableServer } from './store/fault/unusable.ts'
import { ListeningPool } from './store/postgres/listening-pool.ts'
import { checkTimings, DEFAULT_TIMINGS, type Timings } from './timings.ts'
import { type ClusterParts, type Doors, wireEngine } from './wire.ts'
import { type Books, createBooks } from './work/books/books.ts'
import { type Membership, startMembership } from './work/cluster/membership.ts'
import { startReconcile } from './work/cluster/reconcile.ts'
import { startWorker } from './work/start-worker.ts'
import { watchWithdrawals } from './work/withdrawal.ts'
import type { JobWorker } from './work/worker.ts'

export type WorkParts = {
  /** `sqlite:FILE`, or `postgres://…` where others work too. */
  readonly databaseUrl: string
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  readonly version: string
  readonly lists: Lists
  /** Shorter ones for tests. */
  readonly timings?: Timings
}

/** What works on jobs by itself. */
export interface WorkerHouse {
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
export interface WorkHouse extends WorkerHouse {
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>
  readonly books: Books
  readonly engine: Engine
  readonly priority: Priority
  /** Where deliveries find their turn. */
  readonly queue: Queue
}

/** `ev worker`: what works on jobs, with what tells how it is. */
export interface WatchedWorker extends WorkerHouse {
  /** Answers health and metrics alone. */
  readonly watch: Pick<Hono<Env>, 'fetch'>
}

/** `ev worker`: works on the jobs of accounts, and has no API. */
export async function wireWorker(
  config: Config,
  doors: Doors,
  parts: WorkParts,
): Promise<WatchedWorker> {
  const work = await wireWork({ ...config, work: true }, doors, { ...parts, role: 'worker' })
  const { clock = systemClock, random = systemRandom, log } = doors
  const { trustProxy, metricsToken } = config
  let isStopping = false
  const watched: Watched = {
    ...{ clock, random, log, database: work.database, engine: work.engine, worker: work.worker },
    settings: { baseUrl: parts.baseUrl, version: parts.version, trustProxy, metricsToken },
    // It takes no lists.
    disk: async () => ({ freeBytes: null, isLow: false }),
    isStopping: () => isStopping,
  }
  return {
    ...work,
    watch: watchApp(watched, createMetrics(watched)),
    stopSoon() {
      isStopping = true
      work.stopSoon()
    },
  }
}

type OwnParts = WorkParts & { readonly role: MemberRole }

/** Builds from settings and doors what works on jobs. */
export async function wireWork(config: Config, doors: Doors, parts: OwnParts): Promise<WorkHouse> {
  const { timings = DEFAULT_TIMINGS } = parts
  checkTimings(timings)
  const clock = doors.clock ?? systemClock
  const database = await openDatabase(parts.databaseUrl, clock, {
    timings: timings.pool,
    connections: config.databaseConnections - QUEUE_CONNECTIONS,
  })
  let shared: Shared | null = null
  try {
    // A file is worked on by one process, which has nothing in common with others.
    if (database.dialect === 'postgres') shared = await join(database, config, doors, parts)
    return houseOn({ database, shared }, config, doors, parts)
  } catch (error) {
    await shared?.close()
    await database.close()
    throw error
  }
}

function houseOn(
  { database, shared }: { readonly database: Database; readonly shared: Shared | null },
  config: Config,
  doors: Doors,
  { lists, baseUrl, timings = DEFAULT_TIMINGS }: OwnParts,
): WorkHouse {
  const { clock = systemClock, random = systemRandom, log } = doors
  const plans = plansWith(config.plans)
  const member = () => shared?.cluster.id ?? null
  const books = createBooks({ database, clock, random, log, plans, member })
  const sandbox = wireEngine(config, doors, { sandbox: true, lists })
  // The event loop has a time of its own, whatever the clock is.
  const priority = new Priority(systemClock)
  const worker = startWorker({
    ...{ database, log, random, books, baseUrl, priority },
    ...(shared === null ? {} : { queue: shared.queue, cluster: shared.cluster }),
    engineFor: job => (job.sandbox === 1 ? sandbox : engine),
    egresses: askingFor(config),
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: () => true,
    timings: timings.crew,
  })
  let isStopping = false
  const memory: ResultMemory = {
    ...worker.memory,
    // At the end the worker writes nothing more.
    remember: async entries => {
      if (!isStopping) await worker.memory.remember(entries)
    },
  }
  const near = shared === null ? memory : nearMemory(memory, clock)
  const engine = wireEngine(config, doors, {
    ...{ lists, ...(config.cache ? { memory: near } : {}) },
    ...(shared === null ? {} : { cluster: shared.common }),
  })
  const { fleet } = engine
  const watch =
    shared === null
      ? watchAlone(database, worker, doors, timings)
      : config.work
        ? startReconcile({
            ...{ database, queue: shared.queue, fleet, random, log },
            egresses: shared.common.egresses,
            timings: timings.cluster,
          })
        : null
  return {
    ...{ database, plans, books, engine, priority, worker, member },
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
      await books.stop()
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
  readonly common: ClusterParts
  /** Tells the others what they do not know yet, gives back what it has in hand, and leaves. */
  close(): Promise<void>
}

async function join(
  database: Database,
  config: Config,
  { clock = systemClock, random = systemRandom, log }: Doors,
  { role, version, databaseUrl, timings = DEFAULT_TIMINGS }: OwnParts,
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
    ...{ ...own, database, random, log, timings: timings.cluster },
  }).catch(async error => {
    await queue.close()
    throw error
  })
  const paces = openPaces({ database, log, member: () => cluster.id, timings: timings.paces })
  const catchAll = openCatchAll({ database, log, timings: timings.catchAll })
  return {
    ...{ queue, cluster },
    common: { paces, catchAll, egresses: () => cluster.egresses() },
    async close() {
      await Promise.all([paces.close(), catchAll.close(), queue.close()])
      await cluster.stop()
    },
  }
}

/** Egresses that addresses of lists are asked by; single ones are asked wherever somebody waits for them. */
const askingFor = ({ egresses, work }: Config) => (work ? egresses.map(({ name }) => name) : [])

function watchAlone(database: Database, worker: JobWorker, { log }: Doors, timings: Timings) {
  return watchWithdrawals(database, worker, log, timings.crew.withdrawalLookMs)
}
