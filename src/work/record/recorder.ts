import { breathe, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import type { Priority } from '../../base/priority.ts'
import type { Remembered } from '../../engine/memory.ts'
import { isOfStorage } from '../../store/database.ts'
import type { Job } from '../../store/job/jobs.ts'
import { type CrewTimings, DEFAULT_CREW_TIMINGS } from '../crew/crew-timings.ts'
import { Group } from './group.ts'
import {
  type Change,
  type Content,
  type WriteParts,
  type Written,
  writeFailure,
  writeGroup,
} from './write-group.ts'

export type { Change } from './write-group.ts'

/** Committed together: when so many changes are there, or after `groupMs`. A crash asks these again. */
const GROUP_MIN = 50
/** More are never committed together: nothing else runs while they are written, some 20 ms. */
const GROUP_MAX = 200
/** While requests come, short stops count for more than few commits: some 3 ms and a commit. */
const GROUP_MAX_BESIDE_REQUESTS = 25

export type RecorderParts = WriteParts & {
  readonly log: Log
  /** False: a commit that fails is not tried again; whoever works on its jobs ends. */
  readonly keepsTrying: boolean
  readonly timings?: Pick<CrewTimings, 'groupMs' | 'retryMs'>
  /** Requests that go first; null, or left out: there are none. */
  readonly priority?: Pick<Priority, 'hasRequests'> | null
  /** A job as it stands after a commit. */
  readonly onProgress: (job: Job) => void
  /** A job takes no more changes: it was cancelled or deleted, or is finished. */
  readonly onLost: (jobId: string) => void
  /** A commit failed for good: what it held may or may not be durable, so the job has to be taken up anew. */
  readonly onFailure: (jobId: string, error: unknown) => void
}

/** Writes what happens to items of all jobs, in groups: a durable commit costs as much for fifty rows as for one. */
export class Recorder {
  readonly #parts: RecorderParts
  readonly #timings: Pick<CrewTimings, 'groupMs' | 'retryMs'>
  /** What is not being written yet; only the last one takes more. */
  readonly #groups: Group[] = []
  readonly #stopping = new AbortController()
  #writing: Promise<void> = Promise.resolve()
  #isWriting = false
  #inTrouble = false
  /** Changes taken and not committed yet. */
  #undurable = 0

  constructor(parts: RecorderParts) {
    this.#parts = parts
    this.#timings = parts.timings ?? DEFAULT_CREW_TIMINGS
  }

  /** Takes a change of a job's items; the promise resolves when it is durable. */
  add(jobId: string, change: Change): Promise<void> {
    const group = this.#open()
    this.#undurable += group.add(jobId, change)
    if (group.size >= Math.min(GROUP_MIN, this.#groupMax)) this.#ripen(group)
    return group.committed
  }

  /** Takes answers to be remembered beyond their job. */
  remember(entries: ReadonlyMap<string, Remembered>): Promise<void> {
    const group = this.#open()
    group.remember(entries)
    return group.committed
  }

  /** Resolves when all that was taken so far is durable. */
  async flushed(): Promise<void> {
    await (this.#groups.at(-1)?.committed ?? this.#writing)
  }

  /** Waits while more is not durable yet than a crash may make us ask again, and while nothing can be written. */
  async settled(): Promise<void> {
    if (this.#undurable > GROUP_MIN || this.#inTrouble) await this.flushed()
  }

  /** Gives a job up. A service ends it as failed, unless it is trouble of the disk, which passes; a list can be taken up anew. */
  async fail(jobId: string, error: unknown): Promise<void> {
    const { log, keepsTrying, onProgress, onFailure } = this.#parts
    if (keepsTrying && !isOfStorage(error)) {
      log.error('a job failed inside ev', { job: jobId, error: messageOf(error) })
      try {
        const job = await this.#tryOn(() => writeFailure(this.#parts, jobId))
        if (job !== null) onProgress(job)
      } catch (error) {
        log.error('a failed job cannot be ended', { job: jobId, error: messageOf(error) })
      }
    }
    onFailure(jobId, error)
  }

  /** What cannot be written now is not tried again; resolves when nothing is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.flushed().catch(() => {})
  }

  #open(): Group {
    const last = this.#groups.at(-1)
    if (last !== undefined && last.size < this.#groupMax) return last
    const group = new Group()
    this.#groups.push(group)
    group.cancelTimer = this.#parts.database.clock.after(this.#timings.groupMs, () =>
      this.#ripen(group),
    )
    return group
  }

  get #groupMax(): number {
    return this.#parts.priority?.hasRequests ? GROUP_MAX_BESIDE_REQUESTS : GROUP_MAX
  }

  #ripen(group: Group) {
    group.isRipe = true
    this.#next()
  }

  /** One group is written at a time; what comes meanwhile gathers. */
  #next() {
    const [group] = this.#groups
    if (this.#isWriting || group === undefined || !group.isRipe) return
    this.#groups.shift()
    group.cancelTimer()
    this.#isWriting = true
    this.#writing = this.#writeGroup(group).finally(() => {
      this.#isWriting = false
      this.#undurable -= group.size
      this.#next()
    })
  }

  async #writeGroup(group: Group): Promise<void> {
    try {
      await this.#write(group)
      group.resolve()
    } catch (error) {
      const mayBeOfOne = group.changes.size > 1 && !isOfStorage(error)
      if (mayBeOfOne) await this.#writeApart(group)
      else await this.#give(group, error)
      if (mayBeOfOne) group.resolve()
      else group.reject(error)
    }
  }

  /** What one job brought is refused: that is nothing to the others. */
  async #writeApart(group: Group): Promise<void> {
    for (const content of group.apart()) {
      await this.#write(content).catch(error => this.#give(content, error))
    }
  }

  async #write(content: Content): Promise<void> {
    const written = await this.#tryOn(() => writeGroup(this.#parts, content))
    // SQLite answers without waiting, so a list that asks nobody would run in one breath.
    await breathe()
    this.#tell(written)
  }

  /** While nothing can be written, it is tried again and again, however long. */
  async #tryOn<T>(run: () => Promise<T>): Promise<T> {
    const { database, log, keepsTrying } = this.#parts
    for (;;) {
      try {
        const done = await run()
        this.#inTrouble = false
        return done
      } catch (error) {
        const isOver = !keepsTrying || this.#stopping.signal.aborted
        if (isOver || !isOfStorage(error)) throw error
        this.#inTrouble = true
        log.error('results cannot be written now; that is tried again', { error: messageOf(error) })
        await sleep(database.clock, this.#timings.retryMs, this.#stopping.signal)
      }
    }
  }

  async #give({ changes }: Content, error: unknown): Promise<void> {
    for (const jobId of changes.keys()) await this.fail(jobId, error)
  }

  #tell({ jobs, lost }: Written) {
    for (const jobId of lost) this.#parts.onLost(jobId)
    for (const job of jobs) this.#parts.onProgress(job)
  }
}
