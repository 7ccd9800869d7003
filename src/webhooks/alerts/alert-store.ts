import { sql, type Transaction } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { isPostgres } from '../../db/sql-dialect.ts'
import { HOUR } from '../../platform/clock.ts'
import type { NoticeTable } from '../tables.ts'

/** What the owner of a webhook is to be told now. */
export type DueNotice = {
  readonly webhookId: string
  readonly url: string
  readonly accountId: string
  readonly accountName: string
  /** Null: whoever runs the service is told. */
  readonly email: string | null
  /** Given up since the last notice. */
  readonly failedEvents: number
  readonly lastError: string | null
  /** Why it was switched off since the last notice; null: it was not. */
  readonly disabledReason: string | null
  /** Epoch ms. */
  readonly dueAt: number
}

type Entered = { readonly webhookId: string; readonly accountId: string; readonly now: number }

/** Enters deliveries that were given up. */
export async function enterFailure(
  trx: Transaction<Schema>,
  o: Entered & { readonly events: number; readonly error: string | null },
): Promise<void> {
  await enter(trx, o, { failed_events: o.events, last_error: o.error, disabled_reason: null })
}

/** Enters that a webhook was switched off. */
export async function enterDisabled(
  trx: Transaction<Schema>,
  o: Entered & { readonly reason: string },
): Promise<void> {
  await enter(trx, o, { failed_events: 0, last_error: null, disabled_reason: o.reason })
}

/** One notice for each webhook and hour: what comes within it waits, and goes together. */
const NOTICE_EVERY_MS = HOUR

async function enter(
  trx: Transaction<Schema>,
  { webhookId, accountId, now }: Entered,
  alert: Pick<NoticeTable, 'failed_events' | 'last_error' | 'disabled_reason'>,
): Promise<void> {
  await sql`
    insert into notice (webhook_id, account_id, failed_events, last_error, disabled_reason, due_at)
    values (${webhookId}, ${accountId}, ${alert.failed_events}, ${alert.last_error},
      ${alert.disabled_reason}, ${now})
    on conflict (webhook_id) do update set
      failed_events = notice.failed_events + excluded.failed_events,
      last_error = coalesce(excluded.last_error, notice.last_error),
      disabled_reason = coalesce(excluded.disabled_reason, notice.disabled_reason),
      due_at = case
        when notice.due_at is not null then notice.due_at
        when notice.sent_at + ${NOTICE_EVERY_MS} > ${now} then notice.sent_at + ${NOTICE_EVERY_MS}
        else ${now} end`.execute(trx)
}

/** Notices in one go; what is left comes with the next, as these are no longer due then. */
const NOTICES_MAX = 100

/** The notices that are due by now, epoch ms, the earliest first. */
export async function dueNotices({ reader }: Database, now: number): Promise<DueNotice[]> {
  const rows = await reader
    .selectFrom('notice')
    .innerJoin('webhook', 'webhook.id', 'notice.webhook_id')
    .innerJoin('account', 'account.id', 'webhook.account_id')
    .select([
      ...(['webhook.id as webhookId', 'webhook.url as url', 'account.id as accountId'] as const),
      ...(['account.name as accountName', 'account.email as email'] as const),
      ...(['notice.failed_events as failedEvents', 'notice.last_error as lastError'] as const),
      ...(['notice.disabled_reason as disabledReason', 'notice.due_at as dueAt'] as const),
    ])
    .where('notice.due_at', '<=', now)
    .where('webhook.deleted_at', 'is', null)
    .orderBy('notice.due_at')
    .orderBy('notice.webhook_id')
    .limit(NOTICES_MAX)
    .execute()
  return rows as DueNotice[]
}

/** How many are still to be sent. */
export async function countNotices({ reader }: Database): Promise<number> {
  const { count } = await reader
    .selectFrom('notice')
    .innerJoin('webhook', 'webhook.id', 'notice.webhook_id')
    .select(eb => eb.fn.countAll().as('count'))
    .where('notice.due_at', 'is not', null)
    .where('webhook.deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Which notice is meant: where it is due at another time, somebody else has sent it or put it off. */
export type NoticeAt = Pick<DueNotice, 'webhookId' | 'dueAt'>

/**
 * Puts a notice off, and so claims it until then: whoever comes second, on whatever server, gets false and does not
 * send it.
 */
export async function postponeNotice(
  trx: Transaction<Schema>,
  { webhookId, dueAt }: NoticeAt,
  until: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('notice')
    .set({ due_at: until })
    .where('webhook_id', '=', webhookId)
    .where('due_at', '=', dueAt)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/**
 * Takes what was told off a notice that was claimed. What came while it was on its way is due an hour later. False:
 * the claim is over, and nothing is written.
 */
export async function noticeSent(
  trx: Transaction<Schema>,
  { webhookId, dueAt }: NoticeAt,
  sent: Pick<DueNotice, 'failedEvents' | 'disabledReason'>,
  now: number,
): Promise<boolean> {
  const row = await trx
    .selectFrom('notice')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('due_at', '=', dueAt)
    .$if(isPostgres(trx), query => query.forUpdate())
    .executeTakeFirst()
  if (row === undefined) return false
  const failed_events = Math.max(0, row.failed_events - sent.failedEvents)
  const disabled_reason = row.disabled_reason === sent.disabledReason ? null : row.disabled_reason
  const isMore = failed_events > 0 || disabled_reason !== null
  await trx
    .updateTable('notice')
    .set({
      ...{ failed_events, disabled_reason, sent_at: now },
      last_error: failed_events > 0 ? row.last_error : null,
      due_at: isMore ? now + NOTICE_EVERY_MS : null,
    })
    .where('webhook_id', '=', webhookId)
    .execute()
  return true
}
