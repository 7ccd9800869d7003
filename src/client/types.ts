// Made by tools/client-types.mjs from the OpenAPI document: do not edit.

/** low: accepted, nothing against it. medium: accepted, with less quality or certainty. high: mail will bounce or do harm. unknown: no answer could be had. */
export type RiskLevel = 'low' | 'medium' | 'high' | 'unknown'

/** Why the result is what it is. */
export type Reason =
  | 'accepted_email'
  | 'role_account'
  | 'possible_typo'
  | 'catch_all'
  | 'low_deliverability'
  | 'low_quality'
  | 'disposable_email'
  | 'mailbox_full'
  | 'spam_trap'
  | 'blocklisted'
  | 'mailbox_disabled'
  | 'rejected_email'
  | 'invalid_email'
  | 'invalid_domain'
  | 'no_mx_record'
  | 'does_not_accept_mail'
  | 'dns_error'
  | 'no_connect'
  | 'timeout'
  | 'unavailable_smtp'
  | 'invalid_smtp'
  | 'greylisted'
  | 'probe_blocked'
  | 'smtp_skipped'
  | 'unexpected_error'

/** One of four; jobs are counted by it, and downloads and the history are filtered by it. */
export type Class = 'deliverable' | 'undeliverable' | 'risky' | 'unknown'

export type VerifyStep =
  | {
      step: 'syntax'
      ok: boolean
      address: {
        local: string
        domain: string
      } | null
      did_you_mean: string | null
      /** What has happened, for people. */
      text: string
    }
  | {
      step: 'domain'
      /** null: the DNS could not tell. */
      ok: boolean | null
      kind: 'mx' | 'implicit' | 'null-mx' | 'no-domain' | 'no-mail' | 'unknown'
      /** The mail servers, best first. */
      hosts: {
        preference: number
        host: string
      }[]
      /** Who runs them. */
      operator: string | null
      /** What has happened, for people. */
      text: string
    }
  | {
      step: 'server'
      /** null: none of them was called. */
      host: string | null
      ip: string | null
      ok: boolean
      /** What has happened, for people. */
      text: string
    }
  | {
      step: 'line'
      /** A line of the conversation: `C: …` or `S: …`. */
      text: string
    }
  | {
      step: 'cached'
      checked_at: string
      /** What has happened, for people. */
      text: string
    }

export type Ready = Ok & {
  /** `low`: the disk of the data directory is almost full, and new lists are refused with 507 */
  disk: 'ok' | 'low'
}

/** Of: Verify one address */
export type VerifySingleAnswer = SingleResult | AsyncAccepted

/** Of: Verify a list */
export type VerifyBulkAnswer = InstantBulk | QueuedBulk

/** Of: Verify the addresses of a file */
export type VerifyFileAnswer = QueuedFile | FileDryRun

/** Of: The results of a list as CSV */
export type DownloadBulkAnswer = DownloadRow[]

/** Of: The results of a job as a file */
export type DownloadJobAnswer = DownloadRow[]

export interface Details {
  syntax_valid: boolean
  domain_exists: boolean
  mx_record: boolean
  smtp_valid: boolean
}

export interface JobProgress {
  status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
  /** 100 only when completed. */
  progress: number
  total_emails: number
  processed_emails: number
  /** They sum up to the rows that are done. */
  classes: {
    deliverable: number
    risky: number
    undeliverable: number
    unknown: number
  }
  /** Rows a second, over the last ten seconds; null when that is not known yet. */
  rate_per_second: number | null
  /** At that rate; null when it is not known, or the job has ended. */
  seconds_left: number | null
  summary: JobSummary
}

export interface JobSummary {
  total: number
  /** Deliverable and risky ones. */
  valid: number
  invalid: number
  unknown: number
  /** What could not be verified by a fault of ours; in a job that was cancelled or failed also what was never tried. */
  failed: number
}

export interface SingleResult {
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  /** Domain of the address; empty where it has none. */
  provider: string
  /** Milliseconds. */
  response_time: number
  /** How sure the result is, not how good the address is. */
  confidence: number
  details: Details
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  class: Class
  /** After how many seconds it is worth asking again, where that is known. */
  retry_after?: number
  flags?: {
    is_disposable: boolean
    is_role: boolean
    /** null: the domain was not tested. */
    is_catch_all: boolean | null
    is_free: boolean
    is_relay: boolean
  }
  did_you_mean?: string | null
  /** The mail server that was asked; if none was, the first one of the domain. */
  mx_host?: string | null
  checked_at?: string
  /** `?include=evidence`: what DNS and mail servers said. For people; its fields may change. */
  evidence?: {
    [k: string]: unknown
  }
  /** The result is simulated. */
  sandbox?: true
}

export interface AsyncAccepted {
  success: true
  verification_id: string
  status: 'queued'
}

