import { sql } from 'kysely'
import type { Database, Trx } from './db/database.ts'
import { createExpiry, isAfter, type PageRange, pageStart } from './db/paging.ts'
import { type Clock, DAY } from './platform/clock.ts'
import { isoTime } from './platform/format.ts'
import type { Random } from './platform/random.ts'

/**
 * The actions of the audit log, of all modules: the API, the command line and the dashboard need the
 * whole list, and the modules that write entries import this file.
 */
export const AUDIT_ACTIONS = [
  ...(['account.created', 'account.updated'] as const),
  ...(['key.created', 'key.updated', 'key.rotated', 'key.revoked'] as const),
  ...(['person.invited', 'person.joined', 'person.updated', 'person.removed'] as const),
  ...(['person.password_changed', 'person.totp_enabled', 'person.totp_disabled'] as const),
  ...(['person.recovery_codes_created', 'person.recovery_code_used'] as const),
  ...(['person.identity_linked', 'person.identity_unlinked'] as const),
  ...(['webhook.created', 'webhook.updated', 'webhook.rotated', 'webhook.deleted'] as const),
  ...(['feedback_source.created', 'feedback_source.deleted'] as const),
  ...(['session.started', 'session.refused', 'session.ended'] as const),
  ...(['results.downloaded', 'results.shared', 'job.finished', 'request.refused'] as const),
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

export const isAuditAction = (text: string): text is AuditAction =>
  (AUDIT_ACTIONS as readonly string[]).includes(text)

/** A request with an API key, a signed link, a dashboard session, a command, or the service itself. */
export const AUDIT_ACTORS = ['key', 'link', 'session', 'command_line', 'service'] as const

type AuditActor = (typeof AUDIT_ACTORS)[number]

/** The actor of an action and the address of its client. */
export type Origin = {
  readonly actor: AuditActor
  readonly keyId: string | null
  /** The person who is signed in; null for a key. */
  readonly person: { readonly id: string; readonly name: string } | null
  readonly sessionId: string | null
  readonly ip: string | null
}

/** The origin of what a command of this machine does. */
export const COMMAND_LINE: Origin = local('command_line')

/** The origin of what the service does without a request. */
export const SERVICE: Origin = local('service')

function local(actor: AuditActor): Origin {
  return { actor, keyId: null, person: null, sessionId: null, ip: null }
}

/** A year: an incident may be noticed months later. */
export const AUDIT_RETENTION_MS = 365 * DAY

declare module './db/schema.ts' {
  interface Schema {
    audit: AuditTable
  }
}

/** An entry of the audit log. It contains no secrets. */
export type AuditTable = {
  /** `aud_…` */
  id: string
  /** Null for a failed sign-in with an unknown key. */
  account_id: string | null
  action: string
  actor: AuditActor
  /** The key of the request or of the session. */
  key_id: string | null
  /** The person whose session it was, with the name at the time. */
  person_id: string | null
  person_name: string | null
  session_id: string | null
  /** The client address of the request. */
  ip: string | null
  /** ID of the key, webhook, account, session or job that the action is about. */
  target_id: string | null
  target_name: string | null
  /** JSON: names of the changed fields; null if the action is not an update. */
  changed: string | null
  created_at: number
}

/** Dependencies of a use case that writes to the audit log. */
export type AuditServices = {
  readonly clock: Clock
  readonly random: Random
  readonly origin: Origin
}

type Audited = {
  readonly action: AuditAction
  readonly accountId: string | null
  readonly target?: { readonly id: string | null; readonly name: string | null }
  /** Names of the changed fields. */
  readonly changed?: readonly string[]
}

/** Writes an entry in the transaction of the change, so that it exists exactly if that commits. */
export async function addAuditEntry(
  trx: Trx,
  { clock, random, origin }: AuditServices,
  { action, accountId, target, changed }: Audited,
): Promise<void> {
  await trx
    .insertInto('audit')
    .values({
      id: `aud_${random.token(ID_LENGTH)}`,
      account_id: accountId,
      action,
      actor: origin.actor,
      key_id: origin.keyId,
      person_id: origin.person?.id ?? null,
      person_name: origin.person?.name ?? null,
      session_id: origin.sessionId,
      ip: origin.ip,
      target_id: target?.id ?? null,
      target_name: target?.name ?? null,
      changed: changed === undefined ? null : JSON.stringify(changed.toSorted()),
      created_at: clock.now(),
    })
    .execute()
}

const ID_LENGTH = 16

type AuditQuery = PageRange & {
  /** Null for the entries of all accounts, and those without one. */
  readonly accountId: string | null
  readonly action?: AuditAction | undefined
  /** Start of the time range, epoch ms. */
  readonly since?: number | undefined
  readonly max: number
}

/** Returns a page of the audit log, newest first. */
export function getAuditPage({ reader }: Database, o: AuditQuery): Promise<AuditTable[]> {
  let query = reader.selectFrom('audit').selectAll()
  if (o.accountId !== null) query = query.where('account_id', '=', o.accountId)
  if (o.action !== undefined) query = query.where('action', '=', o.action)
  if (o.since !== undefined) query = query.where('created_at', '>=', o.since)
  const end = pageStart(o)
  if (end !== null) query = query.where(isAfter(end))
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

/** An entry of the audit log in JSON. */
export const presentEntry = ({ account_id: _, ...row }: AuditTable) => ({
  ...row,
  action: row.action as AuditAction,
  changed: row.changed === null ? null : (JSON.parse(row.changed) as string[]),
  created_at: isoTime(row.created_at),
})

/** Deletes entries of the audit log written before a time, epoch ms. */
export const deleteAuditBefore = createExpiry(
  'audit',
  ['id'],
  before => sql`created_at < ${before} order by created_at`,
)
