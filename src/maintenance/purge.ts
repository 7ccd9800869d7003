import { compact, type Database, secureDelete, write } from '../db/database.ts'
import { isLocked, jobLock } from '../db/file-lock.ts'
import { addressKey, cleanAddress, isFault, parseAddress } from '../engine/address/address.ts'
import { deleteCachedAnswers } from '../jobs/cached-answers.ts'
import { deleteJobsBefore, jobsFinishedBefore } from '../jobs/delete-job.ts'
import type { Job } from '../jobs/job-store.ts'
import type { Clock } from '../platform/clock.ts'
import { maintenanceError } from './errors.ts'
import {
  countAnswersUntil,
  countBefore,
  countSpentDeliveries,
  erasePersonalData,
  findPersonalData,
  mergePersonalFeedback,
  NO_PERSONAL_DATA,
  type PersonalData,
} from './purge-data.ts'
import { expire, type Retention, retentions } from './retention-job.ts'

type PurgeServices = {
  readonly databases: readonly Database[]
  readonly clock: Clock
  readonly settings: {
    readonly dataDir: string
    readonly keepResultsMs: number
    readonly keepHistoryMs: number
  }
}

export type PurgeInput = {
  /** Counts the rows to delete without deleting them. */
  readonly isDryRun: boolean
  /** Ignores the age; unfinished jobs are kept. */
  readonly isAll: boolean
  /** Erases only this address; null to delete expired data. */
  readonly address: string | null
}

/** Rows deleted, or to delete in a dry run. */
export type Purged = {
  readonly jobs: readonly Job[]
  readonly answers: number
  readonly service: ServiceRows
  /** Data of the address to erase; null without an address. */
  readonly traces: PersonalData | null
  /** False if deleted content may stay in the journal until other processes end. */
  readonly isGone: boolean
}

/** Rows of the service other than jobs. */
type ServiceRows = {
  readonly history: number
  /** Webhook deliveries; an event is deleted with its last delivery. */
  readonly deliveries: number
  readonly replays: number
}

/**
 * Deletes expired data, or erases an address, and returns the space to the file system. Throws
 * `address_invalid` and `address_in_use`; then nothing is changed.
 */
export async function purge(services: PurgeServices, input: PurgeInput): Promise<Purged> {
  const { databases } = services
  // Searches all databases first: if one refuses, the address is erased in none.
  const found = input.address === null ? null : await findInAll(databases, input.address)
  const deleted: Deleted[] = []
  for (const [n, database] of databases.entries()) {
    deleted.push(await purgeDatabase(services, database, input, found?.[n] ?? null))
  }
  return { ...sumDeleted(deleted), traces: found === null ? null : mergeData(found) }
}

type Deleted = Omit<Purged, 'traces'>
const NOTHING: Deleted = {
  jobs: [],
  answers: 0,
  service: { history: 0, deliveries: 0, replays: 0 },
  isGone: true,
}

const sumDeleted = (all: readonly Deleted[]): Deleted =>
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
  data: PersonalData | null,
): Promise<Deleted> {
  if (!input.isDryRun) await secureDelete(database)
  const deleted = data === null ? await purgeExpired(services, database, input) : NOTHING
  if (input.isDryRun) return { ...deleted, isGone: true }
  if (data !== null) await erasePersonalData(database, data)
  return { ...deleted, isGone: await compact(database) }
}

/** A time after all others, epoch ms. */
const EVER = Number.MAX_SAFE_INTEGER

async function purgeExpired(
  { clock, settings: { dataDir, keepResultsMs, keepHistoryMs } }: PurgeServices,
  database: Database,
  { isDryRun, isAll }: PurgeInput,
): Promise<Omit<Deleted, 'isGone'>> {
  const now = clock.now()
  const finishedBefore = isAll ? EVER : now - keepResultsMs
  const keptUntil = isAll ? EVER : now
  const answers = await countAnswersUntil(database, keptUntil)
  const rules = retentions(now, database.steadyClock.now(), isAll ? now - EVER : keepHistoryMs)
  const service = await purgeService(database, rules, isDryRun)
  if (isDryRun) {
    const old = await jobsFinishedBefore(database, finishedBefore, finishedBefore, isAll)
    const jobs = old.filter(job => !isLocked(...jobLock(database.file, dataDir, job.source_key)))
    return { jobs, answers, service }
  }
  const jobs = await deleteJobsBefore(database, dataDir, finishedBefore, finishedBefore, isAll)
  await write(database, trx => deleteCachedAnswers(trx, keptUntil))
  return { jobs, answers, service }
}

async function purgeService(
  database: Database,
  rules: readonly Retention[],
  isDryRun: boolean,
): Promise<ServiceRows> {
  const named = (name: Retention['name']) => rules.find(one => one.name === name) as Retention
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
  for (const name of ['events', 'feedback', 'feedbackAddresses', 'witnesses'] as const) {
    await expire(database, named(name))
  }
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
 * Finds the data about an address in each database. Throws `address_invalid`, and `address_in_use`
 * if an unfinished job still needs it.
 */
async function findInAll(databases: readonly Database[], input: string): Promise<PersonalData[]> {
  const { text } = cleanAddress(input)
  const address = parseAddress(text)
  if (isFault(address)) {
    throw maintenanceError('address_invalid', { address: input, fault: address.message })
  }
  const target = { key: addressKey(address), text }
  const all = await Promise.all(databases.map(database => findPersonalData(database, target)))
  const unfinished = all.flatMap(({ items }) => items).filter(one => !one.finished)
  const [first] = unfinished
  if (first === undefined) return all
  throw maintenanceError('address_in_use', {
    address: text,
    jobId: first.jobId,
    isOfAccount: first.ofService,
    otherJobs: new Set(unfinished.map(one => one.jobId)).size - 1,
  })
}

/** Merges the data found in several databases. */
const mergeData = (all: readonly PersonalData[]): PersonalData =>
  all.reduce(
    (sum, { answers, witnesses, items, verifications, events, feedback }) => ({
      answers: [...sum.answers, ...answers],
      witnesses: [...sum.witnesses, ...witnesses],
      items: [...sum.items, ...items],
      verifications: [...sum.verifications, ...verifications],
      events: [...sum.events, ...events],
      feedback: mergePersonalFeedback(sum.feedback, feedback),
    }),
    NO_PERSONAL_DATA,
  )
