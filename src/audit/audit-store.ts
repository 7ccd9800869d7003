import type { Database, Trx } from '../db/database.ts'
import { isAfter, type PageRange, pageStart } from '../db/paging.ts'
import type { Clock } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import type { AuditAction, Origin } from './audit.ts'
import type { AuditTable } from './tables.ts'

/** Dependencies of a use case that writes to the audit log. */
export type AuditServices = {
  readonly clock: Clock
  readonly random: Random
  readonly origin: Origin
}

type Audited = {
  readonly action: AuditAction
  readonly accountId: string | null
  readonly target?: { readonly id: string; readonly name: string | null }
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
      ...{ id: `aud_${random.token(ID_LENGTH)}`, account_id: accountId, action },
      ...{ actor: origin.actor, key_id: origin.keyId, session_id: origin.sessionId },
      ...{ ip: origin.ip, target_id: target?.id ?? null, target_name: target?.name ?? null },
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
