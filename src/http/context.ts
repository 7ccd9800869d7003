import type { Plan } from '../account/plan.ts'
import type { Account } from '../store/account/accounts.ts'
import type { ApiKey } from '../store/account/keys.ts'

/** Who asks. */
export type Caller = {
  readonly account: Account
  readonly key: ApiKey
  readonly plan: Plan
}

/** What the steps before a handler found out; handlers read it with `c.get(…)`. */
export type Env = {
  Variables: {
    /** `req_…` */
    requestId: string
    /** The client's address, behind trusted proxies too. */
    ip: string
    /** Set by the guard of a path that needs a key. */
    caller: Caller
    /** Whether `X-EV-Sandbox: true` was sent. */
    sandbox: boolean
    /** The Idempotency-Key of this request, to be stored with what it causes; null: none. */
    replay: { readonly key: string; readonly fingerprint: string } | null
    /** The limit that is nearest to its end, for the X-RateLimit headers. */
    nearest: RateLimit | null
  }
}

/** How a limit stands. */
export type RateLimit = {
  readonly limit: number
  readonly remaining: number
  /** Epoch ms. */
  readonly resetAt: number
}
