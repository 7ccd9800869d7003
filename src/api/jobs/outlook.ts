import { type Job, parseJobOptions } from '../../jobs/job-store.ts'
import { typicalMs } from '../../jobs/waits/estimate.ts'
import { createJobRates } from '../../jobs/waits/job-rates.ts'
import { estimateTimeLeft } from '../../jobs/waits/time-left.ts'
import {
  buildWaitReport,
  describeWait,
  NO_WAITS,
  type Wait,
  type WaitReport,
} from '../../jobs/waits/wait-report.ts'
import { SECOND } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { ServiceDeps } from '../service.ts'

export type OutlookDeps = Pick<ServiceDeps, 'clock' | 'engine'>

/** Clients that watch a job poll it repeatedly. */
const RETENTION_MS = 5 * SECOND
/** Each report takes about 1 KB. */
const JOBS_MAX = 1_000
/** Rows per second of a job, and what it waits for. */
export type Outlook = {
  /** Null if it is not known yet. */
  readonly rate: number | null
  readonly waits: readonly Wait[]
  /** Estimated remaining time in ms; null if it is not known. */
  readonly leftMs: number | null
}

/** Outlooks of unfinished jobs; what a job waits for is read at most once in five seconds. */
export type Outlooks = {
  /** Null if the job is finished. */
  get(job: Job): Promise<Outlook | null>
}

export function createOutlooks(
  service: Pick<ServiceDeps, 'clock' | 'database' | 'engine' | 'worker'>,
): Outlooks {
  const reports = new TtlMap<Promise<WaitReport>>({ sizeMax: JOBS_MAX, clock: service.clock })
  const rates = createJobRates(service.clock)

  function findReport(job: Job): Promise<WaitReport> {
    // A start, a request to finish and a passed DNS check are visible at once.
    const { failure } = service.engine.resolverCheck ?? {}
    const key = [job.id, job.state, job.finish_requested_at, failure?.kind].join(' ')
    const cached = reports.get(key)
    if (cached !== undefined) return cached
    const { database, engine, worker } = service
    const inMemory = (jobId: string) => worker.waitingInMemory(jobId)
    const report = buildWaitReport({ database, engine, inMemory }, job)
    reports.set(key, report, RETENTION_MS)
    report.catch(() => reports.delete(key))
    return report
  }

  return {
    async get(job) {
      const rate = rates.measure(job)
      if (job.finished_at !== null) return null
      const report = job.sandbox === 1 ? NO_WAITS : await findReport(job)
      return {
        rate,
        waits: report.waits,
        leftMs: estimateTimeLeft(job, rates.predict(job), report),
      }
    },
  }
}

/** The outlook of a job that has just been queued, from typical rates. */
export function queuedOutlook({ engine }: Pick<ServiceDeps, 'engine'>, job: Job): Outlook {
  const movingMs = typicalMs(engine, job.total - job.done, parseJobOptions(job))
  return { rate: null, waits: [], leftMs: estimateTimeLeft(job, null, { ...NO_WAITS, movingMs }) }
}

/** The rate, the remaining time and the waits of a job, for the API. */
export const presentOutlook = ({ rate, waits, leftMs }: Outlook) => ({
  rate_per_second: rate === null ? null : Math.round(10 * rate) / 10,
  seconds_left: leftMs === null ? null : Math.ceil(leftMs / SECOND),
  ...(waits.length === 0 ? {} : { waiting_for: waits.map(presentWait) }),
})

const presentWait = (wait: Wait) => ({
  operator: wait.operator === null ? null : sanitizeText(wait.operator),
  emails: wait.rows,
  reason: wait.reason,
  until: wait.until === null ? null : isoTime(wait.until),
  detail: describeWait(wait),
})
