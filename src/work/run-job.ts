import { SECOND, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Engine } from '../engine/engine.ts'
import { memoryQueue } from '../queue/memory-queue.ts'
import type { NextDue, Queue } from '../queue/queue.ts'
import type { Database } from '../store/database.ts'
import { boundItems, freeItems, waitingOperators } from '../store/job/claims.ts'
import { startJob } from '../store/job/course.ts'
import type { Job } from '../store/job/jobs.ts'
import { probeItems, type Slot } from './probe-items.ts'
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
  await freeOrphans(work)
  const queue = memoryQueue(database.clock, log)
  const abort = new AbortController()
  const slots = new Slots(queue, work)
  const probe = async (slot: Slot): Promise<NextDue> => {
    const { operator } = slot
    const ripeAt = slots.ripeAt(operator)
    if (ripeAt > database.clock.now()) return { dueAt: ripeAt }
    const onMore = () => slots.putAll(operator)
    const onOthers = (egress: string) => slots.put({ operator, egress })
    return probeItems({ ...work, abort: abort.signal, onMore, onOthers }, slot)
  }
  queue.work('probe', key => probe(slotOf(key)), { concurrency: work.concurrency })
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

/** Items whose egress the settings no longer have, or no longer for their operator, may be asked by any. */
async function freeOrphans({ engine, database, jobId }: JobWork): Promise<void> {
  for (const { operator, egress } of await boundItems(database, jobId)) {
    if (engine.fleet.inOrder(operator).includes(egress)) continue
    await freeItems(database, { jobId, operator, egress })
  }
}

/** The entries of the queue for an operator: one for each connection that it allows to an egress. */
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
    const egress = engine.fleet.firstFor(operator)
    if (this.#gathering.size >= COUNTED_MAX) this.#gathering.clear()
    const gathered = this.#gathering.get(operator) ?? { count: 0, since: database.clock.now() }
    gathered.count++
    this.#gathering.set(operator, gathered)
    const isFull = gathered.count >= engine.pace(operator, egress).row.recipientsPerSession
    if (isFull) this.#gathering.delete(operator)
    return this.put({ operator, egress }, isFull ? undefined : gathered.since + GATHER_MS)
  }

  /** When the items of an operator have gathered long enough, epoch ms; what gathers next counts anew. */
  ripeAt(operator: string): number {
    const ripeAt = (this.#gathering.get(operator)?.since ?? 0) + GATHER_MS
    if (ripeAt <= this.#work.database.clock.now()) this.#gathering.delete(operator)
    return ripeAt
  }

  /** All of them, for every egress that may ask; an entry that is there stays as it is. */
  async putAll(operator: string): Promise<void> {
    const { fleet } = this.#work.engine
    const willing = fleet.willing(operator)
    for (const egress of willing.length > 0 ? willing : fleet.inOrder(operator)) {
      const { sessionsMax } = fleet.prober(egress).pace(operator).row
      for (let number = 0; number < sessionsMax; number++) {
        await this.#queue.put('probe', keyOf({ operator, egress }, number))
      }
    }
  }

  /** For all operators that have items waiting. */
  async putWaiting(): Promise<void> {
    const { database, engine, jobId } = this.#work
    this.#gathering.clear()
    for (const operator of await waitingOperators(database, jobId)) {
      await this.put({ operator, egress: engine.fleet.firstFor(operator) })
    }
    for (const slot of await boundItems(database, jobId)) await this.put(slot)
  }

  /** The first slot of an egress; whoever finds as many items as one connection takes adds all others. */
  put(slot: Slot, dueAt?: number): Promise<void> {
    return this.#queue.put('probe', keyOf(slot, 0), dueAt)
  }
}

const keyOf = ({ operator, egress }: Slot, number: number) => `${operator}|${egress}#${number}`

/** The name of an egress has neither of the two marks. */
function slotOf(key: string): Slot {
  const bar = key.lastIndexOf('|')
  return { operator: key.slice(0, bar), egress: key.slice(bar + 1, key.lastIndexOf('#')) }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
