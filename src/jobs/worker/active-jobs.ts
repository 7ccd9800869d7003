import type { Engine } from '../../engine/engine.ts'
import type { Clock } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { type JobOptions, parseJobOptions } from '../job-options.ts'
import type { Job } from '../job-store.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from './worker-timings.ts'

/** A list that the worker has. */
export type ActiveJob = {
  readonly id: string
  readonly engine: Engine
  readonly options: JobOptions
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

export type ActiveJobsDeps = {
  readonly clock: Clock
  readonly engineFor: (job: Job) => Engine
  readonly wait: (job: Job) => boolean
  /** Looks up those of these jobs that are worked on; null: only what is added here is. */
  readonly find: ((ids: readonly string[]) => Promise<readonly Job[]>) | null
  readonly timings?: Pick<WorkerTimings, 'absentMs'>
}

const ABSENT_MAX = 20_000

/** The lists of a worker. */
export class ActiveJobs {
  readonly #deps: ActiveJobsDeps
  readonly #lists = new Map<string, { list: ActiveJob; end: AbortController }>()
  readonly #absent: TtlMap<object>

  constructor(deps: ActiveJobsDeps) {
    this.#deps = deps
    this.#absent = new TtlMap({ sizeMax: ABSENT_MAX, clock: deps.clock })
  }

  get size(): number {
    return this.#lists.size
  }

  get ids(): readonly string[] {
    return [...this.#lists.keys()]
  }

  get(jobId: string): ActiveJob | undefined {
    return this.#lists.get(jobId)?.list
  }

  /** Those of these that are worked on, in their order: where others work too, one that is met first is looked up. */
  async load(ids: readonly string[]): Promise<ActiveJob[]> {
    const { find, timings = DEFAULT_WORKER_TIMINGS } = this.#deps
    const unknown = ids.filter(id => !this.#lists.has(id) && this.#absent.get(id) === undefined)
    if (find !== null && unknown.length > 0) {
      for (const job of await find(unknown)) this.add(job)
      for (const id of unknown) if (!this.#lists.has(id)) this.#absent.set(id, {}, timings.absentMs)
    }
    return ids.flatMap(id => this.get(id) ?? [])
  }

  /** One that is there already stays as it is. */
  add(job: Job): ActiveJob {
    const known = this.get(job.id)
    if (known !== undefined) return known
    this.#absent.delete(job.id)
    const { engineFor, wait } = this.#deps
    const end = new AbortController()
    const kept = { operators: new Set<string>(), faults: new Map<number, number>() }
    const its = {
      engine: engineFor(job),
      options: parseJobOptions(job),
      wait: wait(job),
      over: end.signal,
    }
    const list = { id: job.id, ...its, routeFaults: 0, ...kept }
    this.#lists.set(job.id, { list, end })
    return list
  }

  drop(jobId: string): void {
    this.#lists.get(jobId)?.end.abort()
    this.#lists.delete(jobId)
  }
}
