import { sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import { createExpiry } from '../db/paging.ts'
import { chunks } from './feedback-counts.ts'
import type { AddressState } from './feedback-store.ts'
import { CONTRADICTED_MIN, type ReplySum } from './replies.ts'

/** The change of the counts of a reply. */
export type ReplyCount = {
  /** Start of the period of the outcome, epoch ms. */
  readonly period: number
  readonly operator: string
  readonly reply: string
  readonly confirmed: number
  readonly contradicted: number
}

/**
 * Returns the changes of the counts of a reply when its verdict is counted with another outcome: it
 * is removed from the previous one.
 */
export function replyChanges(
  { reply, operator, deliverable, counted: before }: AddressState,
  after: AddressState['counted'],
  period: number,
): ReplyCount[] {
  if (reply === null || after === null || after === before) return []
  const count = (outcome: 'alive' | 'dead', by: 1 | -1): ReplyCount => {
    const isConfirmed = (outcome === 'alive') === (deliverable === 1)
    return {
      period,
      operator: operator ?? '',
      reply,
      confirmed: isConfirmed ? by : 0,
      contradicted: isConfirmed ? 0 : by,
    }
  }
  return before === null ? [count(after, 1)] : [count(before, -1), count(after, 1)]
}

/** Adds to the counts of replies. */
export async function addReplyCounts(
  trx: Trx,
  accountId: string,
  changes: readonly ReplyCount[],
): Promise<void> {
  const groups = Map.groupBy(changes, one => JSON.stringify([one.operator, one.reply, one.period]))
  const sums = [...groups.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, all]) => ({
      ...(all[0] as ReplyCount),
      confirmed: all.reduce((sum, one) => sum + one.confirmed, 0),
      contradicted: all.reduce((sum, one) => sum + one.contradicted, 0),
    }))
  for (const chunk of chunks(sums)) {
    await trx
      .insertInto('feedback_reply')
      .values(chunk.map(count => ({ ...count, account_id: accountId })))
      .onConflict(conflict =>
        conflict.columns(['account_id', 'period', 'operator', 'reply']).doUpdateSet(eb => ({
          confirmed: eb('feedback_reply.confirmed', '+', eb.ref('excluded.confirmed')),
          contradicted: eb('feedback_reply.contradicted', '+', eb.ref('excluded.contradicted')),
        })),
      )
      .execute()
  }
}

/** Sums the counts of replies of all accounts since a time; those that are contradicted enough. */
export async function getReplySums({ reader }: Database, since: number): Promise<ReplySum[]> {
  const { rows } = await sql<ReplySum>`
    select operator, reply, sum(confirmed) as confirmed, sum(contradicted) as contradicted,
      count(distinct case when contradicted > 0 then account_id end) as accounts
    from feedback_reply where period >= ${since}
    group by operator, reply having sum(contradicted) >= ${CONTRADICTED_MIN}
    order by operator, reply`.execute(reader)
  return rows.map(row => ({
    operator: row.operator,
    reply: row.reply,
    confirmed: Number(row.confirmed),
    contradicted: Number(row.contradicted),
    accounts: Number(row.accounts),
  }))
}

/** Deletes counts of periods that started before a time. */
export const deleteReplyCountsBefore = createExpiry(
  'feedback_reply',
  ['account_id', 'period', 'operator', 'reply'],
  before => sql`period < ${before}`,
)
