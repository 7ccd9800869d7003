import { type ExpressionBuilder, type QueryCreator, type RawBuilder, sql } from 'kysely'
import { type Database, writeAsyncCommit, writeConcurrent } from '../db/database.ts'
import type { Reader } from '../db/reader.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres, jsonRows, typedJsonRows } from '../db/sql-dialect.ts'
import type { ItemTable } from './tables.ts'

// States in conditions are literals, as in item-store.ts, so that the partial indexes are used.

export type ClaimedItem = Pick<
  ItemTable,
  | 'position'
  | 'text'
  | 'tries'
  | 'ready_at'
  | 'route'
  | 'copies'
  | 'egress'
  | 'refused_by'
  | 'accepted'
  | 'holder'
>

/**
 * The items of one operator that an egress may probe: those pinned to it and those pinned to no
 * egress.
 */
type Share = {
  readonly jobId: string
  readonly operator: string
  readonly egress: string
  /** True to select only items pinned to the egress. */
  readonly pinnedOnly?: boolean
}

type Claim = Share & {
  readonly max: number
  readonly now: number
  /** True to select only items that have a backup operator. */
  readonly backedUpOnly?: boolean
  /** The cluster member that claims the items; null or left out without a cluster. */
  readonly holder?: string | null
}

/**
 * Claims up to `max` due items of a share, ordered by domain so that few transactions serve them.
 * An expired member claims nothing.
 */
export async function claimItems(database: Database, o: Claim): Promise<ClaimedItem[]> {
  const { holder = null } = o
  // A claim that a power failure undoes is repeated, so the commit can be asynchronous. One
  // statement claims, choosing in a materialized CTE: a bare sub-select may run twice on
  // PostgreSQL.
  const rows = await writeAsyncCommit(database, db =>
    db
      .with(
        cte => cte('due').materialized(),
        query => dueItems(query, o, isPostgres(db)),
      )
      .updateTable('item')
      // Setting the holder would cost an index lookup per item on SQLite.
      .set(holder === null ? { state: 'probing' } : { state: 'probing', holder })
      .where('job_id', '=', o.jobId)
      .where('position', 'in', query => query.selectFrom('due').select('position'))
      .returning([
        ...(['position', 'text', 'tries', 'ready_at'] as const),
        ...(['route', 'copies', 'egress', 'refused_by', 'accepted', 'holder'] as const),
      ])
      .execute(),
  )
  return rows.sort((a, b) => a.position - b.position)
}

function dueItems(
  query: QueryCreator<Schema>,
  { jobId, operator, now, max, holder = null, backedUpOnly = false, ...share }: Claim,
  canSkip: boolean,
) {
  const due = query
    .selectFrom('item')
    .select('position')
    .where('job_id', '=', jobId)
    .where('operator', '=', operator)
    .where('state', '=', sql.lit('routed'))
    .where('due_at', '<=', now)
    .where(matchesShare(share))
    .$if(backedUpOnly, one => one.where('backup_operator', 'is not', null))
    .$if(holder !== null, one =>
      one.where(eb => eb.exists(eb.selectFrom('member').select('id').where('id', '=', holder))),
    )
    .orderBy('domain')
    .orderBy('position')
    .limit(max)
  // Concurrent claims skip the locked rows. SQLite has a single writer.
  return canSkip ? due.forUpdate('item').skipLocked() : due
}

const matchesShare =
  ({ egress, pinnedOnly }: Pick<Share, 'egress' | 'pinnedOnly'>) =>
  (eb: ExpressionBuilder<Schema, 'item'>) =>
    pinnedOnly
      ? eb('egress', '=', egress)
      : eb.or([eb('egress', 'is', null), eb('egress', '=', egress)])

/** A request for items of an operator from all open jobs of accounts. */
export type OperatorClaim = {
  readonly operator: string
  readonly egress: string
  readonly max: number
  /** The job after which the first item is taken, in the order of their IDs. */
  readonly after: string
  readonly holder: string
}

export type OperatorItem = ClaimedItem & {
  readonly job_id: string
  readonly operator: string
  readonly domain: string
}

/**
 * Claims due items for requests, each for another operator, in one statement; PostgreSQL only. Of
 * each operator, the waiting jobs get an item in turn until the maximum is reached. A member that
 * has expired claims nothing.
 */