/** For who accepts application/problem+json (RFC 9457) */
export interface Problem {
  type: 'about:blank'
  /** For programs. */
  title:
    | 'invalid_request'
    | 'invalid_json'
    | 'invalid_email'
    | 'emails_required'
    | 'empty_list'
    | 'too_many_emails'
    | 'invalid_webhook_url'
    | 'invalid_event'
    | 'authentication_error'
    | 'key_expired'
    | 'key_revoked'
    | 'ip_restricted'
    | 'domain_restricted'
    | 'insufficient_scope'
    | 'not_found'
    | 'method_not_allowed'
    | 'request_timeout'
    | 'job_not_ready'
    | 'job_not_cancellable'
    | 'job_not_resumable'
    | 'idempotency_in_progress'
    | 'payload_too_large'
    | 'unsupported_media_type'
    | 'expectation_failed'
    | 'idempotency_mismatch'
    | 'rate_limit'
    | 'quota_exceeded'
    | 'concurrent_jobs_exceeded'
    | 'stored_rows_exceeded'
    | 'headers_too_large'
    | 'server_error'
    | 'service_unavailable'
    | 'timeout'
    | 'insufficient_storage'
  status: number
  detail: string
  success: false
  /** For people. */
  error: string
  /** For programs. */
  code:
    | 'invalid_request'
    | 'invalid_json'
    | 'invalid_email'
    | 'emails_required'
    | 'empty_list'
    | 'too_many_emails'
    | 'invalid_webhook_url'
    | 'invalid_event'
    | 'authentication_error'
    | 'key_expired'
    | 'key_revoked'
    | 'ip_restricted'
    | 'domain_restricted'
    | 'insufficient_scope'
    | 'not_found'
    | 'method_not_allowed'
    | 'request_timeout'
    | 'job_not_ready'
    | 'job_not_cancellable'
    | 'job_not_resumable'
    | 'idempotency_in_progress'
    | 'payload_too_large'
    | 'unsupported_media_type'
    | 'expectation_failed'
    | 'idempotency_mismatch'
    | 'rate_limit'
    | 'quota_exceeded'
    | 'concurrent_jobs_exceeded'
    | 'stored_rows_exceeded'
    | 'headers_too_large'
    | 'server_error'
    | 'service_unavailable'
    | 'timeout'
    | 'insufficient_storage'
  request_id: string
}

/** What the sandbox answers for addresses of errors */
export interface SimulatedError {
  error: 'authentication_error' | 'rate_limit' | 'server_error' | 'timeout'
  message?: string
  /** Seconds */
  retry_after?: number
}

export interface SingleRequest {
  /** The address, at most 254 octets. */
  email: string
  /** false: everything but the mail server (reason `smtp_skipped`). */
  check_smtp?: boolean
  /** true: the mail server is asked even if its answer is known. */
  force_refresh?: boolean
  /** true: answered at once; the result comes by the event `verification.completed`. */
  async?: boolean
}

export interface ScoredResult {
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  /** Domain of the address; empty where it has none. */
  provider: string
  /** Milliseconds. */
  response_time: number
  /** How sure the result is, not how good the address is. */
  confidence: number
  details: Details
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  class: Class
  /** The class. The sandbox has no `unknown` here: it answers `risky`, and `class` and `reason` tell what it simulates. */
  status: 'deliverable' | 'undeliverable' | 'risky' | 'unknown'
  /** How likely mail is welcome. */
  score: number
  is_disposable: boolean
  is_role: boolean
  /** null: the domain was not tested. */
  is_catch_all: boolean | null
  is_free: boolean
  /** After how many seconds it is worth asking again, where that is known. */
  retry_after?: number
  flags?: {
    is_disposable: boolean
    is_role: boolean
    /** null: the domain was not tested. */
    is_catch_all: boolean | null
    is_free: boolean
    is_relay: boolean
  }
  did_you_mean?: string | null
  /** The mail server that was asked; if none was, the first one of the domain. */
  mx_host?: string | null
  checked_at?: string
  /** `?include=evidence`: what DNS and mail servers said. For people; its fields may change. */
  evidence?: {
    [k: string]: unknown
  }
  /** Whether the result is simulated. */
  sandbox: boolean
}

export interface ScoredRequest {
  /** The address, at most 254 octets. */
  email: string
  /** false: everything but the mail server (reason `smtp_skipped`). */
  check_smtp?: boolean
  /** true: the mail server is asked even if its answer is known. */
  force_refresh?: boolean
}

export interface InstantBulk {
  success: true
  instant: true
  job_id: string
  status: 'completed'
  total_emails: number
  /** Rows that are well-formed addresses. */
  valid_emails: number
  /** Rows that are none. */
  invalid_format_emails: number
  results: BulkItem[]
  summary: {
    total: number
    valid: number
    /** All that are not valid, the unknown ones too. */
    invalid: number
  }
  message: string
}

export interface BulkItem {
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  class: Class
}

export interface QueuedBulk {
  success: true
  job_id: string
  status: 'queued'
  total_emails: number
  /** Rows that are well-formed addresses. */
  valid_emails: number
  /** Rows that are none. */
  invalid_format_emails: number
  estimated_time: string
  message: string
}

