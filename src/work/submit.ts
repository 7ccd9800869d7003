import { periodStart } from '../account/plan.ts'
import { breathe } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { isAddress, toEntry } from '../job/submission.ts'
import { holdCredits, readCredit } from '../store/account/credits.ts'
import type { Database, Trx } from '../store/database.ts'
import { createJob, findJob, type Job } from '../store/job/jobs.ts'
import { addItems, type NewItem, queueJobIn } from '../store/job/loading.ts'
import { deleteJob } from '../store/job/removal.ts'
import type { JobType } from '../store/schema.ts'

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
  /** Addresses that will be asked: one credit each, at most. Null: it was not counted, as there is no limit to it. */
  readonly asked: number | null
}

type Parts = { readonly database: Database; readonly random: Random }

/** Rows stored in one transaction: a commit waits for the disk, and nothing else runs while it is filled. */
const CHUNK_ROWS_MAX = 2_000
/** Text of one transaction, but for its last row: a row of a file may have a megabyte. */
const CHUNK_LENGTH_MAX = 1024 * 1024

/**
 * Stores the rows of a list as a job that is `loading`: what a crash leaves of it goes at the next start. Gives null,
 * and leaves nothing, as soon as more than `askedMax` addresses would be asked.
 */
export async function loadJob(
  parts: Parts,
  submission: Submission,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  askedMax: number | null,
): Promise<Loaded | null> {
  const jobId = newId(submission, parts.random)
  await createJob(parts.database, toJob(jobId, submission))
  try {
    const counter = askedMax === null ? null : new Counter(submission.deduplicate)
    const loading = new Loading(parts.database, jobId, counter)
    for await (const batch of rows) {
      await loading.take(batch)
      if (askedMax !== null && counter !== null && counter.asked > askedMax) {
        await deleteJob(parts.database, jobId)
        return null
      }
    }
    await loading.store()
    const { total, malformed } = loading
    return { jobId, submission, total, malformed, asked: counter?.asked ?? null }
  } catch (error) {
    await dropLoading(parts.database, jobId)
    throw error
  }
}

/** Sets the credits aside and makes the job one that is worked on; call `take` of the worker when that is durable. */
export async function queueLoaded(
  trx: Trx,
  { jobId, submission, malformed, asked }: Loaded,
  o: { readonly now: number; readonly creditsPerDay: number | null },
): Promise<{ readonly job: Job } | { readonly creditsLeft: number }> {
  const { accountId, deduplicate } = submission
  const period = periodStart(o.now)
  const hold = asked === null || asked === 0 ? null : { amount: asked, period }
  if (hold !== null) {
    const limit = o.creditsPerDay
    if (!(await holdCredits(trx, { accountId, ...hold, limit }))) {
      return { creditsLeft: await creditsLeft(trx, accountId, period, limit) }
    }
  }
  return { job: await queueJobIn(trx, jobId, { now: o.now, deduplicate, malformed, hold }) }
}

/** Takes away a job that did not come to be queued. One whose commit failed may be durable all the same: it stays. */
export async function dropLoading(database: Database, jobId: string): Promise<void> {
  const job = await findJob(database, jobId)
  if (job?.state === 'loading') await deleteJob(database, jobId)
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

async function creditsLeft(
  trx: Trx,
  accountId: string,
  period: number,
  limit: number | null,
): Promise<number> {
  const { used, held } = await readCredit(trx, accountId, period)
  return Math.max(0, (limit ?? 0) - used - held)
}

/** Counts the addresses that will be asked. It knows each of them, so it is for lists that a limit keeps short. */
class Counter {
  /** Null: rows that come again count again. */
  readonly #seen: Set<string> | null
  asked = 0

  constructor(deduplicate: boolean) {
    this.#seen = deduplicate ? new Set() : null
  }

  add(dedupeKey: string) {
    if (this.#seen?.has(dedupeKey)) return
    this.#seen?.add(dedupeKey)
    this.asked++
  }
}

class Loading {
  readonly #database: Database
  readonly #jobId: string
  readonly #counter: Counter | null
  #chunk: NewItem[] = []
  #length = 0
  total = 0
  malformed = 0

  constructor(database: Database, jobId: string, counter: Counter | null) {
    this.#database = database
    this.#jobId = jobId
    this.#counter = counter
  }

  async take(rows: readonly Row[]): Promise<void> {
    for (const row of rows) this.#add(row)
    const isFull = this.#chunk.length >= CHUNK_ROWS_MAX || this.#length >= CHUNK_LENGTH_MAX
    if (isFull) await this.store()
    // Reading addresses takes time as well.
    await breathe()
  }

  async store(): Promise<void> {
    const chunk = this.#chunk
    this.#chunk = []
    this.#length = 0
    if (chunk.length > 0) await addItems(this.#database, this.#jobId, chunk)
  }

  #add({ text, cells = null }: Row) {
    const entry = toEntry(text)
    this.#chunk.push({ position: ++this.total, ...entry, cells })
    this.#length += entry.text.length + (cells?.length ?? 0)
    if (!isAddress(entry)) this.malformed++
    else this.#counter?.add(entry.dedupeKey)
  }
}
