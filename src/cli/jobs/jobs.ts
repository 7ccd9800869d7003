import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addCancel, addDelete, addFinish, addResume } from './change.ts'
import { addDownloadUrl } from './download-url.ts'
import { addList } from './list.ts'
import { addChanges, addReverify } from './reverify.ts'
import { addShow } from './show.ts'

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
  addList(jobs, context)
  addShow(jobs, context)
  addResume(jobs, context, setExitCode)
  addFinish(jobs, context)
  addCancel(jobs, context)
  addDelete(jobs, context)
  addDownloadUrl(jobs, context)
  addReverify(jobs, context)
  addChanges(jobs, context)
}