export interface BulkRequest {
  emails: string[]
  /** false: everything but the mail server (reason `smtp_skipped`). */
  check_smtp?: boolean
  /** true: the mail server is asked even if its answer is known. */
  force_refresh?: boolean
  /**
   * @deprecated
   * Refused: endpoints are registered once, with `POST /v1/webhooks`.
   */
  webhook_url?: string
}

export interface QueuedBatch {
  success: true
  job_id: string
  status: 'queued'
  total_emails: number
  /** Rows that are well-formed addresses. */
  valid_emails: number
  /** Rows that are none. */
  invalid_format_emails: number
  /** Rows whose address stands above them too. */
  duplicates: number
  estimated_time: string
  message: string
  status_url: string
  download_url: string
}

export interface BatchRequest {
  emails?: string[]
  /** In place of `emails`: each with an id of yours, which comes back in downloads. */
  items?: {
    email: string
    id?: string
  }[]
  /** For people. */
  name?: string
  /** false: an address that comes again is asked again, and charged again. */
  deduplicate?: boolean
  /** false: everything but the mail server (reason `smtp_skipped`). */
  check_smtp?: boolean
  /** true: the mail server is asked even if its answer is known. */
  force_refresh?: boolean
  /**
   * @deprecated
   * Refused: endpoints are registered once, with `POST /v1/webhooks`.
   */
  webhook_url?: string
}

export interface QueuedFile {
  success: true
  job_id: string
  status: 'queued'
  total_emails: number
  /** Rows that are well-formed addresses. */
  valid_emails: number
  /** Rows that are none. */
  invalid_format_emails: number
  /** Rows whose address stands above them too. */
  duplicates: number
  estimated_time: string
  message: string
  status_url: string
  download_url: string
  /** The name of the column of addresses. */
  column: string | null
  column_number: number
  header: boolean
  /** As the file is read: a WHATWG label. */
  encoding: string
  rows: number
}

export interface FileDryRun {
  success: true
  dry_run: true
  /** Those that the list has; of very many the first ones. */
  columns: {
    number: number
    name: string | null
  }[]
  /** The name of the column of addresses. */
  column: string | null
  /** null: none was found, so `column` has to be given. */
  column_number: number | null
  header: boolean
  /** As the file is read: a WHATWG label. */
  encoding: string
  delimiter: ',' | ';' | '\t' | '|'
  rows: number | null
  total_emails: number | null
  valid_emails: number | null
  invalid_format_emails: number | null
  duplicates: number | null
  /** What the list will cost at most. */
  credits_needed: number | null
  /** What is left today; null: the plan knows no limit. */
  credits_balance: number | null
  /** How long it will take. */
  estimated_time: string | null
  /** The first five rows; long cells are cut. */
  preview: string[][]
}

export interface FileRequest {
  /** A list: CSV, TSV, or one address a line, in any usual encoding. */
  file: string
  /** The column of addresses, by its name or its number from 1. Left out: it is looked for. */
  column?: string
  /** Whether the first row names the columns. Left out: it is looked for. */
  header?: 'true' | 'false'
  /** A label of the WHATWG Encoding Standard, such as `windows-1252`. Left out: it is found. */
  encoding?: string
  name?: string
  deduplicate?: 'true' | 'false'
  /** false: everything but the mail server (reason `smtp_skipped`). */
  check_smtp?: 'true' | 'false'
  /** true: the mail server is asked even if its answer is known. */
  force_refresh?: 'true' | 'false'
  /**
   * @deprecated
   * Refused: endpoints are registered once, with `POST /v1/webhooks`.
   */
  webhook_url?: string
  /** true: says what would come of it; nothing is stored, charged or asked. */
  dry_run?: 'true' | 'false'
}

export interface JobStatus {
  success: true
  job_id: string
  status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
  /** 100 only when completed. */
  progress: number
  total_emails: number
  processed_emails: number
  /** How long it will go on. */
  estimated_time: string | null
  created_at: string
  started_at: string | null
  error: {
    code: string
    message: string
  } | null
  /** Its results are simulated. */
  sandbox?: true
  data: {
    /** In the order of the list, when the job is completed, or with `partial=true`. */
    results: JobItem[]
    summary: JobSummary
    completed_at: string | null
  }
}

export interface JobItem {
  /** The id that it was submitted with. */
  id?: string
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  class: Class
  /** The address was erased; of its result only the class is left. */
  erased?: true
}

