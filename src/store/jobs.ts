import { type Kysely, sql, type Transaction } from 'kysely'
import { EvError } from '../base/error.ts'
import type { Class } from '../verdict/verdict.ts'
import { type Database, write } from './database.ts'
import { listLock, lockJob } from './lock.ts'
import type { JobTable, JobType, Schema } from './schema.ts'

export type Job = JobTable

export type NewJob = {
  readonly id: string
  readonly sourceKey: string
  readonly source: string
  /** Left out: a list of the command line. */
  readonly owner?: {
    readonly accountId: string
    readonly keyId: string
    readonly type: Exclude<JobType, 'list'>
    readonly name: string | null
    readonly sandbox: boolean
  }
}

/** Begins a job; its items follow by `addItems`, and `queueJob` ends the loading. */
export async function createJob(database: Database, job: NewJob): Promise<void> {
  const { owner } = job
  await write(database, trx =>
    trx
      .insertInto('job')
      .values({
        id: job.id,
        state: 'loading',
        source_key: job.sourceKey,
        source: job.source,
        account_id: owner?.accountId ?? null,
        key_id: owner?.keyId ?? null,
        type: owner?.type ?? 'list',
        name: owner?.name ?? null,
        sandbox: owner?.sandbox ? 1 : 0,
        malformed: 0,
        failed: 0,
        held: 0,
        credit_period: null,
        started_at: null,
        error: null,
        total: 0,
        done: 0,
        duplicates: 0,
        deliverable: 0,
        risky: 0,
        undeliverable: 0,
        unknown: 0,
        created_at: database.clock.now(),
        finished_at: null,
        written_at: null,
      })
      .execute(),
  )
}

/** Notes anew what finishing a job needs: the newest command counts. */
export async function setSource(database: Database, jobId: string, source: string): Promise<void> {
  await write(database, trx =>
    trx.updateTable('job').set({ source }).where('id', '=', jobId).execute(),
  )
}

export type NewItem = {
  readonly position: number
  readonly text: string
  readonly dedupeKey: string
}

export async function addItems(
  database: Database,
  jobId: string,
  items: readonly NewItem[],
): Promise<void> {
  await write(database, trx =>
    // Many rows as one parameter: a statement for each row, or of thousands of parameters, costs ten times as much.
    sql`
      insert into item (job_id, position, text, dedupe_key, state, copies, due_at, tries)
      select ${jobId}, cast(value ->> 'position' as bigint), value ->> 'text',
        value ->> 'dedupeKey', 'queued', 1, 0, 0
      from json_each(${JSON.stringify(items)})`.execute(trx),
  )
}

/** All items are there: duplicates are told apart, and the work may begin. */
export async function queueJob(database: Database, jobId: string): Promise<Job> {
  return write(database, async trx => {
    await sql`
      update item set
        state = case when item.position = first.position then 'queued' else 'same' end,
        same_as = case when item.position = first.position then null else first.position end,
        copies = case when item.position = first.position then first.copies else 0 end
      from (select dedupe_key, min(position) as position, count(*) as copies from item
            where job_id = ${jobId} group by dedupe_key having count(*) > 1) as first
      where item.job_id = ${jobId} and item.dedupe_key = first.dedupe_key`.execute(trx)
    const count = await trx
      .selectFrom('item')
      .select(eb => eb.fn.countAll<number>().as('total'))
      .select(sql<number>`coalesce(sum(case when state = 'same' then 1 else 0 end), 0)`.as('same'))
      .where('job_id', '=', jobId)
      .executeTakeFirstOrThrow()
    const [total, duplicates] = [Number(count.total), Number(count.same)]
    refuseCancelled(await jobIn(trx, jobId))
    const job = await trx
      .updateTable('job')
      .set({ state: 'queued', total, duplicates, done: 0 })
      .where('id', '=', jobId)
      .returningAll()
      .executeTakeFirstOrThrow()
    return total === 0 ? finishJob(trx, jobId, database.clock.now()) : job
  })
}

/** The latest job made from this source whose output is not written yet. */
export async function unfinishedJob({ db }: Database, sourceKey: string): Promise<Job | null> {
  const job = await db
    .selectFrom('job')
    .selectAll()
    .where('source_key', '=', sourceKey)
    .where('written_at', 'is', null)
    .where('state', 'in', ['loading', 'queued', 'processing', 'completed'])
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  return job ?? null
}

