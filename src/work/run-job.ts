import { SECOND, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Engine } from '../engine/engine.ts'
import { memoryQueue } from '../queue/memory-queue.ts'
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

/** After a stop, how long conversations may take to come to their end. */
const DRAIN_MS = 5 * SECOND

/**
 * Works on one job until `finished` settles or `stopping` aborts; then waits for what is under way to be
 * durable. The queue is rebuilt from the store: a job that was killed goes on where it stood.
 */
export async function runJob(work: JobWork, finished: Promise<Job>): Promise<void> {
  const { engine, database, log, jobId, stopping } = work
  await startJob(database, jobId)
  const queue = memoryQueue(database.clock, log)
  const abort = new AbortController()
  const putSlots = (operator: string, items: number) => putOperator(queue, engine, operator, items)
  queue.work(
    'probe',
    async key => {
      const operator = key.slice(0, key.indexOf('|'))
      const more = () => putSlots(operator, Number.POSITIVE_INFINITY)
      return probeItems({ ...work, abort: abort.signal, onMore: more }, operator)
    },
    { concurrency: work.concurrency },
  )
  queue.work(
    'route',
    async () => {
      await routeItems({ ...work, onFiled: putSlots })
      return 'done'
    },
    { concurrency: 1 },
  )
  for (const { operator, items } of await waitingOperators(database, jobId)) {
    await putSlots(operator, items)
  }
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

/** Entries for as many slots of an operator as its items can use; an entry that is there stays as it is. */
async function putOperator(
  queue: ReturnType<typeof memoryQueue>,
  engine: Engine,
  operator: string,
  items: number,
): Promise<void> {
  const { sessionsMax, recipientsPerSession } = engine.pace(operator).row
  const slots = Math.min(sessionsMax, Math.ceil(items / recipientsPerSession))
  for (let slot = 0; slot < slots; slot++) {
    await queue.put('probe', `${operator}|${engine.egress}#${slot}`)
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