export interface Job {
  success: true
  job_id: string
  status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
  /** 100 only when completed. */
  progress: number
  total_emails: number
  processed_emails: number
  /** How long it will go on. */
  estimated_time: string | null
  created_at: string
  started_at: string | null
  error: {
    code: string
    message: string
  } | null
  /** Its results are simulated. */
  sandbox?: true
  /** Why most rows wait, such as a DNS server that fails its check or an operator that wants a pause; only while they do. */
  status_detail?: string
  /** Where most rows wait, by operator; while the job is not finished. */
  waiting_for?: {
    operator: string
    emails: number
    /** `refused`: the operator refuses us. `throttled`: it asked us to slow down. `unknown_users`: it knew none of many recipients in a row. `asked_again_later`: mail servers asked us to come back, or other domains at the same address come first. `pace`: they are asked at the pace that the operator accepts. */
    reason: 'refused' | 'throttled' | 'unknown_users' | 'asked_again_later' | 'pace'
    /** Until when at least; null: in turn. */
    until: string | null
  }[]
  type: 'single' | 'bulk' | 'batch' | 'file'
  name: string | null
  data: {
    /** In the order of the list, when the job is completed, or with `partial=true`. */
    results?: JobItem[]
    summary: JobSummary
    completed_at: string | null
    /** They sum up to the rows that are done. */
    classes: {
      deliverable: number
      risky: number
      undeliverable: number
      unknown: number
    }
    download_url: string | null
  }
}

export interface JobPage {
  success: true
  data: {
    items: ListedJob[]
    next_cursor: string | null
    has_more: boolean
  }
}

export interface ListedJob {
  job_id: string
  status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
  /** 100 only when completed. */
  progress: number
  total_emails: number
  processed_emails: number
  /** How long it will go on. */
  estimated_time: string | null
  created_at: string
  started_at: string | null
  error: {
    code: string
    message: string
  } | null
  /** Its results are simulated. */
  sandbox?: true
  /** Why most rows wait, such as a DNS server that fails its check or an operator that wants a pause; only while they do. */
  status_detail?: string
  /** Where most rows wait, by operator; while the job is not finished. */
  waiting_for?: {
    operator: string
    emails: number
    /** `refused`: the operator refuses us. `throttled`: it asked us to slow down. `unknown_users`: it knew none of many recipients in a row. `asked_again_later`: mail servers asked us to come back, or other domains at the same address come first. `pace`: they are asked at the pace that the operator accepts. */
    reason: 'refused' | 'throttled' | 'unknown_users' | 'asked_again_later' | 'pace'
    /** Until when at least; null: in turn. */
    until: string | null
  }[]
  type: 'single' | 'bulk' | 'batch' | 'file'
  name: string | null
  data: {
    summary: JobSummary
    completed_at: string | null
    /** They sum up to the rows that are done. */
    classes: {
      deliverable: number
      risky: number
      undeliverable: number
      unknown: number
    }
    download_url: string | null
  }
}

export interface ResultPage {
  success: true
  data: {
    items: ResultRow[]
    next_cursor: string | null
    has_more: boolean
  }
}

/** All is null while the row has no result. */
export interface ResultRow {
  /** Its place in the list. */
  row: number
  email: string
  class: 'deliverable' | 'undeliverable' | 'risky' | 'unknown' | null
  valid: boolean | null
  deliverable: boolean | null
  risk_level: RiskLevel | null
  reason: Reason | null
  cached: boolean | null
  confidence: number | null
  did_you_mean: string | null
  /** Who runs the mail of the domain. */
  operator: string | null
  /** The mail server that was asked; if none was, the first one of the domain. */
  mx_host: string | null
  smtp_code: number | null
  /** What the mail server said; of one that said nothing, what was seen of it. */
  smtp_text: string | null
  checked_at: string | null
  /** The address was erased; of its result only the class is left. */
  erased?: true
}

export interface Breakdown {
  success: true
  data: {
    /** The rows of the list. */
    total: number
    /** Those that have a result; all sums are equal to it. */
    done: number
    classes: ClassCounts
    reasons: {
      reason: Reason
      class: 'deliverable' | 'undeliverable' | 'risky' | 'unknown'
      count: number
    }[]
    operators: {
      /** Who runs the mail of the domain; null: nobody is known, as no mail server was looked for, or results are simulated. */
      operator: string | null
      count: number
      classes: ClassCounts
    }[]
    /** Rows of all other operators. */
    operators_left: number
  }
}

export interface ClassCounts {
  deliverable: number
  risky: number
  undeliverable: number
  unknown: number
}

export interface DownloadRow {
  /** Its place in the list. */
  row: number
  /** The id that it was submitted with. */
  id?: string
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  /** Domain of the address; empty where it has none. */
  provider: string
  /** Milliseconds. */
  response_time: number
  /** How sure the result is, not how good the address is. */
  confidence: number
  details: Details
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  class: Class
  /** After how many seconds it is worth asking again, where that is known. */
  retry_after?: number
  flags?: {
    is_disposable: boolean
    is_role: boolean
    /** null: the domain was not tested. */
    is_catch_all: boolean | null
    is_free: boolean
    is_relay: boolean
  }
  did_you_mean?: string | null
  /** The mail server that was asked; if none was, the first one of the domain. */
  mx_host?: string | null
  checked_at?: string
  /** Who runs the mail of the domain. */
  operator?: string | null
  smtp_code?: number | null
  /** What the mail server said; of one that said nothing, what was seen of it. */
  smtp_text?: string | null
  /** The address was erased; of its result only the class is left. */
  erased?: true
  /** The cells of an uploaded file, by the names of their columns. */
  input?: {
    [k: string]: string
  }
}

