import type { Database } from '../../db/database.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type Breakdown, countBreakdown } from '../../jobs/results/breakdown.ts'
import { type Clock, HOUR, SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

/** What was counted of jobs; a list of a million rows takes some seconds, so nothing is counted twice. */
export type StatisticsCache = { of(job: Job): Promise<Breakdown> }

/** Each has some kilobytes. */
const KEPT_MAX = 500
/** An address that was erased is part of no count for longer. */
const RETENTION_MS = HOUR
/** Of a job that is under way: whoever watches it asks again and again. */
const RECENT_MS = 5 * SECOND

type Counted = {
  readonly breakdown: Breakdown
  /** That of the job when counting began: one that is resumed counts anew. */
  readonly finishedAt: number | null
  readonly countedAt: number
}

export function createStatisticsCache(deps: {
  readonly clock: Clock
  readonly database: Database
}): StatisticsCache {
  const { clock, database } = deps
  const known = new TtlMap<Counted>({ sizeMax: KEPT_MAX, clock })
  const counting = new Map<string, Promise<unknown>>()

  const isRight = ({ finishedAt, countedAt }: Counted, job: Job) =>
    finishedAt === job.finished_at &&
    (finishedAt !== null || clock.monotonicNow() - countedAt < RECENT_MS)

  async function count({ id, finished_at: finishedAt }: Job): Promise<Breakdown> {
    const breakdown = await countBreakdown(database, id)
    known.set(id, { breakdown, finishedAt, countedAt: clock.monotonicNow() }, RETENTION_MS)
    return breakdown
  }

  return {
    async of(job) {
      for (;;) {
        const counted = known.get(job.id)
        if (counted !== undefined && isRight(counted, job)) return counted.breakdown
        const other = counting.get(job.id)
        if (other === undefined) break
        // It may have begun before the job ended, or fail.
        await other.catch(() => {})
      }
      const counted = count(job).finally(() => counting.delete(job.id))
      counting.set(job.id, counted)
      return counted
    },
  }
}
