import { createHash } from 'node:crypto'
import { listFiles } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import { type Database, openDatabase, write } from '../../db/database.ts'
import { acquireLock, jobLockName, type Lock } from '../../db/file-lock.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { deleteCachedAnswers } from '../../jobs/cached-answers.ts'
import { deleteJobsBefore } from '../../jobs/delete-job.ts'
import { type Job, markWritten, readJob } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import { formatDuration, formatNumber, formatPercent, pluralize } from '../../platform/format.ts'
import { type CliContext, inCwd } from '../context.ts'
import { fileOf, isShared, listsUrl } from '../database.ts'
import { EXIT_CODES } from '../exit.ts'
import { forgetStdin } from '../jobs/stdin-copy.ts'
import { stderrLog } from '../log.ts'
import { createOutboundHint, type OutboundHint } from '../reachability-hint.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { type ListFile, openList } from './list-file.ts'
import { keyOf, stoppedJob, takeJob } from './list-job.ts'
import { flagsOf, readSource, type SourceFlags } from './list-source.ts'
import { type WrittenFile, writeOutput } from './output.ts'
import { checkOutput, type OutputFile, planOutput } from './output-plan.ts'
import { placeOf, truePath } from './output-sink.ts'
import { rowText } from './row-text.ts'
import { interruption, work } from './work.ts'

export type BulkFlags = SourceFlags &
  ResumeFlags & {
    readonly fresh?: boolean
  }