export interface WebhookList {
  success: true
  data: {
    webhooks: Webhook[]
    total: number
  }
}

export interface Webhook {
  id: string
  url: string
  events: (
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
  )[]
  active: boolean
  description: string | null
  /** The last characters of its secret. */
  secret_hint: string
  created_at: string
  updated_at: string
  /** Why the service switched it off; null: it did not. */
  disabled_reason: string | null
  /** Since when each attempt failed; null: the last one did not. After five days it is switched off. */
  failing_since: string | null
  /** Until then `webhook-signature` has a signature of the secret before as well; left out when there is none, or none any more. */
  previous_secret_expires_at?: string
}

export interface CreatedWebhook {
  success: true
  data: {
    id: string
    url: string
    events: (
      | 'batch.completed'
      | 'batch.failed'
      | 'verification.completed'
      | 'quota.warning'
      | 'quota.exceeded'
    )[]
    active: boolean
    description: string | null
    /** What is sent is signed with it (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this whole text). Shown this once. */
    secret: string
    created_at: string
    updated_at: string
    /** Why the service switched it off; null: it did not. */
    disabled_reason: string | null
    /** Since when each attempt failed; null: the last one did not. After five days it is switched off. */
    failing_since: string | null
  }
}

export interface NewWebhook {
  /** https, and reachable from the internet. */
  url: string
  events: (
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
  )[]
  active?: boolean
  /** For people. */
  description?: string | null
}

export interface EventList {
  success: true
  data: {
    events: {
      event:
        | 'batch.completed'
        | 'batch.failed'
        | 'verification.completed'
        | 'quota.warning'
        | 'quota.exceeded'
      description: string
      /** JSON Schema of `data`. */
      schema: {
        [k: string]: unknown
      }
      /** All that is sent. */
      example: {
        [k: string]: unknown
      }
    }[]
  }
}

export interface WebhookAnswer {
  success: true
  data: Webhook
}

export interface WebhookPatch {
  /** https, and reachable from the internet. */
  url?: string
  events?: (
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
  )[]
  /** true also takes back that it was switched off by the service. */
  active?: boolean
  /** For people. */
  description?: string | null
}

export interface RotatedWebhook {
  success: true
  data: {
    id: string
    url: string
    events: (
      | 'batch.completed'
      | 'batch.failed'
      | 'verification.completed'
      | 'quota.warning'
      | 'quota.exceeded'
    )[]
    active: boolean
    description: string | null
    /** What is sent is signed with it (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this whole text). Shown this once. */
    secret: string
    created_at: string
    updated_at: string
    /** Why the service switched it off; null: it did not. */
    disabled_reason: string | null
    /** Since when each attempt failed; null: the last one did not. After five days it is switched off. */
    failing_since: string | null
    /** Until then `webhook-signature` has a signature of the secret before as well; left out when there is none, or none any more. */
    previous_secret_expires_at: string
  }
}

export interface SecretRotation {
  /** For how long is signed with the secret that it has, too. */
  grace_period_seconds?: number
}

export interface WebhookTest {
  success: true
  data: {
    delivery_id: string
    event_id: string
    event: 'webhook.test'
    status: 'delivered' | 'failed'
    /** Of the answer; null: none came. */
    status_code: number | null
    duration_ms: number
    /** What was wrong; null: nothing. */
    error: string | null
    response_excerpt: string | null
  }
}

export interface DeliveryPage {
  success: true
  data: {
    items: Delivery[]
    next_cursor: string | null
    has_more: boolean
  }
}

export interface Delivery {
  id: string
  webhook_id: string
  /** The same at each attempt and each endpoint. */
  event_id: string
  event:
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
    | 'webhook.test'
  /** `pending`: to be sent at once. `retry_scheduled`: the last attempt failed, the next follows. `failed`: given up. */
  status: 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
  /** How many attempts were made; asking for it once more begins anew with 0. */
  attempt: number
  /** `scheduled`: the event happened. `manual`: it was asked for once more. `test`: the endpoint was tried out. */
  trigger: 'scheduled' | 'manual' | 'test'
  /** Of the answer; null: none came. */
  status_code: number | null
  duration_ms: number | null
  /** What was wrong; null: nothing. */
  error: string | null
  /** null: it is over, or the endpoint is switched off. */
  next_attempt_at: string | null
  created_at: string
  /** When it is forgotten, and can be sent again no more; null: it is not over. */
  expires_at: string | null
}

export interface DeliveryDetailAnswer {
  success: true
  data: DeliveryDetail
}

