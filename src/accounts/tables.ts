declare module '../db/schema.ts' {
  interface Schema {
    account: AccountTable
    api_key: ApiKeyTable
    key_secret: KeySecretTable
    session: SessionTable
    credit: CreditTable
    usage: UsageTable
    verification: VerificationTable
    replay: ReplayTable
    hold: HoldTable
    bucket: BucketTable
  }
}

/** A tenant: what it owns nobody else sees. */
export type AccountTable = {
  id: string
  name: string
  plan: string
  /** Who is written to when something is wrong; null: whoever runs the service. */
  email: string | null
  created_at: number
  /** 1: that of whoever runs the service, which is shown how the service itself is. */
  operator: number
  /** Rows of its jobs, so that nobody need sum them up. */
  stored_rows: number
}

/** A key of the API; its texts stand in `key_secret`, of which it has two while it is being rotated. */
export type ApiKeyTable = {
  id: string
  account_id: string
  name: string
  /** JSON: an array of scopes. */
  scopes: string
  /** JSON: addresses and CIDRs; empty: any. */
  allowed_ips: string
  /** JSON: names of web sites; empty: any. */
  allowed_domains: string
  rate_limit_per_minute: number | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  revoked_at: number | null
}

export type KeySecretTable = {
  /** SHA-256 of the key's text, hexadecimal. */
  hash: string
  key_id: string
  /** Its first and its last characters, to be shown. */
  prefix: string
  hint: string
  created_at: number
  /** The end of its grace, once another has taken its place. */
  expires_at: number | null
}

/** Somebody who is signed in to the dashboard. */
export type SessionTable = {
  id: string
  /** SHA-256 of its token, hexadecimal. */
  hash: string
  /** What they signed in with, and may do. */
  key_id: string
  account_id: string
  created_at: number
  last_seen_at: number
  /** When it is over, however often it is used. */
  expires_at: number
  /** The end of the grace period of the key's text with which it was opened; null: that text was not replaced. */
  secret_expires_at: number | null
  /** From where somebody signed in, and with what, as their browser says. */
  ip: string
  agent: string
}

/** What an account used of its plan in one period. */
export type CreditTable = {
  account_id: string
  /** Epoch ms. */
  period_start: number
  used: number
  /** Set aside for what is under way. */
  held: number
  /** The last threshold that was told of, in per cent; 0: none. */
  warned: number
}

/** Verifications by day, key and class. */
export type UsageTable = {
  account_id: string
  key_id: string
  /** Midnight UTC, epoch ms. */
  day: number
  class: string
  verifications: number
  cached: number
  credits: number
}

/** How an address was verified; `list`: by a list of the command line. */
export type VerificationSource = 'list' | 'single' | 'bulk' | 'batch' | 'file'

/** The history: one row for each address that was verified. */
export type VerificationTable = {
  id: string
  account_id: string
  key_id: string
  email: string
  valid: number
  deliverable: number
  risk_level: string
  reason: string
  class: string
  cached: number
  source: VerificationSource
  job_id: string | null
  sandbox: number
  created_at: number
}

/** What a request with an Idempotency-Key was answered with. */
export type ReplayTable = {
  key_id: string
  idempotency_key: string
  /** SHA-256 of method, path and body, hexadecimal. */
  fingerprint: string
  status: number
  /** JSON, sealed: it may hold a secret that is shown once. */
  answer: string
  created_at: number
}

/** Credits that a member has set aside for single verifications, which end with it. */
export type HoldTable = {
  member_id: string
  account_id: string
  period_start: number
  amount: number
}

/** Requests of one kind by one asker. */
export type BucketTable = {
  key: string
  used: number
  per_ms: number
  ends_at: number
}
