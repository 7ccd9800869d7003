import { type RawBuilder, sql } from 'kysely'
import { type Database, writeAsyncCommit, writeConcurrent } from '../db/database.ts'
import { serverTime } from '../db/server-time.ts'
import { inArray, typedRows } from '../db/sql-dialect.ts'
import { RELEASED, type StoredItem } from './item-store.ts'
import { findLockedJob } from './job-store.ts'

// The members of a cluster divide the rows of a list: each claims a share, a page at a time. A
// claimed row is `probing` and has its member as `holder`. PostgreSQL only. States in conditions are
// literals, as in item-store.ts, so that the partial indexes are used.

/** Due time of rows that have an operator and wait until a member has room for them. */
export const NO_ROOM_DUE_AT = 0

/** The rows of one list that a member claims. */
type Share = {
  readonly jobId: string
  /** ID of the member. One that has expired claims nothing. */
  readonly holder: string
  readonly max: number
}

export type ClaimedItem = Omit<StoredItem, 'state'> & {
  /** Null until it was routed. */
  readonly operator: string | null
  /** See `DOMAIN_KEY`. */
  readonly domainKey: string
}

/**
 * Orders the rows of a list so that those of a domain lie together, and domains lie in no
 * particular order. The index `item_queued` has the same expression.
 */
const DOMAIN_KEY = sql`left(md5(split_part(reverse(lower(text)), '@', 1)), 8)`

/** Claims rows that are not routed yet, from a domain key on. */
export const claimQueuedItems = (
  database: Database,
  share: Share,
  from: string,
): Promise<ClaimedItem[]> =>
  claim(database, share, {
    which: sql`state = 'queued' and ${DOMAIN_KEY} >= ${from}`,
    order: sql`${DOMAIN_KEY}, position`,
  })

/** Claims rows whose next attempt is due, and that one of these egresses may make. */
export const claimDueItems = (
  database: Database,
  share: Share,
  o: { readonly egresses: readonly string[]; readonly now: number },
): Promise<ClaimedItem[]> =>
  claim(database, share, {
    which: sql`state = 'routed' and due_at > ${NO_ROOM_DUE_AT} and due_at <= ${o.now}
      and ${mayProbe(database, o.egresses)}`,
    order: sql`due_at`,
  })

/** Claims rows that wait for room at an operator, those of a domain together. */
export const claimWaitingItems = (
  database: Database,
  share: Share,
  o: {
    readonly egresses: readonly string[]
    readonly operator: string
    /** True to claim only rows that are bound to one of the egresses. */
    readonly isBoundOnly: boolean
  },
): Promise<ClaimedItem[]> =>
  claim(database, share, {
    which: sql`state = 'routed' and due_at = ${sql.lit(NO_ROOM_DUE_AT)}
      and operator = ${o.operator} and ${mayProbe(database, o.egresses)}
      ${o.isBoundOnly ? sql`and egress is not null` : sql``}`,
    order: sql`domain, position`,
  })

/** Claims rows that only one egress may probe at an operator, due or not. */
export const claimPinnedItems = (
  database: Database,
  share: Share,
  o: { readonly operator: string; readonly egress: string },
): Promise<ClaimedItem[]> =>
  claim(database, share, {
    which: sql`state = 'routed' and operator = ${o.operator} and egress = ${o.egress}`,
    order: sql`domain, position`,
  })

/** Claims rows that have an operator, whatever they wait for. */
export const claimRoutedItems = (database: Database, share: Share): Promise<ClaimedItem[]> =>
  claim(database, share, { which: sql`state = 'routed'`, order: sql`due_at` })

const mayProbe = ({ db }: Database, egresses: readonly string[]) =>
  sql`(egress is null or egress in ${inArray(db, egresses)})`

async function claim(
  database: Database,
  { jobId, holder, max }: Share,
  o: { readonly which: RawBuilder<unknown>; readonly order: RawBuilder<unknown> },
): Promise<ClaimedItem[]> {
  // The rows are updated by their place in the table, which does not change while they are locked:
  // the server has no statistics of a list that was just stored, and could scan all of it. A claim
  // that a power failure undoes is repeated, so its commit is asynchronous.
  const { rows } = await writeAsyncCommit(database, db =>
    sql<ClaimedItem>`
      with picked as materialized (
        select ctid as id from item
        where job_id = ${jobId} and ${o.which}
          and exists (select 1 from member where member.id = ${holder})
        order by ${o.order} limit ${max} for update of item skip locked)
      update item set state = 'probing', holder = ${holder}
      where ctid = any(array(select id from picked))
      returning position, copies, text, tries, ready_at, route, egress, refused_by, accepted,
        latest_result, operator, ${DOMAIN_KEY} as "domainKey"`.execute(db),
  )
  return rows.sort((a, b) => compare(a.domainKey, b.domainKey) || a.position - b.position)
}

