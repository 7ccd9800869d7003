import type { Reply } from './reply.ts'

/** Where in the conversation something happened. */
export type Stage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'rset'

/** What a mail server's reply means for one recipient. Every kind but `accepted` and `rejected` says nothing of the mailbox. */
export type Answer =
  /** 2xx to RCPT. `cannot-verify`: 251/252, the server took it without knowing. `restricted`: exists, but takes mail from few. */
  | { readonly kind: 'accepted'; readonly why: 'recipient' | 'cannot-verify' | 'restricted'; readonly stage: Stage; readonly reply: Reply }
  | { readonly kind: 'rejected'; readonly why: RejectedWhy; readonly stage: Stage; readonly reply: Reply }
  | { readonly kind: 'refused-us'; readonly why: RefusedWhy; readonly stage: Stage; readonly reply: Reply }
  /** `retryAfterMs` is what the server named, else null. */
  | { readonly kind: 'deferred'; readonly why: DeferredWhy; readonly retryAfterMs: number | null; readonly stage: Stage; readonly reply: Reply }
  | { readonly kind: 'silent'; readonly why: SilentWhy; readonly stage: Stage; readonly detail: string }

/** `not-hosted`: the server does not take mail for this domain. `no-mail`: host or domain says it takes none at all (521, 556). */
export type RejectedWhy = 'no-mailbox' | 'disabled' | 'full' | 'moved' | 'not-hosted' | 'no-mail'
/** `blocklist`: our address is listed or has a bad name. `rdns`: PTR or HELO. `sender`: our MAIL FROM. `tls`: STARTTLS demanded. `auth`: log-in demanded. `too-many`: too many recipients in one transaction. `policy`: anything else against us. */
export type RefusedWhy = 'blocklist' | 'rdns' | 'sender' | 'tls' | 'auth' | 'policy'
/** `rate`: we are too fast. `too-many`: this transaction is full, ask again in a new one. `full`: mailbox over quota for now. `busy`: trouble on their side. */
export type DeferredWhy = 'greylist' | 'rate' | 'too-many' | 'busy'
/** `garbage`: what came was not SMTP. `not-public`: the exchanger's address may not be dialled. `smtputf8`: the server cannot take this address. */
export type SilentWhy = 'connect' | 'timeout' | 'closed' | 'tls' | 'garbage' | 'not-public' | 'smtputf8'
