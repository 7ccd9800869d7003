import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { systemClock } from '../../base/clock.ts'
import type { Config } from '../../config/settings.ts'
import { forgetAnswers } from '../../store/answers.ts'
import { compact, type Database, secureDelete, write } from '../../store/database.ts'
import { unfinishedJobs } from '../../store/job/job-list.ts'
import type { Job } from '../../store/job/jobs.ts'
import { deleteJobsBefore, jobsFinishedBefore } from '../../store/job/removal.ts'
import { isLocked, listLock } from '../../store/lock.ts'
import { countAnswersUntil, eraseTraces, type Traces } from '../../store/purge.ts'
import { databaseFile, openKept } from '../database.ts'
import { leftoverCopies } from '../jobs/stdin-copy.ts'
import { readConfig } from '../settings/settings.ts'
import { findTraces } from './address.ts'
import { purgeObject, purgeText } from './report.ts'

export type PurgeFlags = {
  readonly all?: boolean
  readonly address?: string
  readonly dryRun?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** What went, or would go. */
export type Purged = {
  readonly dryRun: boolean
  readonly jobs: readonly Job[]
  readonly answers: number
  readonly files: readonly string[]
  /** Leftovers that are too young to tell. */
  readonly young: number
  /** Of the address that was to be forgotten. */
  readonly traces: Traces | null
  readonly unfinished: number
  /** Of the database's file. */
  readonly bytes: { readonly before: number; readonly after: number }
  /** False: what was deleted may stand in the journal until other processes end. */
  readonly isGone: boolean
}

/** `ev purge`: gives the code to exit with. */
export async function purgeCommand(flags: PurgeFlags): Promise<number> {
  const config = readConfig(flags)
  const database = await openKept(config)
  try {
    const purged = await purge(database, config, flags)
    process.stdout.write(
      flags.json ? `${JSON.stringify(purgeObject(purged), null, 2)}\n` : purgeText(purged),
    )
    return 0
  } finally {
    await database?.close()
  }
}

async function purge(
  database: Database | null,
  config: Config,
  flags: PurgeFlags,
): Promise<Purged> {
  const dryRun = flags.dryRun ?? false
  const traces = flags.address === undefined ? null : await findTraces(database, flags.address)
  const before = sizeOf(config)
  const gone =
    database === null
      ? NOTHING
      : await purgeDatabase(database, config, { dryRun, traces, ...flags })
  const { files, young } = await leftoverCopies(database, config.dataDir)
  if (!dryRun) for (const file of files) await rm(file, { force: true })
  const unfinished = database === null ? 0 : (await unfinishedJobs(database)).length
  const bytes = { before, after: sizeOf(config) }
  return { dryRun, files, young, traces, unfinished, bytes, ...gone }
}

type Gone = Pick<Purged, 'jobs' | 'answers' | 'isGone'>
const NOTHING: Gone = { jobs: [], answers: 0, isGone: true }

type Wish = { readonly dryRun: boolean; readonly traces: Traces | null; readonly all?: boolean }

async function purgeDatabase(database: Database, config: Config, wish: Wish): Promise<Gone> {
  if (!wish.dryRun) await secureDelete(database)
  const { jobs, answers } = wish.traces === null ? await purgeOld(database, config, wish) : NOTHING
  if (wish.dryRun) return { jobs, answers, isGone: true }
  if (wish.traces !== null) await eraseTraces(database, wish.traces)
  return { jobs, answers, isGone: await compact(database) }
}

/** Later than anything. */
const EVER = Number.MAX_SAFE_INTEGER

async function purgeOld(
  database: Database,
  { dataDir, keepResultsMs }: Config,
  { dryRun, all = false }: Wish,
): Promise<Pick<Purged, 'jobs' | 'answers'>> {
  const now = systemClock.now()
  const finishedBefore = all ? EVER : now - keepResultsMs
  const keptUntil = all ? EVER : now
  const answers = await countAnswersUntil(database, keptUntil)
  if (dryRun) {
    const old = await jobsFinishedBefore(database, finishedBefore)
    return { jobs: old.filter(job => !isLocked(dataDir, listLock(job.source_key))), answers }
  }
  const jobs = await deleteJobsBefore(database, dataDir, finishedBefore)
  await write(database, trx => forgetAnswers(trx, keptUntil))
  return { jobs, answers }
}

const sizeOf = (config: Config) =>
  statSync(databaseFile(config), { throwIfNoEntry: false })?.size ?? 0
