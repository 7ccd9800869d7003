import type { Command } from 'commander'
import { OLDER_THAN_DAYS_MAX } from '../../jobs/reverify/selection.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { parseClasses, parseInteger } from '../flag-values.ts'
import { printJson, printMessage, printText } from '../print.ts'
import type { ChangesView, Selection } from '../remote/jobs.ts'
import { type Column, table } from '../table.ts'
import { widthOf } from '../width.ts'
import { openJobs } from './backend.ts'

export function addReverify(jobs: Command, context: CliContext): void {
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
    .action((id: string, flags) => reverifyCommand(context, id, flags))
  worksOnData(reverify, context)
}

type SelectionFlags = DataFlags & {
  readonly only?: string
  readonly olderThan?: string
}

async function reverifyCommand(
  context: CliContext,
  id: string,
  flags: SelectionFlags,
): Promise<void> {
  const selection = readSelection(flags)
  const backend = await openJobs(context, flags)
  const { job, previousId, isRunning } = await backend.reverify(id, selection)
  const rows = `${job.total - job.done} of ${pluralize(job.total, 'row')}`
  printText(
    context,
    `Created ${job.job_id}, which re-verifies ${rows} of ${previousId}. ` +
      `${isRunning ? 'The service starts it within seconds.' : 'The next "ev serve" starts it.'}\n`,
  )
}

const readSelection = ({ only, olderThan }: SelectionFlags): Selection =>
  omitUndefined({
    only: only === undefined ? undefined : parseClasses(only),
    olderThanDays:
      olderThan === undefined
        ? undefined
        : parseInteger('--older-than', olderThan, [1, OLDER_THAN_DAYS_MAX]),
  })

export function addChanges(jobs: Command, context: CliContext): void {
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
    .action((id: string, flags) => changesCommand(context, id, flags))
  worksOnData(changes, context)
}

type ChangesFlags = DataFlags & { readonly limit?: string }

/** Rows printed by default, and the maximum. */
const LIMIT = 50
const LIMIT_MAX = 100_000

async function changesCommand(context: CliContext, id: string, flags: ChangesFlags): Promise<void> {
  const max = parseInteger('--limit', flags.limit ?? `${LIMIT}`, [1, LIMIT_MAX])
  const changes = await (await openJobs(context, flags)).changes(id, max)
  if (flags.json) printJson(context, changes)
  else printChanges(context, changes)
}

function printChanges(
  context: CliContext,
  { job_id, previous_job_id, verified, changed, counts, items }: ChangesView,
): void {
  if (previous_job_id === null) {
    printText(context, `${job_id} is a new list, so there is nothing to compare it with.\n`)
    return
  }
  const verb = changed === 1 ? 'has' : 'have'
  printText(
    context,
    `${pluralize(verified, 'row')} re-verified; ${formatNumber(changed)} ${verb} a different class than in ${previous_job_id}.\n`,
  )
  const width = widthOf(context, context.stdout)
  const countRows = counts.map(({ from, to, count }) => [from, to, formatNumber(count)])
  if (countRows.length > 0) context.stdout.write(`\n${table(COUNT_COLUMNS, countRows, width)}`)
  const rows = items.map(rowOf)
  if (rows.length > 0) context.stdout.write(`\n${table(COLUMNS, rows, width)}`)
  if (changed > rows.length) {
    const rest = pluralize(changed - rows.length, 'more changed row')
    printMessage(context, 'note', `${rest} not shown. To show more, set --limit.`)
  }
}

const COUNT_COLUMNS: readonly Column[] = [
  { title: 'FROM' },
  { title: 'TO' },
  { title: 'ROWS', align: 'right' },
]

const COLUMNS: readonly Column[] = [
  { title: 'ROW', align: 'right' },
  { title: 'FROM' },
  { title: 'TO' },
  { title: 'REASON', dropRank: 1 },
  // The last column, because its width is not limited.
  { title: 'ADDRESS' },
]

const rowOf = ({ row, email, before, after }: ChangesView['items'][number]): string[] => [
  formatNumber(row),
  before.class,
  after.class,
  after.reason,
  email === '' ? '(erased)' : sanitizeText(email),
]
