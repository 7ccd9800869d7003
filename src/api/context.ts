import type { Account } from '../accounts/account-store.ts'
import type { ApiKey } from '../accounts/key-store.ts'
import type { Plan } from '../accounts/plan.ts'

/** Who asks. */
export type Caller = {
  readonly account: Account
  readonly key: ApiKey
  /** The end of the grace period, epoch ms, of a key text that was replaced by rotation; null: it was not. */
  readonly secretExpiresAt: number | null
  readonly plan: Plan
}

/** What the steps before a handler found out; handlers read it with `c.get(…)`. */
export type Env = {
  /** What Node hands in with a request; tests have none, or only an address. */
  Bindings: {
    readonly incoming?: Incoming
    readonly outgoing?: Outgoing
    /**
     * Who is signed in to the dashboard, which asks in this process, as the key of that session. Only a second argument of
     * `app.fetch` can say so: the server hands in Node's request and response there and nothing else, and no header,
     * path or body becomes a part of it. So nothing that comes over the network can be anybody by this.
     */
    readonly session?: AskingSession
  }
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
    replay: Replay | null
    /** Set where a list was only looked at: it counts as none. */
    isDryRun?: boolean
    /** The bytes of a JSON body, as they came. */
    body: Uint8Array
    /** Set for a large list: resolves when its body may be parsed, and its turn lasts until it is answered. */
    importTurn?: () => Promise<void>
  }
}

/** A session of the dashboard, and the key with which it was opened. */
export type AskingSession = {
  readonly keyId: string
  /** `ses_…` */
  readonly sessionId: string
  /** As of `Caller`, for the text of the key with which the session was opened. */
  readonly secretExpiresAt: number | null
}

/** What a request with an Idempotency-Key is known again by. */
export type Replay = { readonly key: string; readonly fingerprint: string }

export type Incoming = {
  /** Set by Node. The dashboard asks in this process and has none. */
  readonly httpVersionMajor?: number
  readonly socket?: { readonly remoteAddress?: string | undefined }
}

/** Node's own response. */
export type Outgoing = {
  readonly headersSent: boolean
  /** Ends the connection, whatever was sent of the answer. */
  destroy(): unknown
  setHeader(name: string, value: string): unknown
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}
