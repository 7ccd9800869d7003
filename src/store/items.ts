import { type ExpressionBuilder, sql, type Transaction } from 'kysely'
import { type Database, writeLoosely } from './database.ts'
import type { ItemTable, Schema } from './schema.ts'

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

/** Files items under the operators that run their mail. */
export async function fileItems(
  trx: Transaction<Schema>,
  o: { jobId: string; filed: readonly Filed[]; now: number },
): Promise<void> {
  for (const { position, operator, domain, route } of o.filed) {
    await sql`
      update item set state = 'routed', operator = ${operator}, domain = ${domain},
        route = ${route}, due_at = ${o.now}, ready_at = ${o.now}
      where job_id = ${o.jobId} and position = ${position}`.execute(trx)
  }
}

export type ClaimedItem = Pick<
  ItemTable,
  'position' | 'text' | 'tries' | 'ready_at' | 'route' | 'copies' | 'egress' | 'refused_by'
>

/** The items of one operator that an egress may ask: its own, and those that any may ask. */
export type Share = {
  readonly jobId: string
  readonly operator: string
  readonly egress: string
  /** True: its own alone. */
  readonly ownOnly?: boolean
}

/** Takes up to `max` items of a share that are due, ordered by domain so that few transactions serve them. */
export async function claimItems(
  database: Database,
  o: Share & { max: number; now: number },
): Promise<ClaimedItem[]> {
  // A claim that a power cut undoes is made again. One statement claims, choosing in a materialized CTE: a bare sub-select may run twice on PostgreSQL.
  const rows = await writeLoosely(database, db =>
    db
      .with(
        cte => cte('due').materialized(),
        query =>
          query
            .selectFrom('item')
            .select('position')
            .where('job_id', '=', o.jobId)
            .where('operator', '=', o.operator)
            .where('state', '=', sql.lit('routed'))
            .where('due_at', '<=', o.now)
            .where(isOfShare(o))
            .orderBy('domain')
            .orderBy('position')
            .limit(o.max),
      )
      .updateTable('item')
      .set({ state: 'probing' })
      .where('job_id', '=', o.jobId)
      .where('position', 'in', query => query.selectFrom('due').select('position'))
      .returning([
        ...(['position', 'text', 'tries', 'ready_at'] as const),
        ...(['route', 'copies', 'egress', 'refused_by'] as const),
      ])
      .execute(),
  )
  return rows.sort((a, b) => a.position - b.position)
}

const isOfShare =
  ({ egress, ownOnly }: Share) =>
  (eb: ExpressionBuilder<Schema, 'item'>) =>
    ownOnly
      ? eb('egress', '=', egress)
      : eb.or([eb('egress', 'is', null), eb('egress', '=', egress)])

/** When the next item of a share is due, epoch ms; null when none waits. */
export async function nextDueAt({ db }: Database, o: Share): Promise<number | null> {
  const row = await db
    .selectFrom('item')
    .select(eb => eb.fn.min('due_at').as('due_at'))
    .where('job_id', '=', o.jobId)
    .where('operator', '=', o.operator)
    .where('state', '=', sql.lit('routed'))
    .where(isOfShare(o))
    .executeTakeFirst()
  return row?.due_at ?? null
}

/** Operators that have items waiting. */
export async function waitingOperators({ db }: Database, jobId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('item')
    .select('operator')
    .distinct()
    .where('job_id', '=', jobId)
    .where('state', '=', sql.lit('routed'))
    .execute()
  return rows.map(({ operator }) => operator ?? '')
}

/** Egresses that have items of their own waiting, by operator. */
export async function boundItems(
  { db }: Database,
  jobId: string,
): Promise<{ operator: string; egress: string }[]> {
  const rows = await db
    .selectFrom('item')
    .select(['operator', 'egress'])
    .distinct()
    .where('job_id', '=', jobId)
    .where('state', '=', sql.lit('routed'))
    .where('egress', 'is not', null)
    .execute()
  return rows.map(({ operator, egress }) => ({ operator: operator ?? '', egress: egress ?? '' }))
}

/** Gives the items of an egress that is there no more to any other, which begins anew with them. */
export async function freeItems(
  database: Database,
  o: { jobId: string; operator: string; egress: string },
): Promise<void> {
  // What a power cut undoes is done again when the job is taken up.
  await writeLoosely(database, db =>
    db
      .updateTable('item')
      .set({ egress: null, tries: 0, due_at: database.clock.now() })
      .where('job_id', '=', o.jobId)
      .where('operator', '=', o.operator)
      .where('state', '=', sql.lit('routed'))
      .where('egress', '=', o.egress)
      .execute(),
  )
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

export type ResultRow = { readonly position: number; readonly result: string | null }

/** Results in the order of the list; a duplicate has the result of its first. */
export async function resultPage(
  { db }: Database,
  o: { jobId: string; after: number; max: number },
): Promise<ResultRow[]> {
  const { rows } = await sql<ResultRow>`
    select item.position as position, coalesce(item.result, first.result) as result
    from item left join item as first
      on first.job_id = item.job_id and first.position = item.same_as
    where item.job_id = ${o.jobId} and item.position > ${o.after}
    order by item.position limit ${o.max}`.execute(db)
  return rows
}
