import { compact, type Database, secureDelete, write } from '../db/database.ts'
import { isLocked, jobLockName } from '../db/file-lock.ts'
import { addressKey, cleanAddress, isFault, parseAddress } from '../engine/address/address.ts'
import { deleteCachedAnswers } from '../jobs/cached-answers.ts'
import { deleteJobsBefore, jobsFinishedBefore } from '../jobs/delete-job.ts'
import type { Job } from '../jobs/job-store.ts'
import type { Clock } from '../platform/clock.ts'
import { OperationError } from '../platform/operation-error.ts'
import {
  countAnswersUntil,
  countBefore,
  countSpentDeliveries,
  erasePersonalData,
  findPersonalData,
  NO_PERSONAL_DATA,
  type PersonalData,
} from './purge-data.ts'
import { expire, type Retention, retentions } from './retention.ts'

export type PurgeServices = {
  readonly databases: readonly Database[]
  readonly clock: Clock
  readonly settings: {
    readonly dataDir: string
    readonly keepResultsMs: number
    readonly keepHistoryMs: number
  }
}

export type PurgeInput = {
  /** Counts what would go, and deletes nothing. */
  readonly isDryRun: boolean
  /** However young it is; lists that are not finished stay. */
  readonly isAll: boolean
  /** Erases this address alone, wherever it stands; null: deletes what is old. */
  readonly address: string | null
}

/** What was deleted, or would be. */
export type Purged = {
  readonly jobs: readonly Job[]
  readonly answers: number
  readonly service: ServiceRows
  /** Of the address that was to be erased; null: none was. */
  readonly traces: PersonalData | null
  /** False: what was deleted may stand in the journal until other processes end. */
  readonly isGone: boolean
}

/** What the service keeps beside lists. */
export type ServiceRows = {
  readonly history: number
  /** Of events to webhooks; an event goes with the last of its own. */
  readonly deliveries: number
  readonly replays: number
}

/**
 * Deletes what is kept for longer than the settings say, or erases an address, and gives the room back to the disk.
 * Throws as `findTraces` does; then nothing is changed.
 */
export async function purge(services: PurgeServices, input: PurgeInput): Promise<Purged> {
  const { databases } = services
  // Of all of them first: what is refused for one is erased in none.
  const traces = input.address === null ? null : await findTraces(databases, input.address)
  const gone: Gone[] = []
  for (const [n, database] of databases.entries()) {
    gone.push(await purgeDatabase(services, database, input, traces?.[n] ?? null))
  }
  return { ...sumOf(gone), traces: traces === null ? null : sumOfTraces(traces) }
}

type Gone = Omit<Purged, 'traces'>
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

async function purgeDatabase(
  services: PurgeServices,
  database: Database,
  input: PurgeInput,
  traces: PersonalData | null,
): Promise<Gone> {
  if (!input.isDryRun) await secureDelete(database)
  const gone = traces === null ? await purgeOld(services, database, input) : NOTHING
  if (input.isDryRun) return { ...gone, isGone: true }
  if (traces !== null) await erasePersonalData(database, traces)
  return { ...gone, isGone: await compact(database) }
}

/** Later than anything. */
const EVER = Number.MAX_SAFE_INTEGER

async function purgeOld(
  { clock, settings: { dataDir, keepResultsMs, keepHistoryMs } }: PurgeServices,
  database: Database,
  { isDryRun, isAll }: PurgeInput,
): Promise<Omit<Gone, 'isGone'>> {
  const now = clock.now()
  const finishedBefore = isAll ? EVER : now - keepResultsMs
  const keptUntil = isAll ? EVER : now
  const answers = await countAnswersUntil(database, keptUntil)
  const retained = retentions(now, isAll ? now - EVER : keepHistoryMs)
  const service = await purgeService(database, retained, isDryRun)
  if (isDryRun) {
    const old = await jobsFinishedBefore(database, finishedBefore)
    const jobs = old.filter(job => !isLocked(dataDir, jobLockName(job.source_key)))
    return { jobs, answers, service }
  }
  const jobs = await deleteJobsBefore(database, dataDir, finishedBefore)
  await write(database, trx => deleteCachedAnswers(trx, keptUntil))
  return { jobs, answers, service }
}

async function purgeService(
  database: Database,
  retained: readonly Retention[],
  isDryRun: boolean,
): Promise<ServiceRows> {
  const named = (name: Retention['name']) => retained.find(one => one.name === name) as Retention
  const [history, replays] = [named('history'), named('replays')]
  const [deliveries, stranded] = [named('deliveries'), named('stranded')]
  if (isDryRun) {
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

/**
 * Where an address stands, in each of the databases. Throws `address_invalid`, and `address_in_use` where a list that is
 * not finished holds it: its rows are still needed.
 */
async function findTraces(databases: readonly Database[], given: string): Promise<PersonalData[]> {
  const { text } = cleanAddress(given)
  const address = parseAddress(text)
  if (isFault(address)) {
    throw new OperationError('address_invalid', { address: given, fault: address.message })
  }
  const asked = { key: addressKey(address), text }
  const all = await Promise.all(databases.map(database => findPersonalData(database, asked)))
  const unfinished = all.flatMap(({ items }) => items).filter(one => !one.finished)
  const [first] = unfinished
  if (first === undefined) return all
  throw new OperationError('address_in_use', {
    ...{ address: text, jobId: first.jobId, isOfAccount: first.ofService },
    otherJobs: new Set(unfinished.map(one => one.jobId)).size - 1,
  })
}

/** What all of them have together. */
const sumOfTraces = (all: readonly PersonalData[]): PersonalData =>
  all.reduce(
    (sum, { answers, items, verifications, events }) => ({
      answers: [...sum.answers, ...answers],
      items: [...sum.items, ...items],
      verifications: [...sum.verifications, ...verifications],
      events: [...sum.events, ...events],
    }),
    NO_PERSONAL_DATA,
  )
