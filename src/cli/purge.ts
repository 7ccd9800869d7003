import { type Command, Option } from 'commander'
import { formatBytes, formatNumber, pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm, YES } from './confirm.ts'
import type { CliContext } from './context.ts'
import type { Purged } from './local/purge.ts'
import { printJson, printText } from './print.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'

const EXAMPLES = `
Examples:
  ev purge
  ev purge --dry-run
  ev purge --keep-results 7
  ev purge --all
  ev purge --address ann@example.com --yes

Without options, ev deletes what is older than --keep-results and --keep-history. Unfinished lists are kept; to delete
one, run "ev jobs delete ID". With --address, rows of finished lists and of the history keep only their class, so that
counts stay correct. Stored responses to requests with an Idempotency-Key are encrypted and expire within a day. Your
own list and output files are never changed.`

export function definePurge(purge: Command, context: CliContext): void {
  purge
    .option('--all', 'delete all finished lists, history and cached answers, regardless of age')
    .addOption(
      new Option('--address <address>', 'erase only this address, everywhere').conflicts('all'),
    )
    .option('--dry-run', 'show what would be deleted, and delete nothing')
    .option(...YES)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(flags => purgeCommand(context, flags))
  addSettings(purge, context, ['keepResultsMs', 'keepHistoryMs', ...DATA_SETTINGS])
}

type PurgeFlags = {
  readonly all?: boolean
  readonly address?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Deletes what the flags select. */
async function purgeCommand(context: CliContext, flags: PurgeFlags): Promise<void> {
  const config = readConfig(context, flags)
  const { purgeData } = await import('./local/purge.ts')
  const purged = await purgeData(context, config, {
    isDryRun: flags.dryRun ?? false,
    isAll: flags.all ?? false,
    address: flags.address ?? null,
    confirm: () => confirmPurge(context, flags),
  })
  if (flags.json) printJson(context, purgeObject(purged))
  else printText(context, purgeText(purged))
}

/** Asks before data within its retention period is deleted; older data needs no confirmation. */
async function confirmPurge(context: CliContext, flags: PurgeFlags): Promise<void> {
  if (flags.all) {
    await confirm(context, flags, 'delete all finished lists, history and cached answers')
  }
  if (flags.address !== undefined) {
    await confirm(context, flags, `erase ${sanitizeText(flags.address)} from lists and history`)
  }
}

/** Formats what was deleted. */
export function purgeText(purged: Purged): string {
  const { dryRun, jobs, answers, service, files, traces } = purged
  const rows = jobs.reduce((sum, { total }) => sum + total, 0)
  const deleted = [
    ...(jobs.length === 0
      ? []
      : [
          `${pluralize(jobs.length, 'finished list')} of ${pluralize(rows, 'row')}: ${idsOf(purged)}`,
        ]),
    ...(answers === 0 ? [] : [pluralize(answers, 'cached answer')]),
    ...serviceText(service),
    ...(traces === null ? [] : tracesText(traces)),
    ...(files.length === 0
      ? []
      : [`${pluralize(files.length, 'leftover copy')} of a list from stdin or a URL`]),
  ]
  const title = dryRun ? 'Would delete:' : 'Deleted:'
  const head = deleted.length === 0 ? ['Nothing to delete.'] : [title, ...deleted.map(indent)]
  return `${[...head, ...notes(purged)].join('\n')}\n`
}

function serviceText({ history, deliveries, replays }: Purged['service']): string[] {
  return [
    ...(history === 0 ? [] : [`${pluralize(history, 'verification')} in the history`]),
    ...(deliveries === 0 ? [] : [`${pluralize(deliveries, 'delivery')} of events to webhooks`]),
    ...(replays === 0
      ? []
      : [`${pluralize(replays, 'response')} to requests with an Idempotency-Key`]),
  ]
}

function tracesText(traces: NonNullable<Purged['traces']>): string[] {
  const { answers, witnesses, items, verifications, events, feedback } = traces
  const lists = new Set(items.map(({ jobId }) => jobId)).size
  return [
    ...(answers.length === 0
      ? []
      : [`${pluralize(answers.length, 'cached answer')} for the address`]),
    ...(witnesses.length === 0 ? [] : ['the address as a recipient that mail servers accepted']),
    ...(items.length === 0
      ? []
      : [
          `the address in ${pluralize(items.length, 'row')} of ${pluralize(lists, 'finished list')}`,
        ]),
    ...(verifications.length === 0
      ? []
      : [`the address in ${pluralize(verifications.length, 'verification')} of the history`]),
    ...(events.length === 0 ? [] : [`${pluralize(events.length, 'event')} about the address`]),
    ...(feedback.pieces.length + feedback.addresses.length === 0
      ? []
      : [`feedback about the address`]),
  ]
}

function notes({ dryRun, young, unfinished, bytes, isGone, isShared }: Purged): string[] {
  const [before, after] = [bytes.before, bytes.after].map(formatBytes)
  return [
    ...(dryRun || bytes.after >= bytes.before || before === after
      ? []
      : [`The database shrank from ${before} to ${after}.`]),
    ...(unfinished === 0
      ? []
      : [`Unfinished lists are kept: ${formatNumber(unfinished)}. See "ev jobs".`]),
    ...(young === 0
      ? []
      : [`Copies of lists less than 10 minutes old are kept: ${pluralize(young, 'copy')}.`]),
    ...(dryRun || !isShared
      ? []
      : [
          'PostgreSQL vacuums deleted rows later. Its WAL and your backups contain them until they are replaced.',
        ]),
    ...(isGone
      ? []
      : [
          'Another ev process uses the database. Its journal may contain deleted rows until that process stops.',
        ]),
  ]
}

/** Maximum number of IDs shown. */
const IDS_MAX = 10

function idsOf({ jobs }: Purged): string {
  const ids = jobs.slice(0, IDS_MAX).map(({ id }) => id)
  const more = jobs.length - ids.length
  return `${ids.join(', ')}${more > 0 ? ` and ${formatNumber(more)} more` : ''}`
}

const indent = (line: string) => `  ${line}`

function purgeObject(purged: Purged) {
  const { dryRun, jobs, answers, service, files, young, traces, unfinished, bytes, isGone } = purged
  return {
    dry_run: dryRun,
    jobs: jobs.map(({ id }) => id),
    rows: jobs.reduce((sum, { total }) => sum + total, 0),
    answers: answers + (traces?.answers.length ?? 0),
    history: service.history,
    deliveries: service.deliveries,
    events: traces?.events.length ?? 0,
    replays: service.replays,
    feedback: traces?.feedback.pieces.length ?? 0,
    address_rows: traces?.items.length ?? 0,
    address_history: traces?.verifications.length ?? 0,
    leftover_files: files.length,
    young_files: young,
    unfinished_jobs: unfinished,
    bytes_before: bytes.before,
    bytes_after: bytes.after,
    journal_clean: isGone,
  }
}
