import type { SteadyClock } from '../../db/steady-clock.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { DAY } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import type { RunError, ScheduleTable } from '../tables.ts'

export type Schedule = ScheduleTable

/** A longer interval than a year has no use: most addresses have changed their owner by then. */
export const EVERY_DAYS_MAX = 365

/** Maximum schedules of an account: one for each of its lists. */
export const SCHEDULES_MAX = 100

/** 103 bits of entropy: an ID is not a secret, but must not be guessable. */
const ID_LENGTH = 20

export const newScheduleId = (random: Random) => `sch_${random.token(ID_LENGTH)}`

/** What a schedule verifies again, and how often. */
export type ScheduleOptions = {
  readonly everyDays: number
  /** Results of these classes; null for no such condition. */
  readonly classes: readonly Class[] | null
  /** Results that are older; null for no such condition. */
  readonly olderThanDays: number | null
  /** Whether the end of each run is reported by mail. */
  readonly notify: boolean
}

/** Returns the columns of these options. */
export const toColumns = ({ everyDays, classes, olderThanDays, notify }: ScheduleOptions) => ({
  every_days: everyDays,
  classes: classes === null ? null : classes.join(','),
  older_than_days: olderThanDays,
  notify: notify ? 1 : 0,
})

export const toOptions = (schedule: Schedule): ScheduleOptions => ({
  everyDays: schedule.every_days,
  classes: parseClasses(schedule),
  olderThanDays: schedule.older_than_days,
  notify: schedule.notify === 1,
})

const parseClasses = ({ classes }: Schedule) =>
  classes === null ? null : (classes.split(',') as Class[])

/**
 * Returns the steady time of the run after one that is due. A run that is late by a day or more moves the
 * later ones, so that a service that was down does not run a list twice within days.
 */
export function nextRunAt({ next_run_at, every_days }: Schedule, now: number): number {
  const dueAt = next_run_at ?? now
  return (now - dueAt < DAY ? Math.min(dueAt, now) : now) + every_days * DAY
}

/** A sentence for each reason. */
export const RUN_ERRORS: Readonly<Record<RunError, string>> = {
  previous_run_unfinished: 'The previous run had not ended. The list is verified the next time.',
  nothing_to_verify: 'No row matched the conditions.',
  credits_exceeded: 'The account did not have enough credits left for the day.',
  concurrent_jobs_exceeded: 'The account had as many unfinished lists as its plan allows.',
  stored_rows_exceeded: 'The account would have stored more rows than its plan allows.',
  results_deleted: 'The results to verify again were deleted, so the schedule was paused.',
}

type RunStatus = 'started' | 'skipped' | 'failed'

/** A run without an error created a job, which may be deleted by now; a skipped one created none. */
export function runStatus({ last_run_at, last_error }: Schedule): RunStatus | null {
  if (last_run_at === null) return null
  if (last_error === null || last_error === 'results_deleted') return 'started'
  return SKIPPED.has(last_error) ? 'skipped' : 'failed'
}

const SKIPPED: ReadonlySet<RunError> = new Set(['previous_run_unfinished', 'nothing_to_verify'])

/** Presents a schedule for the API and the command line. */
export function presentSchedule(schedule: Schedule, clock: SteadyClock) {
  const { everyDays, classes, olderThanDays, notify } = toOptions(schedule)
  const { job_id, latest_job_id, next_run_at, last_run_at, last_error, created_at } = schedule
  const status = runStatus(schedule)
  return {
    id: schedule.id,
    job_id,
    every_days: everyDays,
    only: classes && [...classes],
    older_than_days: olderThanDays,
    notify,
    active: next_run_at !== null,
    ...(schedule.sandbox === 1 ? { sandbox: true as const } : {}),
    next_run_at: next_run_at === null ? null : isoTime(clock.toWallTime(next_run_at)),
    last_run: last_run_at === null || status === null ? null : { at: isoTime(last_run_at), status },
    last_error: last_error === null ? null : { code: last_error, message: RUN_ERRORS[last_error] },
    last_job_id: latest_job_id === job_id ? null : latest_job_id,
    created_at: isoTime(created_at),
  }
}
