import type { Database } from '../../db/database.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import { pinnedItems, unpinItems, type Waiting, waitingPage } from '../item-claims.ts'
import type { ProbeScheduler } from '../probing/probe-scheduler.ts'
import type { ActiveJob } from './active-jobs.ts'

/** Pairs of operator and list that are read together. */
const PAGE_MAX = 1_000

/** Puts the operators of lists to work that were worked on before: the queue is rebuilt from the store. */
export class Resumption {
  readonly #database: Database
  readonly #slots: ProbeScheduler
  readonly #waiting = new Map<string, ActiveJob>()
  #running: Promise<void> = Promise.resolve()

  constructor(database: Database, slots: ProbeScheduler) {
    this.#database = database
    this.#slots = slots
  }

  /** Lists that are taken together, as at a start, are looked through together: all are in one index. */
  take(list: ActiveJob): Promise<void> {
    this.#waiting.set(list.id, list)
    const run = this.#running.then(() => this.#resume())
    this.#running = run.catch(() => {})
    return run
  }

  async #resume(): Promise<void> {
    const lists = new Map(this.#waiting)
    this.#waiting.clear()
    if (lists.size === 0) return
    for (const list of lists.values()) await this.#putBound(list)
    let after: Waiting = { operator: '', jobId: '' }
    for (;;) {
      const page = await waitingPage(this.#database, { after, max: PAGE_MAX })
      for (const { operator, jobId } of page) {
        const engine = lists.get(jobId)?.engine
        if (engine === undefined) continue
        await this.#slots.put({ operator, egress: engine.egressPool.primaryFor(operator) })
      }
      const last = page.at(-1)
      if (last === undefined) return
      after = last
      await yieldToEventLoop()
    }
  }

  /** Items whose egress the settings no longer have, or no longer for their operator, may be asked by any. */
  async #putBound({ id, engine }: ActiveJob): Promise<void> {
    for (const slot of await pinnedItems(this.#database, id)) {
      const { operator, egress } = slot
      if (engine.egressPool.ranked(operator).includes(egress)) await this.#slots.put(slot)
      else await unpinItems(this.#database, { jobId: id, operator, egress })
    }
  }
}
