import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './no-such-command.ts'

const EXAMPLES = `
Examples:
  ev jobs
  ev jobs list --json
  ev jobs show job_4kq2
  ev jobs resume job_4kq2
  ev jobs cancel job_4kq2
  ev jobs delete job_4kq2

An ID may be shortened to its first characters, as long as they name one job.

States: loading, queued, processing, writing (an ev is at work on it) · stopped (ended before the list was
done: resume goes on) · unwritten (all is known, only the output is missing: resume writes it) · completed ·
cancelled · failed.

Lists that came to “ev serve” are here too: it alone works on them, and it notices within seconds when one is
cancelled, deleted or, after it was cancelled or failed, resumed here.`

export function addJobs(ev: Command, context: CliContext, end: EndWith): void {
  const jobs = ev
    .command('jobs')
    .description('lists that were begun: see, resume, cancel and delete them')
    .addHelpText('after', EXAMPLES)
  addList(jobs, context, end)
  addShow(jobs, context, end)
  addResume(jobs, context, end)
  addCancel(jobs, context, end)
  addDelete(jobs, context, end)
}

function addList(jobs: Command, context: CliContext, end: EndWith): void {
  const list = jobs
    .command('list', { isDefault: true })
    .description('all of them, the latest first')
    .allowExcessArguments()
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev jobs list\n  ev jobs --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, jobs)
      const { listCommand } = await import('../jobs/list.ts')
      end(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addShow(jobs: Command, context: CliContext, end: EndWith): void {
  const show = jobs
    .command('show')
    .description('how one stands, and what it waits for')
    .argument('<id>', 'its ID, or the beginning of it')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev jobs show job_4kq2\n  ev jobs show job_4kq2 --json')
    .action(async (id: string, flags) => {
      const { showCommand } = await import('../jobs/show.ts')
      end(await showCommand(context, id, flags))
    })
  addSettings(show, context, DATA_SETTINGS)
}

function addResume(jobs: Command, context: CliContext, end: EndWith): void {
  const resume = jobs
    .command('resume')
    .description('go on with one that was stopped, as the command that began it would')
    .argument('<id>', 'its ID, or the beginning of it')
    .option('--quiet', 'no progress and no summary')
    .option('--json', 'print the summary as JSON on stdout')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs resume job_4kq2\n  ev jobs resume job_4kq2 --concurrency 20',
    )
    .action(async (id: string, flags) => {
      const { resumeCommand } = await import('../jobs/change.ts')
      end(await resumeCommand(context, id, flags))
    })
  addSettings(resume, context)
}

function addCancel(jobs: Command, context: CliContext, end: EndWith): void {
  const cancel = jobs
    .command('cancel')
    .description('end one for good; an ev that works on it stops')
    .argument('<id>', 'its ID, or the beginning of it')
    .addHelpText('after', '\nExamples:\n  ev jobs cancel job_4kq2')
    .action(async (id: string, flags) => {
      const { cancelCommand } = await import('../jobs/change.ts')
      end(await cancelCommand(context, id, flags))
    })
  addSettings(cancel, context, DATA_SETTINGS)
}

function addDelete(jobs: Command, context: CliContext, end: EndWith): void {
  const remove = jobs
    .command('delete')
    .description('remove one with its addresses; its output stays where it is')
    .argument('<id>', 'its ID, or the beginning of it')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs delete job_4kq2\n\nAnswers of mail servers stay remembered for a while: “ev purge --all” forgets them.',
    )
    .action(async (id: string, flags) => {
      const { deleteCommand } = await import('../jobs/change.ts')
      end(await deleteCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}