/** What is not kept with a job: how much to say, and the settings. */
export type ResumeFlags = {
  readonly quiet?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev bulk`: gives the code to exit with. */
export async function bulkCommand(
  context: CliContext,
  file: string,
  flags: BulkFlags,
): Promise<number> {
  // That of the service may be set for all commands of a machine; as a flag it was meant for this list.
  if (flags.database !== undefined && isShared(readConfig(context, flags)))
    throw isKeptInFile(context, flags)
  // Either may be named `-`, or by mistake nothing at all.
  const place = (given: string) => (given === '-' || given === '' ? given : inCwd(context, given))
  return bulk(context, place(file), { ...flags, output: place(flags.output) }, null)
}

const isKeptInFile = (context: CliContext, flags: BulkFlags) =>
  new EvError(
    'usage',
    `“ev bulk” keeps its lists in a file of this machine, ${fileOf(listsUrl(readConfig(context, flags)))}, and not in PostgreSQL: leave --database out, or name another file with --database sqlite:FILE. Lists for several machines go to “ev serve”, by POST /v1/verify/file.`,
  )

/** Goes on with a stopped job as its command would: gives the code to exit with. */
export async function resumeBulk(
  context: CliContext,
  jobId: string,
  flags: ResumeFlags,
): Promise<number> {
  const job = await stoppedJob(context, readConfig(context, flags), jobId)
  const source = readSource(job)
  return bulk(context, source.path, { ...flags, ...flagsOf(source), fresh: false }, job)
}

/** Works on a list; `resumed` is the job that it must belong to, null: any. */
async function bulk(
  context: CliContext,
  file: string,
  flags: BulkFlags,
  resumed: Job | null,
): Promise<number> {
  const config = readConfig(context, flags)
  const reachability = createOutboundHint(stderrLog(context, config), config)
  const lists = openLists(listFiles(config))
  const endReloads = reloadOnSighup(context, lists, flags, reachability.log)
  try {
    return await workOnList(context, { file, flags, resumed, config, reachability, lists })
  } finally {
    endReloads()
  }
}

type Order = {
  readonly file: string
  readonly flags: BulkFlags
  readonly resumed: Job | null
  readonly config: Config
  readonly reachability: OutboundHint
  readonly lists: ListLoader
}

async function workOnList(
  context: CliContext,
  { file, flags, resumed, config, reachability, lists }: Order,
): Promise<number> {
  const say = (text: string) => void (flags.quiet || context.stderr.write(`${text}\n`))
  const files = planOutput(flags)
  await checkOutput(file, files, flags)
  const list = await openList(context, file, config.dataDir, listOptions(flags, resumed))
  const hint = flags.sandbox ? null : heloHint(config)
  if (hint !== null) say(hint)
  const database = await openDatabase(listsUrl(config), context.clock)
  const locks: Lock[] = []
  try {
    const sourceKey = keyOf(list, flags)
    // Before anything is read of the job: what another process does to it meanwhile would not be seen.
    locks.push(lockOrThrow(config, jobLockName(sourceKey), 'is at work on this list'))
    for (const { path } of files.filter(one => one.path !== '-')) {
      locks.push(lockOrThrow(config, `output_${outputKey(path)}`, `writes to ${path}`))
    }
    // With the lock held, so that a job of this very list stays, however old.
    await cleanUp(context, database, config)
    const job = await takeJob(context, database, { sourceKey, list, flags, resumed, say })
    return await finish(context, database, config, {
      list,
      lists,
      files,
      flags,
      job,
      reachability,
      say,
    })
  } finally {
    for (const lock of locks) lock.release()
    await database.close()
  }
}

const listOptions = ({ column, encoding, header }: BulkFlags, resumed: Job | null) => ({
  ...(column === undefined ? {} : { column }),
  ...(encoding === undefined ? {} : { encoding }),
  ...(header === false ? { header } : {}),
  ...(resumed === null ? {} : { kept: readSource(resumed).kept }),
})

/** Old jobs and answers go when the next list comes. */
async function cleanUp(
  context: CliContext,
  database: Database,
  { dataDir, keepResultsMs }: Config,
): Promise<void> {
  const now = context.clock.now()
  await deleteJobsBefore(database, dataDir, now - keepResultsMs)
  await write(database, trx => deleteCachedAnswers(trx, now))
}

function lockOrThrow(config: Config, name: string, does: string): Lock {
  const lock = acquireLock(config.dataDir, name)
  if (lock !== null) return lock
  throw new EvError('io', `Another ev ${does}. Wait for it, or stop it first.`)
}

/** Two runs into one file would mix their rows. */
const outputKey = (path: string) => createHash('sha256').update(truePath(path)).digest('hex')

type Run = {
  readonly list: ListFile
  readonly lists: ListLoader
  readonly files: readonly OutputFile[]
  readonly flags: BulkFlags
  readonly job: Job
  readonly reachability: OutboundHint
  readonly say: (text: string) => void
}

/** Works on the job, writes the output, and says how it went. */
async function finish(
  context: CliContext,
  database: Database,
  config: Config,
  run: Run,
): Promise<number> {
  const { lists, flags, job, reachability, say } = run
  const clock = context.clock
  const startedAt = clock.monotonicNow()
  const interrupted =
    job.state === 'completed'
      ? false
      : await work(context, database, config, { ...flags, log: reachability.log, lists }, job)
  const now = await readJob(database, job.id)
  if (interrupted) {
    say(
      `Stopped: ${now.done} of ${now.total} rows are done and kept. The same command goes on from here.`,
    )
    return EXIT_CODES.interrupted
  }
  const written = await writeResults(context, database, run)
  await markWritten(database, job.id)
  await forgetStdin(database, config, now)
  say(summary(now, now.done - job.done, clock.monotonicNow() - startedAt, written))
  const unreached = reachability.atEnd()
  if (unreached !== null) context.stderr.write(`ev: ${unreached}\n`)
  if (flags.json && flags.output !== '-') {
    context.stdout.write(`${JSON.stringify(summaryObject(now, flags.output, written), null, 2)}\n`)
  }
  return 0
}

/** Ctrl-C takes away what is half written. What is no file leaves nothing, and may block for ever: there it just ends ev. */
async function writeResults(
  context: CliContext,
  database: Database,
  run: Run,
): Promise<WrittenFile[]> {
  const { list, files, flags, job, reachability } = run
  const text = rowText(flags.format ?? 'csv', list.dialect, { raw: flags.raw ?? false })
  const leaves = files.some(({ path }) => path !== '-' && placeOf(path).isFile)
  const stop = leaves ? interruption(context) : null
  try {
    const options = { text, stopping: stop?.signal, onResult: reachability.note }
    return await writeOutput(context, files, list, { database, jobId: job.id }, options)
  } finally {
    stop?.dispose()
  }
}

/** How a job ended, for people. */
function summary(job: Job, doneNow: number, tookMs: number, files: readonly WrittenFile[]): string {
  const share = (count: number) =>
    `${formatNumber(count).padStart(9)}  ${formatPercent(count, job.total)}`
  const rate = tookMs > 0 ? Math.round((doneNow * 1_000) / tookMs) : 0
  return [
    '',
    `  deliverable   ${share(job.deliverable)}`,
    `  risky         ${share(job.risky)}`,
    `  undeliverable ${share(job.undeliverable)}`,
    `  unknown       ${share(job.unknown)}`,
    '',
    `${pluralize(job.total, 'row')} in ${formatDuration(tookMs)} (${rate}/s)${whereTo(job, files)}`,
  ].join('\n')
}

/** The end of the sentence: `, written to out.csv.` */
function whereTo(job: Job, files: readonly WrittenFile[]): string {
  const [first] = files
  if (first === undefined) return '.'
  if (files.length > 1) {
    return `, written to\n${files.map(({ path, rows }) => `${formatNumber(rows).padStart(9)}  ${path}`).join('\n')}`
  }
  const place = first.path === '-' ? '' : ` to ${first.path}`
  if (rowsOf(files) === job.total) return place === '' ? '.' : `, written${place}.`
  return `, ${formatNumber(first.rows)} of them written${place}.`
}

const rowsOf = (files: readonly WrittenFile[]) => files.reduce((sum, { rows }) => sum + rows, 0)

/** The same, for programs. */
function summaryObject(job: Job, output: string, files: readonly WrittenFile[]) {
  return {
    job_id: job.id,
    output,
    files,
    total: job.total,
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
    written: rowsOf(files),
  }
}
