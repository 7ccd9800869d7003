import { breathe, type Clock } from '../base/clock.ts'
import type { Remembered } from '../engine/memory.ts'
import { keepAnswers } from '../store/answers.ts'
import { type Database, write } from '../store/database.ts'
import { countResults } from '../store/job/course.ts'
import { type Filed, fileItems, type Postponed, postponeItems, recordResults } from '../store/job/items.ts'
import type { Job } from '../store/job/jobs.ts'
import { type Class, classOf, type Result } from '../verdict/verdict.ts'

/** Committed together: at most so many changes, or what came in so much time. A crash asks these again. */
const GROUP_MAX = 50
const GROUP_MS = 50

export type Change = {
  readonly results?: readonly { position: number; copies: number; result: Result }[]
  readonly filed?: readonly Filed[]
  readonly postponed?: readonly Postponed[]
}

export type RecorderWatcher = {
  /** The job as it stands after a commit. */
  readonly onProgress: (job: Job) => void
  /** A commit failed: what it held may or may not be durable, so the job has to be taken up anew. */
  readonly onFailure: (error: unknown) => void
}

type Group = {
  changes: Change[]
  answers: Map<string, Remembered>
  size: number
  committed: Promise<void>
  settle: { resolve: () => void; reject: (error: unknown) => void }
}

/** Writes what happens to a job's items, in groups: a durable commit costs as much for fifty rows as for one. */
export class Recorder {
  readonly #database: Database
  readonly #clock: Clock
  readonly #jobId: string
  readonly #watcher: RecorderWatcher
  #group: Group | null = null
  #cancelTimer: (() => void) | null = null
  #writing: Promise<void> = Promise.resolve()
  #isWriting = false
  /** Changes taken and not committed yet. */
  #undurable = 0

  constructor(database: Database, jobId: string, watcher: RecorderWatcher) {
    this.#database = database
    this.#clock = database.clock
    this.#jobId = jobId
    this.#watcher = watcher
  }

  /** Takes a change; the promise resolves when it is durable. */
  add(change: Change): Promise<void> {
    const group = this.#open()
    group.changes.push(change)
    const { results = [], filed = [], postponed = [] } = change
    const size = results.length + filed.length + postponed.length
    group.size += size
    this.#undurable += size
    return this.#closeIfFull(group)
  }

  /** Takes answers to be remembered beyond this job. */
  remember(entries: ReadonlyMap<string, Remembered>): Promise<void> {
    const group = this.#open()
    for (const [key, remembered] of entries) group.answers.set(key, remembered)
    return this.#closeIfFull(group)
  }

  /** Resolves when all that was taken so far is durable. */
  async flushed(): Promise<void> {
    await (this.#group?.committed ?? this.#writing)
  }

  /** Waits while more is not durable yet than a crash may make us ask again. */
  async settled(): Promise<void> {
    if (this.#undurable > GROUP_MAX) await this.flushed()
  }

  #open(): Group {
    if (this.#group !== null) return this.#group
    let settle: Group['settle'] = { resolve: () => {}, reject: () => {} }
    const committed = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject }
    })
    // Whoever waits hears of a failure; that nobody waits is no reason to end the process.
    committed.catch(() => {})
    this.#group = { changes: [], answers: new Map(), size: 0, committed, settle }
    this.#cancelTimer = this.#clock.after(GROUP_MS, () => this.#closeSoon())
    return this.#group
  }

  /** The time is up: at once, or as soon as the write under way is done. */
  #closeSoon() {
    if (this.#isWriting) void this.#writing.then(() => this.#close())
    else this.#close()
  }

  #closeIfFull(group: Group): Promise<void> {
    if (group.size >= GROUP_MAX) this.#close()
    return group.committed
  }

  /** One group is written at a time; what comes meanwhile gathers in the next, however many that are. */
  #close() {
    const group = this.#group
    if (group === null || this.#isWriting) return
    this.#cancelTimer?.()
    this.#group = null
    this.#isWriting = true
    this.#writing = this.#write(group).finally(() => {
      this.#isWriting = false
      this.#undurable -= group.size
      if (this.#group !== null) this.#closeIfFull(this.#group)
    })
  }

  async #write(group: Group): Promise<void> {
    try {
      const job = await write(this.#database, async trx => {
        const now = this.#clock.now()
        const jobId = this.#jobId
        const filed = group.changes.flatMap(change => change.filed ?? [])
        const results = group.changes.flatMap(change => change.results ?? [])
        await fileItems(trx, { jobId, filed, now })
        await postponeItems(
          trx,
          jobId,
          group.changes.flatMap(change => change.postponed ?? []),
        )
        const taken = await recordResults(trx, jobId, results.map(toRow))
        if (group.answers.size > 0) await keepAnswers(trx, group.answers)
        const open = new Set(taken)
        // Were there two results of one item, the first was taken and counts.
        const counted = results.filter(({ position }) => open.delete(position))
        return countResults(trx, jobId, countByClass(counted), now)
      })
      // SQLite answers without waiting, so a list that asks nobody would run in one breath.
      await breathe()
      group.settle.resolve()
      this.#watcher.onProgress(job)
    } catch (error) {
      group.settle.reject(error)
      this.#watcher.onFailure(error)
    }
  }
}

type Outcome = NonNullable<Change['results']>[number]

const toRow = ({ position, result }: Outcome) => ({
  position,
  result: JSON.stringify(result),
  class: classOf(result.verdict),
})

/** Rows of the list, so that a result shared by duplicates counts for each. */
function countByClass(outcomes: readonly Outcome[]): Record<Class, number> {
  const counts: Record<Class, number> = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }
  for (const { copies, result } of outcomes) counts[classOf(result.verdict)] += copies
  return counts
}
