import type { Command } from 'commander'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { confirm, YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { worksOnService } from '../ev-command.ts'
import { printText } from '../print.ts'
import { type ChangedJob, isOfService, type JobView } from '../remote/jobs.ts'
import { addSettings } from '../settings.ts'
import { openJobs } from './backend.ts'

export function addResume(jobs: Command, context: CliContext, setExitCode: SetExitCode): void {
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
      setExitCode(await resumeCommand(context, id, flags))
    })
  addSettings(resume, context)
  worksOnService(resume)
}

async function resumeCommand(context: CliContext, id: string, flags: DataFlags): Promise<number> {
  const backend = await openJobs(context, flags)
  const resumed = await backend.resume(id)
  if (resumed === null) {
    const { job_id: jobId } = await backend.get(id)
    const { resumeBulk } = await import('../bulk/bulk-on-machine.ts')
    return resumeBulk(context, jobId, flags)
  }
  const { job, isRunning } = resumed
  printText(
    context,
    `Resumed ${job.job_id}: ${doneOf(job)} rows were finished. ` +
      `${isRunning ? 'The service continues it within seconds.' : 'The next "ev serve" continues it.'}\n`,
  )
  return 0
}

export function addFinish(jobs: Command, context: CliContext): void {
  const finish = jobs
    .command('finish')
    .description('finish a job now: waiting rows get their current result')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs finish job_4kq2\n\nRows that wait for a retry, a pause or a block get the result that is known so far: for most of them it is\nunknown. Rows in flight end normally.',
    )
    .action((id: string, flags) => finishCommand(context, id, flags))
  worksOnData(finish, context)
}

async function finishCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const changed = await (await openJobs(context, flags)).finish(id)
  const { job } = changed
  const waiting = pluralize(job.total - job.done, 'row')
  const text =
    job.state === 'completed' || job.state === 'unwritten' || job.state === 'writing'
      ? `${job.job_id} is already completed.`
      : `Finishing ${job.job_id}: ${waiting} without a result. ${finishText(changed)}`
  printText(context, `${text}\n`)
}

function finishText({ job, isRunning }: ChangedJob): string {
  if (isRunning) return 'Waiting rows get their current result within seconds.'
  if (isOfService(job)) return 'The next "ev serve" finishes it.'
  return `To write its output, run "ev jobs resume ${job.job_id}".`
}

const doneOf = ({ done, total }: JobView) => `${formatNumber(done)} of ${formatNumber(total)}`

export function addCancel(jobs: Command, context: CliContext): void {
  const cancel = jobs
    .command('cancel')
    .description('cancel a job')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .addHelpText('after', '\nExamples:\n  ev jobs cancel job_4kq2')
    .action((id: string, flags) => cancelCommand(context, id, flags))
  worksOnData(cancel, context)
}

async function cancelCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const { job, isRunning } = await (await openJobs(context, flags)).cancel(id)
  const stops = isOfService(job)
    ? ' The service stops working on it within seconds.'
    : ' The process that works on it stops within seconds.'
  printText(
    context,
    `Cancelled ${job.job_id}: ${doneOf(job)} rows were finished.${isRunning ? stops : ''}\n`,
  )
}

export function addDelete(jobs: Command, context: CliContext): void {
  const remove = jobs
    .command('delete')
    .description('delete a job and its addresses; output files are kept')
    .argument('<id>', 'ID of the job, or a unique prefix')
    .option(...YES)
    .addHelpText(
      'after',
      '\nExamples:\n  ev jobs delete job_4kq2\n\nCached answers of mail servers are kept until they expire. "ev purge --all" deletes them.',
    )
    .action((id: string, flags) => deleteCommand(context, id, flags))
  worksOnData(remove, context)
}

async function deleteCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const backend = await openJobs(context, flags)
  const { job_id: jobId, total } = await backend.get(id)
  const rows = pluralize(total, 'row')
  await confirm(context, flags, `delete ${jobId} and its ${rows}`)
  await backend.delete(jobId)
  printText(context, `Deleted ${jobId} with its ${rows}.\n`)
}
