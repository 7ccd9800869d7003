import { creditsLeft, reserveCredits } from '../../accounts/credits/credit-store.ts'
import { periodStart } from '../../accounts/plan.ts'
import type { Database, Trx } from '../../db/database.ts'
import { nextChunk } from '../../db/paging.ts'
import { type Address, cleanAddress } from '../../engine/address/address.ts'
import type { AddressFlags } from '../../engine/address/classifier.ts'
import { type ExternalResult, fromExternal } from '../../engine/verdict/external.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Random } from '../../platform/random.ts'
import { deleteJob } from '../delete-job.ts'
import { createJob, type Job } from '../job-store.ts'
import type { JobType } from '../tables.ts'
import { ImportCounter } from './import-counter.ts'
import {
  type AdjustResults,
  addItems,
  addKept,
  countKeptIn,
  type KeptCounts,
  markCopies,
  type NewItem,
  NONE_KEPT,
  queueJobIn,
  type Repeated,
} from './item-import.ts'

export type Submission = {
  readonly accountId: string
  readonly keyId: string
  readonly type: Exclude<JobType, 'list'>
  readonly name: string | null
  readonly sandbox: boolean
  /** JSON of the format of the rows, needed to write the results in the same format. */
  readonly source: string
  /** False if duplicate rows are verified separately. */
  readonly deduplicate: boolean
}

export type Row = {
  readonly text: string
  /** JSON of the data returned with the result. */
  readonly cells?: string | null
  /** The result of another service that the row keeps; left out or null if it is verified. */
  readonly external?: ExternalResult | null
}

/** A job with all its rows stored, not yet visible to its account. */
export type Loaded = {
  readonly jobId: string
  readonly submission: Submission
  readonly total: number
  /** Number of rows that are malformed addresses. */
  readonly malformed: number
  /** Number of rows without an address. */
  readonly noAddress: number
  /** Number of rows that duplicate an earlier one. */
  readonly duplicates: number
  /** Number of addresses to verify, at most one credit each; null if credits are unlimited. */
  readonly addressCount: number | null
  /** Number of addresses by domain. */
  readonly domains: ReadonlyMap<string, number>
  /** Counts of the rows that already have a result; left out if none has. */
  readonly kept?: KeptCounts
}

type LoadDeps = {
  readonly database: Database
  readonly random: Random
  /** Lets requests go before the import; left out if the process serves none. */
  readonly priority?: Pick<Priority, 'yieldToRequests'>
  /** Only for lists with external results. */
  readonly external?: ExternalDeps
}

export type ExternalDeps = {
  /** Rows that the lists of the owner block, or that are spam traps, are verified. */
  readonly classify: (address: Address) => AddressFlags
  /** Applies own reports to results that are kept. */
  readonly adjust: AdjustResults
}

/**
 * Rows read and stored per turn of the event loop, in one transaction, while requests are served:
 * about 6 ms and a commit.
 */
const IMPORT_ROWS_MAX = 500
/** The same for a process that serves no requests. */
const IMPORT_ROWS_MAX_ALONE = 2_000
/** Rows scanned per statement when copies are counted: 10 ms. */
const CHUNK_MAX = 20_000
/** Maximum text per transaction, excluding its last row: a row of a file may have a megabyte. */
const CHUNK_LENGTH_MAX = 1024 * 1024

/**
 * Stores the rows of a list as a job in state `loading`; after a crash the next start deletes it.
 * Returns null and deletes the job as soon as more than `addressesMax` addresses would be verified.
 */
export async function loadJob(
  deps: LoadDeps,
  submission: Submission,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  addressesMax: number | null,
): Promise<Loaded | null> {
  const jobId = newId(submission, deps.random)
  await createJob(deps.database, toJob(jobId, submission))
  try {
    const counter = new ImportCounter({ deduplicate: submission.deduplicate, random: deps.random })
    const importer = new RowImporter(deps, jobId, counter)
    for await (const batch of rows) {
      await importer.add(batch)
      if (addressesMax !== null && counter.addressCount > addressesMax) {
        await deleteJob(deps.database, jobId)
        return null
      }
    }
    await importer.end()
    const { total, malformed, noAddress, duplicates, domains } = counter
    const addressCount = addressesMax === null ? null : counter.addressCount
    const kept = await importer.countKept()
    const counts = { total, malformed, noAddress, duplicates, addressCount, domains, kept }
    return { jobId, submission, ...counts }
  } catch (error) {
    await dropLoading(deps.database, jobId)
    throw error
  }
}

/**
 * Reserves the credits and queues the job; call `take` of the worker after the commit. Returns the
 * credits left if they are not enough.
 */
export async function queueLoaded(
  trx: Trx,
  { jobId, submission, total, malformed, noAddress, duplicates, addressCount, kept }: Loaded,
  o: { readonly now: number; readonly creditsPerDay: number | null },
): Promise<{ readonly job: Job } | { readonly creditsLeft: number }> {
  const { accountId } = submission
  const period = periodStart(o.now)
  const reservation =
    addressCount === null || addressCount === 0 ? null : { amount: addressCount, period }
  if (reservation !== null) {
    const limit = o.creditsPerDay
    if (!(await reserveCredits(trx, { accountId, ...reservation, limit }))) {
      return { creditsLeft: await creditsLeft(trx, { accountId, period, limit: limit ?? 0 }) }
    }
  }
  const counted = { total, duplicates }
  const options = { now: o.now, counted, malformed, noAddress, kept, reservation }
  return { job: await queueJobIn(trx, jobId, options) }
}

