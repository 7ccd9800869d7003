import { type Command, Option } from 'commander'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import {
  deduplicateOption,
  metadataOption,
  OUTPUT_FORMATS,
  vocabularyOption,
} from '../flag-values.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const EXAMPLES = `
Examples:
  ev jobs
  ev jobs list --json
  ev jobs show job_4kq2
  ev jobs resume job_4kq2
  ev jobs cancel job_4kq2
  ev jobs delete job_4kq2
  ev jobs download-url job_4kq2
  ev jobs reverify job_4kq2 --only unknown
  ev jobs changes job_8m3x

You can shorten an ID to a unique prefix.

A job is loading, queued, processing, writing, completed, cancelled or failed. A stopped job was interrupted: "ev jobs
resume" continues it. An unwritten job has all its results but no output file: "ev jobs resume" writes it.

The list includes jobs that were submitted to "ev serve". Only the service processes them. It applies changes
that you make here within seconds.`

export function defineJobs(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  jobs.addHelpText('after', EXAMPLES)
  addList(jobs, context, setExitCode)
  addShow(jobs, context, setExitCode)
  addResume(jobs, context, setExitCode)
  addFinish(jobs, context, setExitCode)
  addCancel(jobs, context, setExitCode)
  addDelete(jobs, context, setExitCode)
  addDownloadUrl(jobs, context, setExitCode)
  addReverify(jobs, context, setExitCode)
  addChanges(jobs, context, setExitCode)
}

function addList(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = jobs
    .command('list', { isDefault: true })
    .description('list all jobs, newest first')
    .allowExcessArguments()
    .option('--limit <n>', 'number of jobs, up to 1000 (default: all)')
    .addOption(metadataOption('only jobs with this key and value'))
    .option('--json', 'print JSON: an array of objects')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs list\n  ev jobs --limit 10\n  ev jobs --metadata customer=42\n  ev jobs --json',
    )
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, jobs)
      const { listCommand } = await import('../jobs/list.ts')
      setExitCode(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addShow(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const show = jobs
    .command('show')
    .description('show the status of a job and what it is waiting for')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev jobs show job_4kq2\n  ev jobs show job_4kq2 --json')
    .action(async (id: string, flags) => {
      const { showCommand } = await import('../jobs/show.ts')
      setExitCode(await showCommand(context, id, flags))
    })
  addSettings(show, context, DATA_SETTINGS)
}

function addResume(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const resume = jobs
    .command('resume')
    .description('resume a stopped job with its original options')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option('--force', 'replace an output file that ev did not write')
    .option('--json', 'print the summary as JSON on stdout')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs resume job_4kq2\n  ev jobs resume job_4kq2 --concurrency 20',
    )
    .action(async (id: string, flags) => {
      const { resumeCommand } = await import('../jobs/change.ts')
      setExitCode(await resumeCommand(context, id, flags))
    })
  addSettings(resume, context)
}

function addFinish(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const finish = jobs
    .command('finish')
    .description('finish a job now: waiting rows get their current result')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs finish job_4kq2\n\nRows that wait for a retry, a pause or a block get the result that is known so far: for most of them it is\nunknown. Rows in flight end normally.',
    )
    .action(async (id: string, flags) => {
      const { finishCommand } = await import('../jobs/change.ts')
      setExitCode(await finishCommand(context, id, flags))
    })
  addSettings(finish, context, DATA_SETTINGS)
}

function addCancel(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const cancel = jobs
    .command('cancel')
    .description('cancel a job')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addHelpText('after', '\nExamples:\n  ev jobs cancel job_4kq2')
    .action(async (id: string, flags) => {
      const { cancelCommand } = await import('../jobs/change.ts')
      setExitCode(await cancelCommand(context, id, flags))
    })
  addSettings(cancel, context, DATA_SETTINGS)
}

function addReverify(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const reverify = jobs
    .command('reverify')
    .description('re-verify a finished list of the service, as a new job')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option('--only <class,…>', 're-verify only rows of these classes, such as unknown,risky')
    .option('--older-than <days>', 're-verify only rows whose result is older than this')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs reverify job_4kq2\n  ev jobs reverify job_4kq2 --only unknown --older-than 90\n\nThe new job has all rows. Rows that match an option are re-verified without cached results, and the others keep their result. Without options, all rows are re-verified.',
    )
    .action(async (id: string, flags) => {
      const { reverifyCommand } = await import('../jobs/reverify.ts')
      setExitCode(await reverifyCommand(context, id, flags))
    })
  addSettings(reverify, context, DATA_SETTINGS)
}

function addChanges(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const changes = jobs
    .command('changes')
    .description('show what changed in a re-verified list')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option('--limit <n>', 'number of rows to show (default: 50)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs changes job_8m3x\n  ev jobs changes job_8m3x --json --limit 1000',
    )
    .action(async (id: string, flags) => {
      const { changesCommand } = await import('../jobs/reverify.ts')
      setExitCode(await changesCommand(context, id, flags))
    })
  addSettings(changes, context, DATA_SETTINGS)
}

function addDelete(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const remove = jobs
    .command('delete')
    .description('delete a job and its addresses; output files are kept')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option(...YES)
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs delete job_4kq2\n\nCached answers of mail servers are kept until they expire. "ev purge --all" deletes them.',
    )
    .action(async (id: string, flags) => {
      const { deleteCommand } = await import('../jobs/change.ts')
      setExitCode(await deleteCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}

function addDownloadUrl(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
  const downloadUrl = jobs
    .command('download-url')
    .description('print a download URL of the results that works for 24 hours without an API key')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addOption(
      new Option('--format <format>', 'format of the file (default: csv)')
        .choices(OUTPUT_FORMATS)
        .default('csv'),
    )
    .option('--only <class,…>', 'only these classes: deliverable, risky, undeliverable, unknown')
    .addOption(deduplicateOption('include'))
    .addOption(vocabularyOption())
    .option('--raw', 'do not escape cells that spreadsheets would run as formulas')
    .option('--partial', 'print a URL even if the job is not finished')
    .option('--key <key>', 'ID of the API key that grants access (default: one of the account)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev jobs download-url job_4kq2
  ev jobs download-url job_4kq2 --format xlsx --only deliverable,risky
  ev jobs download-url job_4kq2 --base-url https://ev.example.com

The base URL and the secret must be those of "ev serve".`,
    )
    .action(async (id: string, flags) => {
      const { downloadUrlCommand } = await import('../jobs/download-url.ts')
      setExitCode(await downloadUrlCommand(context, id, flags))
    })
  addSettings(downloadUrl, context, ['baseUrl', 'secret', 'secretFile', ...DATA_SETTINGS])
}
