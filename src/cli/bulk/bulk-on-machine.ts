import { createHash } from 'node:crypto'
import { listFiles } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { ListDialect } from '../../csv/csv.ts'
import { type Database, openDatabase, type Trx, write } from '../../db/database.ts'
import { fileOf } from '../../db/database-url.ts'
import {
  acquireLock,
  jobLock,
  type Lock,
  type LockPlace,
  refuseHardLinks,
} from '../../db/file-lock.ts'
import type { Address } from '../../engine/address/address.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { type ActionPolicy, decide } from '../../engine/verdict/action.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { getComplaintRate } from '../../feedback/feedback-counts.ts'
import { FeedbackKnowledge } from '../../feedback/knowledge.ts'
import { presentProjection } from '../../feedback/present-projection.ts'
import { projectBounces, projectList } from '../../feedback/projection.ts'
import { deleteCachedAnswers } from '../../jobs/cached-answers.ts'
import { deleteJobsBefore } from '../../jobs/delete-job.ts'
import { createExternalReader } from '../../jobs/import/external-results.ts'
import { createFirstFilter } from '../../jobs/import/import-counter.ts'
import { type Job, markWritten, readJob, setSource } from '../../jobs/job-store.ts'
import { canonicalPath } from '../../platform/directory.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatNumber } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import type { CliContext } from '../context.ts'
import { isShared, listsUrl } from '../database-location.ts'
import { EXIT_CODES } from '../exit.ts'
import { parseActions, parseMetadataFlags } from '../flag-values.ts'
import { deleteStdinCopy } from '../jobs/stdin-copy.ts'
import { type LiveOutput, openLiveOutput } from '../live-output.ts'
import { stderrLog } from '../log.ts'
import { fitToOpenFiles } from '../open-files.ts'
import { printJson, printMessage } from '../print.ts'
import { createOutboundHint, type OutboundHint } from '../reachability-hint.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { startInterruption } from '../stop-signals.ts'
import { wrapLines } from '../width.ts'
import { checkExternalDate, parseExternalDate } from './external-date.ts'
import { type ListFile, openList } from './list-file.ts'
import { getResumableJob, openJob, sourceKeyFor } from './list-job.ts'
import {
  type BulkSource,
  readAsBefore,
  readSource,
  type SourceFlags,
  toFlags,
  toSource,
} from './list-source.ts'
import { downloadList, isUrl, nameOfUrl } from './list-url.ts'
import { type WrittenOutput, writeOutput } from './output.ts'
import { checkRowCount, nameFiles, type OutputFile, prepareOutput } from './output-plan.ts'
import { resolveOutput } from './output-sink.ts'
import { identifyFiles, refuseForeignFiles } from './own-output.ts'
import { rowText } from './row-text.ts'
import { BOUNCES_EXIT_CODE, checkBounces, summaryObject, summaryText } from './summary.ts'
import { work } from './work.ts'

export type BulkFlags = SourceFlags &
  ResumeFlags & {
    readonly fresh?: boolean
  }

/** The output is optional on the command line, and metadata is text there. */
export type GivenFlags = Partial<Omit<SourceFlags, 'metadata'>> &
  ResumeFlags &
  Pick<BulkFlags, 'fresh'> & { readonly metadata?: readonly string[] }

/** Flags that are not stored with a job: verbosity and settings. */
export type ResumeFlags = {
  readonly quiet?: boolean
  /** Replaces files that ev did not write. */
  readonly force?: boolean
  readonly json?: boolean
  /** The share of bounces, 0 to 1, above which the exit code is 1. */
  readonly failAbove?: number
  readonly [setting: string]: unknown
}

/** Runs `ev bulk` on this machine and returns the exit code. */
export async function bulkOnMachine(
  context: CliContext,
  file: string,
  flags: GivenFlags,
): Promise<number> {
  // A PostgreSQL URL in the environment or the config file is meant for the service and is ignored
  // here. As a flag it is meant for this command, which cannot use it.
  if (flags.database !== undefined && isShared(readConfig(context, flags)))
    throw unsupportedDatabase(context, flags)
  const { list, output, format } = nameFiles(context, file, flags)
  checkExternalDate(flags)
  const metadata = parseMetadataFlags(flags.metadata)
  return bulk(context, list, { ...flags, format, output, metadata }, null)
}

const unsupportedDatabase = (context: CliContext, flags: GivenFlags) =>
  new EvError(
    'usage',
    `"ev bulk" stores lists in a local file, ${fileOf(listsUrl(readConfig(context, flags)))}, not in PostgreSQL. Omit --database, or use --database sqlite:FILE. To process a list on several machines, submit it to "ev serve" with POST /v1/verify/file.`,
  )

/** Resumes a stopped job with the options of its command, and returns the exit code. */
export async function resumeBulk(
  context: CliContext,
  jobId: string,
  flags: ResumeFlags,
): Promise<number> {
  const job = await getResumableJob(context, readConfig(context, flags), jobId)
  const source = readSource(job)
  return bulk(context, source.path, { ...flags, ...toFlags(source), fresh: false }, job)
}

