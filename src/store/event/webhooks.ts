import type { Kysely, Transaction } from 'kysely'
import { type EventKind, isEventKind } from '../../hook/event.ts'
import type { Database } from '../database.ts'
import type { Schema, WebhookTable } from '../schema.ts'

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
}

export type NewWebhook = Omit<Webhook, 'updatedAt' | 'disabledReason'>

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
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Null for one that is another account's, as for one that is not there. */
export async function findWebhook(
  { db }: Database,
  accountId: string,
  id: string,
): Promise<Webhook | null> {
  const row = await db
    .selectFrom('webhook')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
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
      ...(active ? { disabled_reason: null } : {}),
    })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toWebhook(row)
}

/** Removes a webhook, and what was on its way to it: nothing is sent after this. */
export async function deleteWebhook(
  trx: Transaction<Schema>,
  accountId: string,
  id: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('webhook')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  if (numDeletedRows === 0n) return false
  await trx.deleteFrom('delivery').where('webhook_id', '=', id).execute()
  return true
}

/** The IDs of the active webhooks of an account that subscribed to this kind of event. */
export async function subscribers(
  db: Kysely<Schema>,
  accountId: string,
  kind: EventKind,
): Promise<string[]> {
  const rows = await db
    .selectFrom('webhook')
    .select(['id', 'events'])
    .where('account_id', '=', accountId)
    .where('active', '=', 1)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.filter(row => kindsOf(row.events).includes(kind)).map(({ id }) => id)
}

const toWebhook = (row: WebhookTable): Webhook => ({
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
})

/** A kind that a later ev knew is passed over. */
const kindsOf = (events: string): EventKind[] =>
  (JSON.parse(events) as unknown[]).map(String).filter(isEventKind)
