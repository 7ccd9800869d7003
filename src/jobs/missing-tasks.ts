import { sql } from 'kysely'
import { serverTime } from '../cluster/members.ts'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { pairsOf, type Waiting, type WaitingSpan } from './item-claims.ts'

// What the queue must have an entry for, as the store tells it. States that choose rows are literals, so that the
// partial indexes are used.

const isOpen = sql`job.finished_at is null and job.account_id is not null and job.state in ('queued', 'processing')`

/** Jobs of accounts that have items which nobody looked at yet, or that nobody began. */
export async function jobsWithoutTask({ reader }: Database): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from job where ${isOpen} and (state = 'queued' or exists (
      select 1 from item where item.job_id = job.id and item.state = 'queued'))
    order by created_at, id`.execute(reader)
  return rows.map(({ id }) => id)
}

export type WaitingPage = {
  /** Operators whose items have been due since `dueBefore` and that any egress may ask. */
  readonly operators: readonly string[]
  /** Where the next page begins; null: there is none. */
  readonly next: Waiting | null
}

/** Looks through `max` pairs of an operator and a job that has items for it, from one pair on. */
export async function operatorsWithoutTask(
  { reader }: Database,
  o: WaitingSpan & { dueBefore: number },
): Promise<WaitingPage> {
  const { rows } = await sql<Waiting & { isOverdue: number }>`
    with recursive pair(operator, job_id, number) as (${pairsOf(reader, o)})
    select operator, job_id as "jobId", case when exists (
        select 1 from job where job.id = pair.job_id and ${isOpen}) and exists (
        select 1 from item where item.operator = pair.operator and item.job_id = pair.job_id
          and item.state = 'routed' and item.due_at <= ${o.dueBefore} and item.egress is null)
      then 1 else 0 end as "isOverdue"
    from pair order by operator, job_id`.execute(reader)
  const last = rows.length === o.max ? rows.at(-1) : undefined
  return {
    operators: [...new Set(rows.filter(row => row.isOverdue === 1).map(row => row.operator))],
    next: last === undefined ? null : { operator: last.operator, jobId: last.jobId },
  }
}

export type PinnedItems = {
  readonly jobId: string
  readonly operator: string
  readonly egress: string
}

/** Egresses that have items of their own waiting, due since `dueBefore`, in jobs of accounts. */
export async function overduePinnedItems(
  { reader }: Database,
  dueBefore: number,
): Promise<PinnedItems[]> {
  const { rows } = await sql<PinnedItems>`
    select distinct item.job_id as "jobId", item.operator, item.egress
    from item join job on job.id = item.job_id
    where item.state = 'routed' and item.egress is not null and item.due_at <= ${dueBefore}
      and ${isOpen}`.execute(reader)
  return rows
}

/** Whether it is this process that looks for what is missing: one does so in this time, of all that share the database. */
export async function isOwnTurn(database: Database, everyMs: number): Promise<boolean> {
  const now = serverTime(database)
  const { rows } = await writeAsyncCommit(database, db =>
    sql`
      insert into setting (name, value) values ('reconciled-at', cast(${now} as text))
      on conflict (name) do update set value = excluded.value
      where abs(cast(excluded.value as bigint) - cast(setting.value as bigint)) >= ${everyMs}
      returning name`.execute(db),
  )
  return rows.length === 1
}
