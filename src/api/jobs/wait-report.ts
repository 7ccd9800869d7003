import { isoTime } from '../../engine/verdict/present-result.ts'
import { type WaitingRows, waitingRows } from '../../jobs/backlog.ts'
import { type Job, parseJobOptions } from '../../jobs/job-store.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { WaitReason } from '../schemas/job.ts'
import { askingMs, type EstimateDeps, usualMs } from '../verify/estimate.ts'

/** Rows of a job that wait at one operator. */
export type Wait = {
  readonly operator: string
  readonly rows: number
  readonly reason: WaitReason
  /** Until when at least, epoch ms; null: they are asked in turn. */
  readonly until: number | null
}

/** What is to be expected of a job that is not finished. */
export type WaitReport = {
  /** How long it will go on, in ms. */
  readonly leftMs: number
  /** Where most rows wait, the most first. */
  readonly waits: readonly Wait[]
}

/** Whoever watches a job asks again and again. */
const RETENTION_MS = 5 * SECOND
/** About 1 KB each. */
const JOBS_MAX = 1_000
/** Operators that are told of. */
const WAITS_MAX = 5

/** The outlook of jobs, counted at most once in five seconds for each. */
export type WaitReports = {
  /** Null for a job that is finished or simulated. */
  of(job: Job): Promise<WaitReport | null>
}

export function createWaitReports(deps: EstimateDeps & { readonly clock: Clock }): WaitReports {
  const known = new TtlMap<Promise<WaitReport>>({ sizeMax: JOBS_MAX, clock: deps.clock })
  return {
    async of(job) {
      if (job.finished_at !== null || job.sandbox === 1) return null
      const counted = known.get(job.id)
      if (counted !== undefined) return counted
      const waitReport = waitReportOf(deps, job)
      known.set(job.id, waitReport, RETENTION_MS)
      waitReport.catch(() => known.delete(job.id))
      return waitReport
    },
  }
}

async function waitReportOf(deps: EstimateDeps, job: Job): Promise<WaitReport> {
  const { database, clock } = deps
  const rows = job.state === 'processing' ? await waitingRows(database, job.id) : []
  const now = clock.now()
  const demands = rows.map(({ operator, count }) => ({ operator, addresses: count }))
  const waitingMs = await askingMs(deps, job.id, demands)
  const dueMs = Math.max(0, ...rows.map(({ lastDueAt }) => lastDueAt - now))
  return {
    leftMs: Math.max(waitingMs, dueMs, unroutedMs(deps, job, rows)),
    waits: rows.slice(0, WAITS_MAX).map(row => waitAt(deps, row)),
  }
}

/** What is not routed yet goes on as the job went so far; before anything is done, as is usual. */
function unroutedMs(
  { engine, clock }: EstimateDeps,
  job: Job,
  rows: readonly WaitingRows[],
): number {
  const waiting = rows.reduce((sum, { count }) => sum + count, 0)
  const left = Math.max(0, job.total - job.done - waiting)
  if (left === 0) return 0
  if (job.started_at === null || job.done === 0) return usualMs(engine, left, parseJobOptions(job))
  return (Math.max(0, clock.now() - job.started_at) * left) / job.done
}

function waitAt({ engine, clock }: EstimateDeps, row: WaitingRows): Wait {
  const now = clock.now()
  const { pause = null, refusal = null } = engine.rateStatus(row.operator) ?? {}
  const of = (reason: WaitReason, until: number | null) => ({
    ...{ operator: row.operator, rows: row.count, reason, until },
  })
  if (refusal !== null && refusal.until > now) return of('refused', refusal.until)
  if (pause !== null && pause.until > now) {
    return of(pause.why === 'throttled' ? 'throttled' : 'unknown_users', pause.until)
  }
  return row.firstDueAt > now ? of('asked_again_later', row.firstDueAt) : of('pace', null)
}

export const presentWait = ({ operator, rows, reason, until }: Wait) => ({
  ...{ operator: sanitizeText(operator), emails: rows, reason },
  until: until === null ? null : isoTime(until),
})

/** For people: what most rows wait for. */
export function sentenceOf({ operator, rows, reason, until }: Wait): string {
  const who = `${pluralize(rows, 'address')} at ${sanitizeText(operator)}`
  const time = until === null ? '' : isoTime(until)
  return `${who}: ${SENTENCES[reason].replace('{time}', time)}`
}

const SENTENCES: Readonly<Record<WaitReason, string>> = {
  refused: 'the operator refuses us until {time}.',
  throttled: 'the operator asked us to slow down. It is asked again from {time}.',
  unknown_users:
    'the operator knew none of many recipients in a row. It is asked again from {time}.',
  asked_again_later: 'the mail servers are to be asked again later, the first at {time}.',
  pace: 'they are asked at the pace that the operator accepts.',
}
