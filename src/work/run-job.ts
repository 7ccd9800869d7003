import { SECOND, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Engine } from '../engine/engine.ts'
import { memoryQueue } from '../queue/memory-queue.ts'
import type { Queue } from '../queue/queue.ts'
import type { Database } from '../store/database.ts'
import { waitingOperators } from '../store/items.ts'
import { type Job, startJob } from '../store/jobs.ts'
import { probeItems } from './probe-items.ts'
import type { Recorder } from './recorder.ts'
import { routeItems } from './route-items.ts'

export type JobWork = {
  readonly engine: Engine
  readonly database: Database
  readonly recorder: Recorder
  readonly log: Log
  readonly jobId: string
  /** Conversations at the same time, over all operators. */
  readonly concurrency: number
  readonly wait: boolean
  readonly greylistDelayMs: number | null
  readonly stopping: AbortSignal
}

/** How long items of an operator gather before a connection is opened for them, while a list is being routed. */
const GATHER_MS = SECOND
/** After a stop, how long conversations may take to come to their end. */
const DRAIN_MS = 5 * SECOND

/**
 * Works on one job until `finished` settles or `stopping` aborts; then waits for what is under way to be
 * durable. The queue is rebuilt from the store: a job that was killed goes on where it stood.
 */
export async function runJob(work: JobWork, finished: Promise<Job>): Promise<void> {
  const { database, log, jobId, stopping } = work
  await startJob(database, jobId)
  const queue = memoryQueue(database.clock, log)
  const abort = new AbortController()
  const slots = new Slots(queue, work)
  // While the list is being routed more of each operator may come: it is worth waiting for a full connection.
  let gatherMs = GATHER_MS
  const probe = (operator: string) =>
    probeItems(
      { ...work, abort: abort.signal, gatherMs, onMore: () => slots.putAll(operator) },
      operator,
    )
  queue.work('probe', key => probe(operatorOf(key)), { concurrency: work.concurrency })
  const route = async (): Promise<'done'> => {
    const onFiled = (operator: string) => slots.put(operator, database.clock.now() + gatherMs)
    await routeItems({ ...work, onFiled })
    gatherMs = 0
    await slots.putWaiting()
    return 'done'
  }
  queue.work('route', route, { concurrency: 1 })
  await slots.putWaiting()
  await queue.put('route', jobId)
  await Promise.race([finished, aborted(stopping)]).catch(() => {})
  // The alarm is put away when all is quiet, or its timer would keep the process for nothing.
  const quiet = new AbortController()
  const closing = queue.close().finally(() => quiet.abort())
  await sleep(database.clock, DRAIN_MS, quiet.signal)
  abort.abort()
  await closing
  await work.recorder.flushed()
}

/** The entries of the queue for an operator: one for each connection that it allows. */
class Slots {
  readonly #queue: Queue
  readonly #work: JobWork

  constructor(queue: Queue, work: JobWork) {
    this.#queue = queue
    this.#work = work
  }

  /** The first slot; whoever finds more than one connection takes adds the others. */
  put(operator: string, dueAt?: number): Promise<void> {
    return this.#queue.put('probe', this.#key(operator, 0), dueAt)
  }

  /** All of them; an entry that is there stays as it is. */
  async putAll(operator: string): Promise<void> {
    const { sessionsMax } = this.#work.engine.pace(operator).row
    for (let slot = 0; slot < sessionsMax; slot++) {
      await this.#queue.put('probe', this.#key(operator, slot))
    }
  }

  /** For all operators that have items waiting. */
  async putWaiting(): Promise<void> {
    const { database, jobId } = this.#work
    for (const operator of await waitingOperators(database, jobId)) await this.put(operator)
  }

  #key(operator: string, slot: number): string {
    return `${operator}|${this.#work.engine.egress}#${slot}`
  }
}

const operatorOf = (key: string) => key.slice(0, key.indexOf('|'))

const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