export interface DeliveryDetail {
  id: string
  webhook_id: string
  /** The same at each attempt and each endpoint. */
  event_id: string
  event:
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
    | 'webhook.test'
  /** `pending`: to be sent at once. `retry_scheduled`: the last attempt failed, the next follows. `failed`: given up. */
  status: 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
  /** How many attempts were made; asking for it once more begins anew with 0. */
  attempt: number
  /** `scheduled`: the event happened. `manual`: it was asked for once more. `test`: the endpoint was tried out. */
  trigger: 'scheduled' | 'manual' | 'test'
  /** Of the answer; null: none came. */
  status_code: number | null
  duration_ms: number | null
  /** What was wrong; null: nothing. */
  error: string | null
  /** null: it is over, or the endpoint is switched off. */
  next_attempt_at: string | null
  created_at: string
  /** When it is forgotten, and can be sent again no more; null: it is not over. */
  expires_at: string | null
  request: {
    url: string
    /** Those of the last attempt, without signatures. */
    headers: {
      [k: string]: string
    }
    /** The very text that is sent and signed. */
    body: string
  }
  /** Of the last attempt; null: no answer came. */
  response: {
    status_code: number
    headers: {
      [k: string]: string
    }
    /** The beginning of it. */
    body: string
  } | null
  /** The first one first; of more than 60 the last. */
  attempts: DeliveryAttempt[]
}

export interface DeliveryAttempt {
  number: number
  /** `scheduled`: the event happened. `manual`: it was asked for once more. `test`: the endpoint was tried out. */
  trigger: 'scheduled' | 'manual' | 'test'
  started_at: string
  url: string
  /** Of the answer; null: none came. */
  status_code: number | null
  duration_ms: number
  /** What was wrong; null: nothing. */
  error: string | null
  /** The beginning of the body of the answer; null: no answer came. */
  response_excerpt: string | null
  /** null: no answer came. */
  response_headers: {
    [k: string]: string
  } | null
}

export interface DeliveryAnswer {
  success: true
  data: Delivery
}

export interface Recovered {
  success: true
  data: {
    /** How many are sent again. */
    recovered: number
  }
}

export interface Recovery {
  /** Events from this time on are sent again. */
  since: string
}

export interface HistoryPage {
  success: true
  data: {
    items: Verification[]
    next_cursor: string | null
    has_more: boolean
  }
}

export interface Verification {
  id: string
  /** The address that was verified. */
  email: string
  valid: boolean
  deliverable: boolean
  risk_level: RiskLevel
  reason: Reason
  /** Whether the answer was known from before. */
  cached: boolean
  source: 'single' | 'bulk' | 'batch' | 'file'
  job_id: string | null
  created_at: string
}

export interface Credits {
  success: true
  data: {
    account_id: string
    api_key_id: string
    api_key_name: string
    plan: string
    /** What is left and not set aside for lists under way; null: without limit. */
    credits_balance: number | null
    credits_consumed: number
    /** Set aside for what is under way; what that does not use comes back. */
    credits_held: number
    /** What the plan gives in a period; null: without limit. */
    credits_added: number | null
    period: 'day'
    resets_at: string
    last_updated: string
  }
}

export interface Limits {
  success: true
  data: {
    limits: Limit[]
  }
}

export interface Limit {
  name: 'ip:single' | 'ip:bulk' | 'key:plan' | 'key:own' | 'session' | 'credits'
  /** What is limited, for people. */
  text: string
  limit: number
  remaining: number
  window_seconds: number
  resets_at: string
}

export interface Stats {
  success: true
  data: {
    period: 'day' | 'week' | 'month'
    from: string
    to: string
    total: Counts
    days: {
      date: string
      verifications: number
      /** Those whose answer was known from before. */
      cached: number
      credits: number
      deliverable: number
      undeliverable: number
      risky: number
      unknown: number
    }[]
    keys: {
      key_id: string
      key_name: string | null
      verifications: number
      /** Those whose answer was known from before. */
      cached: number
      credits: number
      deliverable: number
      undeliverable: number
      risky: number
      unknown: number
    }[]
  }
}

export interface Counts {
  verifications: number
  /** Those whose answer was known from before. */
  cached: number
  credits: number
  deliverable: number
  undeliverable: number
  risky: number
  unknown: number
}

export interface KeyList {
  success: true
  data: {
    keys: Key[]
    total: number
  }
}

export interface Key {
  id: string
  name: string
  /** Its first characters. */
  prefix: string
  /** Its last characters. */
  hint: string
  scopes: (
    | 'verify:single'
    | 'verify:bulk'
    | 'jobs:read'
    | 'jobs:write'
    | 'webhooks:read'
    | 'webhooks:write'
    | 'account:read'
    | 'keys:write'
    | 'dashboard'
    | '*'
  )[]
  allowed_ips: string[]
  allowed_domains: string[]
  rate_limit_per_minute: number | null
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}

