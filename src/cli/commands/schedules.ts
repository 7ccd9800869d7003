import type { Command } from 'commander'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const EXAMPLES = `
Examples:
  ev schedules
  ev schedules create job_4kq2 --every 30 --only unknown --older-than 90
  ev schedules pause sch_4kq2

"ev serve" must be running when a schedule is due.`

export function defineSchedules(
  schedules: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  schedules.addHelpText('after', EXAMPLES)
  addList(schedules, context, setExitCode)
  addCreate(schedules, context, setExitCode)
  addShow(schedules, context, setExitCode)
  addPauseAndResume(schedules, context, setExitCode)
  addDelete(schedules, context, setExitCode)
}

function addList(schedules: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = schedules
    .command('list', { isDefault: true })
    .description('list all schedules, newest first')
    .allowExcessArguments()
    .option('--account <account>', 'only schedules of this account, by ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev schedules list\n  ev schedules --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, schedules)
      const { listSchedulesCommand } = await import('../schedules.ts')
      setExitCode(await listSchedulesCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addCreate(schedules: Command, context: CliContext, setExitCode: SetExitCode): void {
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
    .action(async (jobId: string, flags) => {
      const { createScheduleCommand } = await import('../schedules.ts')
      setExitCode(await createScheduleCommand(context, jobId, flags))
    })
  addSettings(create, context, DATA_SETTINGS)
}

function addShow(schedules: Command, context: CliContext, setExitCode: SetExitCode): void {
  const show = schedules
    .command('show')
    .description('show a schedule and its last run')
    .argument('<schedule>', 'ID of the schedule')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev schedules show sch_4kq2')
    .action(async (id: string, flags) => {
      const { showScheduleCommand } = await import('../schedules.ts')
      setExitCode(await showScheduleCommand(context, id, flags))
    })
  addSettings(show, context, DATA_SETTINGS)
}

function addPauseAndResume(
  schedules: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  for (const [name, active, description] of [
    ['pause', false, 'pause a schedule'],
    ['resume', true, 'resume a schedule; the next run is after one interval'],
  ] as const) {
    const command = schedules
      .command(name)
      .description(description)
      .argument('<schedule>', 'ID of the schedule')
      .addHelpText('after', `\nExamples:\n  ev schedules ${name} sch_4kq2`)
      .action(async (id: string, flags) => {
        const { activateScheduleCommand } = await import('../schedules.ts')
        setExitCode(await activateScheduleCommand(context, id, flags, active))
      })
    addSettings(command, context, DATA_SETTINGS)
  }
}

function addDelete(schedules: Command, context: CliContext, setExitCode: SetExitCode): void {
  const remove = schedules
    .command('delete')
    .description('delete a schedule; the jobs that it created are kept')
    .argument('<schedule>', 'ID of the schedule')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev schedules delete sch_4kq2')
    .action(async (id: string, flags) => {
      const { deleteScheduleCommand } = await import('../schedules.ts')
      setExitCode(await deleteScheduleCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}
