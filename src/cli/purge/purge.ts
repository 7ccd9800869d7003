import { statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Config } from '../../config/settings.ts'
import { forgetAnswers } from '../../store/answers.ts'
import {
  countAnswersUntil,
  countBefore,
  countSpentDeliveries,
  eraseTraces,
  type Traces,
} from '../../store/care/purge.ts'
import { compact, type Database, secureDelete, write } from '../../store/database.ts'
import { unfinishedJobs } from '../../store/job/job-list.ts'
import type { Job } from '../../store/job/jobs.ts'
import { deleteJobsBefore, jobsFinishedBefore } from '../../store/job/removal.ts'
import { isLocked, listLock } from '../../store/lock.ts'
import { expire, type Retention, retentions } from '../../work/retention.ts'
import type { CliContext } from '../context.ts'
import { closeAll, fileOf, isShared, listsUrl, openAll } from '../database.ts'
import { leftoverCopies } from '../jobs/stdin-copy.ts'
import { readConfig } from '../settings/settings.ts'
import { findTraces, sumOfTraces } from './address.ts'
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
  readonly service: OfService
  readonly files: readonly string[]
  /** Leftovers that are too young to tell. */
  readonly young: number
  /** Of the address that was to be forgotten. */
  readonly traces: Traces | null
  readonly unfinished: number
  /** Whether some of it was on a server. */
  readonly isShared: boolean
  /** Of the database's file; on a server nobody tells. */
  readonly bytes: { readonly before: number; readonly after: number }
  /** False: what was deleted may stand in the journal until other processes end. */
  readonly isGone: boolean
}

/** What the service keeps beside lists. */
export type OfService = {
  readonly history: number
  /** Of events to webhooks; an event goes with the last of its own. */
  readonly deliveries: number
  readonly replays: number
}

/** `ev purge`: gives the code to exit with. */
export async function purgeCommand(context: CliContext, flags: PurgeFlags): Promise<number> {
  const config = readConfig(context, flags)
  const databases = await openAll(context, config)
  try {
    const purged = await purge(context, databases, config, flags)
    context.stdout.write(
      flags.json ? `${JSON.stringify(purgeObject(purged), null, 2)}\n` : purgeText(purged),
    )
    return 0
  } finally {
    await closeAll(databases)
  }
}

async function purge(
  context: CliContext,
  databases: readonly Database[],
  config: Config,
  flags: PurgeFlags,
): Promise<Purged> {
  const dryRun = flags.dryRun ?? false
  // Of all of them first: what is refused for one is to be forgotten by none.
  const traces = flags.address === undefined ? null : await findTraces(databases, flags.address)
  const before = sizeOf(config)
  const gone: Gone[] = []
  for (const [n, database] of databases.entries()) {
    const wish = { dryRun, traces: traces?.[n] ?? null, all: flags.all ?? false }
    gone.push(await purgeDatabase(context, database, config, wish))
  }
  const lists = databases.find(({ dialect }) => dialect === 'sqlite') ?? null
  const { files, young } = await leftoverCopies(context, lists, config.dataDir)
  if (!dryRun) for (const file of files) await rm(file, { force: true })
  const unfinished = (await Promise.all(databases.map(unfinishedJobs))).flat().length
  const bytes = { before, after: sizeOf(config) }
  const all = { ...sumOf(gone), traces: traces === null ? null : sumOfTraces(traces) }
  return { dryRun, files, young, unfinished, bytes, isShared: isShared(config), ...all }
}

type Gone = Pick<Purged, 'jobs' | 'answers' | 'service' | 'isGone'>
const NOTHING: Gone = {
  ...{ jobs: [], answers: 0, service: { history: 0, deliveries: 0, replays: 0 }, isGone: true },
}

const sumOf = (all: readonly Gone[]): Gone =>
  all.reduce(
    (sum, { jobs, answers, service, isGone }) => ({
      jobs: [...sum.jobs, ...jobs],
      answers: sum.answers + answers,
      service: {
        history: sum.service.history + service.history,
        deliveries: sum.service.deliveries + service.deliveries,
        replays: sum.service.replays + service.replays,
      },
      isGone: sum.isGone && isGone,
    }),
    NOTHING,
  )

type Wish = { readonly dryRun: boolean; readonly traces: Traces | null; readonly all?: boolean }

async function purgeDatabase(
  context: CliContext,
  database: Database,
  config: Config,
  wish: Wish,
): Promise<Gone> {
  if (!wish.dryRun) await secureDelete(database)
  const gone = wish.traces === null ? await purgeOld(context, database, config, wish) : NOTHING
  if (wish.dryRun) return { ...gone, isGone: true }
  if (wish.traces !== null) await eraseTraces(database, wish.traces)
  return { ...gone, isGone: await compact(database) }
}

/** Later than anything. */
const EVER = Number.MAX_SAFE_INTEGER

async function purgeOld(
  context: CliContext,
  database: Database,
  { dataDir, keepResultsMs, keepHistoryMs }: Config,
  { dryRun, all = false }: Wish,
): Promise<Omit<Gone, 'isGone'>> {
  const now = context.clock.now()
  const finishedBefore = all ? EVER : now - keepResultsMs
  const keptUntil = all ? EVER : now
  const answers = await countAnswersUntil(database, keptUntil)
  const service = await purgeService(database, retentions(now, all ? now - EVER : keepHistoryMs), {
    dryRun,
  })
  if (dryRun) {
    const old = await jobsFinishedBefore(database, finishedBefore)
    const jobs = old.filter(job => !isLocked(dataDir, listLock(job.source_key)))
    return { jobs, answers, service }
  }
  const jobs = await deleteJobsBefore(database, dataDir, finishedBefore)
  await write(database, trx => forgetAnswers(trx, keptUntil))
  return { jobs, answers, service }
}

async function purgeService(
  database: Database,
  retained: readonly Retention[],
  { dryRun }: { dryRun: boolean },
): Promise<OfService> {
  const named = (name: Retention['name']) => retained.find(one => one.name === name) as Retention
  const [history, replays] = [named('history'), named('replays')]
  const [deliveries, stranded] = [named('deliveries'), named('stranded')]
  if (dryRun) {
    const bounds = { expiredBy: deliveries.before, dueBy: stranded.before }
    return {
      history: await countBefore(database, 'verification', history.before),
      deliveries: await countSpentDeliveries(database, bounds),
      replays: await countBefore(database, 'replay', replays.before),
    }
  }
  await expire(database, named('events'))
  return {
    history: await expire(database, history),
    deliveries:
      (await expire(database, deliveries)) +
      (await expire(database, stranded)) +
      (await expire(database, named('webhooks'))),
    replays: await expire(database, replays),
  }
}

const sizeOf = (config: Config) =>
  statSync(fileOf(listsUrl(config)), { throwIfNoEntry: false })?.size ?? 0
