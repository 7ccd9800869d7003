import type { ActionPolicy } from '../engine/verdict/action.ts'
import type { Role } from './people/role.ts'

declare module '../db/schema.ts' {
  interface Schema {
    account: AccountTable
    api_key: ApiKeyTable
    key_secret: KeySecretTable
    person: PersonTable
    recovery_code: RecoveryCodeTable
    session: SessionTable
    credit: CreditTable
    usage: UsageTable
    verification: VerificationTable
    replay: ReplayTable
    hold: HoldTable
    bucket: BucketTable
  }
}

/** A tenant. Its data is visible to no other account. */
export type AccountTable = {
  id: string
  name: string
  plan: string
  /** Recipient of webhook failure alerts; null: the admin. */
  email: string | null
  created_at: number
  /** 1 if the account may see the Health page. */
  operator: number
  /** Decides about the actions of results; null: the policy of the service. */
  action_policy: ActionPolicy | null
  /** 1 if people who sign in with a password need a second factor, and keys do not sign in. */
  two_factor_required: number
  /** Rows of all its jobs, kept here so that they need not be summed. */
  stored_rows: number
}

/** An API key. Its secrets are in `key_secret`; it has two during a rotation's grace period. */
export type ApiKeyTable = {
  id: string
  account_id: string
  name: string
  /** JSON: an array of scopes. */
  scopes: string
  /** JSON: addresses and CIDRs; empty: any. */
  allowed_ips: string
  /** JSON: domains; empty: any. */
  allowed_domains: string
  rate_limit_per_minute: number | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  revoked_at: number | null
}

export type KeySecretTable = {
  /** SHA-256 of the secret, hexadecimal. */
  hash: string
  key_id: string
  /** The visible parts: its first and its last characters. */
  prefix: string
  hint: string
  created_at: number
  /** End of the grace period, once a newer secret exists. */
  expires_at: number | null
}

/** A person who signs in to the dashboard of an account. */
export type PersonTable = {
  /** `per_…` */
  id: string
  account_id: string
  name: string
  /** In lower case; unique within the account. */
  email: string
  role: Role
  created_at: number
  /** SHA-256 of the token of the invitation, hexadecimal; null if none is open. */
  invitation_hash: string | null
  invitation_expires_at: number | null
  /** Hash of the password in the PHC string format. */
  password: string | null
  /** Encrypted; null without a second factor. */
  totp_secret: string | null
  /** Time step of the last accepted code: neither it nor an earlier one is accepted again. */
  totp_step: number | null
  /** Issuer and subject at the identity provider; both null until the person has signed in there. */
  oidc_issuer: string | null
  oidc_subject: string | null
  last_signed_in_at: number | null
}

/** A code that replaces the second factor once. */
type RecoveryCodeTable = {
  person_id: string
  /** SHA-256 of the code, hexadecimal. */
  hash: string
}

export type SessionTable = {
  id: string
  /** SHA-256 of its token, hexadecimal. */
  hash: string
  /** The key or the person that opened it, which has its scopes. */
  key_id: string
  account_id: string
  created_at: number
  last_seen_at: number
  /** Maximum age, however often it is used. */
  expires_at: number
  /** End of the grace period of the secret that opened it; null if that secret was not rotated. */
  secret_expires_at: number | null
  /** Client address and User-Agent at sign-in. */
  ip: string
  agent: string
}

/** Credits of an account in one period. */
export type CreditTable = {
  account_id: string
  /** Epoch ms. */
  period_start: number
  used: number
  /** Reserved for verifications in flight. */
  held: number
  /** The last threshold that an event was sent for, in percent; 0 before the first. */
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

/** The origin of a verification; `list`: `ev verify` with a list. */
export type VerificationSource = 'list' | 'single' | 'bulk' | 'batch' | 'file'

/** The verification history, one row per verified address. */
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

/** The stored response to a request with an Idempotency-Key. */
export type ReplayTable = {
  key_id: string
  idempotency_key: string
  /** SHA-256 of method, path and body, hexadecimal. */
  fingerprint: string
  status: number
  /** Encrypted JSON: it may contain a secret that is shown once. */
  answer: string
  created_at: number
}

/**
 * Credits that a cluster member has reserved for single verifications. They are released when the
 * member expires.
 */
type HoldTable = {
  member_id: string
  account_id: string
  period_start: number
  amount: number
}

/** A rate limit window: requests of one kind by one client. */
type BucketTable = {
  key: string
  used: number
  per_ms: number
  ends_at: number
}