/** Processes a list. `resumed` is the job that must match it; null if any job may. */
async function bulk(
  context: CliContext,
  file: string,
  flags: BulkFlags,
  resumed: Job | null,
): Promise<number> {
  const live = await openLiveOutput(context)
  const warn = (text: string) => live.print(`${wrapLines(`note: ${text}`, live.width)}\n`)
  const config = fitToOpenFiles(readConfig(context, flags), flags.quiet ? () => {} : warn)
  const stderr = { write: (text: string) => live.print(text) }
  const log = stderrLog({ stderr, clock: context.clock }, config, () => live.width)
  const reachability = createOutboundHint(log, config)
  const lists = openLists(listFiles(config))
  const stopReloading = reloadOnSighup(context, lists, flags, reachability.log)
  try {
    return await processList(context, { file, flags, resumed, config, reachability, lists, live })
  } finally {
    stopReloading()
  }
}

type BulkInput = {
  readonly file: string
  readonly flags: BulkFlags
  readonly resumed: Job | null
  readonly config: Config
  readonly reachability: OutboundHint
  readonly lists: ListLoader
  readonly live: LiveOutput
}

async function processList(
  context: CliContext,
  { file, flags, resumed, config, reachability, lists, live }: BulkInput,
): Promise<number> {
  const say = (text: string) => void (flags.quiet || live.print(`${wrapLines(text, live.width)}\n`))
  const files = await prepareOutput(context, file, flags)
  const list = isUrl(file)
    ? await openDownload(context, { file, flags, config, say })
    : await openList(context, file, config.dataDir, listOptions(flags, resumed))
  refuseHardLinks(fileOf(listsUrl(config)))
  const database = await openDatabase(listsUrl(config), context.clock)
  const locks: Lock[] = []
  try {
    const sourceKey = sourceKeyFor(list, flags, config)
    // Acquire the lock before reading the job, so that no other process can change it in between.
    locks.push(
      lockOrThrow(jobLock(database.file, config.dataDir, sourceKey), 'is processing this list'),
    )
    for (const { path } of files.filter(one => one.path !== '-')) {
      const place = [config.dataDir, `output_${outputKey(path)}`] as const
      locks.push(lockOrThrow(place, `writes to ${path}`))
    }
    if (!flags.force) await refuseForeignFiles(database, files)
    // The lock protects the job of this list from deletion, however old the job is.
    await cleanUp(context, database, config)
    if (flags.sandbox) say(SIMULATED)
    const external = flags.keepExternal
      ? readExternal(database, config, { list, lists, flags })
      : null
    const job = await openJob(context, database, {
      sourceKey,
      list,
      flags,
      resumed,
      say,
      external,
    })
    checkRowCount(job.total, flags.format)
    const hint = flags.sandbox || job.state === 'completed' ? null : heloHint(config)
    if (hint !== null) say(`note: ${hint}`)
    return await finish(context, database, config, {
      list: readAsBefore(list, job),
      lists,
      files,
      flags,
      job,
      policy: config.actionPolicy,
      reachability,
      live,
      say,
    })
  } finally {
    for (const lock of locks) lock.release()
    await database.close()
  }
}

/** Returns what reads the results of other services that rows keep. */
function readExternal(
  database: Database,
  config: Config,
  { list, lists, flags }: Pick<BulkInput, 'lists' | 'flags'> & { readonly list: ListFile },
) {
  const feedback = new FeedbackKnowledge(database, config)
  return {
    reader: createExternalReader(list.dialect, {
      exportedAt: parseExternalDate(flags.externalDate),
      now: database.clock.now(),
      ...config,
    }),
    classify: (address: Address) => lists.classifier.of(address),
    adjust: async (trx: Trx, results: readonly Result[]) =>
      flags.sandbox ? results : feedback.adjust(trx, OWNER, results),
  }
}

const SIMULATED =
  'SIMULATED (--sandbox): no mail server is contacted. The prefix of an address chooses its result.'

/** Downloads a list and opens the copy. */
async function openDownload(
  context: CliContext,
  {
    file,
    flags,
    config,
    say,
  }: Pick<BulkInput, 'file' | 'flags' | 'config'> & { readonly say: (text: string) => void },
): Promise<ListFile> {
  const name = nameOfUrl(file)
  say(`Downloading ${name}.`)
  const { path, digest } = await downloadList(context, config, file)
  const options = { ...listOptions(flags, null), kept: true, name, digest }
  return openList(context, path, config.dataDir, options)
}

const listOptions = (
  { column, sheet, encoding, header, allAddresses }: BulkFlags,
  resumed: Job | null,
) => ({
  ...omitUndefined({
    sheet,
    column,
    encoding,
    header: header === false ? header : undefined,
    allAddresses,
  }),
  ...(resumed === null ? {} : pickCopy(readSource(resumed))),
})

const pickCopy = ({ kept, name }: BulkSource) => ({ kept, name })

