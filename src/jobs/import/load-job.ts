import { creditsLeft, reserveCredits } from '../../accounts/credits/credit-store.ts'
import { periodStart } from '../../accounts/plan.ts'
import type { Database, Trx } from '../../db/database.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Random } from '../../platform/random.ts'
import { deleteJob } from '../delete-job.ts'
import { createJob, type Job } from '../job-store.ts'
import type { JobType } from '../tables.ts'
import { ImportCounter } from './import-counter.ts'
import { addItems, markCopies, type NewItem, queueJobIn, type Repeated } from './item-import.ts'

export type Submission = {
  readonly accountId: string
  readonly keyId: string
  readonly type: Exclude<JobType, 'list'>
  readonly name: string | null
  readonly sandbox: boolean
  /** JSON: what is needed to write its results as its rows were written. */
  readonly source: string
  /** False: a row that comes again is asked again. */
  readonly deduplicate: boolean
}

export type Row = {
  readonly text: string
  /** JSON of what goes back with its result. */
  readonly cells?: string | null
}

/** A job whose rows are all there and that nobody sees yet. */
export type Loaded = {
  readonly jobId: string
  readonly submission: Submission
  readonly total: number
  /** Rows that are no address. */
  readonly malformed: number
  /** Rows that repeat another one. */
  readonly duplicates: number
  /** Addresses that will be asked: one credit each, at most. Null: there is no limit to it. */
  readonly asked: number | null
  /** Addresses by domain. */
  readonly domains: ReadonlyMap<string, number>
}

type Parts = {
  readonly database: Database
  readonly random: Random
  /** Requests that go first; left out: there are none. */
  readonly priority?: Pick<Priority, 'yieldToRequests'>
}

/** Rows that are read and stored between two turns of the event loop, in one transaction: some 6 ms and a commit. */
const IMPORT_ROWS_MAX = 500
/** Rows that are looked through in one go for those that come again: 10 ms. */
const CHUNK_MAX = 20_000
/** Text of one transaction, but for its last row: a row of a file may have a megabyte. */
const CHUNK_LENGTH_MAX = 1024 * 1024

/**
 * Stores the rows of a list as a job that is `loading`: what a crash leaves of it goes at the next start. Gives null,
 * and leaves nothing, as soon as more than `askedMax` addresses would be asked.
 */
export async function loadJob(
  deps: Parts,
  submission: Submission,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  askedMax: number | null,
): Promise<Loaded | null> {
  const jobId = newId(submission, deps.random)
  await createJob(deps.database, toJob(jobId, submission))
  try {
    const tally = new ImportCounter({ deduplicate: submission.deduplicate, random: deps.random })
    const loading = new Loading(deps, jobId, tally)
    for await (const batch of rows) {
      await loading.take(batch)
      if (askedMax !== null && tally.asked > askedMax) {
        await deleteJob(deps.database, jobId)
        return null
      }
    }
    await loading.end()
    const { total, malformed, duplicates, domains } = tally
    const asked = askedMax === null ? null : tally.asked
    return { jobId, submission, total, malformed, duplicates, asked, domains }
  } catch (error) {
    await dropLoading(deps.database, jobId)
    throw error
  }
}

/** Sets the credits aside and makes the job one that is worked on; call `take` of the worker when that is durable. */
export async function queueLoaded(
  trx: Trx,
  { jobId, submission, total, malformed, duplicates, asked }: Loaded,
  o: { readonly now: number; readonly creditsPerDay: number | null },
): Promise<{ readonly job: Job } | { readonly creditsLeft: number }> {
  const { accountId } = submission
  const period = periodStart(o.now)
  const hold = asked === null || asked === 0 ? null : { amount: asked, period }
  if (hold !== null) {
    const limit = o.creditsPerDay
    if (!(await reserveCredits(trx, { accountId, ...hold, limit }))) {
      return { creditsLeft: await creditsLeft(trx, { accountId, period, limit: limit ?? 0 }) }
    }
  }
  const counted = { total, duplicates }
  return { job: await queueJobIn(trx, jobId, { now: o.now, counted, malformed, hold }) }
}

/** Takes away a job that did not come to be queued. One whose commit failed may be durable all the same: it stays. */
export async function dropLoading(database: Database, jobId: string): Promise<void> {
  await deleteJob(database, jobId, job => job.state === 'loading')
}

/** 103 bits of chance: an id is no secret, but nobody should come upon one. */
const ID_LENGTH = 20

export function newId({ type, sandbox }: Pick<Submission, 'type' | 'sandbox'>, random: Random) {
  const prefix = type === 'single' ? 'ver_' : 'job_'
  return `${prefix}${sandbox ? 'sbx_' : ''}${random.token(ID_LENGTH)}`
}

export const toJob = (id: string, { source, ...submission }: Submission) => {
  const { accountId, keyId, type, name, sandbox } = submission
  // Lists of the service are never resumed by their content: each is its own source.
  return { id, sourceKey: id, source, owner: { accountId, keyId, type, name, sandbox } }
}

class Loading {
  readonly #database: Database
  readonly #giveWay: () => Promise<void>
  readonly #jobId: string
  readonly #tally: ImportCounter
  #chunk: NewItem[] = []
  #length = 0

  constructor({ database, priority }: Parts, jobId: string, tally: ImportCounter) {
    this.#database = database
    this.#giveWay = () => priority?.yieldToRequests('import') ?? yieldToEventLoop()
    this.#jobId = jobId
    this.#tally = tally
  }

  async take(rows: readonly Row[]): Promise<void> {
    for (const row of rows) {
      this.#add(row)
      if (!this.#isFull) continue
      await this.#store()
      await this.#giveWay()
    }
  }

  /** What is left is stored, and how often rows stand in the list. */
  async end(): Promise<void> {
    await this.#store()
    let chunk: Repeated[] = []
    const note = async () => {
      if (chunk.length > 0) await markCopies(this.#database, this.#jobId, chunk)
      chunk = []
      await this.#giveWay()
    }
    for (const row of this.#tally.repeated()) {
      const first = chunk[0]?.position ?? row.position
      if (chunk.length === IMPORT_ROWS_MAX || row.position - first > CHUNK_MAX) await note()
      chunk.push(row)
    }
    await note()
  }

  async #store(): Promise<void> {
    const chunk = this.#chunk
    this.#chunk = []
    this.#length = 0
    if (chunk.length > 0) await addItems(this.#database, this.#jobId, chunk)
  }

  get #isFull(): boolean {
    return this.#chunk.length >= IMPORT_ROWS_MAX || this.#length >= CHUNK_LENGTH_MAX
  }

  #add({ text, cells = null }: Row) {
    const row = this.#tally.take(text)
    this.#chunk.push({ ...row, cells })
    this.#length += row.text.length + (cells?.length ?? 0)
  }
}
