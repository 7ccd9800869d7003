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

/** The name of the copy of stdin that a job was made from; null when it was made from a file. */
export function stdinCopyOf({ source }: Job): string | null {
  const { path, kept } = JSON.parse(source) as Partial<BulkSource>
  return kept === true && path !== undefined ? basename(path) : null
}

/** Removes the copy of stdin that a job was made from, unless another job needs it. */
export async function forgetStdin(
  database: Database,
  { dataDir }: Config,
  job: Job,
): Promise<void> {
  const copy = stdinCopyOf(job)
  if (copy === null || (await neededCopies(database, job.id)).has(copy)) return
  await rm(join(dataDir, 'stdin', copy), { force: true })
}

export type Leftovers = {
  /** Files that no job needs. */
  readonly files: readonly string[]
  /** How many more there are that are so young that an ev may be about to make its job of them. */
  readonly young: number
}

/** A copy has the digest of its content for a name, and until it is whole that of its process. */
const OURS = /^([0-9a-f]{32}\.csv|\d+\.partial)$/
/** From the end of stdin until the job is made an ev reads the copy twice, which takes seconds. */
const YOUNG_MS = 10 * MINUTE

/** Copies of stdin that were left behind, whole or in part. */
export async function leftoverCopies(
  context: CliContext,
  database: Database | null,
  dataDir: string,
): Promise<Leftovers> {
  const needed = database === null ? new Set<string>() : await neededCopies(database)
  const files: string[] = []
  let young = 0
  for (const name of namesIn(join(dataDir, 'stdin'))) {
    if (!OURS.test(name) || needed.has(name) || isArriving(context, name)) continue
    const file = join(dataDir, 'stdin', name)
    const writtenAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs
    if (writtenAt === undefined) continue
    if (context.clock.now() - writtenAt < YOUNG_MS) young++
    else files.push(file)
  }
  return { files, young }
}

/** Names of files that unfinished jobs are made from, wherever those are: a name too many does no harm. */
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
    return [] // Nothing ever came from stdin.
  }
}

/** `<process>.partial` is being written as long as that process is there. */
function isArriving(context: CliContext, name: string): boolean {
  const [, pid] = /^(\d+)\.partial$/.exec(name) ?? []
  if (pid === undefined) return false
  return context.isRunning(Number(pid))
}
