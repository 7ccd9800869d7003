import type { EvClient } from '../../client/client.ts'
import type { AuditEntry } from '../../client/types.ts'
import { isoTime } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { ownAccount } from '../service.ts'

type AuditQuery = {
  /** ID or name; undefined for all accounts. */
  readonly account: string | undefined
  readonly action: AuditEntry['action'] | undefined
  /** Epoch ms. */
  readonly since: number | undefined
  readonly max: number
}

export type OwnedEntry = AuditEntry & { readonly account_id: string | null }

/** Lists entries of the audit log, newest first. */
export type ListAudit = (query: AuditQuery) => Promise<readonly OwnedEntry[]>

/** Reads the audit log of the account of a key. */
export const getRemoteAudit =
  (client: EvClient): ListAudit =>
  async ({ account, action, since, max }) => {
    const { id } = await ownAccount(client, account)
    const query = omitUndefined({
      limit: Math.min(max, 100),
      action,
      since: since === undefined ? undefined : isoTime(since),
    })
    const entries: OwnedEntry[] = []
    for await (const entry of client.audit(query)) {
      entries.push({ ...entry, account_id: id })
      if (entries.length === max) break
    }
    return entries
  }
