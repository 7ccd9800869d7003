import { createHash } from 'node:crypto'
import { SMTP_PORT } from '../../config/engine-settings.ts'
import type { Config } from '../../config/settings.ts'
import { type ListDialect, readList } from '../../csv/csv.ts'
import type { Database } from '../../db/database.ts'
import { SOURCE_TITLES } from '../../engine/verdict/external.ts'
import { deleteJob } from '../../jobs/delete-job.ts'
import {
  describeExternal,
  type ExternalReader,
  findExternalSource,
} from '../../jobs/import/external-results.ts'
import { ImportCounter } from '../../jobs/import/import-counter.ts'
import { countDone, type KeptCounts, queueJob } from '../../jobs/import/item-import.ts'
import { type ExternalDeps, RowImporter } from '../../jobs/import/load-job.ts'
import { createJob, findJob, type Job, setSource, unfinishedJob } from '../../jobs/job-store.ts'
import type { JobState } from '../../jobs/tables.ts'
import { EvError } from '../../platform/error.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { openListDatabase } from '../database.ts'
import { describeUnverified, describeVerified } from './describe-list.ts'
import type { ListFile } from './list-file.ts'
import { readAsBefore, type SourceFlags, toSource } from './list-source.ts'

/**
 * Returns the key that two runs of the same list with the same reading options share. Runs against
 * other mail servers, such as simulated ones, do not share it, or one list would have results of
 * both. A run with other DNS servers does: a list that waits for a working resolver is resumed with
 * `--dns`.
 */
export function sourceKeyFor(
  list: ListFile,
  { sandbox = false, keepExternal = false, externalDate }: SourceFlags,
  { smtpPort, allowRanges }: Pick<Config, 'smtpPort' | 'allowRanges'>,
): string {
  const { column, encoding, header, allAddresses = null } = list.dialect
  const options = [list.path, list.digest, column, encoding, header !== null, sandbox]
  const isPublic = smtpPort === SMTP_PORT && allowRanges.length === 0
  const external = keepExternal ? { externalDate: externalDate ?? null } : null
  const optional = [list.sheet, isPublic ? null : { smtpPort, allowRanges }, allAddresses, external]
  return createHash('sha256')
    .update(JSON.stringify([...options, ...optional.filter(one => one !== null)]))
    .digest('hex')
}

type JobRequest = {
  readonly sourceKey: string
  readonly list: ListFile
  readonly flags: SourceFlags & { readonly fresh?: boolean }
  /** The job that must match the list; null if any job may. */
  readonly resumed: Job | null
  readonly say: (text: string) => void
  /** Reads results of other services that rows keep; null to verify every row. */
  readonly external: (ExternalDeps & { readonly reader: ExternalReader | null }) | null
}

/** Returns the unfinished job of this list, or creates one and imports the rows. */
export async function openJob(
  context: CliContext,
  database: Database,
  request: JobRequest,
): Promise<Job> {
  const { sourceKey, list, flags, resumed, say, external } = request
  if (resumed !== null && resumed.source_key !== sourceKey) throw listChanged(resumed, list)
  const earlier = await unfinishedJob(database, sourceKey)
  if (resumed !== null && earlier === null) throw noLongerResumable(resumed)
  if (earlier !== null) {
    if (earlier.state !== 'loading' && !flags.fresh) {
      say(
        `Resuming this list: ${formatNumber(earlier.done)} of ${formatNumber(earlier.total)} rows are finished. To start over, add --fresh.`,
      )
      // The options of the latest command replace the stored ones, including the output path.
      const source = toSource(readAsBefore(list, earlier), flags)
      await setSource(database, earlier.id, JSON.stringify(source))
      return earlier
    }
    await deleteJob(database, earlier.id)
  }
  const id = `job_${context.random.token(16)}`
  await createJob(database, { id, sourceKey, source: JSON.stringify(toSource(list, flags)) })
  const { counter, kept } = await importRows(context, database, id, request)
  const { total, duplicates, malformed, noAddress } = counter
  const counted = { total, duplicates }
  const job = await queueJob(database, id, { counted, malformed, noAddress, kept })
  const twice = job.duplicates === 0 ? '' : `; ${duplicatesText(job.duplicates)} verified once`
  const encoding = list.dialect.encoding === 'utf-8' ? '' : `, read as ${list.dialect.encoding}`
  const sheet = list.sheet === null ? '' : ` of sheet ${sanitizeText(list.sheet, 40)}`
  say(
    `${pluralize(job.total, 'row')}${sheet}, ${describeVerified(list.dialect)}${encoding}${twice}.`,
  )
  const note = describeUnverified(list.dialect)
  if (note !== null) say(`note: ${note}`)
  if (external !== null) {
    say(`note: ${describeExternal(external.reader, countDone(kept), '--external-date')}`)
  } else if (findExternalSource(list.dialect) !== null) say(`note: ${hasExternal(list.dialect)}`)
  return job
}

/** Finds a job by its ID. Throws EvError if it does not exist or is finished. */
export async function getResumableJob(
  context: CliContext,
  config: Config,
  jobId: string,
): Promise<Job> {
  const database = await openListDatabase(context, config)
  try {
    const job = database === null ? null : await findJob(database, jobId)
    if (job === null) {
      throw new EvError(
        'no_input',
        `Job ${sanitizeText(jobId, 40)} does not exist. To list jobs, run "ev jobs".`,
      )
    }
    if (job.written_at === null && RESUMABLE.has(job.state)) return job
    const how = job.written_at === null ? job.state : 'finished, and its output is written'
    throw new EvError('usage', `${job.id} is ${how}. To start over, run its command again.`)
  } finally {
    await database?.close()
  }
}

const RESUMABLE: ReadonlySet<JobState> = new Set(['loading', 'queued', 'processing', 'completed'])

const listChanged = ({ id }: Job, { path }: ListFile) =>
  new EvError(
    'bad_input',
    `The list ${path} has changed since ${id} started, or --smtp-port or --allow-ranges differs. Restore the original file and settings, or start over: ev bulk ${path} -o FILE`,
  )

const noLongerResumable = ({ id }: Job) =>
  new EvError(
    'io',
    `Another ev process has finished or deleted ${id}. To list jobs, run "ev jobs".`,
  )

const hasExternal = (dialect: ListDialect) => {
  const source = findExternalSource(dialect)
  const title = source === null ? '' : SOURCE_TITLES[source]
  return `The list has columns as in results of ${title}. Rows are verified nevertheless; to keep recent results, add --keep-external.`
}

/** Stores the rows of a list and returns their counts. */
async function importRows(
  { random }: CliContext,
  database: Database,
  jobId: string,
  { list, external }: Pick<JobRequest, 'list' | 'external'>,
): Promise<{ readonly counter: ImportCounter; readonly kept: KeptCounts }> {
  const counter = new ImportCounter({ deduplicate: true, random })
  const deps = external === null ? { database } : { database, external }
  const importer = new RowImporter(deps, jobId, counter)
  const reader = external?.reader ?? null
  for await (const rows of readList(list.bytes(), list.dialect)) {
    // The cells are read from the list again for the output.
    await importer.add(
      rows.map(({ text, cells }) => ({ text, external: reader?.read(cells) ?? null })),
    )
  }
  await importer.end()
  return { counter, kept: await importer.countKept() }
}

const duplicatesText = (count: number) =>
  `${pluralize(count, 'duplicate')} ${count === 1 ? 'is' : 'are'}`
