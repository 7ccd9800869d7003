import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk } from '../../db/paging.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { decodeLatest, type WaitingItem, waitingItems } from '../item-store.ts'
import { listJobsToFinish } from '../job-state.ts'
import { restoreTask } from '../probing/probe-claimed.ts'
import { lastPosition } from '../results/result-store.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob, ActiveJobs } from './active-jobs.ts'
import type { WorkerTimings } from './worker-timings.ts'

type FinisherDeps = {
  readonly database: Database
  readonly log: Log
  readonly lists: ActiveJobs
  readonly recorder: Pick<ResultWriter, 'add' | 'settled' | 'flushed'>
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'finishPollMs'>
  readonly onFinishing?: ((jobId: string) => void) | undefined
}

/** Items whose results are added at a time: writing a batch of them blocks requests for 3 ms. */
const RESULTS_MAX = 25

/**
 * Finishes jobs without further retries, if that was requested. Items that wait get their present
 * result: that of the latest probe, else what is known without one. Items in flight end normally,
 * and the worker postpones none of them again. Items that are not routed yet get their result from
 * the router. In a cluster each member does this: an item that another member has claimed meanwhile
 * is no longer \`routed\`, so it does not accept the result.
 *
 * The request is stored with the job, so a pass continues after a crash. It is repeated until the job
 * has ended, because another member may postpone an item before it knows of the request.
 */
export function startFinisher(deps: FinisherDeps): Loop {
  const { database, log, lists, stopping: signal, timings, onFinishing } = deps
  const announced = new WeakSet<ActiveJob>()
  return startLoop({
    name: 'finishing jobs',
    clock: database.clock,
    log,
    signal,
    everyMs: timings.finishPollMs,
    async run(stopped) {
      const ids = await listJobsToFinish(database)
      if (ids.length === 0) return
      for (const list of await lists.load(ids, { isFresh: true })) {
        if (!announced.has(list)) onFinishing?.(list.id)
        announced.add(list)
        lists.finish(list.id)
        await finishWaiting(deps, list, stopped)
      }
    },
  })
}

async function finishWaiting(
  { database, recorder }: FinisherDeps,
  list: ActiveJob,
  stopped: AbortSignal,
): Promise<void> {
  // Items that were postponed but not committed yet count too.
  await recorder.flushed()
  const last = await lastPosition(database, list.id)
  const size = nextChunk(database)
  for (let after = 0; after < last; after += size) {
    const chunk = { jobId: list.id, after, to: after + size }
    const items = await runChunk(database, () => waitingItems(database, chunk))
    for (let from = 0; from < items.length; from += RESULTS_MAX) {
      await recorder.settled()
      if (stopped.aborted || list.ended.aborted) return
      const group = items.slice(from, from + RESULTS_MAX)
      const results = await Promise.all(
        group.map(async item => ({
          position: item.position,
          copies: item.copies,
          result: await presentResult(list, item, stopped),
        })),
      )
      if (stopped.aborted) return
      void recorder.add(list.id, { results, state: 'routed' })
    }
  }
}

/** Returns what is known of an item that waits, without a probe. */
async function presentResult(
  list: ActiveJob,
  item: WaitingItem,
  signal: AbortSignal,
): Promise<Result> {
  const latest = decodeLatest(item)
  if (latest !== null) return latest
  const task = restoreTask(list, item)
  if (task !== null) return list.engine.presentResult(task)
  const prepared = await list.engine.routeOne(item.text, { ...list.options, signal })
  return 'result' in prepared ? prepared.result : list.engine.presentResult(prepared.task)
}
