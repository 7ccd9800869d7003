import { isoTime } from '../../engine/verdict/present-result.ts'
import { type WaitingRows, waitingRows } from '../../jobs/backlog.ts'
import { type Job, parseJobOptions } from '../../jobs/job-store.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { WaitReason } from '../schemas/job.ts'
import { type EstimateDeps, probingMs, typicalMs } from '../verify/estimate.ts'

/** Rows of a job that wait at one operator. */
type Wait = {
  readonly operator: string
  readonly rows: number
  readonly reason: WaitReason
  /** Earliest time of the next attempt, epoch ms; null if the rows are probed in turn. */
  readonly until: number | null
}

/** The outlook of an unfinished job. */
export type WaitReport = {
  /** Estimated remaining time in ms. */
  readonly leftMs: number
  /** The operators at which most rows wait, most first. */
  readonly waits: readonly Wait[]
}

/** Clients that watch a job poll it repeatedly. */
const RETENTION_MS = 5 * SECOND
/** Each report takes about 1 KB. */
const JOBS_MAX = 1_000
/** Operators that a report lists. */
const WAITS_MAX = 5

/** Wait reports of jobs, each computed at most once in five seconds. */
export type WaitReports = {
  /** Null if the job is finished or simulated. */
  get(job: Job): Promise<WaitReport | null>
}

export function createWaitReports(deps: EstimateDeps & { readonly clock: Clock }): WaitReports {
  const cache = new TtlMap<Promise<WaitReport>>({ sizeMax: JOBS_MAX, clock: deps.clock })
  return {
    async get(job) {
      if (job.finished_at !== null || job.sandbox === 1) return null
      const cached = cache.get(job.id)
      if (cached !== undefined) return cached
      const waitReport = buildWaitReport(deps, job)
      cache.set(job.id, waitReport, RETENTION_MS)
      waitReport.catch(() => cache.delete(job.id))
      return waitReport
    },
  }
}

async function buildWaitReport(deps: EstimateDeps, job: Job): Promise<WaitReport> {
  const { database, clock } = deps
  const rows = job.state === 'processing' ? await waitingRows(database, job.id) : []
  const now = clock.now()
  const demands = rows.map(({ operator, count }) => ({ operator, addresses: count }))
  const waitingMs = await probingMs(deps, job.id, demands)
  const dueMs = Math.max(0, ...rows.map(({ lastDueAt }) => lastDueAt - now))
  return {
    leftMs: Math.max(waitingMs, dueMs, unroutedMs(deps, job, rows)),
    waits: rows.slice(0, WAITS_MAX).map(row => toWait(deps, row)),
  }
}

/**
 * Time for unrouted rows: at the rate of the job so far or, before the first result, at a typical
 * rate.
 */
function unroutedMs(
  { engine, clock }: EstimateDeps,
  job: Job,
  rows: readonly WaitingRows[],
): number {
  const waiting = rows.reduce((sum, { count }) => sum + count, 0)
  const left = Math.max(0, job.total - job.done - waiting)
  if (left === 0) return 0
  if (job.started_at === null || job.done === 0)
    return typicalMs(engine, left, parseJobOptions(job))
  return (Math.max(0, clock.now() - job.started_at) * left) / job.done
}

function toWait({ engine, clock }: EstimateDeps, row: WaitingRows): Wait {
  const now = clock.now()
  const { pause = null, refusal = null } = engine.rateStatus(row.operator) ?? {}
  const wait = (reason: WaitReason, until: number | null) => ({
    ...{ operator: row.operator, rows: row.count, reason, until },
  })
  if (refusal !== null && refusal.until > now) return wait('refused', refusal.until)
  if (pause !== null && pause.until > now) {
    return wait(pause.why === 'throttled' ? 'throttled' : 'unknown_users', pause.until)
  }
  return row.firstDueAt > now ? wait('asked_again_later', row.firstDueAt) : wait('pace', null)
}

export const presentWait = ({ operator, rows, reason, until }: Wait) => ({
  ...{ operator: sanitizeText(operator), emails: rows, reason },
  until: until === null ? null : isoTime(until),
})

/** Human-readable reason why the rows wait. */
export function describeWait({ operator, rows, reason, until }: Wait): string {
  const subject = `${pluralize(rows, 'address')} at ${sanitizeText(operator)}`
  const time = until === null ? '' : isoTime(until)
  return `${subject}: ${SENTENCES[reason].replace('{time}', time)}`
}

const SENTENCES: Readonly<Record<WaitReason, string>> = {
  refused: 'the operator blocks this service. Next attempt at {time}.',
  throttled: 'the operator asked to slow down. Next attempt at {time}.',
  unknown_users:
    'the operator rejected many recipients in a row as unknown. Next attempt at {time}.',
  asked_again_later: 'the next attempts are due later, the first at {time}.',
  pace: 'they are probed at the rate that the operator accepts.',
}
