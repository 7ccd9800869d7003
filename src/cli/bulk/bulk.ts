import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { breathe, systemClock } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import { systemRandom } from '../../base/random.ts'
import type { Config } from '../../config/settings.ts'
import { readList } from '../../job/csv.ts'
import { toEntry } from '../../job/submission.ts'
import { forgetAnswers } from '../../store/answers.ts'
import { type Database, openDatabase, write } from '../../store/database.ts'
import {
  addItems,
  createJob,
  deleteJob,
  deleteJobsBefore,
  type Job,
  markWritten,
  type NewItem,
  queueJob,
  readJob,
  unfinishedJob,
} from '../../store/jobs.ts'
import { type Lock, listLock, lockJob } from '../../store/lock.ts'
import { databaseUrl } from '../database.ts'
import { EXIT_CODES } from '../exit.ts'
import { helloHint, readConfig } from '../settings.ts'
import { type ListFile, openList } from './list-file.ts'
import { checkOutput, writeOutput } from './list-output.ts'
import { summary, summaryObject } from './summary.ts'
import { work } from './work.ts'

export type BulkFlags = {
  readonly output: string
  readonly column?: string
  readonly header?: boolean
  readonly raw?: boolean
  readonly wait?: boolean
  readonly fresh?: boolean
  readonly sandbox?: boolean
  readonly quiet?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Rows stored in one transaction while a list is loaded. */
const LOAD_CHUNK_MAX = 2_000

/** `ev bulk`: gives the code to exit with. */
export async function bulkCommand(file: string, flags: BulkFlags): Promise<number> {
  const config = readConfig(flags)
  const say = (text: string) => void (flags.quiet || process.stderr.write(`${text}\n`))
  refuseSameFile(file, flags.output)
  await checkOutput(flags.output)
  const list = await openList(file, config.dataDir, listOptions(flags))
  const hint = flags.sandbox ? null : helloHint(config)
  if (hint !== null) say(hint)
  const database = await openDatabase(databaseUrl(config), systemClock)
  const locks: Lock[] = []
  try {
    await tidy(database, config)
    const sourceKey = keyOf(list, flags)
    // Before anything is read of the job: what another process does to it meanwhile would not be seen.
    locks.push(lockOrThrow(config, listLock(sourceKey), 'is at work on this list'))
    if (flags.output !== '-') {
      locks.push(lockOrThrow(config, `output_${outputKey(flags)}`, `writes to ${flags.output}`))
    }
    const job = await takeJob(database, sourceKey, list, flags, say)
    return await finish(database, config, list, flags, job, say)
  } finally {
    for (const lock of locks) lock.release()
    await database.close()
  }
}

/** Old jobs and answers go when the next list comes. */
async function tidy(database: Database, { dataDir, keepResultsMs }: Config): Promise<void> {
  const now = systemClock.now()
  await deleteJobsBefore(database, dataDir, now - keepResultsMs)
  await write(database, trx => forgetAnswers(trx, now))
}

const listOptions = ({ column, header }: BulkFlags) => ({
  ...(column === undefined ? {} : { column }),
  ...(header === false ? { header } : {}),
})

function refuseSameFile(file: string, output: string) {
  if (file !== '-' && output !== '-' && truePath(file) === truePath(output)) {
    throw new EvError(
      'usage',
      `The output ${output} is the list itself. Name another file with -o.`,
    )
  }
}

const truePath = (path: string) => (existsSync(path) ? realpathSync(path) : resolve(path))

/** The unfinished job of this list, else a new one. */
async function takeJob(
  database: Database,
  sourceKey: string,
  list: ListFile,
  flags: BulkFlags,
  say: (text: string) => void,
): Promise<Job> {
  const earlier = await unfinishedJob(database, sourceKey)
  if (earlier !== null) {
    if (earlier.state !== 'loading' && !flags.fresh) {
      say(
        `Going on with this list: ${earlier.done} of ${earlier.total} rows are done. (--fresh starts anew.)`,
      )
      return earlier
    }
    await deleteJob(database, earlier.id)
  }
  const id = `job_${systemRandom.token(16)}`
  await createJob(database, { id, sourceKey, source: JSON.stringify({ path: list.path }) })
  await load(database, id, list)
  const job = await queueJob(database, id)
  const column = list.dialect.columnName ?? `number ${list.dialect.column + 1}`
  say(
    `${job.total} rows, addresses in column ${column}; ${job.duplicates} duplicates are asked once.`,
  )
  return job
}

/** What makes two runs the same: the content, the column asked, and whether it is real. */
function keyOf(list: ListFile, { sandbox = false }: BulkFlags): string {
  const { column, header } = list.dialect
  return createHash('sha256')
    .update(JSON.stringify([list.path, list.digest, column, header !== null, sandbox]))
    .digest('hex')
}

/** Two runs into one file would mix their rows. */
const outputKey = ({ output }: BulkFlags) =>
  createHash('sha256').update(truePath(output)).digest('hex')

function lockOrThrow(config: Config, name: string, does: string): Lock {
  const lock = lockJob(config.dataDir, name)
  if (lock !== null) return lock
  throw new EvError('io', `Another ev ${does}. Wait for it, or stop it first.`)
}

async function load(database: Database, jobId: string, list: ListFile): Promise<void> {
  let position = 0
  let chunk: NewItem[] = []
  for await (const batch of readList(list.bytes(), list.dialect)) {
    for (const { text } of batch) chunk.push({ position: ++position, ...toEntry(text) })
    if (chunk.length >= LOAD_CHUNK_MAX) {
      await addItems(database, jobId, chunk)
      await breathe()
      chunk = []
    }
  }
  await addItems(database, jobId, chunk)
}

/** Works on the job, writes the output, and says how it went. */
async function finish(
  database: Database,
  config: Config,
  list: ListFile,
  flags: BulkFlags,
  job: Job,
  say: (text: string) => void,
): Promise<number> {
  const clock = systemClock
  const begunAt = clock.ticks()
  const before = job.done
  const interrupted = job.state === 'completed' ? false : await work(database, config, flags, job)
  const now = await readJob(database, job.id)
  if (interrupted) {
    say(
      `Stopped: ${now.done} of ${now.total} rows are done and kept. The same command goes on from here.`,
    )
    return EXIT_CODES.interrupted
  }
  await writeOutput(flags.output, list, { database, jobId: job.id }, { raw: flags.raw ?? false })
  await markWritten(database, job.id)
  await list.forget()
  say(summary(now, now.done - before, clock.ticks() - begunAt, flags.output))
  if (flags.json && flags.output !== '-') {
    process.stdout.write(`${JSON.stringify(summaryObject(now, flags.output), null, 2)}\n`)
  }
  return 0
}
