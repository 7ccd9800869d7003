import { type Database, write } from '../../src/db/database.ts'
import { sandboxResult } from '../../src/engine/sandbox.ts'
import { isFailure, toClass } from '../../src/engine/verdict/verdict.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { recordResults, storeRoutes } from '../../src/jobs/item-store.ts'
import { countResults, startJob } from '../../src/jobs/job-state.ts'
import { createJob, type Job, type NewJob, readJob } from '../../src/jobs/job-store.ts'
import { queueJobIn } from './queue-job.ts'

export type Seed = Partial<NonNullable<NewJob['owner']>> & {
  readonly id?: string
  readonly texts: readonly string[]
  readonly source?: object
  /** Number of rows with a result; defaults to all. */
  readonly done?: number
}

/** Adds the ID of their job to rows. */
export const ofJob = <Row extends object>(jobId: string, rows: readonly Row[]) =>
  rows.map(row => ({ jobId, ...row }))

/**
 * Creates a job whose first rows have simulated results, chosen by the prefix of their addresses.
 */
export async function seedJob(database: Database, seed: Seed): Promise<Job> {
  const { id = 'job_a', texts, source = {}, done = texts.length, ...given } = seed
  const owner = { accountId: 'acc_1', keyId: 'key_1', name: null, sandbox: false, ...given }
  await createJob(database, {
    id,
    sourceKey: id,
    source: JSON.stringify(source),
    owner: { type: 'batch', ...owner },
  })
  const items = texts.map((text, n) => ({ position: n + 1, ...parseRow(text, n + 1) }))
  for (let at = 0; at < items.length; at += 5_000) {
    await addItems(database, id, items.slice(at, at + 5_000))
  }
  await write(database, trx => queueJobIn(trx, id, { now: database.clock.now() }))
  if (done > 0) await giveResults(database, id, done)
  return readJob(database, id)
}

/**
 * Creates a job whose rows are assigned to these operators in order; null leaves a row unassigned.
 */
export async function seedFiledJob(
  database: Database,
  id: string,
  operators: readonly (string | null)[],
): Promise<void> {
  await seedJob(database, { id, texts: operators.map((_, n) => `u${n}@a.test`), done: 0 })
  const routed = operators.flatMap((operator, n) =>
    operator === null ? [] : [{ position: n + 1, operator, domain: 'a.test', route: '{}' }],
  )
  await write(database, trx => storeRoutes(trx, { jobId: id, routed, now: database.clock.now() }))
}

/** Stores simulated results for the rows from `before` to `done`. */
export async function giveResults(
  database: Database,
  id: string,
  done: number,
  before = 0,
): Promise<void> {
  await startJob(database, id)
  for (let at = before; at < done; at += 5_000) {
    await record(database, id, at, Math.min(at + 5_000, done))
  }
}

/** Stores results for the rows after position `after`, up to `last`. */
async function record(database: Database, id: string, after: number, last: number): Promise<void> {
  const { clock } = database
  const rows = await database.db
    .selectFrom('item')
    .select(['position', 'text', 'copies'])
    .where('job_id', '=', id)
    .where('state', '<>', 'same')
    .where('position', '>', after)
    .where('position', '<=', last)
    .execute()
  const counts = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0, failed: 0 }
  const recorded = rows.map(({ position, text, copies }) => {
    const result = sandboxResult(clock, text)
    counts[toClass(result.verdict)] += copies
    if (isFailure(result.verdict)) counts.failed += copies
    return { position, result: JSON.stringify(result), class: toClass(result.verdict) }
  })
  await write(database, async trx => {
    await recordResults(trx, ofJob(id, recorded))
    await countResults(trx, new Map([[id, counts]]), clock.now())
  })
}

/** An address of each class, and one that fails with an internal error. */
export const MIXED = [
  'valid@a.example',
  'risky@a.example',
  'invalid@a.example',
  'timeout@a.example',
  'error-server@a.example',
  'role@a.example',
]
