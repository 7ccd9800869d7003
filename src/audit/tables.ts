declare module '../db/schema.ts' {
  interface Schema {
    audit: AuditTable
  }
}

/** An entry of the audit log: who did what, when and from where. It has no secrets. */
export type AuditTable = {
  /** `aud_…` */
  id: string
  /** Null for a failed sign-in with an unknown key. */
  account_id: string | null
  action: string
  /** Who did it: a request with a key, a dashboard session, the command line or the service. */
  actor: 'key' | 'session' | 'command_line' | 'service'
  /** The key of the request or of the session. */
  key_id: string | null
  session_id: string | null
  /** The client address of the request. */
  ip: string | null
  /** What it was done to. */
  target_id: string | null
  target_name: string | null
  /** JSON: names of the changed fields; null if the action is not an update. */
  changed: string | null
  created_at: number
}
