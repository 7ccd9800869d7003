import type { Database } from '../../db/database.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type Clock, HOUR, SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

/** Caches counts of jobs. Counting a million rows takes some seconds, so no count runs twice. */
export type StatisticsCache<Counts> = { get(job: Job): Promise<Counts> }

/** Each entry takes some kilobytes. */
const ENTRIES_MAX = 500
/** Limits how long an erased address can still be part of a count. */
const RETENTION_MS = HOUR
/** Minimum lifetime of the count of a running job, which clients poll repeatedly. */
const RECENT_MS = SECOND
/**
 * Lifetime of such a count in relation to its duration: counting takes at most 2 % of the time, also
 * in a list of a million rows, of which a count takes 1.5 s.
 */
const LIFETIME_PER_DURATION = 50

type CachedCounts<Counts> = {
  readonly counts: Counts
  /** `finished_at` of the job when counting started; a resumed job is counted again. */
  readonly finishedAt: number | null
  /** When the count of a running job expires, in monotonic time. */
  readonly freshUntil: number
}

export function createStatisticsCache<Counts>(
  deps: { readonly clock: Clock; readonly database: Database },
  countRows: (database: Database, jobId: string) => Promise<Counts>,
): StatisticsCache<Counts> {
  const { clock, database } = deps
  const cache = new TtlMap<CachedCounts<Counts>>({ sizeMax: ENTRIES_MAX, clock })
  const inFlight = new Map<string, Promise<unknown>>()

  const isFresh = ({ finishedAt, freshUntil }: CachedCounts<Counts>, job: Job) =>
    finishedAt === job.finished_at && (finishedAt !== null || clock.monotonicNow() < freshUntil)

  async function count({ id, finished_at: finishedAt }: Job): Promise<Counts> {
    const startedAt = clock.monotonicNow()
    const counts = await countRows(database, id)
    const countedAt = clock.monotonicNow()
    const lifetimeMs = Math.max(RECENT_MS, LIFETIME_PER_DURATION * (countedAt - startedAt))
    cache.set(id, { counts, finishedAt, freshUntil: countedAt + lifetimeMs }, RETENTION_MS)
    return counts
  }

  return {
    async get(job) {
      for (;;) {
        const counted = cache.get(job.id)
        if (counted !== undefined && isFresh(counted, job)) return counted.counts
        const running = inFlight.get(job.id)
        if (running === undefined) break
        // That count may have started before the job finished, or it may fail.
        await running.catch(() => {})
      }
      const counted = count(job).finally(() => inFlight.delete(job.id))
      inFlight.set(job.id, counted)
      return counted
    },
  }
}
