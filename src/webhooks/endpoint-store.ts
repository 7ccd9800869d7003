import { type Kysely, sql, type Transaction } from 'kysely'
import { countRows } from '../db/count-rows.ts'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import type { CustomHeaders } from './custom-headers.ts'
import { type DailyAttempts, type DisabledCode, parseDailyAttempts } from './endpoint.ts'
import { type EventKind, isEventKind } from './event-types.ts'
import type { WebhookTable } from './tables.ts'

/** A webhook endpoint of an account. */
export type Webhook = {
  readonly id: string
  readonly accountId: string
  readonly url: string
  readonly events: readonly EventKind[]
  readonly active: boolean
  readonly description: string | null
  /** Encrypted. */
  readonly secret: string
  /** Its last characters. */
  readonly secretHint: string
  /** Epoch ms. */
  readonly createdAt: number
  readonly updatedAt: number
  /** Why ev disabled it; null if it did not. */
  readonly disabledReason: string | null
  readonly disabledCode: DisabledCode | null
  /** The previous secret, encrypted, which also signs until `until`; null if there is none. */
  readonly previousSecret: { readonly secret: string; readonly until: number } | null
  /** Start of the current series of failed attempts, epoch ms; null if the last one succeeded. */
  readonly failingSince: number | null
  /** Custom request headers, their values encrypted. */
  readonly headers: CustomHeaders
  /** Attempts by day, oldest first. */
  readonly dailyAttempts: readonly DailyAttempts[]
  /** The job whose events alone it gets; null for an endpoint of the account. */
  readonly jobId: string | null
}

export type NewWebhook = Omit<
  Webhook,
  | ('updatedAt' | 'disabledReason' | 'disabledCode' | 'previousSecret')
  | ('failingSince' | 'dailyAttempts' | 'headers' | 'jobId')
> &
  Partial<Pick<Webhook, 'headers' | 'jobId'>>

