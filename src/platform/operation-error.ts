/** Codes with which a use case refuses an operation, and the facts that a message needs. */
type RefusalFacts = {
  readonly webhook_not_found: { readonly id: string }
  readonly webhook_disabled: { readonly id: string }
  readonly webhook_limit_reached: { readonly count: number }
  readonly webhook_url_rejected: {
    /** The field that had the URL. */
    readonly field: 'url' | 'webhook_url'
    readonly url: string
    /** The problem with the URL, as a sentence. */
    readonly fault: string
    /** Whether the URL would be accepted if its address range were allowed. */
    readonly isPrivate: boolean
  }
  readonly webhook_header_rejected: {
    readonly name: string
    /** The problem with the header, as a sentence. */
    readonly fault: string
  }
  readonly webhook_test_limit_reached: { readonly count: number }
  readonly delivery_not_found: {
    readonly id: string
    /** Null if no webhook was named. */
    readonly webhookId: string | null
  }
  readonly feedback_source_not_found: { readonly id: string }
  readonly feedback_source_limit_reached: { readonly count: number }
  readonly feedback_key_rejected: {
    /** Name of the provider and of its key, for people. */
    readonly title: string
    readonly keyName: string
    /** Describes a valid key, as the end of a sentence; null if the provider has no key. */
    readonly expected: string | null
  }
  /** A request of an email provider is not authentic or has an unknown form. */
  readonly feedback_request_rejected: {
    /** `unavailable`: the request can be repeated. */
    readonly kind: 'authentication' | 'body' | 'unavailable'
    readonly fault: string
  }
  readonly name_invalid: {
    readonly name: string
    readonly of: 'account' | 'key' | 'person'
    readonly lengthMax: number
  }
  readonly key_not_found: { readonly id: string }
  readonly key_limit_reached: {
    readonly count: number
    readonly max: number
    readonly plan: string
  }
  readonly last_key: { readonly id: string; readonly accountName: string }
  readonly rights_exceeded: {
    /** Rights that the calling key lacks. */
    readonly rights: readonly RightName[]
    /** The missing scopes among them. */
    readonly scopes: readonly string[]
  }
  /** A key changes an account in a way that gives more than the key has. */
  readonly account_rights_exceeded: { readonly field: 'admin' | 'plan' }
  /** A publishable key has no allowed domains. */
  readonly domains_required: Readonly<Record<string, never>>
  /** The scopes of a publishable key cannot be changed. */
  readonly scopes_fixed: Readonly<Record<string, never>>
  readonly expiry_past: {
    /** Epoch ms. */
    readonly expiresAt: number
  }
  readonly job_not_found: { readonly id: string }
  readonly job_not_cancellable: { readonly id: string; readonly state: string }
  readonly job_not_finishable: { readonly id: string; readonly state: string }
  readonly job_not_resumable: {
    readonly id: string
    /** `cancelled` or `failed` if another caller resumed the job first. */
    readonly state: string
  }
  readonly job_not_reverifiable: {
    readonly id: string
    readonly state: string
    /** False for a single verification and for a list of the command line. */
    readonly isList: boolean
  }
  /** No row of a job matches the conditions of a new verification. */
  readonly no_row_selected: { readonly id: string }
  readonly schedule_not_found: { readonly id: string }
  readonly schedule_limit_reached: { readonly count: number }
  /** A schedule cannot be resumed, because the results to verify again were deleted. */
  readonly schedule_without_results: { readonly id: string }
  readonly job_in_use: { readonly id: string }
  readonly list_empty: Readonly<Record<string, never>>
  readonly credits_used_up: { readonly limit: number } & Reset
  readonly credits_exceeded: {
    readonly plan: string
    readonly creditsPerDay: number
    /** Null if unknown; it is more than `left`. */
    readonly needed: number | null
    /** Null if unknown; it is less than `needed`. */
    readonly left: number | null
  } & Reset
  readonly concurrent_jobs_exceeded: {
    readonly plan: string
    readonly openLists: number
    readonly max: number
  }
  readonly stored_rows_exceeded: {
    readonly plan: string
    readonly storedRows: number
    /** Rows to add; with `isMore` at least that many. */
    readonly rows: number
    readonly isMore: boolean
    readonly max: number
  }
  readonly stored_feedback_exceeded: {
    readonly plan: string
    readonly stored: number
    /** New pieces of the request. */
    readonly pieces: number
    readonly max: number
  }
  readonly address_invalid: { readonly address: string; readonly fault: string }
  readonly address_in_use: {
    readonly address: string
    /** An unfinished job that contains the address. */
    readonly jobId: string
    readonly isOfAccount: boolean
    /** Number of other unfinished jobs that contain it. */
    readonly otherJobs: number
  }
  readonly database_absent: { readonly file: string; readonly task: 'backup' | 'migrate' }
  readonly database_unusable: { readonly file: string; readonly why: string }
  readonly database_newer: { readonly file: string }
  readonly data_dir_in_use: { readonly dataDir: string; readonly command: 'serve' | 'bulk' }
  readonly backup_of_itself: { readonly file: string }
  readonly backup_exists: { readonly file: string }
  readonly backup_failed: { readonly file: string; readonly why: string }
  readonly account_not_found: { readonly id: string }
  readonly person_not_found: { readonly id: string }
  readonly person_exists: { readonly email: string }
  readonly person_limit_reached: { readonly count: number }
  /** The caller manages or gives a role with more rights than its own. */
  readonly person_rights_exceeded: { readonly role: string }
  /** A person changes the own role or removes itself. */
  readonly own_person: Readonly<Record<string, never>>
  readonly account_exists: { readonly id: string; readonly name: string }
  readonly account_name_taken: { readonly name: string }
  readonly plan_unknown: { readonly plan: string; readonly plans: readonly string[] }
  readonly email_invalid: {
    readonly email: string
    /** The syntax error; null if the syntax is valid, but many mail servers reject it. */
    readonly fault: string | null
  }
}

/** When credits are reset, and the time of the request: both epoch ms. */
type Reset = { readonly resetAt: number; readonly now: number }

type RightName =
  | 'scopes'
  | 'allowedIps'
  | 'allowedDomains'
  | 'rateLimitPerMinute'
  | 'expiresAt'
  | 'isTest'

type OperationCode = keyof RefusalFacts

/**
 * A use case refused an operation and changed nothing. The message is for logs. The HTTP API maps
 * each code to a response, the command line to a message and an exit code.
 */
export class OperationError<Code extends OperationCode = OperationCode> extends Error {
  override readonly name = 'OperationError'
  readonly code: Code
  readonly facts: RefusalFacts[Code]

  constructor(code: Code, facts: RefusalFacts[Code]) {
    // A refusal is an expected result: its stack is of no use and costs as much as all rate limits.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(`${code}: ${JSON.stringify(facts)}`)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.facts = facts
  }
}

/** A front end's message for each code. */
export type OperationTexts<Text> = {
  readonly [Code in OperationCode]: (facts: RefusalFacts[Code]) => Text
}

/** Returns a front end's message for an error. */
export const describeOperation = <Text>(
  texts: OperationTexts<Text>,
  { code, facts }: OperationError,
): Text => (texts[code] as (facts: RefusalFacts[OperationCode]) => Text)(facts)

/** Whether a thrown value is an OperationError with this code. */
export const isRefusal = <Code extends OperationCode>(
  thrown: unknown,
  code: Code,
): thrown is OperationError<Code> => thrown instanceof OperationError && thrown.code === code