export interface CreatedKey {
  success: true
  data: {
    id: string
    name: string
    /** Its first characters. */
    prefix: string
    /** Its text, shown this once. */
    key: string
    /** Its last characters. */
    hint: string
    scopes: (
      | 'verify:single'
      | 'verify:bulk'
      | 'jobs:read'
      | 'jobs:write'
      | 'webhooks:read'
      | 'webhooks:write'
      | 'account:read'
      | 'keys:write'
      | 'dashboard'
      | '*'
    )[]
    allowed_ips: string[]
    allowed_domains: string[]
    rate_limit_per_minute: number | null
    created_at: string
    expires_at: string | null
    last_used_at: string | null
  }
}

export interface NewKey {
  /** For people. */
  name: string
  /** What it may do; `*` is everything. Nothing that the asking key may not do itself. */
  scopes: (
    | 'verify:single'
    | 'verify:bulk'
    | 'jobs:read'
    | 'jobs:write'
    | 'webhooks:read'
    | 'webhooks:write'
    | 'account:read'
    | 'keys:write'
    | 'dashboard'
    | '*'
  )[]
  /** Client addresses that may use it, and CIDRs; empty: any. */
  allowed_ips?: string[]
  /** Web sites that may use it from a browser, with what lies below them; empty: any. */
  allowed_domains?: string[]
  /** A limit of its own, beside the one of the plan; null: none. */
  rate_limit_per_minute?: number | null
  /** From then on it opens nothing; null: it does not expire. */
  expires_at?: string | null
}

export interface KeyAnswer {
  success: true
  data: Key
}

export interface KeyPatch {
  /** For people. */
  name?: string
  /** What it may do; `*` is everything. Nothing that the asking key may not do itself. */
  scopes?: (
    | 'verify:single'
    | 'verify:bulk'
    | 'jobs:read'
    | 'jobs:write'
    | 'webhooks:read'
    | 'webhooks:write'
    | 'account:read'
    | 'keys:write'
    | 'dashboard'
    | '*'
  )[]
  /** Client addresses that may use it, and CIDRs; empty: any. */
  allowed_ips?: string[]
  /** Web sites that may use it from a browser, with what lies below them; empty: any. */
  allowed_domains?: string[]
  /** A limit of its own, beside the one of the plan; null: none. */
  rate_limit_per_minute?: number | null
  /** From then on it opens nothing; null: it does not expire. */
  expires_at?: string | null
}

export interface RotatedKey {
  success: true
  data: {
    id: string
    name: string
    /** Its first characters. */
    prefix: string
    /** Its text, shown this once. */
    key: string
    /** Its last characters. */
    hint: string
    scopes: (
      | 'verify:single'
      | 'verify:bulk'
      | 'jobs:read'
      | 'jobs:write'
      | 'webhooks:read'
      | 'webhooks:write'
      | 'account:read'
      | 'keys:write'
      | 'dashboard'
      | '*'
    )[]
    allowed_ips: string[]
    allowed_domains: string[]
    rate_limit_per_minute: number | null
    created_at: string
    expires_at: string | null
    last_used_at: string | null
    /** The end of the text before. */
    previous_key_expires_at: string
  }
}

export interface KeyRotation {
  /** For how long the text that it has goes on. */
  grace_period_seconds?: number
}

export interface Ok {
  status: 'ok'
}

export interface Health {
  status: 'ok' | 'stopping' | 'failing'
  version: string
  database: 'ok' | 'failing'
  /** Whether the DNS server passed its last check */
  dns: 'ok' | 'failing'
  /** `low`: the disk of the data directory is almost full, and new lists are refused with 507 */
  disk: 'ok' | 'low'
  /** Jobs that are worked on */
  jobs: number
}

export interface ErrorBody {
  success: false
  /** For people. */
  error: string
  /** For programs. */
  code:
    | 'invalid_request'
    | 'invalid_json'
    | 'invalid_email'
    | 'emails_required'
    | 'empty_list'
    | 'too_many_emails'
    | 'invalid_webhook_url'
    | 'invalid_event'
    | 'authentication_error'
    | 'key_expired'
    | 'key_revoked'
    | 'ip_restricted'
    | 'domain_restricted'
    | 'insufficient_scope'
    | 'not_found'
    | 'method_not_allowed'
    | 'request_timeout'
    | 'job_not_ready'
    | 'job_not_cancellable'
    | 'job_not_resumable'
    | 'idempotency_in_progress'
    | 'payload_too_large'
    | 'unsupported_media_type'
    | 'expectation_failed'
    | 'idempotency_mismatch'
    | 'rate_limit'
    | 'quota_exceeded'
    | 'concurrent_jobs_exceeded'
    | 'stored_rows_exceeded'
    | 'headers_too_large'
    | 'server_error'
    | 'service_unavailable'
    | 'timeout'
    | 'insufficient_storage'
  request_id: string
}

/** Of: Verify one address */
export interface VerifySingleQuery {
  /** What to tell beside the plain result: `flags`, `evidence`, or both with a comma. */
  include?: string
}