export async function createWebhook(
  trx: Transaction<Schema>,
  webhook: NewWebhook,
): Promise<Webhook> {
  const row = await trx
    .insertInto('webhook')
    .values({
      id: webhook.id,
      account_id: webhook.accountId,
      url: webhook.url,
      events: JSON.stringify(webhook.events),
      active: webhook.active ? 1 : 0,
      description: webhook.description,
      secret: webhook.secret,
      secret_hint: webhook.secretHint,
      created_at: webhook.createdAt,
      updated_at: webhook.createdAt,
      disabled_reason: null,
      disabled_code: null,
      headers: formatHeaders(webhook.headers ?? {}),
      job_id: webhook.jobId ?? null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toWebhook(row)
}

/**
 * Lists the webhooks of an account without those of its jobs, oldest first; there are at most a few
 * dozen.
 */
export async function listWebhooks({ db }: Database, accountId: string): Promise<Webhook[]> {
  const rows = await db
    .selectFrom('webhook')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('job_id', 'is', null)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map(toWebhook)
}

/** Counts the webhooks of an account without those of its jobs. */
export async function countWebhooks(db: Kysely<Schema>, accountId: string): Promise<number> {
  return countRows(
    db
      .selectFrom('webhook')
      .where('account_id', '=', accountId)
      .where('job_id', 'is', null)
      .where('deleted_at', 'is', null),
  )
}

/**
 * Finds a webhook of an account; `accountId` null finds it in any account. Returns null if there is
 * none.
 */
export async function findWebhook(
  { db }: Database,
  accountId: string | null,
  id: string,
): Promise<Webhook | null> {
  const row = await db
    .selectFrom('webhook')
    .selectAll()
    .where('id', '=', id)
    .$if(accountId !== null, query => query.where('account_id', '=', accountId))
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row === undefined ? null : toWebhook(row)
}

export type WebhookPatch = {
  readonly [Field in 'url' | 'events' | 'active' | 'description' | 'headers']?:
    | Webhook[Field]
    | undefined
} & { readonly now: number }

/** Updates the fields in `patch`. Enabling a webhook clears the reason why it was disabled. */
export async function updateWebhook(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  patch: WebhookPatch,
): Promise<Webhook | null> {
  const { url, events, active, description, headers, now } = patch
  const row = await trx
    .updateTable('webhook')
    .set({
      updated_at: now,
      ...(url === undefined ? {} : { url }),
      ...(events === undefined ? {} : { events: JSON.stringify(events) }),
      ...(description === undefined ? {} : { description }),
      ...(headers === undefined ? {} : { headers: formatHeaders(headers) }),
      ...(active === undefined ? {} : { active: active ? 1 : 0 }),
      ...(active ? { disabled_reason: null, disabled_code: null } : {}),
      failing_since: keptFailingSince(patch),
    })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toWebhook(row)
}

/** The failure series restarts when a webhook is enabled or its URL changes. */
const keptFailingSince = ({ url, active }: WebhookPatch) =>
  sql<number | null>`case when url = coalesce(${url ?? null}, url) and active >= ${active ? 1 : 0}
    then failing_since end`

type NewSecret = {
  /** Encrypted. */
  readonly secret: string
  readonly secretHint: string
  /** Grace period of the previous secret; 0: it stops signing at once. */
  readonly graceMs: number
  readonly now: number
}

/** Issues a new signing secret. Only the last previous secret is kept. */
export async function rotateSecret(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  { secret, secretHint, graceMs, now }: NewSecret,
): Promise<Webhook | null> {
  const row = await trx
    .updateTable('webhook')
    .set(eb => ({
      secret,
      secret_hint: secretHint,
      updated_at: now,
      previous_secret: graceMs > 0 ? eb.ref('secret') : null,
      previous_until: graceMs > 0 ? now + graceMs : null,
    }))
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toWebhook(row)
}

/**
 * Marks a webhook as deleted: it is no longer shown and gets no more events. Its deliveries are
 * deleted later, in steps.
 */
export async function deleteWebhook(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('webhook')
    .set({ deleted_at: now })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Deletes the webhook of a job, like `deleteWebhook`. */
export async function deleteJobWebhook(
  trx: Transaction<Schema>,
  { accountId, jobId, now }: { accountId: string; jobId: string; now: number },
): Promise<void> {
  await trx
    .updateTable('webhook')
    .set({ deleted_at: now })
    .where('account_id', '=', accountId)
    .where('job_id', '=', jobId)
    .where('deleted_at', 'is', null)
    .execute()
}

export type Subscription = {
  readonly accountId: string
  readonly kind: EventKind
  /** The job of the event; its webhook gets the event too. */
  readonly jobId?: string
  /** Whether only the webhook of the job gets the event. */
  readonly onlyJob?: boolean
}

/**
 * Returns the IDs of the active webhooks of an account that are subscribed to an event kind, and
 * locks them against deletion until the end of the transaction.
 */
export async function subscribers(
  trx: Transaction<Schema>,
  { accountId, kind, jobId, onlyJob = false }: Subscription,
): Promise<string[]> {
  const rows = await trx
    .selectFrom('webhook')
    .select(['id', 'events'])
    .where('account_id', '=', accountId)
    .where(eb =>
      eb.or([
        ...(onlyJob ? [] : [eb('job_id', 'is', null)]),
        ...(jobId === undefined ? [] : [eb('job_id', '=', jobId)]),
      ]),
    )
    .where('active', '=', 1)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .$if(isPostgres(trx), query => query.forKeyShare())
    .execute()
  return rows.filter(row => parseKinds(row.events).includes(kind)).map(({ id }) => id)
}

export const toWebhook = (row: WebhookTable): Webhook => ({
  id: row.id,
  accountId: row.account_id,
  url: row.url,
  events: parseKinds(row.events),
  active: row.active === 1,
  description: row.description,
  secret: row.secret,
  secretHint: row.secret_hint,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  disabledReason: row.disabled_reason,
  disabledCode: row.disabled_code,
  previousSecret: toPreviousSecret(row),
  failingSince: row.failing_since,
  headers: row.headers === null ? {} : (JSON.parse(row.headers) as CustomHeaders),
  dailyAttempts: parseDailyAttempts(row.daily_attempts),
  jobId: row.job_id,
})

const formatHeaders = (headers: CustomHeaders) =>
  Object.keys(headers).length === 0 ? null : JSON.stringify(headers)

const toPreviousSecret = ({ previous_secret: secret, previous_until: until }: WebhookTable) =>
  secret === null || until === null ? null : { secret, until }

/** Skips a kind that only a newer version knows. */
const parseKinds = (events: string): EventKind[] =>
  (JSON.parse(events) as unknown[]).map(String).filter(isEventKind)
