import type { Command } from 'commander'
import { formatNumber, pluralize } from '../../platform/format.ts'
import type { CliContext } from '../context.ts'
import { worksOnService } from '../ev-command.ts'
import { metadataOption, parseInteger, parseMetadataFlags } from '../flag-values.ts'
import { noSuchCommand } from '../help.ts'
import { printJson, printMessage, printText, timeText } from '../print.ts'
import { JOBS_MAX, type JobView } from '../remote/jobs.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { type Column, table } from '../table.ts'
import { widthOf } from '../width.ts'
import { type JobFlags, openJobs } from './backend.ts'

export function addList(jobs: Command, context: CliContext): void {
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
      await listCommand(context, flags)
    })
  addSettings(list, context, DATA_SETTINGS)
  worksOnService(list)
}

type ListFlags = JobFlags & {
  readonly limit?: string
  readonly metadata?: readonly string[]
}

async function listCommand(context: CliContext, flags: ListFlags): Promise<void> {
  const max = parseInteger('--limit', flags.limit ?? `${JOBS_MAX}`, [1, JOBS_MAX])
  const metadata = parseMetadataFlags(flags.metadata)
  const backend = await openJobs(context, flags)
  const { jobs, older } = await backend.list(metadata, max)
  if (flags.json) printJson(context, jobs)
  else if (jobs.length === 0) {
    printText(context, `No jobs in ${backend.location}. To create one, run "ev bulk FILE".\n`)
  } else {
    context.stdout.write(table(COLUMNS, jobs.map(rowOf), widthOf(context, context.stdout)))
    if (older !== 0) {
      const left = older === null ? 'Older jobs' : pluralize(older, 'older job')
      printMessage(context, 'note', `${left} not shown.`)
    }
  }
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'STATE' },
  { title: 'ROWS', align: 'right' },
  { title: 'DONE', align: 'right', dropRank: 5 },
  { title: 'DELIVERABLE', align: 'right', dropRank: 3 },
  { title: 'RISKY', align: 'right', dropRank: 2 },
  { title: 'UNDELIVERABLE', align: 'right', dropRank: 2 },
  { title: 'UNKNOWN', align: 'right', dropRank: 2 },
  { title: 'CREATED', dropRank: 4 },
  { title: 'TYPE', dropRank: 1 },
  { title: 'LIST' },
]

const rowOf = (job: JobView): string[] => [
  job.job_id,
  job.state,
  formatNumber(job.total),
  `${job.progress}%`,
  formatNumber(job.deliverable),
  formatNumber(job.risky),
  formatNumber(job.undeliverable),
  formatNumber(job.unknown),
  timeText(Date.parse(job.created_at ?? '')),
  job.type,
  // The last column, because its width is not limited.
  job.list,
]
