import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { unfinishedJobs } from '../../jobs/job-list.ts'
import { type Purged as PurgedRows, purge } from '../../maintenance/purge.ts'
import type { CliContext } from '../context.ts'
import { closeAll, fileOf, isShared, listsUrl, openAll } from '../database.ts'
import { leftoverCopies } from '../jobs/stdin-copy.ts'
import { readConfig } from '../settings.ts'
import { purgeObject, purgeText } from './purge-report.ts'

export type PurgeFlags = {
  readonly all?: boolean
  readonly address?: string
  readonly dryRun?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** What went, or would go. */
export type Purged = PurgedRows & {
  readonly dryRun: boolean
  readonly files: readonly string[]
  /** Leftovers that are too young to tell. */
  readonly young: number
  readonly unfinished: number
  /** Whether some of it was on a server. */
  readonly isShared: boolean
  /** Of the database's file; on a server nobody tells. */
  readonly bytes: { readonly before: number; readonly after: number }
}

/** `ev purge`: gives the code to exit with. */
export async function purgeCommand(context: CliContext, flags: PurgeFlags): Promise<number> {
  const config = readConfig(context, flags)
  const databases = await openAll(context, config)
  try {
    const purged = await purgeAll(context, databases, config, flags)
    context.stdout.write(
      flags.json ? `${JSON.stringify(purgeObject(purged), null, 2)}\n` : purgeText(purged),
    )
    return 0
  } finally {
    await closeAll(databases)
  }
}

async function purgeAll(
  context: CliContext,
  databases: readonly Database[],
  config: Config,
  flags: PurgeFlags,
): Promise<Purged> {
  const dryRun = flags.dryRun ?? false
  const before = sizeOf(config)
  const input = { isDryRun: dryRun, isAll: flags.all ?? false, address: flags.address ?? null }
  const purged = await purge({ databases, clock: context.clock, settings: config }, input)
  const lists = databases.find(({ dialect }) => dialect === 'sqlite') ?? null
  const { files, young } = await leftoverCopies(context, lists, config.dataDir)
  if (!dryRun) for (const file of files) await rm(file, { force: true })
  const unfinished = (await Promise.all(databases.map(unfinishedJobs))).flat().length
  const bytes = { before, after: sizeOf(config) }
  return { ...purged, dryRun, files, young, unfinished, bytes, isShared: isShared(config) }
}

const sizeOf = (config: Config) =>
  statSync(fileOf(listsUrl(config)), { throwIfNoEntry: false })?.size ?? 0