const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1)

/** Releases the rows of a job that a member holds, so that any member can claim them. */
export async function releaseShare(
  database: Database,
  { jobId, holder }: Pick<Share, 'jobId' | 'holder'>,
): Promise<void> {
  await writeConcurrent(database, async trx => {
    // Locked first, as by writers of results.
    await findLockedJob(trx, jobId)
    await sql`
      update item set state = ${RELEASED}, holder = null
      where holder = ${holder} and job_id = ${jobId} and state = 'probing'`.execute(trx)
  })
}

/** What members can claim of a list. */
export type Claimable = {
  readonly jobId: string
  /** Whether it has rows that are not routed yet. */
  readonly hasQueued: boolean
  /** Whether it has rows whose next attempt is due; of a list that is being finished, any. */
  readonly hasDue: boolean
  /** Operators for which rows wait until a member has room. */
  readonly operators: readonly string[]
}

/**
 * Returns what these lists have for a member with these egresses, in two statements. The subqueries
 * are sorted as their index is and read one row each: for `exists`, the server could read all rows
 * of all lists into a hash table.
 */
export async function findClaimable(
  database: Database,
  o: {
    readonly lists: readonly { readonly jobId: string; readonly isFinishing: boolean }[]
    readonly egresses: readonly string[]
    readonly now: number
  },
): Promise<Claimable[]> {
  const { reader } = database
  const lists = typedRows(o.lists, '"jobId" text, "isFinishing" boolean')
  const { rows } = await sql<Omit<Claimable, 'operators'>>`
    select "jobId",
      (select position from item where job_id = "jobId" and state = 'queued'
        order by ${DOMAIN_KEY}, position limit 1) is not null as "hasQueued",
      case when "isFinishing"
        then (select position from item where job_id = "jobId" and state = 'routed'
          order by due_at limit 1)
        else (select position from item where job_id = "jobId" and state = 'routed'
          and due_at > ${NO_ROOM_DUE_AT} and due_at <= ${o.now}
          and ${mayProbe(database, o.egresses)}
          order by due_at limit 1) end is not null as "hasDue"
    from ${lists}`.execute(reader)
  const { rows: waiting } = await sql<{ jobId: string; operator: string }>`
    with recursive waiting(job_id, operator) as (
      select "jobId", (${nextWaiting(sql`"jobId"`, sql`''`)}) from ${lists}
      union all
      select job_id, (${nextWaiting(sql`waiting.job_id`, sql`waiting.operator`)})
      from waiting where operator is not null)
    select job_id as "jobId", operator from waiting where operator is not null`.execute(reader)
  const byJob = Map.groupBy(waiting, ({ jobId }) => jobId)
  return rows.map(({ jobId, hasQueued, hasDue }) => ({
    jobId,
    hasQueued,
    hasDue,
    operators: (byJob.get(jobId) ?? []).map(({ operator }) => operator),
  }))
}

/** Selects the next operator of a job for which rows wait, so that their rows are not all read. */
const nextWaiting = (job: RawBuilder<unknown>, after: RawBuilder<unknown>) => sql`
  select operator from item where item.job_id = ${job} and state = 'routed'
    and due_at = ${sql.lit(NO_ROOM_DUE_AT)} and item.operator > ${after}
  order by operator limit 1`

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

type PinnedItems = {
  readonly jobId: string
  readonly operator: string
  readonly egress: string
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
  o: PinnedItems & {
    /** True to leave those that it has tried. */
    readonly isUntried?: boolean
  },
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
      .$if(o.isUntried ?? false, query => query.where('tries', '=', 0))
      .execute(),
  )
}

/** Lists the egresses that have pinned items due by `dueBefore`, in open jobs of accounts. */
export async function overduePinnedItems(
  { reader }: Database,
  dueBefore: number,
): Promise<PinnedItems[]> {
  const { rows } = await sql<PinnedItems>`
    select distinct item.job_id as "jobId", item.operator, item.egress
    from item join job on job.id = item.job_id
    where item.state = 'routed' and item.egress is not null and item.due_at <= ${dueBefore}
      and job.finished_at is null and job.account_id is not null
      and job.state in ('queued', 'processing')`.execute(reader)
  return rows
}

/**
 * Returns true if this process is to unpin items now: of all that share the database, one process
 * does so per `everyMs`.
 */
export async function claimUnpinning(database: Database, everyMs: number): Promise<boolean> {
  const now = serverTime(database)
  const { rows } = await writeAsyncCommit(database, db =>
    sql`
      insert into setting (name, value) values ('unpinned-at', cast(${now} as text))
      on conflict (name) do update set value = excluded.value
      where abs(cast(excluded.value as bigint) - cast(setting.value as bigint)) >= ${everyMs}
      returning name`.execute(db),
  )
  return rows.length === 1
}
