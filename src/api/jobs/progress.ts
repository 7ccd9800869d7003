import { type Job, progressOf } from '../../jobs/job-store.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { classesOf, summaryOf } from './job-view.ts'

/** The pace is that of so long a time: a connection brings its results in bursts. */
const RATE_OVER_MS = 10 * SECOND
/** Over less, it would be that of one burst. */
const RATE_SINCE_MS = SECOND

/** Tells how a job stands, look after look, and how fast it goes. */
export function createProgress(clock: Pick<Clock, 'monotonicNow'>) {
  const looks: { readonly at: number; readonly done: number }[] = []

  /** Rows a second since the oldest look that counts; null: too few looks. */
  const rateOf = ({ done }: Job): number | null => {
    const now = clock.monotonicNow()
    looks.push({ at: now, done })
    while ((looks[1]?.at ?? now) <= now - RATE_OVER_MS) looks.shift()
    const [first = { at: now, done }] = looks
    const tookMs = now - first.at
    if (tookMs < RATE_SINCE_MS) return null
    return Math.round((10 * SECOND * (done - first.done)) / tookMs) / 10
  }

  return (job: Job) => {
    const rate = job.finished_at === null ? rateOf(job) : null
    return {
      status: job.state as Exclude<Job['state'], 'loading'>,
      progress: progressOf(job),
      total_emails: job.total,
      processed_emails: job.done,
      classes: classesOf(job),
      rate_per_second: rate,
      seconds_left: rate ? Math.ceil((job.total - job.done) / rate) : null,
      summary: summaryOf(job),
    }
  }
}
