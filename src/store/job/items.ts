import { sql, type Transaction } from 'kysely'
import type { Database } from '../database.ts'
import type { ItemTable, Schema } from '../schema.ts'

// SQLite uses a partial index only where the statement says its condition in so many words: states that
// choose rows are literals, never parameters.

export type QueuedItem = Pick<ItemTable, 'position' | 'text' | 'copies'>

/** The next items that nobody looked at yet, in the order of the list. */
export function queuedItems(
  { db }: Database,
  o: { jobId: string; after: number; max: number },
): Promise<QueuedItem[]> {
  return db
    .selectFrom('item')
    .select(['position', 'text', 'copies'])
    .where('job_id', '=', o.jobId)
    .where('state', '=', sql.lit('queued'))
    .where('position', '>', o.after)
    .orderBy('position')
    .limit(o.max)
    .execute()
}

export type Filed = {
  readonly position: number
  readonly operator: string
  readonly domain: string
  readonly route: string
}

/** Files items under the operators that run their mail; one that was filed before stays as it is. */
export async function fileItems(
  trx: Transaction<Schema>,
  o: { jobId: string; filed: readonly Filed[]; now: number },
): Promise<void> {
  for (const { position, operator, domain, route } of o.filed) {
    await sql`
      update item set state = 'routed', operator = ${operator}, domain = ${domain},
        route = ${route}, due_at = ${o.now}, ready_at = ${o.now}
      where job_id = ${o.jobId} and position = ${position} and state = 'queued'`.execute(trx)
  }
}

export type Recorded = {
  readonly position: number
  readonly result: string
  readonly class: string
}

/** Writes results; each item takes one and only one. Gives the positions that took theirs. */
export async function recordResults(
  trx: Transaction<Schema>,
  jobId: string,
  recorded: readonly Recorded[],
): Promise<ReadonlySet<number>> {
  const taken = new Set<number>()
  for (const { position, result, class: klass } of recorded) {
    const { numAffectedRows } = await sql`
      update item set state = 'done', result = ${result}, class = ${klass}, route = null
      where job_id = ${jobId} and position = ${position} and state <> 'done'`.execute(trx)
    if (numAffectedRows === 1n) taken.add(position)
  }
  return taken
}

export type Postponed = {
  readonly position: number
  readonly dueAt: number
  readonly tries: number
  /** The egress that must ask it; null: any. */
  readonly egress: string | null
  readonly refusedBy: readonly string[]
}

/** Puts items back that are to be asked again later. */
export async function postponeItems(
  trx: Transaction<Schema>,
  jobId: string,
  postponed: readonly Postponed[],
): Promise<void> {
  for (const { position, dueAt, tries, egress, refusedBy } of postponed) {
    const refused = refusedBy.length === 0 ? null : refusedBy.join(' ')
    await sql`
      update item set state = 'routed', due_at = ${dueAt}, tries = ${tries},
        egress = ${egress}, refused_by = ${refused}
      where job_id = ${jobId} and position = ${position} and state = 'probing'`.execute(trx)
  }
}
