import { type Job, parseOrigin } from '../../jobs/job-store.ts'
import {
  type Change,
  type ChangeCount,
  type ComparedResult,
  countChanges,
  findChanges,
} from '../../jobs/reverify/changes.ts'
import { inheritOptions, reverifyJob } from '../../jobs/reverify/reverify-job.ts'
import { OLDER_THAN_DAYS_MAX, type Selection } from '../../jobs/reverify/selection.ts'
import { DAY } from '../../platform/clock.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { parseClasses, parseInteger } from '../flag-values.ts'
import { isoTimeOrNull, printJson, printMessage, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { type Column, table } from '../table.ts'
import { widthOf } from '../width.ts'
import { withLedger } from './change.ts'
import { isActive, jobContext, jobStatus, withJob } from './job-status.ts'

type SelectionFlags = {
  readonly only?: string
  readonly olderThan?: string
  readonly [setting: string]: unknown
}

/** Runs `ev jobs reverify` and returns the exit code. */
export function reverifyCommand(
  context: CliContext,
  id: string,
  flags: SelectionFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const selection = readSelection(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const { clock, random } = context
    await withLedger(context, database, config, job, async (ledger, plan) => {
      const services = { database, clock, random, ledger }
      const keyId = job.key_id ?? ''
      const options = inheritOptions(job)
      const created = await reverifyJob(services, { job, plan, keyId, selection, options })
      const isRunning = isActive(jobStatus(created, await jobContext(database, config)))
      const rows = `${created.total - created.done} of ${pluralize(created.total, 'row')}`
      printText(
        context,
        `Created ${created.id}, which re-verifies ${rows} of ${job.id}. ` +
          `${isRunning ? 'The service starts it within seconds.' : 'The next "ev serve" starts it.'}\n`,
      )
    })
    return 0
  })
}

function readSelection({ clock }: CliContext, { only, olderThan }: SelectionFlags): Selection {
  const days =
    olderThan === undefined
      ? undefined
      : parseInteger('--older-than', olderThan, [1, OLDER_THAN_DAYS_MAX])
  return {
    classes: only === undefined ? undefined : parseClasses(only),
    checkedBefore: days === undefined ? undefined : clock.now() - days * DAY,
  }
}

type ChangesFlags = {
  readonly json?: boolean
  readonly limit?: string
  readonly [setting: string]: unknown
}

/** Rows printed by default, and the maximum. */
const LIMIT = 50
const LIMIT_MAX = 100_000

/** Runs `ev jobs changes` and returns the exit code. */
export function changesCommand(
  context: CliContext,
  id: string,
  flags: ChangesFlags,
): Promise<number> {
  const max = parseInteger('--limit', flags.limit ?? `${LIMIT}`, [1, LIMIT_MAX])
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const counts = await countChanges(database, job.id)
    const scannedMax = Number.MAX_SAFE_INTEGER
    const { changes } = await findChanges(database, { jobId: job.id, after: 0, max, scannedMax })
    if (flags.json) printJson(context, changesObject(job, counts, changes))
    else printChanges(context, job, counts, changes)
    return 0
  })
}

const changesObject = (job: Job, counts: readonly ChangeCount[], changes: readonly Change[]) => ({
  job_id: job.id,
  previous_job_id: parseOrigin(job).previousJobId,
  verified: sum(counts),
  changed: sum(counts.filter(isChanged)),
  counts,
  items: changes.map(({ position, text, before, after }) => ({
    row: position,
    email: text,
    before: resultObject(before),
    after: resultObject(after),
  })),
})

const resultObject = ({ class: klass, reason, checkedAt }: ComparedResult) => ({
  class: klass,
  reason,
  checked_at: isoTimeOrNull(checkedAt),
})

const isChanged = ({ from, to }: ChangeCount) => from !== to

const sum = (counts: readonly ChangeCount[]) =>
  counts.reduce((total, { count }) => total + count, 0)

function printChanges(
  context: CliContext,
  job: Job,
  counts: readonly ChangeCount[],
  changes: readonly Change[],
): void {
  const { previousJobId } = parseOrigin(job)
  if (previousJobId === null) {
    printText(context, `${job.id} is a new list, so there is nothing to compare it with.\n`)
    return
  }
  const changed = sum(counts.filter(isChanged))
  const verified = pluralize(sum(counts), 'row')
  const verb = changed === 1 ? 'has' : 'have'
  printText(
    context,
    `${verified} re-verified; ${formatNumber(changed)} ${verb} a different class than in ${previousJobId}.\n`,
  )
  const width = widthOf(context, context.stdout)
  const countRows = counts.map(({ from, to, count }) => [from, to, formatNumber(count)])
  if (countRows.length > 0) context.stdout.write(`\n${table(COUNT_COLUMNS, countRows, width)}`)
  const rows = changes.map(rowOf)
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

const rowOf = ({ position, text, before, after }: Change): string[] => [
  formatNumber(position),
  before.class,
  after.class,
  after.reason,
  text === '' ? '(erased)' : sanitizeText(text),
]
