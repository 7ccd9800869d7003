import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, type LoopOptions, startLoop } from '../../platform/loop.ts'
import type { Job } from '../job-store.ts'
import { jobsAmong, openJobsAmong } from '../shared-jobs.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { JobWaiters } from './job-waiters.ts'
import type { WorkerTimings } from './worker-timings.ts'

export type ChangePollerDeps = {
  readonly database: Database
  readonly log: Log
  readonly lists: ActiveJobs
  readonly waiters: JobWaiters<Job>
  /** Called for a job that is not worked on any more. */
  readonly onEnded: (jobId: string) => void
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'awaitedMs' | 'endedMs'>
}

/** Looks for what other members wrote: jobs that ended, and changes that somebody waits for. */
export class ChangePoller {
  readonly #deps: ChangePollerDeps
  /** How awaited jobs stood when they were last looked at. */
  readonly #stands = new Map<string, string>()
  /** Runs while somebody waits. */
  #following: Loop | null = null

  constructor(deps: ChangePollerDeps) {
    this.#deps = deps
    const { endedMs: everyMs } = deps.timings
    this.#start({ name: 'the poll for ended jobs', everyMs, run: () => this.#pollEndedJobs() })
  }

  /** Somebody waits for the next change of a job that stands so. */
  follow(job: Job): void {
    if (!this.#stands.has(job.id)) this.#stands.set(job.id, stateOf(job))
    const { awaitedMs: everyMs } = this.#deps.timings
    this.#following ??= this.#start({
      ...{ name: 'the poll for awaited jobs', everyMs, startAfterMs: everyMs },
      run: () => this.#pollAwaitedJobs(),
    })
  }

  #start(o: Pick<LoopOptions, 'name' | 'everyMs' | 'startAfterMs' | 'run'>): Loop {
    const { database, log, stopping: signal } = this.#deps
    return startLoop({ ...o, clock: database.clock, log, signal })
  }

  #endFollowing() {
    this.#stands.clear()
    void this.#following?.stop()
    this.#following = null
  }

  async #pollAwaitedJobs(): Promise<void> {
    const { database, waiters } = this.#deps
    const ids = waiters.keys
    if (ids.length === 0) return this.#endFollowing()
    const jobs = new Map((await jobsAmong(database, ids)).map(job => [job.id, job]))
    for (const id of ids) {
      const job = jobs.get(id) ?? null
      const stand = job === null ? '' : stateOf(job)
      if (stand === this.#stands.get(id)) continue
      this.#stands.set(id, stand)
      waiters.notify(id, job)
    }
    const awaited = new Set(waiters.keys)
    for (const id of this.#stands.keys()) if (!awaited.has(id)) this.#stands.delete(id)
  }

  async #pollEndedJobs(): Promise<void> {
    const { database, lists, onEnded } = this.#deps
    const ids = lists.ids
    if (ids.length === 0) return
    const open = new Set((await openJobsAmong(database, ids)).map(({ id }) => id))
    for (const id of ids) if (!open.has(id)) onEnded(id)
  }
}

/** What changes with each commit that touches a job. */
const stateOf = ({ state, done, started_at, finished_at }: Job) =>
  [state, done, started_at, finished_at].join(' ')
