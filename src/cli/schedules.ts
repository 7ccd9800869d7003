import type { Command } from 'commander'
import { EVERY_DAYS_MAX } from '../jobs/schedules/schedule.ts'
import { pluralize } from '../platform/format.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm, YES } from './confirm.ts'
import type { CliContext } from './context.ts'
import {
  addOwnedListCommand,
  type DataFlags,
  openBackend,
  ownedObject,
  worksOnData,
} from './data-command.ts'
import { parseClasses, parseInteger } from './flag-values.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  createRemoteSchedules,
  type OwnedSchedule,
  type SchedulesBackend,
} from './remote/schedules.ts'
import { type Column, keyValues } from './table.ts'
import { widthOf } from './width.ts'

const EXAMPLES = `
Examples:
  ev schedules
  ev schedules create job_4kq2 --every 30 --only unknown --older-than 90
  ev schedules pause sch_4kq2

"ev serve" must be running when a schedule is due.`

export function defineSchedules(schedules: Command, context: CliContext): void {
  schedules.addHelpText('after', EXAMPLES)
  addList(schedules, context)
  addCreate(schedules, context)
  addShow(schedules, context)
  addPauseAndResume(schedules, context)
  addDelete(schedules, context)
}

const openSchedules = (context: CliContext, flags: DataFlags): Promise<SchedulesBackend> =>
  openBackend(context, flags, {
    remote: createRemoteSchedules,
    loadLocal: async () => (await import('./local/schedules.ts')).createLocalSchedules,
  })

const addList = (schedules: Command, context: CliContext): void =>
  addOwnedListCommand(schedules, context, {
    noun: 'schedules',
    description: 'list all schedules, newest first',
    examples: ['ev schedules list', 'ev schedules --json'],
    open: flags => openSchedules(context, flags),
    table: { columns: COLUMNS, rowOf, none: NO_SCHEDULES },
  })

type CreateFlags = DataFlags & {
  readonly every: string
  readonly only?: string
  readonly olderThan?: string
  readonly notify?: boolean
}

function addCreate(schedules: Command, context: CliContext): void {
  const create = schedules
    .command('create')
    .description('create a schedule that re-verifies a list')
    .argument('<job>', 'ID of the list, or a unique prefix')
    .requiredOption('--every <days>', 'days between runs, from 1 to 365')
    .option('--only <class,…>', 're-verify only rows of these classes, such as unknown,risky')
    .option('--older-than <days>', 're-verify only rows whose result is older than this')
    .option('--notify', 'email the account after each run')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev schedules create job_4kq2 --every 30\n  ev schedules create job_4kq2 --every 7 --only unknown --older-than 90',
    )
    .action((jobId: string, flags) => createScheduleCommand(context, jobId, flags))
  worksOnData(create, context)
}

function addShow(schedules: Command, context: CliContext): void {
  const show = schedules
    .command('show')
    .description('show a schedule and its last run')
    .argument('<schedule>', 'ID of the schedule')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev schedules show sch_4kq2')
    .action((id: string, flags) => showScheduleCommand(context, id, flags))
  worksOnData(show, context)
}

function addPauseAndResume(schedules: Command, context: CliContext): void {
  for (const [name, active, description] of [
    ['pause', false, 'pause a schedule'],
    ['resume', true, 'resume a schedule; the next run is after one interval'],
  ] as const) {
    const command = schedules
      .command(name)
      .description(description)
      .argument('<schedule>', 'ID of the schedule')
      .addHelpText('after', `\nExamples:\n  ev schedules ${name} sch_4kq2`)
      .action((id: string, flags) => activateScheduleCommand(context, id, flags, active))
    worksOnData(command, context)
  }
}

function addDelete(schedules: Command, context: CliContext): void {
  const remove = schedules
    .command('delete')
    .description('delete a schedule; the jobs that it created are kept')
    .argument('<schedule>', 'ID of the schedule')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev schedules delete sch_4kq2')
    .action((id: string, flags) => deleteScheduleCommand(context, id, flags))
  worksOnData(remove, context)
}

const NO_SCHEDULES = 'No schedules. To create one, run "ev schedules create JOB --every DAYS".'

