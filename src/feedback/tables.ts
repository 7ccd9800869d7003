import type { FeedbackKind, Outcome } from './feedback.ts'

declare module '../db/schema.ts' {
  interface Schema {
    feedback: FeedbackTable
    feedback_account: FeedbackAccountTable
    feedback_address: FeedbackAddressTable
    feedback_count: FeedbackCountTable
    feedback_domain: FeedbackDomainTable
    feedback_day: FeedbackDayTable
    feedback_source: FeedbackSourceTable
    feedback_reply: FeedbackReplyTable
  }
}

/** One piece of feedback, as it was received. */
type FeedbackTable = {
  account_id: string
  /** Identifies the piece: a second piece with the same key is ignored. */
  dedupe_key: string
  address_key: string
  kind: FeedbackKind
  /** Null if it says nothing about the mailbox. */
  outcome: Outcome | null
  code: number | null
  enhanced_code: string | null
  /** Diagnostic text, sanitized. */
  text: string | null
  occurred_at: number
  /** `api`, `import`, or the name of the provider. */
  source: string
  created_at: number
}

/** An account that gives feedback; '' is the owner of lists of the command line. */
type FeedbackAccountTable = {
  account_id: string
  created_at: number
  /** Its rows of `feedback`, kept here so that they need not be counted. */
  pieces: number
}

/** The newest outcome of an address, and the verdict that it is compared with. */
export type FeedbackAddressTable = {
  address_key: string
  account_id: string
  /** Null before the first feedback. */
  outcome: Outcome | null
  kind: FeedbackKind | null
  code: number | null
  enhanced_code: string | null
  text: string | null
  occurred_at: number | null
  /** 1 if the mail bounced although the server had accepted the address in a probe. */
  contradicted: number
  /** The last verdict: its reason, operator, confidence and `deliverable`; null if there is none. */
  reason: string | null
  operator: string | null
  confidence: number | null
  deliverable: number | null
  verified_at: number | null
  /** The reply that decided the verdict, normalized; null if none did. */
  reply: string | null
  /** The outcome that the verdict was counted with; null if it was not counted. */
  counted: Outcome | null
}

/** Verdicts with a known outcome, by month, reason, operator and confidence. */
type FeedbackCountTable = {
  account_id: string
  /** Start of the period of the outcome, epoch ms. */
  period: number
  reason: string
  /** '' if the operator is unknown. */
  operator: string
  confidence: number
  correct: number
  wrong: number
}

/** Addresses of a domain by their newest outcome. */
type FeedbackDomainTable = {
  domain: string
  account_id: string
  alive: number
  dead: number
  /** Operator of a catch-all domain with reports about its verdicts; null for other domains. */
  catch_all_operator: string | null
}

/** Recorded pieces by the day when they were received. */
type FeedbackDayTable = {
  account_id: string
  /** Start of the day in UTC, epoch ms. */
  day: number
  /** `api`, `import`, or the name of the provider. */
  source: string
  kind: FeedbackKind
  pieces: number
}

/** Replies of servers that decided verdicts with a known outcome, by month and operator. */
type FeedbackReplyTable = {
  account_id: string
  /** Start of the period of the outcome, epoch ms. */
  period: number
  /** '' if the operator is unknown. */
  operator: string
  /** Meaning, code and normalized text. */
  reply: string
  confirmed: number
  contradicted: number
}

/** A URL of an account to which an email provider sends events. */
export type FeedbackSourceTable = {
  id: string
  account_id: string
  provider: string
  /** The key or the password that authenticates the provider, encrypted. */
  secret: string
  /** A part of it that may be shown. */
  key_hint: string
  created_at: number
  last_received_at: number | null
}
