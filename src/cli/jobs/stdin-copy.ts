import { readdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { unfinishedJobs } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import { MINUTE } from '../../platform/clock.ts'
import type { BulkSource } from '../bulk/list-source.ts'
import type { CliContext } from '../context.ts'

/**
 * Returns the file name of the copy of a list from stdin or a URL; null if the list of the job is a
 * file.
 */
export function stdinCopyName({ source }: Job): string | null {
  const { path, kept } = JSON.parse(source) as Partial<BulkSource>
  return kept === true && path !== undefined ? basename(path) : null
}

/** Deletes the stdin copy of a job unless another job needs it. */
export async function deleteStdinCopy(
  database: Database,
  { dataDir }: Config,
  job: Job,
): Promise<void> {
  const copy = stdinCopyName(job)
  if (copy === null || (await neededCopies(database, job.id)).has(copy)) return
  await rm(join(dataDir, 'stdin', copy), { force: true })
}

type Leftovers = {
  /** Files that no job needs. */
  readonly files: readonly string[]
  /** Number of files that are too recent to delete: a process may be creating a job from them. */
  readonly young: number
}

/** A copy is named by the digest of its content, and by the process ID while it is written. */
const COPY_NAME = /^([0-9a-f]{32}\.csv|\d+\.partial)$/
/** Between the end of the input and the creation of the job, ev reads the copy twice, in seconds. */
const YOUNG_MS = 10 * MINUTE

/** Finds complete and partial copies of stdin that no job needs. */
export async function leftoverCopies(
  context: CliContext,
  database: Database | null,
  dataDir: string,
): Promise<Leftovers> {
  const needed = database === null ? new Set<string>() : await neededCopies(database)
  const files: string[] = []
  let young = 0
  for (const name of namesIn(join(dataDir, 'stdin'))) {
    if (!COPY_NAME.test(name) || needed.has(name) || isArriving(context, name)) continue
    const file = join(dataDir, 'stdin', name)
    const writtenAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs
    if (writtenAt === undefined) continue
    if (context.clock.now() - writtenAt < YOUNG_MS) young++
    else files.push(file)
  }
  return { files, young }
}

/** Returns the file names of the lists of unfinished jobs, including files that are not copies. */
async function neededCopies(database: Database, exceptId?: string): Promise<Set<string>> {
  const jobs = (await unfinishedJobs(database)).filter(({ id }) => id !== exceptId)
  return new Set(
    jobs.map(({ source }) => basename((JSON.parse(source) as Partial<BulkSource>).path ?? '')),
  )
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // The folder does not exist before the first list from stdin.
  }
}

/** Whether `<pid>.partial` is still being written, that is, whether its process is running. */
function isArriving(context: CliContext, name: string): boolean {
  const [, pid] = /^(\d+)\.partial$/.exec(name) ?? []
  if (pid === undefined) return false
  return context.isRunning(Number(pid))
}