/**
 * Deletes a job that was not queued. A job whose commit failed may be queued nevertheless; it
 * stays.
 */
export async function dropLoading(database: Database, jobId: string): Promise<void> {
  await deleteJob(database, jobId, job => job.state === 'loading')
}

/** 103 bits of entropy: an ID is not a secret, but must not be guessable. */
const ID_LENGTH = 20

export function newId({ type, sandbox }: Pick<Submission, 'type' | 'sandbox'>, random: Random) {
  const prefix = type === 'single' ? 'ver_' : 'job_'
  return `${prefix}${sandbox ? 'sbx_' : ''}${random.token(ID_LENGTH)}`
}

export const toJob = (id: string, { source, ...submission }: Submission) => {
  const { accountId, keyId, type, name, sandbox } = submission
  // Lists of the service are never resumed by content, so each is its own source.
  return { id, sourceKey: id, source, owner: { accountId, keyId, type, name, sandbox } }
}

/**
 * Stores the rows of a list as items of a job that is loading, with their duplicates marked. The
 * counter has their numbers.
 */
export class RowImporter {
  readonly #database: Database
  readonly #yieldToRequests: () => Promise<void>
  readonly #jobId: string
  readonly #counter: ImportCounter
  readonly #rowsMax: number
  readonly #external: ExternalDeps | null
  #hasKept = false
  /** Rows stored or counted since requests went first. */
  #rowsInTurn = 0
  #chunk: NewItem[] = []
  #length = 0

  constructor(
    { database, priority, external }: Omit<LoadDeps, 'random'>,
    jobId: string,
    counter: ImportCounter,
  ) {
    this.#database = database
    this.#yieldToRequests = () => priority?.yieldToRequests('import') ?? yieldToEventLoop()
    this.#jobId = jobId
    this.#external = external ?? null
    this.#counter = counter
    this.#rowsMax = priority === undefined ? IMPORT_ROWS_MAX_ALONE : IMPORT_ROWS_MAX
  }

  async add(rows: readonly Row[]): Promise<void> {
    for (const row of rows) {
      this.#addRow(row)
      if (this.#isFull) await this.#store()
    }
  }

  /** Stores the remaining rows and the numbers of copies. */
  async end(): Promise<void> {
    await this.#store()
    let chunk: Repeated[] = []
    const flush = async () => {
      if (chunk.length === 0) return
      await this.#startWork(chunk.length)
      await markCopies(this.#database, this.#jobId, chunk)
      chunk = []
    }
    for (const row of this.#counter.repeated()) {
      const first = chunk[0]?.position ?? row.position
      if (chunk.length === this.#rowsMax || row.position - first > CHUNK_MAX) await flush()
      chunk.push(row)
    }
    await flush()
  }

  async #store(): Promise<void> {
    const chunk = this.#chunk
    this.#chunk = []
    this.#length = 0
    if (chunk.length === 0) return
    await this.#startWork(chunk.length)
    await addItems(this.#database, this.#jobId, chunk, this.#external?.adjust)
  }

  get #isFull(): boolean {
    return this.#chunk.length >= this.#rowsMax || this.#length >= CHUNK_LENGTH_MAX
  }

  /** Counts the rows that kept an external result, with their duplicates. Call it after `end`. */
  async countKept(): Promise<KeptCounts> {
    let kept = NONE_KEPT
    if (!this.#hasKept) return kept
    const size = nextChunk(this.#database)
    for (let after = 0; after < this.#counter.total; after += size) {
      const range = { jobId: this.#jobId, after, end: after + size }
      await this.#startWork(Math.min(size, this.#counter.total - after))
      kept = addKept(kept, await countKeptIn(this.#database.reader, range))
    }
    return kept
  }

  /**
   * Lets requests go first if, with these rows, more than one turn of the event loop would be used.
   * The import of a short list is part of a request, and waits for none.
   */
  async #startWork(rows: number): Promise<void> {
    if (this.#rowsInTurn > 0 && this.#rowsInTurn + rows > this.#rowsMax) {
      await this.#yieldToRequests()
      this.#rowsInTurn = 0
    }
    this.#rowsInTurn += rows
  }

  #addRow({ text, cells = null, external = null }: Row) {
    const result = external === null ? null : this.#toKept(text, external)
    const {
      position,
      text: clean,
      dedupeKey,
      duplicateOf,
    } = this.#counter.add(text, result !== null)
    const kept = duplicateOf === null ? result : null
    this.#hasKept ||= kept !== null
    this.#chunk.push({ position, text: clean, dedupeKey, cells, duplicateOf, kept })
    this.#length += clean.length + (cells?.length ?? 0)
  }

  /** Returns the result that a row keeps; null if it is verified. */
  #toKept(cell: string, external: ExternalResult): Result | null {
    const { text, address } = cleanAddress(cell)
    if (address === null) return null
    const flags = this.#external?.classify(address) ?? null
    if (flags?.blocked || flags?.spamTrap) return null
    return fromExternal({ text, address, flags }, external)
  }
}
