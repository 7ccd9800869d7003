import { type BeforeCommit, type Database, write, writeWith } from '../../db/database.ts'
import type { Clock } from '../../platform/clock.ts'
import { DAY } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { jobError } from '../errors.ts'
import { findJob, type Job } from '../job-store.ts'
import {
  newScheduleId,
  SCHEDULES_MAX,
  type Schedule,
  type ScheduleOptions,
  toColumns,
  toOptions,
} from './schedule.ts'
import {
  changeSchedule,
  countSchedules,
  findSchedule,
  insertSchedule,
  removeSchedule,
} from './schedule-store.ts'

type ScheduleServices = { readonly database: Database; readonly clock: Clock }

type ScheduleInput = ScheduleOptions & {
  /** The list to verify again. */
  readonly job: Job
  /** The key to which the usage of the runs is charged. */
  readonly keyId: string
}

/**
 * Creates a schedule; its first run is after one interval. Throws `job_not_list` and
 * `schedule_limit_reached`.
 */
export async function createSchedule(
  { database, clock, random }: ScheduleServices & { readonly random: Random },
  { job, keyId, ...options }: ScheduleInput,
  beforeCommit?: BeforeCommit<Schedule>,
): Promise<Schedule> {
  const { id: jobId, account_id: accountId, type, sandbox } = job
  if (accountId === null || type === 'single') throw jobError('job_not_list', {})
  const now = clock.now()
  const schedule: Schedule = {
    id: newScheduleId(random),
    account_id: accountId,
    key_id: keyId,
    sandbox,
    job_id: jobId,
    latest_job_id: jobId,
    ...toColumns(options),
    next_run_at: database.steadyClock.now() + options.everyDays * DAY,
    claimed_until: null,
    last_run_at: null,
    last_error: null,
    created_at: now,
  }
  return writeWith(
    database,
    async trx => {
      const count = await countSchedules(trx, accountId)
      if (count >= SCHEDULES_MAX) throw jobError('schedule_limit_reached', { count })
      await insertSchedule(trx, schedule)
      return schedule
    },
    beforeCommit,
  )
}

type Target = {
  readonly id: string
  /** Null for a schedule of any account. */
  readonly accountId: string | null
}

/** Returns a schedule. Throws `schedule_not_found`, also for one of another account. */
export async function getSchedule(db: Database['reader'], target: Target): Promise<Schedule> {
  const schedule = await findSchedule(db, target)
  if (schedule === null) throw jobError('schedule_not_found', { id: target.id })
  return schedule
}

type ScheduleChanges = Partial<ScheduleOptions> & {
  /** False to pause the schedule, true to resume it. */
  readonly active?: boolean | undefined
}

/**
 * Changes a schedule. The next run is after one interval if the interval changes or the schedule is
 * resumed. Throws `schedule_not_found`, and `schedule_without_results` if it cannot be resumed.
 */
export async function updateSchedule(
  { database }: Pick<ScheduleServices, 'database'>,
  target: Target,
  changes: ScheduleChanges,
): Promise<Schedule> {
  return write(database, async trx => {
    const schedule = await getSchedule(trx, target)
    const options = { ...toOptions(schedule), ...changes }
    const isActive = changes.active ?? schedule.next_run_at !== null
    const { every_days, next_run_at } = schedule
    const isKept = next_run_at !== null && options.everyDays === every_days
    const nextAt = isKept ? next_run_at : database.steadyClock.now() + options.everyDays * DAY
    if (isActive && next_run_at === null) {
      const job = await findJob({ db: trx }, schedule.latest_job_id)
      if (job === null || job.state === 'loading') throw jobError('schedule_without_results', {})
    }
    return changeSchedule(trx, schedule.id, {
      ...toColumns(options),
      next_run_at: isActive ? nextAt : null,
    })
  })
}

/** Deletes a schedule; the jobs that it created stay. Throws `schedule_not_found`. */
export async function deleteSchedule(
  { database }: { readonly database: Database },
  target: Target,
): Promise<void> {
  await write(database, async trx => {
    const { id } = await getSchedule(trx, target)
    await removeSchedule(trx, id)
  })
}
