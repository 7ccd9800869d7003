import { sql, type Transaction } from 'kysely'
import { countRows } from '../db/count-rows.ts'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import { HOUR } from '../platform/clock.ts'
import type { NoticeTable } from './tables.ts'

export type DueAlert = {
  readonly webhookId: string
  readonly url: string
  readonly accountId: string
  readonly accountName: string
  /** Null: the alert goes to the admin. */
  readonly email: string | null
  /** Events that failed for good since the last alert. */
  readonly failedEvents: number
  readonly lastError: string | null
  /** Why the webhook was disabled since the last alert; null if it was not. */
  readonly disabledReason: string | null
  /** Steady time. */
  readonly dueAt: number
}

type AlertTarget = {
  readonly webhookId: string
  readonly accountId: string
  /** Steady time. */
  readonly now: number
}

/** Queues an alert about deliveries that failed for good. */
export async function queueFailureAlert(
  trx: Transaction<Schema>,
  o: AlertTarget & { readonly events: number; readonly error: string | null },
): Promise<void> {
  await queueAlert(trx, o, { failed_events: o.events, last_error: o.error, disabled_reason: null })
}

/** Queues an alert about a webhook that was disabled. */
export async function queueDisabledAlert(
  trx: Transaction<Schema>,
  o: AlertTarget & { readonly reason: string },
): Promise<void> {
  await queueAlert(trx, o, { failed_events: 0, last_error: null, disabled_reason: o.reason })
}

/** At most one alert per webhook and hour: later changes are collected in the next one. */
const ALERT_INTERVAL_MS = HOUR

async function queueAlert(
  trx: Transaction<Schema>,
  { webhookId, accountId, now }: AlertTarget,
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
        when notice.sent_at + ${ALERT_INTERVAL_MS} > ${now} then notice.sent_at + ${ALERT_INTERVAL_MS}
        else ${now} end`.execute(trx)
}

/**
 * Maximum alerts per poll. The rest follow with the next poll, because these are no longer due
 * then.
 */
const ALERTS_MAX = 100

/** Lists the alerts that are due by a steady time, earliest first. */
export async function listDueAlerts({ reader }: Database, now: number): Promise<DueAlert[]> {
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
    .limit(ALERTS_MAX)
    .execute()
  return rows as DueAlert[]
}

/** Counts the alerts that are still to be sent. */
export async function countPendingAlerts({ reader }: Database): Promise<number> {
  return countRows(
    reader
      .selectFrom('notice')
      .innerJoin('webhook', 'webhook.id', 'notice.webhook_id')
      .where('notice.due_at', 'is not', null)
      .where('webhook.deleted_at', 'is', null),
  )
}

/**
 * Identifies an alert by its due time: if that has changed, another server has sent or claimed it.
 */
type AlertClaim = Pick<DueAlert, 'webhookId' | 'dueAt'>

/**
 * Claims an alert by postponing it. Returns false if another server was first; the caller must not
 * send it then.
 */
export async function claimAlert(
  trx: Transaction<Schema>,
  { webhookId, dueAt }: AlertClaim,
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
 * Removes what was reported from a claimed alert. Changes since then are due an hour later; `now`
 * is steady time. Returns false, and writes nothing, if the claim has expired.
 */
export async function markAlertSent(
  trx: Transaction<Schema>,
  { webhookId, dueAt }: AlertClaim,
  sent: Pick<DueAlert, 'failedEvents' | 'disabledReason'>,
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
      failed_events,
      disabled_reason,
      sent_at: now,
      last_error: failed_events > 0 ? row.last_error : null,
      due_at: isMore ? now + ALERT_INTERVAL_MS : null,
    })
    .where('webhook_id', '=', webhookId)
    .execute()
  return true
}
