import { html } from 'hono/html'
import type { Job, ListedJob } from '../../client/types.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatDuration, formatNumber, pluralize } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'

/** A job as a page of ours is given it, alone or among others. */
export type AnyJob = Job | ListedJob
export type State = AnyJob['status']

export const CLASSES: readonly Class[] = ['deliverable', 'risky', 'undeliverable', 'unknown']

export const isUnderWay = ({ status }: Pick<AnyJob, 'status'>) =>
  status === 'queued' || status === 'processing'

/** What a list is called; one that was given no name is called by its id. */
export const titleOf = ({ name, job_id }: AnyJob): string => name ?? job_id

/** How a job stands, as a word in its colour. */
export const stateBadge = ({ status }: AnyJob): Html =>
  html`<span class="badge${TONES[status]}">${WORDS[status]}</span>`

const WORDS: Readonly<Record<State, string>> = {
  ...{ queued: 'waiting', processing: 'under way', completed: 'completed' },
  ...{ failed: 'failed', cancelled: 'cancelled' },
}

const TONES: Readonly<Record<State, string>> = {
  ...{ queued: '', processing: '', completed: ' is-ok', failed: ' is-bad', cancelled: ' is-warn' },
}

/** How long a job took, or has taken so far; null: it has not begun. */
export function tookMs({ started_at, data }: AnyJob, now: number): number | null {
  if (started_at === null) return null
  const end = data.completed_at === null ? now : Date.parse(data.completed_at)
  return Math.max(0, end - Date.parse(started_at))
}

/** How a job stands, in a sentence or two, with what can be done. What changes by the second stands elsewhere. */
export function stateSentence(job: Job, now: number): Html {
  const { processed_emails: done, total_emails: total } = job
  const rows = pluralize(total, 'row')
  const took = formatDuration(tookMs(job, now) ?? 0)
  switch (job.status) {
    case 'queued':
    case 'processing':
      return html`It is under way, as fast as the mail servers allow. You may leave this page: the list goes on.`
    case 'completed':
      return html`It is completed: ${rows} in ${took}.`
    case 'cancelled':
      return html`It was cancelled after ${formatNumber(done)} of ${rows}. What was found out by then is below, and the credits
        for the other rows were given back. Resume goes on where it stopped.`
    case 'failed':
      return html`It could not be finished: something inside the service failed after ${formatNumber(done)} of ${rows}
        (${job.error?.code ?? 'server_error'}). What was found out by then is below, and the credits for the other rows were
        given back. Resume goes on where it stopped; if it fails again, tell whoever runs the service the id of the list,
        ${job.job_id}: its log says why.`
    default:
      return job.status satisfies never
  }
}
