import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Config } from '../config/settings.ts'
import type { Database } from '../db/database.ts'
import { unfinishedJobs } from '../jobs/job-list.ts'
import { type Purged as PurgedRows, purge } from '../maintenance/purge.ts'
import { formatBytes, formatNumber, pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm } from './confirm.ts'
import type { CliContext } from './context.ts'
import { closeAll, fileOf, isShared, listsUrl, openAll } from './database.ts'
import { leftoverCopies } from './jobs/stdin-copy.ts'
import { printJson, printText } from './print.ts'
import { readConfig } from './settings.ts'

export type PurgeFlags = {
  readonly all?: boolean
  readonly address?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** What was deleted, or would be in a dry run. */
export type Purged = PurgedRows & {
  readonly dryRun: boolean
  readonly files: readonly string[]
  /** Number of leftover files that are too recent to delete. */
  readonly young: number
  readonly unfinished: number
  /** Whether one of the databases is PostgreSQL. */
  readonly isShared: boolean
  /** Size of the SQLite file; the size on a PostgreSQL server is not known. */
  readonly bytes: { readonly before: number; readonly after: number }
}

/** Runs `ev purge` and returns the exit code. */
export async function purgeCommand(context: CliContext, flags: PurgeFlags): Promise<number> {
  const config = readConfig(context, flags)
  const databases = await openAll(context, config)
  try {
    if (!flags.dryRun) await confirmPurge(context, flags)
    const purged = await purgeAll(context, databases, config, flags)
    if (flags.json) printJson(context, purgeObject(purged))
    else printText(context, purgeText(purged))
    return 0
  } finally {
    await closeAll(databases)
  }
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

async function purgeAll(
  context: CliContext,
  databases: readonly Database[],
  config: Config,
  flags: PurgeFlags,
): Promise<Purged> {
  const dryRun = flags.dryRun ?? false
  const before = databaseSize(config)
  const input = { isDryRun: dryRun, isAll: flags.all ?? false, address: flags.address ?? null }
  const purged = await purge({ databases, clock: context.clock, settings: config }, input)
  const lists = databases.find(({ dialect }) => dialect === 'sqlite') ?? null
  const { files, young } = await leftoverCopies(context, lists, config.dataDir)
  if (!dryRun) for (const file of files) await rm(file, { force: true })
  const unfinished = (await Promise.all(databases.map(unfinishedJobs))).flat().length
  const bytes = { before, after: databaseSize(config) }
  return { ...purged, dryRun, files, young, unfinished, bytes, isShared: isShared(config) }
}

const databaseSize = (config: Config) =>
  statSync(fileOf(listsUrl(config)), { throwIfNoEntry: false })?.size ?? 0

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
  const { answers, items, verifications, events, feedback } = traces
  const lists = new Set(items.map(({ jobId }) => jobId)).size
  return [
    ...(answers.length === 0
      ? []
      : [`${pluralize(answers.length, 'cached answer')} for the address`]),
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
