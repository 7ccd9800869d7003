import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { FEEDBACK_KINDS, type FeedbackKind } from '../feedback/feedback.ts'
import type { FeedbackBatch } from '../feedback/import-feedback.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { formatNumber, formatPercent, pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, inCwd } from './context.ts'
import { type DataFlags, openBackend, worksOnData } from './data-command.ts'
import { addSources } from './feedback-sources.ts'
import { printJson, printText } from './print.ts'
import { createRemoteFeedback, type FeedbackBackend, type Report } from './remote/feedback.ts'
import { type Column, table } from './table.ts'
import { widthOf, wrapLines } from './width.ts'

const EXAMPLES = `
Examples:
  ev feedback import bounces.csv
  ev feedback import ~/Maildir
  ev feedback report
  ev feedback sources create postmark`

export function defineFeedback(feedback: Command, context: CliContext): void {
  feedback.addHelpText('after', EXAMPLES)
  addImport(feedback, context)
  addReport(feedback, context)
  addSources(feedback, context)
}

const openFeedback = (context: CliContext, flags: DataFlags): Promise<FeedbackBackend> =>
  openBackend(context, flags, {
    remote: createRemoteFeedback,
    loadLocal: async () => (await import('./local/feedback.ts')).createLocalFeedback,
  })

function addImport(feedback: Command, context: CliContext): void {
  const command = feedback
    .command('import')
    .description('import bounces, deliveries and complaints')
    .argument('<path>', 'file, Maildir or folder of messages; - for stdin')
    .option('--kind <kind>', 'kind of rows that have none: delivered, bounced or complained')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback import events.csv
  ev feedback import bounces.csv --kind bounced
  ev feedback import returned.mbox
  ev feedback import ~/Maildir

The format is detected: CSV, NDJSON, an mbox file, or one message. In messages, ev reads delivery status notifications
(RFC 3464, RFC 6533) and abuse reports (RFC 5965). Feedback that was imported before is not counted again.`,
    )
    .action((path: string, flags) => importCommand(context, path, flags))
  worksOnData(command, context)
}

type ImportFlags = DataFlags & { readonly kind?: string }

async function importCommand(context: CliContext, path: string, flags: ImportFlags): Promise<void> {
  const kind = parseKind(flags.kind)
  const run = await (await openFeedback(context, flags)).startImport(flags.account)
  const counts = { recorded: 0, duplicates: 0, rejected: 0, ignored: 0 }
  let firstError: string | null = null
  const printCounts = () =>
    flags.json
      ? printJson(context, { ...counts, first_error: firstError })
      : printText(context, summary(counts, firstError, kind))
  try {
    for await (const { items, ignored } of readAll(context, path, kind)) {
      counts.ignored += ignored
      if (items.length === 0) continue
      const done = await run.record(items)
      counts.recorded += done.recorded
      counts.duplicates += done.duplicates
      counts.rejected += done.rejected.length
      firstError ??= done.rejected[0]?.error ?? null
    }
  } catch (error) {
    // Batches that were recorded before the error are kept.
    if (counts.recorded > 0) printCounts()
    throw error
  } finally {
    await run.close()
  }
  printCounts()
}

async function* readAll(
  context: CliContext,
  path: string,
  kind: FeedbackKind | null,
): AsyncGenerator<FeedbackBatch> {
  const { readFeedback } = await import('../feedback/import-feedback.ts')
  for await (const source of openInputs(context, path)) {
    yield* readFeedback(source, { now: context.clock.now(), kind })
  }
}

function parseKind(value: string | undefined): FeedbackKind | null {
  if (value === undefined) return null
  const kind = FEEDBACK_KINDS.find(one => one === value)
  if (kind !== undefined) return kind
  throw new EvError(
    'usage',
    `--kind is "${sanitizeText(value)}"; it takes one of ${FEEDBACK_KINDS.join(', ')}.`,
  )
}

const KIND_HINT =
  ' To import rows without a kind, such as an export of bounces, add --kind bounced.'

type Counts = Record<'recorded' | 'duplicates' | 'rejected' | 'ignored', number>

function summary(counts: Counts, firstError: string | null, kind: FeedbackKind | null): string {
  const { recorded, duplicates, rejected, ignored } = counts
  const parts = [
    `Recorded ${pluralize(recorded, 'piece')} of feedback.`,
    ...(duplicates === 0 ? [] : [`${pluralize(duplicates, 'piece')} recorded before.`]),
    ...(rejected === 0 ? [] : [`${pluralize(rejected, 'piece')} rejected: ${firstError}`]),
    ...(ignored === 0
      ? []
      : [
          `${pluralize(ignored, 'row or message', 'rows or messages')} without feedback.${kind === null ? KIND_HINT : ''}`,
        ]),
  ]
  return `${parts.join('\n')}\n`
}

/** Folders of a Maildir that hold messages; `tmp` holds those that are being delivered. */
const MAILDIR_FOLDERS = ['cur', 'new']

/**
 * Yields the files to import, each as a stream: the file, stdin for `-`, the messages of a Maildir,
 * or the files of a folder in the order of their names.
 */
async function* openInputs(
  context: CliContext,
  path: string,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  if (path === '-') {
    yield context.stdin
    return
  }
  for (const file of await listFiles(inCwd(context, path), path)) yield createReadStream(file)
}

async function listFiles(path: string, shown: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = await readdir(path)
    const folders = MAILDIR_FOLDERS.filter(name => names.includes(name))
    const all = await Promise.all(
      (folders.length === 0 ? ['.'] : folders).map(folder => filesIn(join(path, folder))),
    )
    return all.flat()
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `${shown} cannot be read: ${why}.`, { cause })
  }
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries
    .filter(entry => entry.isFile() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
    .sort()
}

function addReport(feedback: Command, context: CliContext): void {
  const command = feedback
    .command('report')
    .description('compare confidence with reported outcomes')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev feedback report
  ev feedback report --json

PREDICTED is the mean confidence, and OBSERVED is the share of verdicts that were correct. BRIER is the mean squared
error, and ECE is the expected calibration error; for both, 0 is best.

The report ends with the replies that feedback of the last 180 days contradicts: a mail server accepted an address whose
mail then bounced, or rejected an address whose mail arrived. AT LEAST is the lower end of the 95% interval of the
contradicted share.`,
    )
    .action(flags => reportCommand(context, flags))
  worksOnData(command, context)
}

