import type { ListDialect } from '../../csv/csv.ts'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { presentBounces } from '../../feedback/present-projection.ts'
import {
  type BounceProjection,
  type ListProjection,
  PROVIDER_LIMITS,
} from '../../feedback/projection.ts'
import type { Job } from '../../jobs/job-store.ts'
import { formatDuration, formatNumber, formatPercent, pluralize } from '../../platform/format.ts'
import type { SourceFlags } from './list-source.ts'
import type { ResultCounts, WrittenFile, WrittenOutput } from './output.ts'

type SummaryInput = {
  /** Rows that this run finished. */
  readonly doneNow: number
  readonly tookMs: number
  readonly written: WrittenOutput
  readonly projection: ListProjection
  /** Reported complaints for each reported delivery; null without deliveries. */
  readonly complaintRate: number | null
  readonly flags: SourceFlags
  readonly dialect: ListDialect
}

/** Formats the results of a finished job: counts, files and what to do next. */
export function summaryText(
  job: Job,
  { doneNow, tookMs, written, projection, complaintRate, flags, dialect }: SummaryInput,
): string {
  const rate = tookMs > 0 ? Math.round((doneNow * 1_000) / tookMs) : 0
  const speed = rate === 0 ? '' : ` (${formatNumber(rate)}/s)`
  return [
    '',
    ...(flags.sandbox ? ['  SIMULATED results'] : []),
    ...CLASSES.flatMap(klass => classLines(job, klass, written.counts)),
    '',
    `${pluralize(job.total, 'row')} in ${formatDuration(tookMs)}${speed}${writtenText(job, written)}`,
    ...encodingText(dialect, written),
    ...projectionLines(projection, complaintRate),
    ...nextSteps(job, flags, written.counts),
  ].join('\n')
}

/** Reasons named below a class; the output has the reason of each row. */
const REASONS_SHOWN = 3
/** Fits the longest reason with its indentation. */
const LABEL_WIDTH = 26

/** Formats the count of a class and, below it, those of its most frequent reasons. */
export function classLines(
  job: Pick<Job, 'total' | Class>,
  klass: Class,
  { reasons }: Pick<ResultCounts, 'reasons'>,
): string[] {
  const line = (label: string, count: number) =>
    `${label.padEnd(LABEL_WIDTH)}${formatNumber(count).padStart(9)}  ${formatPercent(count, job.total).padStart(7)}`
  const sorted = [...reasons[klass]].sort(
    ([nameA, a], [nameB, b]) => b - a || nameA.localeCompare(nameB),
  )
  const others = sorted.slice(REASONS_SHOWN).reduce((sum, [, count]) => sum + count, 0)
  return [
    line(`  ${klass}`, job[klass]),
    ...sorted.slice(0, REASONS_SHOWN).map(([reason, count]) => line(`    ${reason}`, count)),
    ...(others === 0 ? [] : [line('    other reasons', others)]),
  ]
}

/** Formats the rows by action, and the bounces to expect beside the limits of providers. */
export function projectionLines(
  { actions, before, after, reports }: ListProjection,
  complaintRate: number | null,
): string[] {
  const { sesBounceReview, sesBouncePause, gmailComplaints } = PROVIDER_LIMITS
  const counts = ACTIONS.map(action => `${action} ${formatNumber(actions[action])}`).join(', ')
  const basis =
    reports === 0
      ? 'These rates are assumptions, as no bounces and deliveries are reported'
      : `These rates are from ${pluralize(reports, 'report')} of bounces and deliveries, and assumptions`
  const complaints =
    complaintRate === null ? '' : `; ${formatRate(complaintRate)} of your mail is reported as spam`
  return [
    `Actions: ${counts}.`,
    `Expected bounces: ${formatRates(before)} of mail to all addresses, ${formatRates(after)} if you follow the actions.`,
    `${basis}. Amazon SES reviews accounts from ${formatRate(sesBounceReview)} and may pause them from ${formatRate(sesBouncePause)}; Gmail limits complaints to ${formatRate(gmailComplaints)}${complaints}.`,
  ]
}

