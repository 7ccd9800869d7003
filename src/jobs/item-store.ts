import { type RawBuilder, sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres, typedJsonRows } from '../db/sql-dialect.ts'
import type { ItemTable } from './tables.ts'

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
  /** The operator of the exchangers that are asked where those of `operator` cannot be; null: none. */
  readonly backupOperator?: string | null
  readonly domain: string
  readonly route: string
}

/** Files items under the operators that run their mail; one that was filed before stays as it is. */
export async function fileItems(
  trx: Transaction<Schema>,
  o: { jobId: string; filed: readonly Filed[]; now: number },
): Promise<void> {
  if (isPostgres(trx)) return fileTogether(trx, o)
  for (const { position, operator, backupOperator = null, domain, route } of o.filed) {
    await sql`
      update item set state = 'routed', operator = ${operator},
        backup_operator = ${backupOperator}, domain = ${domain}, route = ${route}, due_at = ${o.now}, ready_at = ${o.now}
      where job_id = ${o.jobId} and position = ${position} and state = 'queued'`.execute(trx)
  }
}

// On PostgreSQL each statement is a round trip, so that there is one for all rows; on SQLite one for each is faster.

async function fileTogether(
  trx: Transaction<Schema>,
  { jobId, filed, now }: Parameters<typeof fileItems>[1],
): Promise<void> {
  if (filed.length === 0) return
  await sql`
    update item set state = 'routed', operator = each.operator,
      backup_operator = each."backupOperator", domain = each.domain, route = each.route, due_at = ${now}, ready_at = ${now}
    from ${typedJsonRows(filed, 'position bigint, operator text, "backupOperator" text, domain text, route text')}
    where ${isOf(jobId, filed)} and state = 'queued'`.execute(trx)
}

/** As it must stand for a change to be in time; left out: as long as it has no result. */
export type Fence =
  /** Nobody filed it meanwhile. */
  | { readonly state: 'queued' }
  /** The member of the cluster that claimed it was not buried, and nobody else claimed it, meanwhile. */
  | { readonly state: 'probing'; readonly holder: string }

export type Recorded = {
  readonly position: number
  readonly result: string
  readonly class: string
  readonly fence?: Fence
}

/** Writes results; each item takes one and only one. Gives of each whether its item took it. */
export async function recordResults(
  trx: Transaction<Schema>,
  jobId: string,
  recorded: readonly Recorded[],
): Promise<boolean[]> {
  if (isPostgres(trx)) return recordTogether(trx, jobId, recorded)
  const taken: boolean[] = []
  for (const { position, result, class: klass, fence } of recorded) {
    const { numAffectedRows } = await sql`
      update item set state = 'done', result = ${result}, class = ${klass}, route = null,
        accepted = null${dropped(fence)}
      where job_id = ${jobId} and position = ${position} and state <> 'done'${within(fence)}`.execute(
      trx,
    )
    taken.push(numAffectedRows === 1n)
  }
  return taken
}

async function recordTogether(
  trx: Transaction<Schema>,
  jobId: string,
  recorded: readonly Recorded[],
): Promise<boolean[]> {
  const taken = recorded.map(() => false)
  for (const rows of withoutDuplicates(recorded.map((row, index) => ({ ...row, index })))) {
    const done = await sql<{ index: number }>`
      update item set state = 'done', result = each.result, class = each.class, route = null,
        accepted = null, holder = null
      from ${typedJsonRows(rows, `${FENCED}, index integer, result text, class text`)}
      where ${isOf(jobId, rows)} and state <> 'done' and ${IN_TIME}
      returning each.index as index`.execute(trx)
    for (const { index } of done.rows) taken[index] = true
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
  /** JSON of the acceptance, where only the catch-all test is left to be made; else null. */
  readonly accepted?: string | null
  readonly fence?: Fence
}

/** Puts items back that are to be asked again later. */
export async function postponeItems(
  trx: Transaction<Schema>,
  jobId: string,
  postponed: readonly Postponed[],
): Promise<void> {
  const rows = postponed.map(row => ({ ...row, refused: row.refusedBy.join(' ') || null }))
  if (isPostgres(trx)) return postponeTogether(trx, jobId, rows)
  for (const { position, dueAt, tries, egress, refused, accepted, fence } of rows) {
    await sql`
      update item set state = 'routed', due_at = ${dueAt}, tries = ${tries},
        egress = ${egress}, refused_by = ${refused}, accepted = ${accepted ?? null}${dropped(fence)}
      where job_id = ${jobId} and position = ${position} and state = 'probing'${within(fence)}`.execute(
      trx,
    )
  }
}

async function postponeTogether(
  trx: Transaction<Schema>,
  jobId: string,
  postponed: readonly (Postponed & { readonly refused: string | null })[],
): Promise<void> {
  for (const rows of withoutDuplicates(postponed)) {
    await sql`
      update item set state = 'routed', due_at = each."dueAt", tries = each.tries,
        egress = each.egress, refused_by = each.refused, accepted = each.accepted, holder = null
      from ${typedJsonRows(rows, `${FENCED}, "dueAt" bigint, tries integer, egress text, refused text, accepted text`)}
      where ${isOf(jobId, rows)} and state = 'probing' and ${IN_TIME}`.execute(trx)
  }
}

/**
 * The item of a row. The positions are named once more, all together: a list that was stored just now the server has no
 * statistics of, and it would look through the whole of it.
 */
function isOf(jobId: string, rows: readonly { readonly position: number }[]) {
  const positions = `{${rows.map(({ position }) => position).join(',')}}`
  return sql`job_id = ${jobId} and item.position = any(cast(${positions} as bigint[]))
    and item.position = each.position`
}

/** Columns of rows that may have a fence. */
const FENCED = 'position bigint, fence json'
const IN_TIME = sql`(fence is null or (state = fence ->> 'state'
  and holder is not distinct from fence ->> 'holder'))`

/** SQLite looks a column's indexes up for it, so the holder is named only where there is one. */
function within(fence: Fence | undefined): RawBuilder<unknown> {
  if (fence === undefined) return sql``
  const held = 'holder' in fence ? sql` and holder = ${fence.holder}` : sql``
  return sql` and state = ${sql.lit(fence.state)}${held}`
}

const dropped = (fence: Fence | undefined) =>
  fence !== undefined && 'holder' in fence ? sql`, holder = null` : sql``

/** One statement changes a row only once, so rows of the same item come one after the other. */
function* withoutDuplicates<Row extends { readonly position: number }>(
  rows: readonly Row[],
): Generator<readonly Row[]> {
  for (let rest = rows; rest.length > 0; ) {
    const first = new Map<number, Row>()
    const later: Row[] = []
    for (const row of rest) {
      if (first.has(row.position)) later.push(row)
      else first.set(row.position, row)
    }
    yield [...first.values()]
    rest = later
  }
}
