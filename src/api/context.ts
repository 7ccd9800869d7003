import type { Context } from 'hono'
import type { Account } from '../accounts/account-store.ts'
import type { StoredResponse } from '../accounts/idempotency.ts'
import type { ApiKey } from '../accounts/key-store.ts'
import type { Person } from '../accounts/people/person-store.ts'
import type { Plan } from '../accounts/plan.ts'
import type { BucketState } from '../accounts/rate-limits/windows.ts'
import type { FeedbackSource } from '../feedback/source-store.ts'
import { requestError } from './errors/request-errors.ts'
import type { BASIC_CHALLENGE } from './schemas/headers.ts'

/** The authenticated caller of a request. */
export type Caller = {
  readonly account: Account
  /** For a person, the rights of the role in the form of a key. */
  readonly key: ApiKey
  /** The person whose session it is; null for a key. */
  readonly person: Pick<Person, 'id' | 'name'> | null
  /**
   * End of the grace period (epoch ms) of a key secret that was replaced by rotation; null for a
   * current secret.
   */
  readonly secretExpiresAt: number | null
  readonly plan: Plan
}

/** Handle of an admitted request, to correct what it was counted as. */
export type Admitted = {
  /** Set if the account has no credits left: only a free answer is possible. Null otherwise. */
  readonly noCredits: BucketState | null
  /**
   * Counts a new list in the limit of lists. Throws ApiError if it is reached; the request is then
   * counted in no limit.
   */
  countList(): Promise<void>
  /**
   * Counts the addresses of a list that is answered at once, in the limit of single verifications.
   * Throws ApiError if it is reached; the request is then counted in no limit.
   */
  countAddresses(count: number): Promise<void>
  /** Removes the request from what these counted, since no list was created. */
  uncountList(): void
  /** Removes the request from all limits, since it was refused for lack of credits. */
  uncount(): void
}

/** Values that middleware sets and handlers read with `c.get(…)`. */
export type Env = {
  /** Set by the Node adapter. Tests pass nothing, or only an address. */
  Bindings: {
    readonly incoming?: Incoming
    readonly outgoing?: Outgoing
    /**
     * The dashboard session that makes this request in process, authorized by the key of that
     * session. Only the second argument of `app.fetch` can set it: the server passes Node's request
     * and response there and nothing else, and no header, path or body becomes part of it. A
     * network request therefore cannot claim a session.
     */
    readonly session?: DashboardSession
  }
  Variables: {
    /** `req_…` */
    requestId: string
    /** The client's IP address, also behind trusted proxies. */
    ip: string
    /**
     * Whether the client is on this machine: its address is a loopback address, and no proxy
     * forwarded the request.
     */
    isLocal: boolean
    /** Set by the guard: the path of the route, such as `/v1/jobs/:id`. */
    route: string
    /** Set by the guard on routes that need a key. */
    caller: Caller
    /** Whether the request is a signed link of the caller's key. */
    isLink?: boolean
    /** Whether `X-EV-Sandbox: true` was sent. */
    sandbox: boolean
    /** The Idempotency-Key of this request, stored together with its effect. */
    replay?: Replay
    /** Set by the guard on routes that need a key. */
    admitted: Admitted
    /** The `WWW-Authenticate` of a 401, unless it is `Bearer`. */
    challenge?: typeof BASIC_CHALLENGE
    /** The source at the path of a request of an email provider. */
    feedbackSource: FeedbackSource
    /** The unmodified bytes of a JSON body. */
    body: Uint8Array
    /** The value of a JSON body, or the text fields of a form. */
    json: unknown
    /** The limit to show in the headers of the response; a later one replaces it. */
    limit?: BucketState
    /** The only origin that may read the response. Omitted: every origin. */
    allowedOrigin?: string
    /** Ends what the request holds of limits on work in flight; each may be called twice. */
    places?: (() => void)[]
    /** Set for a list that may be large. */
    largeList?: LargeList
  }
}

/** The places of a large list, which it holds until it is answered. */
type LargeList = {
  /** Resolves when the body may be parsed. */
  acquireSlot(): Promise<void>
  /** Tells the size of the body in bytes: a short one leaves its places at once. */
  onParsed(size: number): void
}

/** A dashboard session. */
export type DashboardSession = {
  /** ID of the key or of the person that opened it. */
  readonly keyId: string
  /** `ses_…` */
  readonly sessionId: string
  /** As in `Caller`, for the secret with which the session was opened. */
  readonly secretExpiresAt: number | null
}

/** The Idempotency-Key of a request. */
export type Replay = {
  readonly key: string
  /** Digest of the request; empty until its body is known. */
  fingerprint: string
  /** The response that is stored under the key, perhaps of another request. */
  stored: StoredResponse | null
  /** `KeysInFlight.ended` when `stored` was read. */
  readonly ended: number
}

export type Incoming = {
  /** Set by Node. The dashboard sends requests in this process, where it is missing. */
  readonly httpVersionMajor?: number
  /** Set by Node: the headers by their names in lower case. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: { readonly remoteAddress?: string | undefined }
  /** Set by Node: whether the whole body has arrived. */
  readonly complete?: boolean
  /** Set by Node: whether the client has disconnected. */
  readonly destroyed?: boolean
  /** Set by Node: whether something has read from the body. */
  readonly readableDidRead?: boolean
  /** Set by Node: returns what has arrived of the body. */
  read?(): Uint8Array | null
}

/** The part of Node's ServerResponse that is used here. */
type Outgoing = {
  readonly headersSent: boolean
  /** Closes the connection, even in the middle of a response. */
  destroy(): unknown
  setHeader(name: string, value: string): unknown
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** Error of a client that has disconnected; it is never delivered. */
export const clientAborted = () => requestError('client_disconnected')

/**
 * Waits for `work` while the client is connected, then throws `clientAborted`. `work` continues,
 * since other requests may share it.
 */
export function unlessAborted<T>(c: Context<Env>, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = onAborted(c, () => reject(clientAborted()))
    work.then(resolve, reject).finally(cancel)
  })
}

/**
 * Calls back if the client disconnects before it is answered; the returned function cancels this.
 */
function onAborted(c: Context<Env>, callback: () => void): () => void {
  const outgoing = c.env?.outgoing
  if (outgoing === undefined) {
    const { signal } = c.req.raw
    signal.addEventListener('abort', callback, { once: true })
    return () => signal.removeEventListener('abort', callback)
  }
  // Accessing the signal of a request creates it together with a whole Request, which costs half of
  // a cached answer.
  outgoing.once('close', callback)
  return () => outgoing.off('close', callback)
}