async function createScheduleCommand(
  context: CliContext,
  jobId: string,
  flags: CreateFlags,
): Promise<void> {
  const { every, only, olderThan, notify = false } = flags
  const { OLDER_THAN_DAYS_MAX } = await import('../jobs/reverify/selection.ts')
  const options = omitUndefined({
    every_days: parseInteger('--every', every, [1, EVERY_DAYS_MAX]),
    only: only === undefined ? undefined : parseClasses(only),
    older_than_days:
      olderThan === undefined
        ? undefined
        : parseInteger('--older-than', olderThan, [1, OLDER_THAN_DAYS_MAX]),
    notify,
  })
  const created = await (await openSchedules(context, flags)).create(jobId, options)
  if (flags.json) printJson(context, ownedObject(created))
  else printText(context, `Created ${created.id}. ${nextText(created)}`)
}

async function showScheduleCommand(
  context: CliContext,
  id: string,
  flags: DataFlags,
): Promise<void> {
  const schedule = await (await openSchedules(context, flags)).get(id)
  if (flags.json) printJson(context, ownedObject(schedule))
  else context.stdout.write(`${schedule.id}\n${factsOf(context, schedule)}`)
}

/** Runs `ev schedules pause` or `resume`. */
async function activateScheduleCommand(
  context: CliContext,
  id: string,
  flags: DataFlags,
  active: boolean,
): Promise<void> {
  const changed = await (await openSchedules(context, flags)).setActive(id, active)
  printText(context, active ? `Resumed ${id}. ${nextText(changed)}` : `Paused ${id}.`)
}

async function deleteScheduleCommand(
  context: CliContext,
  id: string,
  flags: DataFlags,
): Promise<void> {
  const schedules = await openSchedules(context, flags)
  await schedules.get(id)
  await confirm(context, flags, `delete the schedule ${id}; the jobs that it created stay`)
  await schedules.delete(id)
  printText(context, `Deleted schedule ${id}.`)
}

const latestJob = ({ job_id, last_job_id }: OwnedSchedule) => last_job_id ?? job_id

const nextText = (schedule: OwnedSchedule) =>
  `The service verifies ${latestJob(schedule)} again every ${pluralize(schedule.every_days, 'day')}, first on ${nextRunText(schedule)}.`

const nextRunText = ({ next_run_at }: OwnedSchedule) =>
  next_run_at === null ? 'paused' : timeText(Date.parse(next_run_at))

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'EVERY', align: 'right' },
  { title: 'ROWS', dropRank: 1 },
  { title: 'NEXT RUN' },
  { title: 'LAST RUN', dropRank: 3 },
  { title: 'LIST' },
]

const rowOf = (schedule: OwnedSchedule): string[] => [
  schedule.id,
  schedule.account_id,
  pluralize(schedule.every_days, 'day'),
  conditionText(schedule),
  nextRunText(schedule),
  schedule.last_run?.status ?? '–',
  latestJob(schedule),
]

function conditionText({ only, older_than_days }: OwnedSchedule): string {
  const conditions = [
    ...(only === null ? [] : [only.join(', ')]),
    ...(older_than_days === null ? [] : [`older than ${pluralize(older_than_days, 'day')}`]),
  ]
  return conditions.length === 0 ? 'all' : conditions.join(' or ')
}

function factsOf(context: CliContext, schedule: OwnedSchedule): string {
  const { last_run, last_error, last_job_id } = schedule
  const facts: [string, string | null][] = [
    ['account', schedule.account_id],
    ['list', schedule.job_id],
    ['every', pluralize(schedule.every_days, 'day')],
    ['rows', conditionText(schedule)],
    ['notify', schedule.notify ? 'by mail' : null],
    ['next run', nextRunText(schedule)],
    [
      'last run',
      last_run === null ? null : `${last_run.status}, ${timeText(Date.parse(last_run.at))}`,
    ],
    ['reason', last_error === null ? null : sanitizeText(last_error.message, 500)],
    ['last job', last_job_id],
    ['created', timeText(Date.parse(schedule.created_at))],
  ]
  return keyValues(facts, { width: widthOf(context, context.stdout), nameWidth: 10 })
}
