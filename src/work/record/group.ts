import type { Remembered } from '../../engine/memory.ts'
import type { Change, Content } from './write-group.ts'

/** Changes that are committed together. */
export class Group implements Content {
  readonly changes = new Map<string, Change[]>()
  readonly answers = new Map<string, Remembered>()
  /** Items changed. */
  size = 0
  /** It waits for no more changes. */
  isRipe = false
  cancelTimer = () => {}
  readonly #committed = Promise.withResolvers<void>()
  readonly resolve = this.#committed.resolve
  readonly reject = this.#committed.reject

  constructor() {
    // Whoever waits hears of a failure; that nobody waits is no reason to end the process.
    this.#committed.promise.catch(() => {})
  }

  get committed(): Promise<void> {
    return this.#committed.promise
  }

  add(jobId: string, change: Change): number {
    const changes = this.changes.get(jobId) ?? []
    changes.push(change)
    this.changes.set(jobId, changes)
    const { results = [], filed = [], postponed = [] } = change
    const size = results.length + filed.length + postponed.length
    this.size += size
    return size
  }

  remember(entries: ReadonlyMap<string, Remembered>): void {
    for (const [key, remembered] of entries) this.answers.set(key, remembered)
  }

  /** What it holds of each job by itself; the answers go with the first. */
  apart(): Content[] {
    return [...this.changes].map(([jobId, changes], index) => ({
      changes: new Map([[jobId, changes]]),
      answers: index === 0 ? this.answers : new Map(),
    }))
  }
}