/** Formats a share, such as `3%` or `0.25%`. */
const formatRate = (rate: number): string => `${Number((100 * rate).toFixed(2))}%`

/** Formats a projected rate with its interval, such as `2.1% (0.6% to 7.4%)`. */
function formatRates({ rate, rateMin, rateMax }: BounceProjection): string {
  const percent = (share: number) => `${(100 * share).toFixed(1)}%`
  return `${percent(rate)} (${percent(rateMin)} to ${percent(rateMax)})`
}

/** Formats the number of suggestions, and the options that filter and retry rows. */
function nextSteps(
  job: Job,
  { only, action, split, sandbox, wait, output, format = 'csv' }: SourceFlags,
  { reasons, suggestions }: ResultCounts,
): string[] {
  const steps: string[] = []
  if (suggestions > 0) {
    const column = format === 'csv' || format === 'xlsx' ? ' in the column ev_did_you_mean' : ''
    const verb = suggestions === 1 ? 'has' : 'have'
    steps.push(`${pluralize(suggestions, 'row')} ${verb} a suggested correction${column}.`)
  }
  const isFiltered = only !== undefined || action !== undefined || split === true || output === '-'
  if (!isFiltered && job.deliverable > 0 && job.deliverable < job.total) {
    steps.push(
      'To write only the deliverable rows, run the same command with --only deliverable -o good.csv.',
    )
  }
  const retryable = job.unknown - (reasons.unknown.get('no_address') ?? 0)
  if (!sandbox && retryable > 0) {
    const waiting = wait === false ? ', without --no-wait' : ''
    const rows = retryable === 1 ? 'the unknown row' : `the ${formatNumber(retryable)} unknown rows`
    steps.push(
      `To retry ${rows}, run the same command again later${waiting}: it reuses cached results.`,
    )
  }
  return steps
}

/** Returns the end of the sentence, such as `, written to out.csv.` */
function writtenText(job: Job, { files }: WrittenOutput): string {
  const [first] = files
  if (first === undefined) return '.'
  if (files.length > 1) {
    return `, written to\n${files.map(({ path, rows }) => `${formatNumber(rows).padStart(9)}  ${path}`).join('\n')}`
  }
  const target = first.path === '-' ? '' : ` to ${first.path}`
  if (countRows(files) === job.total) return target === '' ? '.' : `, written${target}.`
  return `, ${formatNumber(first.rows)} of them written${target}.`
}

/** Returns a line about the encoding of the output; none if the list is UTF-8 as well. */
function encodingText({ encoding }: ListDialect, written: WrittenOutput): string[] {
  if (encoding === 'utf-8') return []
  if (written.encoding === encoding) return [`The output is in ${encoding}, as the list.`]
  return [`The output is in UTF-8; the list is in ${encoding}.`]
}

const countRows = (files: readonly WrittenFile[]) => files.reduce((sum, { rows }) => sum + rows, 0)

/** Returns the summary as JSON. */
export function summaryObject(job: Job, { output, sandbox }: SourceFlags, written: WrittenOutput) {
  return {
    job_id: job.id,
    output,
    files: written.files,
    encoding: written.encoding,
    ...(sandbox ? { sandbox: true } : {}),
    total: job.total,
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
    no_address: job.no_address,
    reasons: Object.fromEntries(
      CLASSES.map(klass => [klass, Object.fromEntries(written.counts.reasons[klass])]),
    ),
    suggestions: written.counts.suggestions,
    written: countRows(written.files),
  }
}

/** The exit code if the projected bounce rate is above that of --fail-above. */
export const BOUNCES_EXIT_CODE = 1

/** Compares the projected bounce rate of mail to the rows of the output with --fail-above. */
export function checkBounces(written: BounceProjection, limit: number) {
  const isExceeded = written.rate > limit
  return {
    object: { fail_above: { limit, exceeded: isExceeded, ...presentBounces(written) } },
    message: isExceeded
      ? `Mail to the ${pluralize(written.addresses, 'address', 'addresses')} of the output is expected to bounce at ${formatRates(written)}, above --fail-above ${formatRate(limit)}.`
      : null,
  }
}