/** Of: Verify one address, with a status and a score */
export interface VerifyQuery {
  /** What to tell beside the plain result: `flags`, `evidence`, or both with a comma. */
  include?: string
}

/** Of: How a list stands, and its results */
export interface GetBulkStatusQuery {
  /** Seconds to wait for: the answer comes when the state or the progress has changed, or after so long. */
  wait?: number | null
  /** true: what is there already, in a job that is not completed. */
  partial?: 'true' | 'false'
}

/** Of: How a job stands */
export interface GetJobQuery {
  /** Seconds to wait for: the answer comes when the state or the progress has changed, or after so long. */
  wait?: number | null
  /** true: what is there already, in a job that is not completed. */
  partial?: 'true' | 'false'
  /** What to add. */
  include?: 'results'
}

/** Of: The lists of the account, the newest first */
export interface ListJobsQuery {
  /** How many rows, at most. */
  limit?: number
  /** `next_cursor` of the page before; left out, the newest come first. */
  cursor?: string
  status?: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
}

/** Of: The rows of a job, page by page */
export interface ListResultsQuery {
  /** How many rows, at most. */
  limit?: number
  /** `next_cursor` of the page before; left out, the list is shown from its begin. */
  cursor?: string
  /** Begins behind this row of the list; instead of `cursor`. */
  after?: number
  /** Only rows of these classes: deliverable, undeliverable, risky, unknown, commas between several. */
  class?: string
  /** Only rows with these reasons: accepted_email, role_account, possible_typo, catch_all, low_deliverability, low_quality, disposable_email, mailbox_full, spam_trap, blocklisted, mailbox_disabled, rejected_email, invalid_email, invalid_domain, no_mx_record, does_not_accept_mail, dns_error, no_connect, timeout, unavailable_smtp, invalid_smtp, greylisted, probe_blocked, smtp_skipped, unexpected_error, commas between several. */
  reason?: string
  /** Only rows whose address has this in it, in any case. */
  search?: string
}

/** Of: The results of a list as CSV */
export interface DownloadBulkQuery {
  format?: 'csv' | 'json' | 'ndjson'
  /** Only rows of these classes: deliverable, undeliverable, risky, unknown, commas between several. */
  filter?: string
  /** true: cells stay as they are, for programs. A spreadsheet may run them as formulas. */
  raw?: 'true' | 'false' | '1' | '0'
  /** true: what is there already, also of a job that is not completed. */
  partial?: 'true' | 'false' | '1' | '0'
}

/** Of: The results of a job as a file */
export interface DownloadJobQuery {
  format?: 'csv' | 'json' | 'ndjson'
  /** Only rows of these classes: deliverable, undeliverable, risky, unknown, commas between several. */
  filter?: string
  /** true: cells stay as they are, for programs. A spreadsheet may run them as formulas. */
  raw?: 'true' | 'false' | '1' | '0'
  /** true: what is there already, also of a job that is not completed. */
  partial?: 'true' | 'false' | '1' | '0'
}

/** Of: What was sent to a webhook endpoint, the newest first */
export interface ListDeliveriesQuery {
  /** How many rows, at most. */
  limit?: number
  /** `next_cursor` of the page before; left out, the newest come first. */
  cursor?: string
  /** Only those that stand so. */
  status?: 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
  /** Only those of this kind. */
  event?:
    | 'batch.completed'
    | 'batch.failed'
    | 'verification.completed'
    | 'quota.warning'
    | 'quota.exceeded'
    | 'webhook.test'
}

/** Of: What was verified, the newest first */
export interface ListHistoryQuery {
  /** How many rows, at most. */
  limit?: number
  /** `next_cursor` of the page before; left out, the newest come first. */
  cursor?: string
  /** One address, in any case. */
  email?: string
  /** A part of the address, in any case. */
  search?: string
  /** Only those whose result is one of these: deliverable, undeliverable, risky, unknown, commas between several. */
  class?: string
  reason?:
    | 'accepted_email'
    | 'role_account'
    | 'possible_typo'
    | 'catch_all'
    | 'low_deliverability'
    | 'low_quality'
    | 'disposable_email'
    | 'mailbox_full'
    | 'spam_trap'
    | 'blocklisted'
    | 'mailbox_disabled'
    | 'rejected_email'
    | 'invalid_email'
    | 'invalid_domain'
    | 'no_mx_record'
    | 'does_not_accept_mail'
    | 'dns_error'
    | 'no_connect'
    | 'timeout'
    | 'unavailable_smtp'
    | 'invalid_smtp'
    | 'greylisted'
    | 'probe_blocked'
    | 'smtp_skipped'
    | 'unexpected_error'
  source?: 'single' | 'bulk' | 'batch' | 'file'
  /** From this time on. */
  since?: string
  /** Before this time. */
  until?: string
}

/** Of: Verifications by day and by key */
export interface GetStatsQuery {
  period?: 'day' | 'week' | 'month'
}