export async function claimOperators(
  database: Database,
  { claims, now }: { readonly claims: readonly OperatorClaim[]; readonly now: number },
): Promise<OperatorItem[]> {
  const columns = 'operator text, egress text, max integer, after text, holder text'
  const due = (from: string) => sql`
    from item where job_id = ${sql.ref(`${from}.job_id`)} and operator = ${sql.ref(`${from}.operator`)}
      and state = 'routed' and due_at <= ${now}
      and (egress is null or egress = ${sql.ref(`${from}.egress`)})`
  // The rows are updated by their place in the table, which does not change while they are locked:
  // the server has no statistics of a list that was just stored, and could scan all of it.
  const { rows } = await writeAsyncCommit(database, db =>
    sql<OperatorItem>`
      with request as materialized (
        select each.* from ${typedJsonRows(claims, columns)}
        where exists (select 1 from member where member.id = each.holder)),
      waiting as materialized (
        select request.*, job.id as job_id, job.lap
        from request cross join lateral (
          ${waitingJobs(sql`request.operator`, sql`request.after`, sql`limit request.max`)}) as job),
      share as materialized (
        select operator, egress, holder, job_id, count(*) as items
        from (
          select waiting.*, row_number() over (
            partition by operator order by nth, lap, job_id) as turn
          from waiting cross join lateral (
            select count(*) as count from (select 1 ${due('waiting')} limit waiting.max) as one) as due
          cross join lateral generate_series(1, due.count) as nth) as turns
        where turn <= max
        group by operator, egress, holder, job_id),
      picked as materialized (
        select share.holder, item.id from share cross join lateral (
          select item.ctid as id ${due('share')}
          order by domain, position limit share.items for update skip locked) as item)
      update item set state = 'probing', holder = picked.holder
      from picked
      where item.ctid = any(array(select id from picked)) and item.ctid = picked.id
      returning job_id, operator, domain, position, text, tries, ready_at, route, copies, egress,
        refused_by, accepted, item.holder`.execute(db),
  )
  return rows
}

/**
 * Selects `id` and `lap` of the open jobs of accounts that have items to probe at an operator: those
 * after a job in lap 0, the others in lap 1. Items of a job that is being finished are not probed. Steps from job to job, so that the rows of a long list
 * are not read.
 */
function waitingJobs(
  operator: RawBuilder<unknown>,
  after: RawBuilder<unknown>,
  limit: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const next = (job: RawBuilder<unknown>) => sql`
    select job_id from item where operator = ${operator} and state = 'routed' and job_id > ${job}
    order by job_id limit 1`
  return sql`
    with recursive first(id) as (
      (${next(after)}) union all
      select following.job_id from first cross join lateral (${next(sql`first.id`)}) as following),
    second(id) as (
      select job_id from (${next(sql`''`)}) as one where job_id <= ${after} union all
      select following.job_id
      from second cross join lateral (${next(sql`second.id`)}) as following
      where following.job_id <= ${after})
    select step.id, step.lap from (
      select id, 0 as lap from first union all select id, 1 from second) as step
    cross join lateral (
      select 1 from job
      where id = step.id and finished_at is null and finish_requested_at is null
        and account_id is not null
        and state in ('queued', 'processing') limit 1) as open_job
    ${limit}`
}

type OperatorShare = Pick<OperatorClaim, 'operator' | 'egress'>

/**
 * Returns when the next item is due for these operators and egresses, in all open jobs of accounts;
 * epoch ms, null if no item waits. PostgreSQL only.
 */
export async function nextDueByOperator(
  { db }: Database,
  shares: readonly OperatorShare[],
): Promise<(number | null)[]> {
  const numbered = shares.map(({ operator, egress }, number) => ({ operator, egress, number }))
  const { rows } = await sql<{ number: number; due_at: number | null }>`
    select number, min(next.due_at) as due_at
    from ${typedJsonRows(numbered, 'operator text, egress text, number integer')}
    cross join lateral (${waitingJobs(sql`each.operator`, sql`''`, sql``)}) as job
    cross join lateral (
      select min(due_at) as due_at from item
      where job_id = job.id and operator = each.operator and state = 'routed'
        and (egress is null or egress = each.egress)) as next
    group by number`.execute(db)
  const dueAt = new Map(rows.map(row => [row.number, row.due_at]))
  return shares.map((_, number) => dueAt.get(number) ?? null)
}

