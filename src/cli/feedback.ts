import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listAccounts } from '../accounts/account-store.ts'
import { findPlan, mergePlans } from '../accounts/plan.ts'
import { getLearnedReplySums, type LearnedReplySum } from '../cluster/learned-replies.ts'
import { getNetwork } from '../compose/engine.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { FEEDBACK_KINDS, type FeedbackKind } from '../feedback/feedback.ts'
import { getDayCounts, getVerdictCounts } from '../feedback/feedback-counts.ts'
import { type FeedbackBatch, readFeedback } from '../feedback/import-feedback.ts'
import { presentReplies, presentReport } from '../feedback/present-report.ts'
import { recordFeedback } from '../feedback/record-feedback.ts'
import {
  type ContradictedReply,
  findContradictedReplies,
  REPLY_AGE_MAX_MS,
} from '../feedback/replies.ts'
import { getReplySums } from '../feedback/reply-counts.ts'
import { buildReport, type FeedbackReport, type ReportRow } from '../feedback/report.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { formatNumber, formatPercent, pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, inCwd } from './context.ts'
import { databaseUrl, openExisting } from './database.ts'
import { printJson, printText } from './print.ts'
import { selectAccount } from './select-account.ts'
import { readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf, wrapLines } from './width.ts'

type ImportFlags = {
  readonly account?: string
  readonly kind?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev feedback import` and returns the exit code. */
export async function importCommand(
  context: CliContext,
  path: string,
  flags: ImportFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const kind = parseKind(flags.kind)
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    const owner = await findOwner(database, flags.account)
    const submission = {
      accountId: owner?.id ?? '',
      source: 'import',
      plan: owner === null ? null : findPlan(mergePlans(config.plans), owner.plan),
    }
    const counts = { recorded: 0, duplicates: 0, rejected: 0, ignored: 0 }
    let firstError: string | null = null
    const printCounts = () =>
      flags.json
        ? printJson(context, { ...counts, first_error: firstError })
        : printText(context, summary(counts, firstError, kind))
    try {
      for await (const { items, ignored } of readAll(context, path, kind)) {
        const done = await recordFeedback({ database }, { ...submission, items })
        counts.recorded += done.recorded
        counts.duplicates += done.duplicates
        counts.rejected += done.rejected.length
        counts.ignored += ignored
        firstError ??= done.rejected[0]?.error ?? null
      }
    } catch (error) {
      // Batches that were recorded before the error are kept.
      if (counts.recorded > 0) printCounts()
      throw error
    }
    printCounts()
    return 0
  } finally {
    await database.close()
  }
}

/** Returns the owner of feedback: null without accounts, for lists of `ev bulk`. */
async function findOwner(database: Database, account: string | undefined) {
  const accounts = await listAccounts(database)
  return accounts.length === 0 && account === undefined ? null : selectAccount(accounts, account)
}

async function* readAll(
  context: CliContext,
  path: string,
  kind: FeedbackKind | null,
): AsyncGenerator<FeedbackBatch> {
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

type ReportFlags = {
  readonly account?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev feedback report` and returns the exit code. */
export async function reportCommand(context: CliContext, flags: ReportFlags): Promise<number> {
  const config = readConfig(context, flags)
  const database = await openExisting(context, config)
  try {
    const owner = database === null ? '' : ((await findOwner(database, flags.account))?.id ?? '')
    const counts = database === null ? [] : await getVerdictCounts(database, owner)
    const report = buildReport(counts)
    const days = database === null ? [] : await getDayCounts(database, owner, DAYS_SHOWN)
    const since = context.clock.now() - REPLY_AGE_MAX_MS
    const replies = findContradictedReplies(
      database === null ? [] : await getReplySums(database, since),
    )
    const learned =
      database === null
        ? []
        : await getLearnedReplySums(database, getNetwork(config), LEARNED_SHOWN)
    const width = widthOf(context, context.stdout)
    if (flags.json) {
      printJson(context, {
        ...presentReport(report, days),
        ...presentReplies(replies),
        learned_replies: learned,
      })
    } else {
      const parts = [reportText(report, width), repliesText(replies, width)]
      context.stdout.write(`${parts.join('')}${learnedText(learned, width)}`)
    }
    return 0
  } finally {
    await database?.close()
  }
}

/** Days with feedback in the JSON. */
const DAYS_SHOWN = 30

function repliesText(replies: readonly ContradictedReply[], width: number | null): string {
  if (replies.length === 0) return ''
  const rows = replies.map(row => [
    sanitizeText(row.operator) || 'unknown operator',
    row.said,
    formatNumber(row.count),
    formatNumber(row.contradicted),
    formatPercent(row.shareMin, 1),
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

/** Learned replies in the report. */
const LEARNED_SHOWN = 20

function learnedText(replies: readonly LearnedReplySum[], width: number | null): string {
  if (replies.length === 0) return ''
  const rows = replies.map(row => [
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

function reportText(report: FeedbackReport, width: number | null) {
  const { total, fixed, reasons, operators } = report
  if (total.count === 0) {
    return wrapLines(NO_OUTCOMES, width)
  }
  const all = [
    ...[rowOf('all verdicts', total), rowOf('with fixed confidence', fixed)],
    ...reasons.map(row => rowOf(row.reason, row)),
  ]
  const shown = operators.slice(0, OPERATORS_SHOWN)
  const named = shown.map(row =>
    rowOf(`${row.reason}, ${sanitizeText(row.operator) || 'unknown operator'}`, row),
  )
  return `${table([{ title: 'REASON' }, ...FIGURES], all, width)}\n${table([{ title: 'OPERATOR' }, ...FIGURES], named, width)}\n${wrapLines(outcomesText(report), width)}`
}

const NO_OUTCOMES =
  'There are no outcomes to compare yet. Verify addresses, send to them, and import what comes back with "ev feedback import".\n'

function outcomesText({ outcomes }: FeedbackReport): string {
  const { predictedBounces, missedBounces, lostDeliveries, keptDeliveries } = outcomes
  const share = (count: number, other: number) =>
    `${formatNumber(count)} of ${formatNumber(count + other)} (${formatPercent(count, count + other)})`
  return `Bounces to addresses that were not deliverable by their verdict: ${share(predictedBounces, missedBounces)}.
Deliveries to addresses that were not deliverable by their verdict: ${share(lostDeliveries, keptDeliveries)}.
`
}

const FIGURES = ['COUNT', 'PREDICTED', 'OBSERVED', 'BRIER', 'ECE'].map(title => ({
  title,
  align: 'right' as const,
}))

const rowOf = (name: string, row: ReportRow) => [
  name,
  formatNumber(row.count),
  formatPercent(row.predicted, 1),
  formatPercent(row.observed, 1),
  row.brierScore.toFixed(3),
  row.calibrationError.toFixed(3),
]
