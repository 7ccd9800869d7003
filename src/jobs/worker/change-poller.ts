import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { findJobsByIds, type Job } from '../job-store.ts'
import { JOB_LOG } from '../telemetry.ts'
import type { JobWaiters } from './active-jobs.ts'
import type { WorkerTimings } from './worker-timings.ts'

type ChangePollerDeps = {
  readonly database: Database
  readonly log: Log
  readonly waiters: JobWaiters<Job>
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'awaitedPollMs'>
}

/** Polls for the changes that other members of the cluster make to jobs for which clients wait. */
export class ChangePoller {
  readonly #deps: ChangePollerDeps
  /** State of the awaited jobs at the last poll. */
  readonly #changeKeys = new Map<string, string>()
  /** Runs while clients wait for changes. */
  #following: Loop | null = null

  constructor(deps: ChangePollerDeps) {
    this.#deps = deps
  }

  /** Polls for the next change of a job from this state on. */
  follow(job: Job): void {
    if (!this.#changeKeys.has(job.id)) this.#changeKeys.set(job.id, toChangeKey(job))
    const { database, log, stopping, timings } = this.#deps
    this.#following ??= startLoop({
      failed: JOB_LOG.awaitedPollFailed,
      clock: database.clock,
      log,
      signal: stopping,
      everyMs: timings.awaitedPollMs,
      startAfterMs: timings.awaitedPollMs,
      run: () => this.#pollAwaitedJobs(),
    })
  }

  #endFollowing() {
    this.#changeKeys.clear()
    void this.#following?.stop()
    this.#following = null
  }

  async #pollAwaitedJobs(): Promise<void> {
    const { database, waiters } = this.#deps
    const ids = waiters.keys
    if (ids.length === 0) return this.#endFollowing()
    const jobs = new Map((await findJobsByIds(database, ids)).map(job => [job.id, job]))
    for (const id of ids) {
      const job = jobs.get(id) ?? null
      const changeKey = job === null ? '' : toChangeKey(job)
      if (changeKey === this.#changeKeys.get(id)) continue
      this.#changeKeys.set(id, changeKey)
      waiters.notify(id, job)
    }
    const awaited = new Set(waiters.keys)
    for (const id of this.#changeKeys.keys()) if (!awaited.has(id)) this.#changeKeys.delete(id)
  }
}

/** Returns a text that changes with each commit that affects a job. */
const toChangeKey = ({ state, done, started_at, finished_at }: Job) =>
  [state, done, started_at, finished_at].join(' ')
