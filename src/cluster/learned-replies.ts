import { sql } from 'kysely'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { greatest, jsonRows } from '../db/sql-dialect.ts'
import {
  type LearnedReply,
  type LearnedReplyStore,
  REPLIES_MAX,
  REPLY_AGE_MAX_MS,
} from '../engine/learned-replies/learned-replies.ts'
import { BackgroundWriter, type ServerDataDeps } from './background-writer.ts'
import { CLUSTER_LOG } from './telemetry.ts'

/** Learned replies in the table `learned_reply`, for all processes that use the database. */
interface StoredReplies extends LearnedReplyStore {
  /** Writes pending replies. */
  close(): Promise<unknown>
}

export function openLearnedReplies({ database, log, network }: ServerDataDeps): StoredReplies {
  const writer = new BackgroundWriter<LearnedReply>({
    database,
    log,
    failed: CLUSTER_LOG.learnedRepliesNotWritten,
    keyOf: ({ domain, reply }) => `${domain} ${reply}`,
    put: replies => putLearnedReplies(database, network, replies),
    deleteExpired: () => deleteLearnedReplies(database),
  })
  return {
    load: () => getLearnedReplies(database, network),
    put: reply => writer.add(reply),
    close: () => writer.close(),
  }
}

type Row = Omit<LearnedReply, 'isRefuted'> & { readonly isRefuted: number }

/** Returns the newest replies of a network, the oldest of them first. */
async function getLearnedReplies(
  { reader }: Database,
  network: string | null,
): Promise<LearnedReply[]> {
  const { rows } = await sql<Row>`
    select domain, reply, operator, software, subnet, refuted as "isRefuted", learned_at as at
    from learned_reply where network = ${network ?? ''}
    order by learned_at desc, domain, reply limit ${REPLIES_MAX}`.execute(reader)
  return rows
    .map(row => ({ ...row, isRefuted: Number(row.isRefuted) === 1, at: Number(row.at) }))
    .reverse()
}

/** A reply with the number of domains whose server gave it to a random recipient. */
export type LearnedReplySum = {
  readonly reply: string
  readonly domains: number
  readonly operators: number
  /** The only operator; null if there are several. */
  readonly operator: string | null
  /** Domains whose server gave it to another recipient too, so that it decides nothing there. */
  readonly refuted: number
}

/** Returns the replies of the most domains. */
export async function getLearnedReplySums(
  { reader }: Database,
  network: string | null,
  max: number,
): Promise<LearnedReplySum[]> {
  const { rows } = await sql<LearnedReplySum & { first: string }>`
    select reply, sum(1 - refuted) as domains, count(distinct operator) as operators,
      min(operator) as first, sum(refuted) as refuted
    from learned_reply where network = ${network ?? ''}
    group by reply order by domains desc, reply limit ${max}`.execute(reader)
  return rows.map(({ first, ...row }) => ({
    reply: row.reply,
    domains: Number(row.domains),
    operators: Number(row.operators),
    operator: Number(row.operators) === 1 ? first : null,
    refuted: Number(row.refuted),
  }))
}

/** Sorted by key, so that concurrent writers cannot deadlock. */
async function putLearnedReplies(
  database: Database,
  network: string | null,
  replies: readonly LearnedReply[],
): Promise<void> {
  const rows = replies
    .map(one => ({ ...one, network: network ?? '', refuted: one.isRefuted ? 1 : 0 }))
    .sort((a, b) => (`${a.domain} ${a.reply}` < `${b.domain} ${b.reply}` ? -1 : 1))
  await writeAsyncCommit(database, db =>
    sql`
      insert into learned_reply
        (network, domain, reply, operator, software, subnet, refuted, learned_at)
      select value ->> 'network', value ->> 'domain', value ->> 'reply', value ->> 'operator',
        value ->> 'software', value ->> 'subnet', cast(value ->> 'refuted' as integer),
        cast(value ->> 'at' as bigint)
      from ${jsonRows(db, rows)} where true
      on conflict (network, domain, reply) do update
      set operator = excluded.operator, software = excluded.software, subnet = excluded.subnet,
        refuted = ${greatest(db, sql`learned_reply.refuted`, sql`excluded.refuted`)},
        learned_at = excluded.learned_at`.execute(db),
  )
}

/** Deletes what is too old to count, and the oldest beyond the limit. */
async function deleteLearnedReplies(database: Database): Promise<void> {
  const before = database.clock.now() - REPLY_AGE_MAX_MS
  await writeAsyncCommit(database, db =>
    sql`
      delete from learned_reply where learned_at < ${before} or learned_at < (
        select learned_at from learned_reply
        order by learned_at desc limit 1 offset ${REPLIES_MAX})`.execute(db),
  )
}
