import { sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { jobsAmong, openAmong } from '../../store/cluster/shared-jobs.ts'
import type { Database } from '../../store/database.ts'
import type { Job } from '../../store/job/jobs.ts'
import type { CrewTimings } from './crew-timings.ts'
import type { Lists } from './lists.ts'
import type { Waiters } from './waiters.ts'

export type LookParts = {
  readonly database: Database
  readonly log: Log
  readonly lists: Lists
  readonly waiters: Waiters<Job>
  /** Called for a job that is not worked on any more. */
  readonly onEnded: (jobId: string) => void
  readonly stopping: AbortSignal
  readonly timings: Pick<CrewTimings, 'awaitedMs' | 'endedMs'>
}

/** Looks for what other members wrote: jobs that ended, and changes that somebody waits for. */
export class Looks {
  readonly #parts: LookParts
  /** How awaited jobs stood when they were last looked at. */
  readonly #stands = new Map<string, string>()
  #isFollowing = false

  constructor(parts: LookParts) {
    this.#parts = parts
    void this.#every(parts.timings.endedMs, () => this.#lookForEnded())
  }

  /** Somebody waits for the next change of a job that stands so. */
  follow(job: Job): void {
    if (!this.#stands.has(job.id)) this.#stands.set(job.id, standOf(job))
    if (!this.#isFollowing) void this.#followAll()
  }

  async #followAll(): Promise<void> {
    const { database, waiters, log, stopping, timings } = this.#parts
    this.#isFollowing = true
    while (waiters.keys.length > 0 && !stopping.aborted) {
      await sleep(database.clock, timings.awaitedMs, stopping)
      await this.#lookForAwaited().catch(error => complain(log, error))
    }
    this.#stands.clear()
    this.#isFollowing = false
  }

  async #lookForAwaited(): Promise<void> {
    const { database, waiters } = this.#parts
    const ids = waiters.keys
    if (ids.length === 0) return
    const jobs = new Map((await jobsAmong(database, ids)).map(job => [job.id, job]))
    for (const id of ids) {
      const job = jobs.get(id) ?? null
      const stand = job === null ? '' : standOf(job)
      if (stand === this.#stands.get(id)) continue
      this.#stands.set(id, stand)
      waiters.tell(id, job)
    }
    const awaited = new Set(waiters.keys)
    for (const id of this.#stands.keys()) if (!awaited.has(id)) this.#stands.delete(id)
  }

  async #lookForEnded(): Promise<void> {
    const { database, lists, onEnded } = this.#parts
    const ids = lists.ids
    if (ids.length === 0) return
    const open = new Set((await openAmong(database, ids)).map(({ id }) => id))
    for (const id of ids) if (!open.has(id)) onEnded(id)
  }

  async #every(ms: number, look: () => Promise<void>): Promise<void> {
    const { database, stopping, log } = this.#parts
    while (!stopping.aborted) {
      await look().catch(error => complain(log, error))
      await sleep(database.clock, ms, stopping)
    }
  }
}

/** What changes with each commit that touches a job. */
const standOf = ({ state, done, started_at, finished_at }: Job) =>
  [state, done, started_at, finished_at].join(' ')

const complain = (log: Log, error: unknown) =>
  log.error('jobs cannot be looked at', { why: messageOf(error) })
