import type { Context } from 'hono'
import type { ApiKey } from '../../accounts/key-store.ts'
import { endSession as deleteSession } from '../../accounts/session-store.ts'
import { type AuditAction, addAuditEntry } from '../../audit.ts'
import { type Trx, write } from '../../db/database.ts'
import type { DashboardDeps, Env } from '../deps.ts'

type SessionEvent = {
  readonly action: Extract<AuditAction, 'session.started' | 'session.refused'>
  /** Null if the given key is unknown. */
  readonly key: Pick<ApiKey, 'id' | 'accountId' | 'name'> | null
  /** Omitted for a refused sign-in. */
  readonly sessionId?: string
}

/** Records a sign-in, or a refused one, in the audit log. */
export function auditSession(
  trx: Trx,
  c: Context<Env>,
  { clock, random }: DashboardDeps,
  { action, key, sessionId: id }: SessionEvent,
): Promise<void> {
  const [keyId, sessionId] = [key?.id ?? null, id ?? null]
  const origin = { actor: 'session', keyId, sessionId, ip: c.get('ip') } as const
  return addAuditEntry(
    trx,
    { clock, random, origin },
    {
      ...{ action, accountId: key?.accountId ?? null },
      ...(key !== null && { target: { id: sessionId ?? key.id, name: key.name } }),
    },
  )
}

/** Ends a session of the account and records it. Returns false if there is none. */
export function endSession(
  c: Context<Env>,
  { database, clock, random }: DashboardDeps,
  id: string,
): Promise<boolean> {
  const { accountId, keyId, sessionId } = c.get('user')
  const origin = { actor: 'session', keyId, sessionId, ip: c.get('ip') } as const
  return write(database, async trx => {
    if (!(await deleteSession(trx, accountId, id))) return false
    const entry = { action: 'session.ended', accountId, target: { id, name: null } } as const
    await addAuditEntry(trx, { clock, random, origin }, entry)
    return true
  })
}
