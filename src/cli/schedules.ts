import { accountIn } from '../accounts/account-store.ts'
import type { SteadyClock } from '../db/steady-clock.ts'
import { OLDER_THAN_DAYS_MAX } from '../jobs/reverify/selection.ts'
import {
  EVERY_DAYS_MAX,
  presentSchedule,
  RUN_ERRORS,
  runStatus,
  type Schedule,
  toOptions,
} from '../jobs/schedules/schedule.ts'
import { allSchedules } from '../jobs/schedules/schedule-store.ts'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  updateSchedule,
} from '../jobs/schedules/schedules.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { parseClasses } from './bulk/output-plan.ts'
import { confirm } from './confirm.ts'
import type { CliContext } from './context.ts'
import { parseInteger } from './flag-values.ts'
import { withJob } from './jobs/job-status.ts'
import { withAccounts } from './local/with-accounts.ts'
import { printJson, printText, timeText } from './print.ts'
import { selectAccount } from './select-account.ts'
import { readConfig } from './settings.ts'
import { type Column, keyValues, table } from './table.ts'
import { widthOf } from './width.ts'

export type ScheduleFlags = {
  readonly account?: string
  readonly every?: string
  readonly only?: string
  readonly olderThan?: string
  readonly notify?: boolean
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev schedules list` and returns the exit code. */
export function listSchedulesCommand(context: CliContext, flags: ScheduleFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const all = await allSchedules(database)
    const accountId = flags.account === undefined ? null : selectAccount(accounts, flags.account).id
    const schedules = all.filter(one => accountId === null || one.account_id === accountId)
    if (flags.json)
      printJson(
        context,
        schedules.map(one => scheduleObject(one, database.steadyClock)),
      )
    else if (schedules.length === 0) {
      printText(context, 'No schedules. To create one, run "ev schedules create JOB --every DAYS".')
    } else {
      const rows = schedules.map(one => rowOf(one, database.steadyClock))
      context.stdout.write(table(COLUMNS, rows, widthOf(context, context.stdout)))
    }
    return 0
  })
}

/** Runs `ev schedules create` and returns the exit code. */
export function createScheduleCommand(
  context: CliContext,
  jobId: string,
  flags: ScheduleFlags,
): Promise<number> {
  const { every = '', only, olderThan, notify = false } = flags
  const options = {
    everyDays: parseInteger('--every', every, [1, EVERY_DAYS_MAX]),
    classes: only === undefined ? null : parseClasses(only),
    olderThanDays:
      olderThan === undefined
        ? null
        : parseInteger('--older-than', olderThan, [1, OLDER_THAN_DAYS_MAX]),
    notify,
  }
  return withJob(context, readConfig(context, flags), jobId, async (database, job) => {
    const { clock, random } = context
    const account = await accountIn(database.db, job.account_id ?? '')
    if (notify && account !== null && account.email === null) {
      throw new EvError(
        'usage',
        '--notify needs an email address of the account. Set it with "ev accounts set-email".',
      )
    }
    const input = { job, keyId: job.key_id ?? '', ...options }
    const created = await createSchedule({ database, clock, random }, input)
    if (flags.json) printJson(context, scheduleObject(created, database.steadyClock))
    else printText(context, `Created ${created.id}. ${nextText(created, database.steadyClock)}`)
    return 0
  })
}

/** Runs `ev schedules show` and returns the exit code. */
export function showScheduleCommand(
  context: CliContext,
  id: string,
  flags: ScheduleFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const schedule = await getSchedule(database.db, { id, accountId: null })
    if (flags.json) printJson(context, scheduleObject(schedule, database.steadyClock))
    else context.stdout.write(`${schedule.id}\n${factsOf(context, schedule, database.steadyClock)}`)
    return 0
  })
}

/** Runs `ev schedules pause` or `resume` and returns the exit code. */
export function activateScheduleCommand(
  context: CliContext,
  id: string,
  flags: ScheduleFlags,
  active: boolean,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const changed = await updateSchedule({ database }, { id, accountId: null }, { active })
    const next = active ? nextText(changed, database.steadyClock) : ''
    printText(context, active ? `Resumed ${id}. ${next}` : `Paused ${id}.`)
    return 0
  })
}

/** Runs `ev schedules delete` and returns the exit code. */
export function deleteScheduleCommand(
  context: CliContext,
  id: string,
  flags: ScheduleFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const target = { id, accountId: null }
    await getSchedule(database.db, target)
    await confirm(context, flags, `delete the schedule ${id}; the jobs that it created stay`)
    await deleteSchedule({ database }, target)
    printText(context, `Deleted schedule ${id}.`)
    return 0
  })
}

const scheduleObject = (schedule: Schedule, clock: SteadyClock) => {
  const { id, ...rest } = presentSchedule(schedule, clock)
  return { id, account_id: schedule.account_id, ...rest }
}

const nextText = (schedule: Schedule, clock: SteadyClock) =>
  `The service verifies ${schedule.latest_job_id} again every ${pluralize(schedule.every_days, 'day')}, first on ${nextRunText(schedule, clock)}.`

const nextRunText = ({ next_run_at }: Schedule, clock: SteadyClock) =>
  next_run_at === null ? 'paused' : timeText(clock.toWallTime(next_run_at))

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'EVERY', align: 'right' },
  { title: 'ROWS', dropRank: 1 },
  { title: 'NEXT RUN' },
  { title: 'LAST RUN', dropRank: 3 },
  { title: 'LIST' },
]

const rowOf = (schedule: Schedule, clock: SteadyClock): string[] => [
  schedule.id,
  schedule.account_id,
  pluralize(schedule.every_days, 'day'),
  conditionText(schedule),
  nextRunText(schedule, clock),
  runStatus(schedule) ?? '–',
  schedule.latest_job_id,
]

function conditionText(schedule: Schedule): string {
  const { classes, olderThanDays } = toOptions(schedule)
  const conditions = [
    ...(classes === null ? [] : [classes.join(', ')]),
    ...(olderThanDays === null ? [] : [`older than ${pluralize(olderThanDays, 'day')}`]),
  ]
  return conditions.length === 0 ? 'all' : conditions.join(' or ')
}

function factsOf(context: CliContext, schedule: Schedule, clock: SteadyClock): string {
  const { job_id, latest_job_id, last_run_at, last_error } = schedule
  const facts: [string, string | null][] = [
    ['account', schedule.account_id],
    ['list', job_id],
    ['every', pluralize(schedule.every_days, 'day')],
    ['rows', conditionText(schedule)],
    ['notify', schedule.notify === 1 ? 'by mail' : null],
    ['next run', nextRunText(schedule, clock)],
    ['last run', last_run_at === null ? null : `${runStatus(schedule)}, ${timeText(last_run_at)}`],
    ['reason', last_error === null ? null : RUN_ERRORS[last_error]],
    ['last job', latest_job_id === job_id ? null : latest_job_id],
    ['created', timeText(schedule.created_at)],
  ]
  return keyValues(facts, { width: widthOf(context, context.stdout), nameWidth: 10 })
}
