import { type Plan, plansWith } from './account/plan.ts'
import { systemClock } from './base/clock.ts'
import { systemRandom } from './base/random.ts'
import type { Config } from './config/settings.ts'
import type { Engine } from './engine/engine.ts'
import type { Lists } from './engine/lists.ts'
import type { ResultMemory } from './engine/memory.ts'
import { memoryQueue } from './queue/memory-queue.ts'
import type { Queue } from './queue/queue.ts'
import { type Database, openDatabase } from './store/database.ts'
import { type Doors, wireEngine } from './wire.ts'
import { type Books, createBooks } from './work/books/books.ts'
import { startWorker } from './work/start-worker.ts'
import { watchWithdrawals } from './work/withdrawal.ts'
import type { JobWorker } from './work/worker.ts'

export type WorkParts = {
  /** `sqlite:FILE` or `postgres://…` */
  readonly databaseUrl: string
  /** Our address for clients, without a slash at its end. */
  readonly baseUrl: string
  readonly version: string
  readonly lists: Lists
}

/** What works on jobs by itself. */
export interface WorkerHouse {
  readonly database: Database
  readonly worker: JobWorker
  /** Begins nothing new from now on; what is under way comes to its end. */
  stopSoon(): void
  /** Ends work, writes what is not written yet, and closes everything. */
  close(): Promise<void>
}

/** The same, with what a service asks by itself. */
export interface WorkHouse extends WorkerHouse {
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>
  readonly books: Books
  readonly engine: Engine
  /** Where deliveries find their turn. */
  readonly queue: Queue
}

/** `ev worker`: works on the jobs of accounts, and answers nobody. */
export function wireWorker(config: Config, doors: Doors, parts: WorkParts): Promise<WorkerHouse> {
  return wireWork(config, doors, parts)
}

/** Builds from settings and doors what works on jobs. */
export async function wireWork(config: Config, doors: Doors, parts: WorkParts): Promise<WorkHouse> {
  const { clock = systemClock, random = systemRandom, log } = doors
  const { lists, baseUrl } = parts
  const plans = plansWith(config.plans)
  const database = await openDatabase(parts.databaseUrl, clock)
  const books = createBooks({ database, clock, random, log, plans })
  const sandbox = wireEngine(config, doors, { sandbox: true, lists })
  const worker = startWorker({
    ...{ database, log, random, books, baseUrl },
    engineFor: job => (job.sandbox === 1 ? sandbox : engine),
    egresses: config.egresses.map(({ name }) => name),
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: () => true,
  })
  let isStopping = false
  const memory: ResultMemory = {
    ...worker.memory,
    // At the end the worker writes nothing more.
    remember: async entries => {
      if (!isStopping) await worker.memory.remember(entries)
    },
  }
  const engine = wireEngine(config, doors, { lists, ...(config.cache ? { memory } : {}) })
  const endWatch = watchWithdrawals(database, worker, log)
  return {
    ...{ database, plans, books, engine, worker },
    queue: memoryQueue(clock, log),
    stopSoon() {
      isStopping = true
      void worker.stop()
    },
    async close() {
      isStopping = true
      endWatch()
      await worker.stop()
      await books.stop()
      await Promise.all([engine.close(), sandbox.close()])
      await database.close()
    },
  }
}
