import { type Command, Option } from 'commander'
import { formatNumber, pluralize } from '../../platform/format.ts'
import type { CliContext } from '../context.ts'
import { addListCommand, type DataFlags, printTable } from '../data-command.ts'
import { metadataOption, parseInteger, parseMetadataFlags } from '../flag-values.ts'
import { printJson, printMessage, timeText } from '../print.ts'
import { JOBS_MAX, type JobView } from '../remote/jobs.ts'
import type { Column } from '../table.ts'
import { openJobs } from './backend.ts'

export const addList = (jobs: Command, context: CliContext): void =>
  addListCommand<ListFlags>(jobs, context, {
    description: 'list all jobs, newest first',
    options: [
      new Option('--limit <n>', 'number of jobs, up to 1000 (default: all)'),
      metadataOption('only jobs with this key and value'),
    ],
    examples: [
      'ev jobs list',
      'ev jobs --limit 10',
      'ev jobs --metadata customer=42',
      'ev jobs --json',
    ],
    run: flags => listCommand(context, flags),
  })

type ListFlags = DataFlags & {
  readonly limit?: string
  readonly metadata?: readonly string[]
}

async function listCommand(context: CliContext, flags: ListFlags): Promise<void> {
  const max = parseInteger('--limit', flags.limit ?? `${JOBS_MAX}`, [1, JOBS_MAX])
  const metadata = parseMetadataFlags(flags.metadata)
  const backend = await openJobs(context, flags)
  const { jobs, older } = await backend.list(metadata, max)
  if (flags.json) {
    printJson(context, jobs)
    return
  }
  const none = `No jobs in ${backend.location}. To create one, run "ev bulk FILE".`
  printTable(context, jobs, { columns: COLUMNS, rowOf, none })
  if (older !== 0) {
    const left = older === null ? 'Older jobs' : pluralize(older, 'older job')
    printMessage(context, 'note', `${left} not shown.`)
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
