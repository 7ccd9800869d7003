import { isoTime } from '../../engine/verdict/present-result.ts'
import type { Job } from '../../jobs/job-store.ts'
import { buildWaitReport, type WaitReport } from '../../jobs/waits/wait-report.ts'
import { describeWait, type Wait } from '../../jobs/waits/wait-text.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { sanitizeText } from '../../platform/text.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { Service } from '../service.ts'

/** Clients that watch a job poll it repeatedly. */
const RETENTION_MS = 5 * SECOND
/** Each report takes about 1 KB. */
const JOBS_MAX = 1_000
/** The rate is measured over this time, since a connection returns its results in bursts. */
const RATE_OVER_MS = 10 * SECOND
/** Over a shorter time it would be the rate of a single burst. */
const RATE_SINCE_MS = SECOND
/** Watchers of one job share its samples. */
const SAMPLE_EVERY_MS = 200
/** Samples are dropped when a job is not watched for this time. */
const SAMPLES_RETENTION_MS = 60 * SECOND

/** Rows per second of a job, and what it waits for. */
export type Outlook = {
  /** Null if it is not known yet. */
  readonly rate: number | null
  readonly waits: readonly Wait[]
  /** Estimated remaining time in ms; null if it is not known. */
  readonly leftMs: number | null
  /** The same from the current rate and known due times alone. */
  readonly measuredLeftMs: number | null
}

/** Outlooks of unfinished jobs; what a job waits for is read at most once in five seconds. */
export type Outlooks = {
  /** Null if the job is finished. */
  get(job: Job): Promise<Outlook | null>
}

export function createOutlooks(service: Pick<Service, 'clock' | 'database' | 'engine'>): Outlooks {
  const reports = new TtlMap<Promise<WaitReport>>({ sizeMax: JOBS_MAX, clock: service.clock })
  const rates = createJobRates(service.clock)

  function findReport(job: Job): Promise<WaitReport> {
    // A start and a passed DNS check are visible at once.
    const key = [job.id, job.state, service.engine.resolverCheck?.failure?.kind].join(' ')
    const cached = reports.get(key)
    if (cached !== undefined) return cached
    const report = buildWaitReport(service, job)
    reports.set(key, report, RETENTION_MS)
    report.catch(() => reports.delete(key))
    return report
  }

  return {
    async get(job) {
      if (job.finished_at !== null) return null
      const rate = rates.measure(job)
      const report = job.sandbox === 1 ? UNKNOWN : await findReport(job)
      const measuredLeftMs = leftAt(rate, job, report)
      return { rate, waits: report.waits, leftMs: measuredLeftMs ?? report.leftMs, measuredLeftMs }
    },
  }
}

const UNKNOWN: WaitReport = { leftMs: null, minimumMs: 0, waits: [] }

function leftAt(rate: number | null, { total, done }: Job, { minimumMs }: WaitReport) {
  if (rate) return Math.max(((total - done) * SECOND) / rate, minimumMs)
  return minimumMs > 0 ? minimumMs : null
}

type Sample = { readonly at: number; readonly done: number }

/** Measures the rates of jobs from the progress that their watchers see. */
export function createJobRates(clock: Clock) {
  const jobs = new TtlMap<Sample[]>({ sizeMax: JOBS_MAX, clock })
  return {
    /** Rows per second since the oldest sample; null if the samples cover too short a time. */
    measure({ id, done }: Pick<Job, 'id' | 'done'>): number | null {
      const now = clock.monotonicNow()
      const samples = jobs.get(id) ?? []
      jobs.set(id, samples, SAMPLES_RETENTION_MS)
      if (now - (samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= SAMPLE_EVERY_MS) {
        samples.push({ at: now, done })
      }
      while ((samples[1]?.at ?? now) <= now - RATE_OVER_MS) samples.shift()
      const [first = { at: now, done }] = samples
      const tookMs = now - first.at
      if (tookMs < RATE_SINCE_MS) return null
      // A resumed job may have fewer results than at its last sample.
      const added = Math.max(0, done - first.done)
      return Math.round((10 * SECOND * added) / tookMs) / 10
    },
  }
}

/** The rate, the remaining time and the waits of a job, for the API. */
export const presentOutlook = ({ rate, waits }: Outlook, leftMs: number | null) => ({
  rate_per_second: rate,
  seconds_left: leftMs === null ? null : Math.ceil(leftMs / SECOND),
  ...(waits.length === 0 ? {} : { waiting_for: waits.map(presentWait) }),
})

const presentWait = (wait: Wait) => ({
  operator: wait.operator === null ? null : sanitizeText(wait.operator),
  ...{ emails: wait.rows, reason: wait.reason },
  until: wait.until === null ? null : isoTime(wait.until),
  detail: describeWait(wait),
})
