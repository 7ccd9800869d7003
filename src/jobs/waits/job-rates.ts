import { type Clock, MINUTE, SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { Job } from '../job-store.ts'

/**
 * Rates are measured over this time: a connection returns its results in bursts, and older rates
 * predict the remaining time badly.
 */
const RATE_OVER_MS = 30 * SECOND
/** Over a longer time, most of it may have been a wait of all rows: it predicts nothing. */
const PREDICTS_MAX_MS = 2 * MINUTE
/** Over a shorter time it would be the rate of a single burst. */
const RATE_SINCE_MS = SECOND
/** Minimum interval between samples. */
const SAMPLE_EVERY_MS = SECOND / 4
/** Longer than the interval of a client that polls. */
const RETENTION_MS = 10 * MINUTE
/** Each has up to 120 samples. */
const JOBS_MAX = 1_000

type Sample = { readonly at: number; readonly done: number }

/** Measures the recent rates of jobs. */
type JobRates = {
  /**
   * Adds the progress of a job and returns its results per second over the last 30 seconds, or
   * since the previous sample if that is longer ago. Null while the samples cover too short a time,
   * and if the job is finished, which deletes them: it may be resumed later.
   */
  measure(job: Pick<Job, 'id' | 'done' | 'finished_at'>): number | null
  /**
   * Adds the progress of a job and returns the results per second with which to estimate its
   * remaining time; null if no recent rate is known.
   */
  predict(job: Pick<Job, 'id' | 'done' | 'finished_at'>): number | null
}

export function createJobRates(clock: Clock): JobRates {
  const jobs = new TtlMap<Sample[]>({ sizeMax: JOBS_MAX, clock })

  /** Adds a sample. Returns the rate and the time over which it is measured. */
  function sample({ id, done, finished_at }: Parameters<JobRates['measure']>[0]) {
    if (finished_at !== null) {
      jobs.delete(id)
      return null
    }
    const now = clock.monotonicNow()
    const samples = jobs.get(id) ?? []
    jobs.set(id, samples, RETENTION_MS)
    if (now - (samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= SAMPLE_EVERY_MS) {
      samples.push({ at: now, done })
    }
    while ((samples[1]?.at ?? now) <= now - RATE_OVER_MS) samples.shift()
    const [first = { at: now, done }] = samples
    const tookMs = now - first.at
    if (tookMs < RATE_SINCE_MS) return null
    // A resumed job may have fewer results than at its last sample.
    return { rate: (Math.max(0, done - first.done) * SECOND) / tookMs, tookMs }
  }

  return {
    measure: job => sample(job)?.rate ?? null,
    predict(job) {
      const measured = sample(job)
      return measured === null || measured.tookMs > PREDICTS_MAX_MS ? null : measured.rate
    },
  }
}