/** Returns when the next item of a share is due, epoch ms; null if no item waits. */
export async function nextDueAt({ db }: Database, o: Share): Promise<number | null> {
  const row = await db
    .selectFrom('item')
    .select(eb => eb.fn.min('due_at').as('due_at'))
    .where('job_id', '=', o.jobId)
    .where('operator', '=', o.operator)
    .where('state', '=', sql.lit('routed'))
    .where(matchesShare(o))
    .executeTakeFirst()
  return row?.due_at ?? null
}

/** Lists the jobs that have items waiting for an operator, in the order of their IDs. */
export async function jobsWaitingFor({ db }: Database, operator: string): Promise<string[]> {
  // Skip scan of the index, one step per job, so that the rows of a long list are not read.
  const { rows } = await sql<{ id: string }>`
    with recursive waiting(id) as (
      select min(job_id) from item where operator = ${operator} and state = 'routed'
      union all
      select (select min(job_id) from item
              where operator = ${operator} and state = 'routed' and job_id > waiting.id)
      from waiting where waiting.id is not null)
    select id from waiting where id is not null`.execute(db)
  return rows.map(({ id }) => id)
}

/** An operator, and a job that has items waiting for it. */
export type WaitingPair = { readonly operator: string; readonly jobId: string }

export type WaitingPairRange = { readonly after: WaitingPair; readonly max: number }

/** Lists all pairs of operator and job with items waiting, page by page in this order. */
export async function listWaitingPairs(
  { db }: Database,
  span: WaitingPairRange,
): Promise<WaitingPair[]> {
  const { rows } = await sql<WaitingPair>`
    with recursive pair(operator, job_id, number) as (${waitingPairs(db, span)})
    select operator, job_id as "jobId" from pair order by operator, job_id`.execute(db)
  return rows
}

/**
 * Returns the body of a recursive CTE `pair(operator, job_id, number)`. PostgreSQL would read all
 * rows of each pair, so the CTE steps from pair to pair. SQLite does so on its own.
 */
export function waitingPairs(db: Reader, { after, max }: WaitingPairRange): RawBuilder<unknown> {
  const first = sql`
    select operator, job_id from item
    where state = 'routed' and (operator, job_id) > (${after.operator}, ${after.jobId})`
  if (!isPostgres(db)) {
    return sql`select operator, job_id, 1 from (
      select distinct operator, job_id from (${first}) order by operator, job_id limit ${max})`
  }
  return sql`
    select first.*, 1 from (${first} order by operator, job_id limit 1) as first
    union all
    select next.*, pair.number + 1 from pair cross join lateral (
      select operator, job_id from item
      where state = 'routed' and (operator, job_id) > (pair.operator, pair.job_id)
      order by operator, job_id limit 1) as next
    where pair.number < ${max}`
}

/** Lists the egresses that have pinned items waiting, with the operator of the items. */
export async function pinnedItems(
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

/**
 * Unpins the items of an egress that no longer exists, so that any other probes them from the
 * start.
 */
export async function unpinItems(
  database: Database,
  o: { jobId: string; operator: string; egress: string },
): Promise<void> {
  // If a power failure undoes this, it is repeated when the job is started.
  await writeAsyncCommit(database, db =>
    db
      .updateTable('item')
      .set({ egress: null, tries: 0, due_at: database.steadyClock.now() })
      .where('job_id', '=', o.jobId)
      .where('operator', '=', o.operator)
      .where('state', '=', sql.lit('routed'))
      .where('egress', '=', o.egress)
      .execute(),
  )
}

export type ItemKey = { readonly jobId: string; readonly position: number }

/** Lists the items that a member has claimed and neither finished nor postponed. */
export async function listClaimedItems({ reader }: Database, holder: string): Promise<ItemKey[]> {
  return reader
    .selectFrom('item')
    .select(['job_id as jobId', 'position'])
    .where('holder', '=', holder)
    .where('state', '=', sql.lit('probing'))
    .execute()
}

/** Releases those of these items that the member still holds, so that any member can claim them. */
export async function releaseItems(
  database: Database,
  holder: string,
  items: readonly ItemKey[],
): Promise<void> {
  await writeConcurrent(database, trx =>
    sql`
      update item set state = 'routed', holder = null
      from (select value ->> 'jobId' as job_id, cast(value ->> 'position' as bigint) as position
            from ${jsonRows(trx, items)}) as released
      where item.job_id = released.job_id and item.position = released.position
        and item.holder = ${holder} and item.state = 'probing'`.execute(trx),
  )
}
