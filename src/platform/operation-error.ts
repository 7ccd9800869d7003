/** Why a use case refuses to do something, by code, with the facts that a sentence about it needs. */
export type RefusalFacts = {
  readonly webhook_not_found: { readonly id: string }
  readonly webhook_disabled: { readonly id: string }
  readonly webhook_limit_reached: { readonly count: number }
  readonly webhook_url_rejected: {
    readonly url: string
    /** What is wrong with it, in a sentence. */
    readonly fault: string
    /** Whether it would be accepted if its address range were allowed. */
    readonly isPrivate: boolean
  }
  readonly webhook_test_limit_reached: { readonly count: number }
  readonly delivery_not_found: {
    readonly id: string
    /** Null: no webhook was named. */
    readonly webhookId: string | null
  }
  readonly name_invalid: {
    readonly name: string
    readonly of: 'account' | 'key'
    readonly lengthMax: number
  }
  readonly key_not_found: { readonly id: string }
  readonly key_limit_reached: { readonly count: number }
  readonly last_key: { readonly id: string; readonly accountName: string }
  readonly rights_exceeded: {
    /** The rights that the key asking has not. */
    readonly rights: readonly RightName[]
    /** The scopes among them. */
    readonly scopes: readonly string[]
  }
  readonly expiry_past: {
    /** Epoch ms. */
    readonly expiresAt: number
  }
  readonly job_not_found: { readonly id: string }
  readonly job_not_cancellable: { readonly id: string; readonly state: string }
  readonly job_not_resumable: {
    readonly id: string
    /** A job that is cancelled or failed was resumed by others meanwhile. */
    readonly state: string
  }
  readonly job_in_use: { readonly id: string }
  readonly list_empty: Readonly<Record<string, never>>
  readonly credits_used_up: { readonly limit: number } & Reset
  readonly credits_exceeded: {
    readonly plan: string
    readonly creditsPerDay: number
    /** Null: not known, but more than are left. */
    readonly needed: number | null
    /** Null: not known, but fewer than are needed. */
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
    /** That were to be added; `isMore`: or more. */
    readonly rows: number
    readonly isMore: boolean
    readonly max: number
  }
  readonly address_invalid: { readonly address: string; readonly fault: string }
  readonly address_in_use: {
    readonly address: string
    /** A list that is not finished and holds it. */
    readonly jobId: string
    readonly isOfAccount: boolean
    /** How many more there are. */
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
  readonly account_exists: { readonly id: string; readonly name: string }
  readonly plan_unknown: { readonly plan: string; readonly plans: readonly string[] }
  readonly email_invalid: {
    readonly email: string
    /** What is wrong with its syntax; null: it is an address, but many mail servers do not take it. */
    readonly fault: string | null
  }
}

/** When there are credits again, and when that was asked: both epoch ms. */
type Reset = { readonly resetAt: number; readonly now: number }

type RightName = 'scopes' | 'allowedIps' | 'allowedDomains' | 'rateLimitPerMinute' | 'expiresAt'

export type OperationCode = keyof RefusalFacts

/**
 * A use case refused: nothing was changed. The message is for logs. The HTTP API has an answer for each code
 * (`http/error/operation-answer.ts`), and the command line a sentence and an exit code (`cli/operation-sentence.ts`).
 */
export class OperationError<Code extends OperationCode = OperationCode> extends Error {
  override readonly name = 'OperationError'
  readonly code: Code
  readonly facts: RefusalFacts[Code]

  constructor(code: Code, facts: RefusalFacts[Code]) {
    // It is an answer: where it was thrown tells nothing, and finding that out costs as much as all rate limits.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(`${code}: ${JSON.stringify(facts)}`)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.facts = facts
  }
}

/** What a front end says of each code. */
export type OperationTexts<Said> = {
  readonly [Code in OperationCode]: (facts: RefusalFacts[Code]) => Said
}

/** Looks up what a front end says of an error. */
export const describeOperation = <Said>(
  texts: OperationTexts<Said>,
  { code, facts }: OperationError,
): Said => (texts[code] as (facts: RefusalFacts[OperationCode]) => Said)(facts)

/** Whether something thrown is the refusal of that code. */
export const isRefusal = <Code extends OperationCode>(
  thrown: unknown,
  code: Code,
): thrown is OperationError<Code> => thrown instanceof OperationError && thrown.code === code
