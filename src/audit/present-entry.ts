import { isoTime } from '../platform/format.ts'
import type { AuditAction } from './audit.ts'
import type { AuditTable } from './tables.ts'

/** An entry of the audit log in JSON. */
export const presentEntry = ({ account_id: _, ...row }: AuditTable) => ({
  ...row,
  action: row.action as AuditAction,
  changed: row.changed === null ? null : (JSON.parse(row.changed) as string[]),
  created_at: isoTime(row.created_at),
})
