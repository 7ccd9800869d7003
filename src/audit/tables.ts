import type { AuditActor } from './audit.ts'

declare module '../db/schema.ts' {
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
