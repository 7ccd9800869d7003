import { formatBytes, pluralize } from '../../platform/format.ts'
import type { Purged } from './purge.ts'

/** What went, for people. */
export function purgeText(purged: Purged): string {
  const { dryRun, jobs, answers, service, files, traces } = purged
  const rows = jobs.reduce((sum, { total }) => sum + total, 0)
  const went = [
    ...(jobs.length === 0
      ? []
      : [
          `${pluralize(jobs.length, 'finished list')} of ${pluralize(rows, 'row')}: ${idsOf(purged)}`,
        ]),
    ...(answers === 0 ? [] : [pluralize(answers, 'remembered answer')]),
    ...serviceText(service),
    ...(traces === null ? [] : tracesText(traces)),
    ...(files.length === 0
      ? []
      : [`${pluralize(files.length, 'leftover copy')} of a list from stdin`]),
  ]
  const title = dryRun ? 'Would remove:' : 'Removed:'
  const head = went.length === 0 ? ['There is nothing to remove.'] : [title, ...went.map(indent)]
  return `${[...head, ...notes(purged)].join('\n')}\n`
}

function serviceText({ history, deliveries, replays }: Purged['service']): string[] {
  return [
    ...(history === 0 ? [] : [`${pluralize(history, 'verification')} of the history`]),
    ...(deliveries === 0 ? [] : [`${pluralize(deliveries, 'delivery')} of events to webhooks`]),
    ...(replays === 0
      ? []
      : [`${pluralize(replays, 'answer')} to requests with an Idempotency-Key`]),
  ]
}

function tracesText(traces: NonNullable<Purged['traces']>): string[] {
  const { answers, items, verifications, events } = traces
  const lists = new Set(items.map(({ jobId }) => jobId)).size
  return [
    ...(answers.length === 0
      ? []
      : [`${pluralize(answers.length, 'remembered answer')} of the address`]),
    ...(items.length === 0
      ? []
      : [
          `what ${pluralize(items.length, 'row')} of ${pluralize(lists, 'finished list')} held of the address`,
        ]),
    ...(verifications.length === 0
      ? []
      : [`the address of ${pluralize(verifications.length, 'verification')} of the history`]),
    ...(events.length === 0 ? [] : [`${pluralize(events.length, 'event')} about the address`]),
  ]
}

function notes({ dryRun, young, unfinished, bytes, isGone, isShared }: Purged): string[] {
  const [before, after] = [bytes.before, bytes.after].map(formatBytes)
  return [
    ...(dryRun || bytes.after >= bytes.before || before === after
      ? []
      : [`The database went from ${before} to ${after}.`]),
    ...(unfinished === 0 ? [] : [`Unfinished lists stay, here ${unfinished}; see “ev jobs”.`]),
    ...(young === 0
      ? []
      : [`What came from stdin less than 10 minutes ago stays: ${pluralize(young, 'copy')}.`]),
    ...(dryRun || !isShared
      ? []
      : [
          'PostgreSQL clears up what was deleted by itself, later; its journal and your backups hold it until they are replaced.',
        ]),
    ...(isGone
      ? []
      : [
          'Another ev uses the database: what was deleted may stand in its journal until that ends.',
        ]),
  ]
}

/** IDs shown; more would fill the screen. */
const IDS_MAX = 10

function idsOf({ jobs }: Purged): string {
  const ids = jobs.slice(0, IDS_MAX).map(({ id }) => id)
  const more = jobs.length - ids.length
  return `${ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const indent = (line: string) => `  ${line}`

/** The same, for programs. */
export function purgeObject(purged: Purged) {
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