/** Deletes expired jobs and cached answers. */
async function cleanUp(
  context: CliContext,
  database: Database,
  { dataDir, keepResultsMs }: Config,
): Promise<void> {
  const now = context.clock.now()
  await deleteJobsBefore(database, dataDir, now - keepResultsMs)
  await write(database, trx => deleteCachedAnswers(trx, now))
}

function lockOrThrow(place: LockPlace, activity: string): Lock {
  const lock = acquireLock(...place)
  if (lock !== null) return lock
  throw new EvError(
    'io',
    `Another ev process ${activity}. Wait for it to finish, or stop it first.`,
  )
}

/** Returns the lock key of an output: two runs that write to one file would mix their rows. */
const outputKey = (path: string) => createHash('sha256').update(canonicalPath(path)).digest('hex')

type BulkRun = {
  readonly list: ListFile
  readonly lists: ListLoader
  readonly files: readonly OutputFile[]
  readonly flags: BulkFlags
  readonly job: Job
  readonly policy: ActionPolicy
  readonly reachability: OutboundHint
  readonly live: LiveOutput
  readonly say: (text: string) => void
}

/** Processes the job, writes the output and prints the summary. */
async function finish(
  context: CliContext,
  database: Database,
  config: Config,
  run: BulkRun,
): Promise<number> {
  const { list, lists, files, flags, job, policy, reachability, live, say } = run
  const clock = context.clock
  const startedAt = clock.monotonicNow()
  const interrupted =
    job.state === 'completed'
      ? false
      : await work(context, database, config, { ...flags, log: reachability.log, lists, live }, job)
  const now = await readJob(database, job.id)
  if (interrupted) {
    say(
      `Stopped: ${formatNumber(now.done)} of ${formatNumber(now.total)} rows are finished and saved. To resume, run the same command again.`,
    )
    return EXIT_CODES.interrupted
  }
  if (!flags.force) await refuseForeignFiles(database, files)
  // Nothing may fail after the list is marked as written: the same command would start over.
  const model = await new FeedbackKnowledge(database, config).getBounceModel(OWNER)
  const complaintRate = await getComplaintRate(database, OWNER)
  const written = await writeResults(context, database, run)
  await markFinished(context, database, config, run)
  const tookMs = clock.monotonicNow() - startedAt
  const doneNow = now.done - job.done
  const { groups, writtenGroups } = written.counts
  const projection = projectList(groups, { policy, model })
  const { dialect } = list
  say(summaryText(now, { doneNow, tookMs, written, projection, complaintRate, flags, dialect }))
  const hint = reachability.atEnd()
  if (hint !== null) printMessage(context, 'warning', hint)
  const limit = flags.failAbove
  const check =
    limit === undefined ? null : checkBounces(projectBounces(writtenGroups, model), limit)
  if (flags.json && flags.output !== '-') {
    const shown = summaryObject(now, flags, written)
    const projected = presentProjection(projection, complaintRate)
    printJson(context, { ...shown, ...projected, ...(check === null ? {} : check.object) })
  }
  if (check?.message == null) return 0
  printMessage(context, 'error', check.message)
  return BOUNCES_EXIT_CODE
}

/**
 * Marks a list whose output is complete as finished, so that the same command starts over. The
 * output is what matters, so a failure is only a warning.
 */
async function markFinished(
  context: CliContext,
  database: Database,
  config: Config,
  { list, files, flags, job }: BulkRun,
): Promise<void> {
  try {
    const source = { ...toSource(list, flags), written: identifyFiles(files) }
    await setSource(database, job.id, JSON.stringify(source))
    await markWritten(database, job.id)
    await deleteStdinCopy(database, config, job)
  } catch (error) {
    printMessage(
      context,
      'warning',
      `The output is complete, but the list could not be marked as finished: ${errorMessage(error)}. The same command may write the output again.`,
    )
  }
}

/** The owner of lists and feedback of the command line. */
const OWNER = ''

/**
 * Writes the output. Ctrl-C removes partial files. A device or pipe leaves no partial file, and
 * writing to it may block forever, so Ctrl-C then ends the process.
 */
async function writeResults(
  context: CliContext,
  database: Database,
  run: BulkRun,
): Promise<WrittenOutput> {
  const { list, files, flags, job, policy, reachability } = run
  const { format = 'csv', raw = false, vocabulary } = flags
  const createText = (dialect: ListDialect) => rowText(format, dialect, { raw, policy, vocabulary })
  const hasFiles = files.some(({ path }) => path !== '-' && resolveOutput(path).isFile)
  const stop = hasFiles ? startInterruption(context, 'removing the unfinished output') : null
  try {
    const { action, deduplicate } = flags
    const actions = action === undefined ? null : parseActions(action)
    const createFilter =
      deduplicate === undefined ? null : () => createFirstFilter(deduplicate, context.random)
    const options = {
      createText,
      format,
      createFilter,
      hasAction:
        actions === null
          ? null
          : (result: Result) => actions.includes(decide(result, policy).action),
      stopping: stop?.signal,
      onResult: reachability.note,
    }
    return await writeOutput(context, files, list, { database, jobId: job.id }, options)
  } finally {
    stop?.dispose()
  }
}