/** The job of that id, if there is one. */
export async function findJob({ db }: Database, jobId: string): Promise<Job | null> {
  return (await db.selectFrom('job').selectAll().where('id', '=', jobId).executeTakeFirst()) ?? null
}

export async function readJob({ db }: Database, jobId: string): Promise<Job> {
  return jobIn(db, jobId)
}

/** Notes that the output of a job is written whole. */
export async function markWritten(database: Database, jobId: string): Promise<void> {
  const written_at = database.clock.now()
  await write(database, trx =>
    trx.updateTable('job').set({ written_at }).where('id', '=', jobId).execute(),
  )
}

/**
 * Cancels a job that is not finished, for good: it takes no more results, and the same list is a new job. A
 * process that works on it hears of it with its next commit, as an error. False when it was finished already.
 */
export async function cancelJob(database: Database, jobId: string): Promise<boolean> {
  const { numUpdatedRows } = await write(database, trx =>
    trx
      .updateTable('job')
      .set({ state: 'cancelled', finished_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('finished_at', 'is', null)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

/** Throws when the job was cancelled: whoever works on it has to end. */
export function refuseCancelled({ id, state, done, total }: Job): void {
  if (state !== 'cancelled') return
  throw new EvError(
    'interrupted',
    `The list was cancelled by “ev jobs cancel ${id}” with ${done} of ${total} rows done. The same command starts it anew.`,
  )
}

/** The jobs that were finished before a time, epoch ms: completed, cancelled or failed. */
export function jobsFinishedBefore({ db }: Database, before: number): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where('finished_at', '<', before)
    .orderBy('created_at')
    .execute()
}

/** Removes the jobs that were finished before a time, epoch ms, but for those that a process works on. Gives the removed. */
export async function deleteJobsBefore(
  database: Database,
  dataDir: string,
  before: number,
): Promise<Job[]> {
  const deleted: Job[] = []
  for (const job of await jobsFinishedBefore(database, before)) {
    // One that is finished may be about to be written.
    const lock = lockJob(dataDir, listLock(job.source_key))
    if (lock === null) continue
    try {
      await deleteJob(database, job.id)
      deleted.push(job)
    } finally {
      lock.release()
    }
  }
  return deleted
}

/** Removes a job with all its items. */
export async function deleteJob(database: Database, jobId: string): Promise<void> {
  await write(database, async trx => {
    await trx.deleteFrom('item').where('job_id', '=', jobId).execute()
    await trx.deleteFrom('job').where('id', '=', jobId).execute()
  })
}

/** Takes a job up, for the first time or after a stop: what was under way then is asked again. */
export async function startJob(database: Database, jobId: string): Promise<Job> {
  return write(database, async trx => {
    refuseCancelled(await jobIn(trx, jobId))
    await trx
      .updateTable('item')
      .set({ state: 'routed' })
      .where('job_id', '=', jobId)
      .where('state', '=', sql.lit('probing'))
      .execute()
    await trx
      .updateTable('job')
      .set({ state: 'processing' })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .execute()
    return jobIn(trx, jobId)
  })
}

/**
 * Counts results into their job and finishes it with the last one; call it in the transaction that writes
 * them. Throws when the job was cancelled meanwhile, so that nothing of them is written.
 */
export async function countResults(
  trx: Transaction<Schema>,
  jobId: string,
  counts: Readonly<Record<Class, number>>,
  now: number,
): Promise<Job> {
  const added = counts.deliverable + counts.risky + counts.undeliverable + counts.unknown
  refuseCancelled(await jobIn(trx, jobId))
  const job = await trx
    .updateTable('job')
    .set(eb => ({
      done: eb('done', '+', added),
      deliverable: eb('deliverable', '+', counts.deliverable),
      risky: eb('risky', '+', counts.risky),
      undeliverable: eb('undeliverable', '+', counts.undeliverable),
      unknown: eb('unknown', '+', counts.unknown),
    }))
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
  return job.done === job.total ? finishJob(trx, jobId, now) : job
}

function jobIn(db: Kysely<Schema>, jobId: string): Promise<Job> {
  return db.selectFrom('job').selectAll().where('id', '=', jobId).executeTakeFirstOrThrow()
}

function finishJob(trx: Transaction<Schema>, jobId: string, now: number): Promise<Job> {
  return trx
    .updateTable('job')
    .set({ state: 'completed', finished_at: now })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
}
