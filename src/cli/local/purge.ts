import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Config } from '../../config/settings.ts'
import { fileOf } from '../../db/database-url.ts'
import { unfinishedJobs } from '../../jobs/job-list.ts'
import { type Purged as PurgedRows, purge } from '../../maintenance/purge.ts'
import type { CliContext } from '../context.ts'
import { closeAll, openAll } from '../database.ts'
import { isShared, listsUrl } from '../database-location.ts'
import { leftoverCopies } from '../jobs/stdin-copy.ts'

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

type PurgeInput = {
  /** Whether nothing is deleted. */
  readonly isDryRun: boolean
  /** Whether the age of finished lists, history and cached answers does not matter. */
  readonly isAll: boolean
  /** The only address to erase; null for what has expired. */
  readonly address: string | null
  /** Asks the user, when the databases are open; rejects if the answer is no. */
  confirm(): Promise<void>
}

/** Deletes data of this machine, and copies of lists that no job uses. */
export async function purgeData(
  context: CliContext,
  config: Config,
  { confirm, ...input }: PurgeInput,
): Promise<Purged> {
  const databases = await openAll(context, config)
  try {
    if (!input.isDryRun) await confirm()
    const before = databaseSize(config)
    const purged = await purge({ databases, clock: context.clock, settings: config }, input)
    const lists = databases.find(({ dialect }) => dialect === 'sqlite') ?? null
    const { files, young } = await leftoverCopies(context, lists, config.dataDir)
    if (!input.isDryRun) for (const file of files) await rm(file, { force: true })
    const unfinished = (await Promise.all(databases.map(unfinishedJobs))).flat().length
    const bytes = { before, after: databaseSize(config) }
    return {
      ...purged,
      dryRun: input.isDryRun,
      files,
      young,
      unfinished,
      bytes,
      isShared: isShared(config),
    }
  } finally {
    await closeAll(databases)
  }
}

const databaseSize = (config: Config) =>
  statSync(fileOf(listsUrl(config)), { throwIfNoEntry: false })?.size ?? 0
