import type { Engine } from '../../engine/engine.ts'
import type { Job } from '../../store/job/jobs.ts'

/** A list that the worker has. */
export type List = {
  readonly id: string
  readonly engine: Engine
  /** False: what should be asked again later ends as it is. */
  readonly wait: boolean
  /** Aborts when nothing more is done for it: it is finished, cancelled or deleted. */
  readonly over: AbortSignal
  /** Operators that items were filed under since it was taken up. */
  readonly operators: Set<string>
  /** How often something inside ev failed over an item, by its position. */
  readonly faults: Map<number, number>
  /** How often it could not be routed to its end, other than for the disk. */
  routeFaults: number
}

/** The lists of a worker. */
export class Lists {
  readonly #lists = new Map<string, { list: List; end: AbortController }>()

  get size(): number {
    return this.#lists.size
  }

  get(jobId: string): List | undefined {
    return this.#lists.get(jobId)?.list
  }

  add(job: Job, engine: Engine, wait: boolean): List {
    const end = new AbortController()
    const kept = { operators: new Set<string>(), faults: new Map<number, number>() }
    const list = { id: job.id, engine, wait, over: end.signal, routeFaults: 0, ...kept }
    this.#lists.set(job.id, { list, end })
    return list
  }

  drop(jobId: string): void {
    this.#lists.get(jobId)?.end.abort()
    this.#lists.delete(jobId)
  }
}
