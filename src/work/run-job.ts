import { SECOND, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Engine } from '../engine/engine.ts'
import { memoryQueue } from '../queue/memory-queue.ts'
import type { NextDue, Queue } from '../queue/queue.ts'
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

/**
 * How long items of an operator gather before a connection is opened for fewer than it takes, while a list is
 * being routed: a list in the order of its customers names each domain now and then.
 */
const GATHER_MS = 5 * SECOND
/** Operators that may gather at the same time; beyond it they are asked as they are. */
const COUNTED_MAX = 20_000
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
  const probe = async (operator: string): Promise<NextDue> => {
    const ripeAt = slots.ripeAt(operator)
    if (ripeAt > database.clock.now()) return { dueAt: ripeAt }
    const onMore = () => slots.putAll(operator)
    return probeItems({ ...work, abort: abort.signal, onMore }, operator)
  }
  queue.work('probe', key => probe(operatorOf(key)), { concurrency: work.concurrency })
  const route = async (): Promise<'done'> => {
    await routeItems({ ...work, onFiled: operator => slots.gather(operator) })
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
  /** Operators with fewer items filed since they were last asked than fill a connection, and since when. */
  readonly #gathering = new Map<string, { count: number; readonly since: number }>()

  constructor(queue: Queue, work: JobWork) {
    this.#queue = queue
    this.#work = work
  }

  /** One more item was filed: its operator is asked when a connection can be filled, or after a while. */
  gather(operator: string): Promise<void> {
    const { engine, database } = this.#work
    if (this.#gathering.size >= COUNTED_MAX) this.#gathering.clear()
    const gathered = this.#gathering.get(operator) ?? { count: 0, since: database.clock.now() }
    gathered.count++
    this.#gathering.set(operator, gathered)
    const isFull = gathered.count >= engine.pace(operator).row.recipientsPerSession
    if (isFull) this.#gathering.delete(operator)
    return this.#put(operator, isFull ? undefined : gathered.since + GATHER_MS)
  }

  /** When the items of an operator have gathered long enough, epoch ms; what gathers next counts anew. */
  ripeAt(operator: string): number {
    const ripeAt = (this.#gathering.get(operator)?.since ?? 0) + GATHER_MS
    if (ripeAt <= this.#work.database.clock.now()) this.#gathering.delete(operator)
    return ripeAt
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
    this.#gathering.clear()
    for (const operator of await waitingOperators(database, jobId)) await this.#put(operator)
  }

  /** The first slot; whoever finds as many items as one connection takes adds the others. */
  #put(operator: string, dueAt?: number): Promise<void> {
    return this.#queue.put('probe', this.#key(operator, 0), dueAt)
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
