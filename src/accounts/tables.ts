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