async function reportCommand(context: CliContext, flags: DataFlags): Promise<void> {
  const report = await (await openFeedback(context, flags)).report(flags.account)
  if (flags.json) printJson(context, report)
  else {
    const width = widthOf(context, context.stdout)
    const parts = [
      reportText(report, width),
      repliesText(report, width),
      learnedText(report, width),
    ]
    context.stdout.write(parts.join(''))
  }
}

function repliesText({ contradicted_replies: all = [] }: Report, width: number | null): string {
  if (all.length === 0) return ''
  const rows = all.map(row => [
    sanitizeText(row.operator ?? '') || 'unknown operator',
    row.said,
    formatNumber(row.count),
    formatNumber(row.contradicted),
    formatPercent(row.share_min, 1),
    formatNumber(row.accounts),
    sanitizeText(`${row.reply} (${row.meaning})`),
  ])
  return `\nReplies that feedback contradicts, of all accounts\n\n${table(REPLY_COLUMNS, rows, width)}`
}

const REPLY_COLUMNS: readonly Column[] = [
  ...[{ title: 'OPERATOR' }, { title: 'SAID' }],
  ...['COUNT', 'CONTRADICTED', 'AT LEAST', 'ACCOUNTS'].map(title => ({
    title,
    align: 'right' as const,
  })),
  { title: 'REPLY' },
]

function learnedText({ learned_replies: all = [] }: Report, width: number | null): string {
  if (all.length === 0) return ''
  const rows = all.map(row => [
    formatNumber(row.domains),
    formatNumber(row.refuted),
    row.operator === null ? `${formatNumber(row.operators)} operators` : sanitizeText(row.operator),
    sanitizeText(row.reply),
  ])
  return `\nReplies to random recipients, learned from sessions\n\n${table(LEARNED_COLUMNS, rows, width)}`
}

const LEARNED_COLUMNS: readonly Column[] = [
  ...['DOMAINS', 'REFUTED'].map(title => ({ title, align: 'right' as const })),
  ...[{ title: 'OPERATOR' }, { title: 'REPLY' }],
]

/** Operators with the most verdicts; the JSON has all. */
const OPERATORS_SHOWN = 20

function reportText(report: Report, width: number | null) {
  const { total, fixed_confidence, reasons, operators } = report
  if (total.count === 0) {
    return wrapLines(NO_OUTCOMES, width)
  }
  const all = [
    ...[rowOf('all verdicts', total), rowOf('with fixed confidence', fixed_confidence)],
    ...reasons.map(row => rowOf(row.reason, row)),
  ]
  const shown = operators.slice(0, OPERATORS_SHOWN)
  const named = shown.map(row =>
    rowOf(`${row.reason}, ${sanitizeText(row.operator ?? '') || 'unknown operator'}`, row),
  )
  return `${table([{ title: 'REASON' }, ...FIGURES], all, width)}\n${table([{ title: 'OPERATOR' }, ...FIGURES], named, width)}\n${wrapLines(outcomesText(report), width)}`
}

const NO_OUTCOMES =
  'There are no outcomes to compare yet. Verify addresses, send to them, and import what comes back with "ev feedback import".\n'

function outcomesText({ outcomes }: Report): string {
  const { predicted_bounces, missed_bounces, lost_deliveries, kept_deliveries } = outcomes
  const share = (count: number, other: number) =>
    `${formatNumber(count)} of ${formatNumber(count + other)} (${formatPercent(count, count + other)})`
  return `Bounces to addresses that were not deliverable by their verdict: ${share(predicted_bounces, missed_bounces)}.
Deliveries to addresses that were not deliverable by their verdict: ${share(lost_deliveries, kept_deliveries)}.
`
}

const FIGURES = ['COUNT', 'PREDICTED', 'OBSERVED', 'BRIER', 'ECE'].map(title => ({
  title,
  align: 'right' as const,
}))

const rowOf = (name: string, row: Report['total']) => [
  name,
  formatNumber(row.count),
  formatPercent(row.predicted, 1),
  formatPercent(row.observed, 1),
  row.brier_score.toFixed(3),
  row.calibration_error.toFixed(3),
]
