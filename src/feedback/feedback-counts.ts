import { sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import type { Reader } from '../db/reader.ts'
import { inArray } from '../db/sql-dialect.ts'
import { DAY } from '../platform/clock.ts'
import type { Feedback, FeedbackKind } from './feedback.ts'

/** Rows per statement: SQLite allows 32,766 parameters. */
const ROWS_MAX = 500

/** Adds pieces to the counts of a day. */
export async function addDayCounts(
  trx: Trx,
  rows: readonly Feedback[],
  { accountId, source, now }: { accountId: string; source: string; now: number },
): Promise<void> {
  if (rows.length === 0) return
  const kinds = [...Map.groupBy(rows, ({ kind }) => kind)]
  const day = Math.floor(now / DAY) * DAY
  await trx
    .insertInto('feedback_day')
    .values(
      kinds
        .map(([kind, all]) => ({ account_id: accountId, day, source, kind, pieces: all.length }))
        .sort((a, b) => (a.kind < b.kind ? -1 : 1)),
    )
    .onConflict(conflict =>
      conflict
        .columns(['account_id', 'day', 'source', 'kind'])
        .doUpdateSet(eb => ({ pieces: eb('feedback_day.pieces', '+', eb.ref('excluded.pieces')) })),
    )
    .execute()
}

/** Recorded pieces of one day and source. */
export type DayCount = Record<FeedbackKind, number> & {
  /** Start of the day in UTC, epoch ms. */
  readonly day: number
  readonly source: string
}

/** Returns the last days with feedback, newest first. */
export async function getDayCounts(
  { reader }: Database,
  accountId: string,
  max: number,
): Promise<DayCount[]> {
  const counted = (kind: FeedbackKind) =>
    sql<number>`sum(case when kind = ${kind} then pieces else 0 end)`
  const rows = await reader
    .selectFrom('feedback_day')
    .select(['day', 'source'])
    .select(counted('delivered').as('delivered'))
    .select(counted('bounced').as('bounced'))
    .select(counted('complained').as('complained'))
    .where('account_id', '=', accountId)
    .groupBy(['day', 'source'])
    .orderBy('day', 'desc')
    .orderBy('source')
    .limit(max)
    .execute()
  return rows.map(({ day, source, delivered, bounced, complained }) => ({
    day,
    source,
    delivered: Number(delivered),
    bounced: Number(bounced),
    complained: Number(complained),
  }))
}

/** Complaints are compared with the mail that arrived in these days. */
const COMPLAINT_DAYS = 30

/**
 * Returns the reported complaints of the last 30 days for each reported delivery, 0 to 1; null
 * without deliveries.
 */
export async function getComplaintRate(
  { clock, reader }: Database,
  accountId: string,
): Promise<number | null> {
  const rows = await reader
    .selectFrom('feedback_day')
    .select(['kind', eb => eb.fn.sum<number>('pieces').as('pieces')])
    .where('account_id', '=', accountId)
    .where('day', '>', clock.now() - COMPLAINT_DAYS * DAY)
    .groupBy('kind')
    .execute()
  const pieces = (kind: FeedbackKind) => Number(rows.find(row => row.kind === kind)?.pieces ?? 0)
  const delivered = pieces('delivered')
  return delivered === 0 ? null : Math.min(1, pieces('complained') / delivered)
}

/** Numbers of addresses of a domain by their newest outcome. */
export type DomainCount = {
  readonly domain: string
  readonly alive: number
  readonly dead: number
}

/** The change of the counts of a domain. */
export type DomainChange = DomainCount & {
  /** Operator of a catch-all domain; null to leave it unchanged. */
  readonly catchAllOperator: string | null
}

/** Adds to the counts of domains. */
export async function addDomainCounts(
  trx: Trx,
  accountId: string,
  counts: readonly DomainChange[],
): Promise<void> {
  const sorted = [...counts].sort((a, b) => (a.domain < b.domain ? -1 : 1))
  for (const chunk of chunks(sorted)) {
    await trx
      .insertInto('feedback_domain')
      .values(
        chunk.map(({ domain, alive, dead, catchAllOperator }) => ({
          domain,
          alive,
          dead,
          account_id: accountId,
          catch_all_operator: catchAllOperator,
        })),
      )
      .onConflict(conflict =>
        conflict.columns(['domain', 'account_id']).doUpdateSet(eb => ({
          alive: eb('feedback_domain.alive', '+', eb.ref('excluded.alive')),
          dead: eb('feedback_domain.dead', '+', eb.ref('excluded.dead')),
          catch_all_operator: eb.fn.coalesce(
            'excluded.catch_all_operator',
            'feedback_domain.catch_all_operator',
          ),
        })),
      )
      .execute()
  }
}

/** Returns the counts of domains; with `accountId` null, of all accounts together. */
export async function getDomainCounts(
  db: Reader,
  accountId: string | null,
  domains: readonly string[],
): Promise<Map<string, DomainCount>> {
  const found = new Map<string, DomainCount>()
  for (const chunk of chunks(domains)) {
    const query = db
      .selectFrom('feedback_domain')
      .select(['domain', 'alive', 'dead'])
      .where(sql<boolean>`domain in ${inArray(db, chunk)}`)
    const own = accountId === null ? query : query.where('account_id', '=', accountId)
    for (const { domain, alive, dead } of await own.execute()) {
      const sum = found.get(domain) ?? { domain, alive: 0, dead: 0 }
      found.set(domain, { domain, alive: sum.alive + alive, dead: sum.dead + dead })
    }
  }
  return found
}

/** Catch-all domains of an operator with equal counts. */
export type CatchAllCount = {
  /** '' if the operator is unknown. */
  readonly operator: string
  readonly alive: number
  readonly dead: number
  readonly domains: number
}

/** Returns the counts of catch-all domains; with `accountId` null, of all accounts. */
export async function getCatchAllCounts(
  { reader }: Database,
  accountId: string | null,
): Promise<CatchAllCount[]> {
  const query = reader
    .selectFrom('feedback_domain')
    .select(({ fn, ref }) => [
      ref('catch_all_operator').$notNull().as('operator'),
      'alive',
      'dead',
      fn.countAll<number>().as('domains'),
    ])
    .where('catch_all_operator', 'is not', null)
    .groupBy(['catch_all_operator', 'alive', 'dead'])
    .orderBy('catch_all_operator')
    .orderBy('alive')
    .orderBy('dead')
  const rows = await (accountId === null
    ? query
    : query.where('account_id', '=', accountId)
  ).execute()
  return rows.map(row => ({ ...row, domains: Number(row.domains) }))
}

/** Verdicts with a known outcome. */
export type VerdictCount = {
  readonly period: number
  readonly reason: string
  /** '' if the operator is unknown. */
  readonly operator: string
  readonly confidence: number
  readonly correct: number
  readonly wrong: number
}

/** Adds to the counts of verdicts. */
export async function addVerdictCounts(
  trx: Trx,
  accountId: string,
  counts: readonly VerdictCount[],
): Promise<void> {
  for (const chunk of chunks(counts)) {
    await trx
      .insertInto('feedback_count')
      .values(chunk.map(count => ({ ...count, account_id: accountId })))
      .onConflict(conflict =>
        conflict
          .columns(['account_id', 'period', 'reason', 'operator', 'confidence'])
          .doUpdateSet(eb => ({
            correct: eb('feedback_count.correct', '+', eb.ref('excluded.correct')),
            wrong: eb('feedback_count.wrong', '+', eb.ref('excluded.wrong')),
          })),
      )
      .execute()
  }
}

/** Returns the counts of verdicts; with `accountId` null, of all accounts. */
export async function getVerdictCounts(
  { reader }: Database,
  accountId: string | null,
): Promise<VerdictCount[]> {
  const query = reader
    .selectFrom('feedback_count')
    .select(['period', 'reason', 'operator', 'confidence', 'correct', 'wrong'])
    .orderBy('period')
    .orderBy('reason')
    .orderBy('operator')
    .orderBy('confidence')
  return (accountId === null ? query : query.where('account_id', '=', accountId)).execute()
}

/** Splits rows into those of one statement. */
export function* chunks<T>(all: readonly T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += ROWS_MAX) yield all.slice(from, from + ROWS_MAX)
}
