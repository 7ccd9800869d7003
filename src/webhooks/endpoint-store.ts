import { type Kysely, sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import type { DisabledCode } from './endpoint.ts'
import { type EventKind, isEventKind } from './event.ts'
import type { WebhookTable } from './tables.ts'

/** Where an account wants to be told of what happens. */
export type Webhook = {
  readonly id: string
  readonly accountId: string
  readonly url: string
  readonly events: readonly EventKind[]
  readonly active: boolean
  readonly description: string | null
  /** Sealed. */
  readonly secret: string
  /** Its last characters. */
  readonly secretHint: string
  /** Epoch ms. */
  readonly createdAt: number
  readonly updatedAt: number
  /** Why ev switched it off; null: it did not. */
  readonly disabledReason: string | null
  readonly disabledCode: DisabledCode | null
  /** The secret before this one, sealed, with which is signed beside it until then; null: there is none. */
  readonly previousSecret: { readonly secret: string; readonly until: number } | null
  /** Since when all attempts have failed, epoch ms; null: the last one did not. */
  readonly failingSince: number | null
}

export type NewWebhook = Omit<
  Webhook,
  'updatedAt' | 'disabledReason' | 'disabledCode' | 'previousSecret' | 'failingSince'
>

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
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toWebhook(row)
}

/** All of an account, the oldest first; there are at most a few dozen. */
export async function listWebhooks({ db }: Database, accountId: string): Promise<Webhook[]> {
  const rows = await db
    .selectFrom('webhook')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map(toWebhook)
}

export async function countWebhooks(db: Kysely<Schema>, accountId: string): Promise<number> {
  const { count } = await db
    .selectFrom('webhook')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Null for one that is another account's, as for one that is not there; `accountId` null: of any account. */
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
  readonly [Field in 'url' | 'events' | 'active' | 'description']?: Webhook[Field] | undefined
} & { readonly now: number }

/** Changes what the patch names. One that is switched on again has no reason for being off any more. */
export async function updateWebhook(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  patch: WebhookPatch,
): Promise<Webhook | null> {
  const { url, events, active, description, now } = patch
  const row = await trx
    .updateTable('webhook')
    .set({
      updated_at: now,
      ...(url === undefined ? {} : { url }),
      ...(events === undefined ? {} : { events: JSON.stringify(events) }),
      ...(description === undefined ? {} : { description }),
      ...(active === undefined ? {} : { active: active ? 1 : 0 }),
      ...(active ? { disabled_reason: null, disabled_code: null } : {}),
      failing_since: stillFailing(patch),
    })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toWebhook(row)
}

/** Nothing is held against one that was off until now, or that is to be found elsewhere from now on. */
const stillFailing = ({ url, active }: WebhookPatch) =>
  sql<number | null>`case when url = coalesce(${url ?? null}, url) and active >= ${active ? 1 : 0}
    then failing_since end`

export type NewSecret = {
  /** Sealed. */
  readonly secret: string
  readonly secretHint: string
  /** How long the secret before it still signs; 0: not at all. */
  readonly graceMs: number
  readonly now: number
}

/** Gives a webhook another secret. Of those before it one alone is kept, the last. */
export async function rotateSecret(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
  { secret, secretHint, graceMs, now }: NewSecret,
): Promise<Webhook | null> {
  const row = await trx
    .updateTable('webhook')
    .set(eb => ({
      ...{ secret, secret_hint: secretHint, updated_at: now },
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

/** Removes a webhook: nothing of it is shown or sent after this. What was on its way to it goes later, in steps. */
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

/** The IDs of the active webhooks of an account that subscribed to this kind of event; none of them goes before the transaction ends. */
export async function subscribers(
  trx: Transaction<Schema>,
  accountId: string,
  kind: EventKind,
): Promise<string[]> {
  const rows = await trx
    .selectFrom('webhook')
    .select(['id', 'events'])
    .where('account_id', '=', accountId)
    .where('active', '=', 1)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .$if(isPostgres(trx), query => query.forKeyShare())
    .execute()
  return rows.filter(row => kindsOf(row.events).includes(kind)).map(({ id }) => id)
}

export const toWebhook = (row: WebhookTable): Webhook => ({
  id: row.id,
  accountId: row.account_id,
  url: row.url,
  events: kindsOf(row.events),
  active: row.active === 1,
  description: row.description,
  secret: row.secret,
  secretHint: row.secret_hint,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  disabledReason: row.disabled_reason,
  disabledCode: row.disabled_code,
  previousSecret: previousOf(row),
  failingSince: row.failing_since,
})

const previousOf = ({ previous_secret: secret, previous_until: until }: WebhookTable) =>
  secret === null || until === null ? null : { secret, until }

/** A kind that a later ev knew is passed over. */
const kindsOf = (events: string): EventKind[] =>
  (JSON.parse(events) as unknown[]).map(String).filter(isEventKind)
