import { accountIn } from '../../accounts/account-store.ts'
import { findPlan, type Plan } from '../../accounts/plan.ts'
import { write } from '../../db/database.ts'
import { DAY, MINUTE, SECOND } from '../../platform/clock.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { OperationError } from '../../platform/operation-error.ts'
import { jobError } from '../errors.ts'
import { findJob, type Job } from '../job-store.ts'
import { inheritOptions, reverifyJob } from '../reverify/reverify-job.ts'
import type { JobServices } from '../submit-job.ts'
import type { RunError } from '../tables.ts'
import { JOB_LOG } from '../telemetry.ts'
import { nextRunAt, type Schedule, toOptions } from './schedule.ts'
import {
  type Claim,
  claimSchedule,
  dueSchedules,
  pauseSchedulesOf,
  recordRun,
  releaseClaim,
} from './schedule-store.ts'

export type RunDeps = JobServices & {
  readonly log: Log
  readonly plans: ReadonlyMap<string, Plan>
  /** Whether the disk is almost full; due runs then wait. */
  readonly disk: () => Promise<{ readonly isLow: boolean }>
  readonly timings?: ScheduleTimings
}

/** Intervals of the runs of schedules, in ms. */
export type ScheduleTimings = {
  /** Interval of the poll for due schedules, which are a day apart at least. */
  readonly pollMs: number
  /**
   * How long a process may take to prepare a run. Longer than copying a million rows takes: two
   * processes that prepare the same run waste work, although only one of them commits it.
   */
  readonly claimMs: number
}

export const DEFAULT_SCHEDULE_TIMINGS: ScheduleTimings = {
  pollMs: 30 * SECOND,
  claimMs: 30 * MINUTE,
}

/** Runs due schedules until it is stopped. */
export const startSchedules = (deps: RunDeps): Loop =>
  startLoop({
    failed: JOB_LOG.schedulePollFailed,
    clock: deps.clock,
    log: deps.log,
    everyMs: (deps.timings ?? DEFAULT_SCHEDULE_TIMINGS).pollMs,
    run: signal => runDueSchedules(deps, signal),
  })

/** Schedules per poll. The rest follow with the next poll. */
const DUE_MAX = 100

/** Runs the schedules that are due, one after the other. */
export async function runDueSchedules(deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { database } = deps
  const clock = database.steadyClock
  const due = await dueSchedules(database, clock.now(), DUE_MAX)
  if (due.length === 0 || (await deps.disk()).isLow) return
  const { claimMs } = deps.timings ?? DEFAULT_SCHEDULE_TIMINGS
  for (const schedule of due) {
    if (signal.aborted) return
    const claim: Claim = { id: schedule.id, claimedUntil: clock.now() + claimMs }
    if (await claimSchedule(database, schedule, claim.claimedUntil)) {
      await runSchedule(deps, schedule, claim, signal)
    }
  }
}

/** Creates the job of a run, or records why there is none. */
async function runSchedule(
  deps: RunDeps,
  schedule: Schedule,
  claim: Claim,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, log } = deps
  const fields = { scheduleId: schedule.id, accountId: schedule.account_id }
  try {
    const created = await createRun(deps, schedule, claim, signal)
    writeLog(log, JOB_LOG.scheduleRunStarted, { ...fields, jobId: created.id })
  } catch (error) {
    // A schedule that was changed during its run is run again with the next poll.
    if (error instanceof ClaimLost) return
    const reason = toRunError(error)
    if (reason === null) {
      // Otherwise the claim stays until it expires, so that a fault does not hold up other schedules.
      if (signal.aborted) return releaseClaim(database, claim)
      throw error
    }
    await write(database, async trx => {
      if (reason === 'results_deleted') return pauseSchedulesOf(trx, schedule.latest_job_id)
      const nextAt = nextRunAt(schedule, database.steadyClock.now())
      const run = { at: clock.now(), nextRunAt: nextAt, jobId: null, error: reason }
      await recordRun(trx, claim, run)
    })
    writeLog(log, JOB_LOG.scheduleRunRefused, { ...fields, reason })
  }
}

class ClaimLost extends Error {}

/** The job and the record of the run are committed together. */
async function createRun(
  deps: RunDeps,
  schedule: Schedule,
  claim: Claim,
  signal: AbortSignal,
): Promise<Job> {
  const { database, clock, plans, priority } = deps
  const job = await findJob(database, schedule.latest_job_id)
  if (job === null) throw jobError('job_not_found', { id: schedule.latest_job_id })
  const account = await accountIn(database.db, schedule.account_id)
  const { classes, olderThanDays, notify } = toOptions(schedule)
  const selection = {
    classes: classes ?? undefined,
    checkedBefore: olderThanDays === null ? undefined : clock.now() - olderThanDays * DAY,
  }
  const yieldToRequests: NonNullable<JobServices['priority']>['yieldToRequests'] = async kind => {
    // Ends the preparation at a stop; it is repeated.
    signal.throwIfAborted()
    await priority?.yieldToRequests(kind)
  }
  const input = {
    job,
    plan: findPlan(plans, account?.plan ?? ''),
    keyId: schedule.key_id,
    selection,
    options: { ...inheritOptions(job), notify: notify && account?.email != null },
    scheduleId: schedule.id,
  }
  return reverifyJob({ ...deps, priority: { yieldToRequests } }, input, async (trx, { id }) => {
    const nextAt = nextRunAt(schedule, database.steadyClock.now())
    const run = { at: clock.now(), nextRunAt: nextAt, jobId: id, error: null }
    if (!(await recordRun(trx, claim, run))) throw new ClaimLost()
  })
}

/** Returns the reason for which a run created no job; null for a failure. */
function toRunError(error: unknown): RunError | null {
  if (!(error instanceof OperationError)) return null
  switch (error.code) {
    case 'job_not_found':
      return 'results_deleted'
    case 'job_not_reverifiable':
      return 'previous_run_unfinished'
    case 'no_row_selected':
      return 'nothing_to_verify'
    case 'credits_used_up':
    case 'credits_exceeded':
      return 'credits_exceeded'
    case 'concurrent_jobs_exceeded':
    case 'stored_rows_exceeded':
      return error.code
    default:
      return null
  }
}
