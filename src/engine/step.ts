import type { MxRecord } from './dns/resolver.ts'
import type { Route } from './dns/route.ts'

/** A progress event of a verification; `text` is a sanitized sentence for people. Plain data. */
export type Step = SyntaxStep | DomainStep | ServerStep | LineStep | CachedStep

/** The address was parsed: always the first step. */
export type SyntaxStep = {
  readonly kind: 'syntax'
  readonly ok: boolean
  /** Null if the text is not an address. */
  readonly address: { readonly local: string; readonly domain: string } | null
  /** The address that was probably intended, if the spelling alone shows it. */
  readonly suggestion: string | null
  readonly text: string
}

/** The mail route of the domain was looked up. */
export type DomainStep = {
  readonly kind: 'domain'
  /** Null if the DNS lookup failed. */
  readonly ok: boolean | null
  readonly route: Route['kind']
  /** The mail servers in order of preference. */
  readonly hosts: readonly MxRecord[]
  /** The operator of the mail servers. */
  readonly operator: string | null
  readonly text: string
}

/** A connection to a mail server succeeded or failed. The last step for a host is the valid one. */
type ServerStep = {
  readonly kind: 'server'
  readonly ok: boolean
  /** Null if no mail server was contacted. */
  readonly host: string | null
  readonly ip: string | null
  readonly text: string
}

/** A line of the SMTP session: `C: …` from ev, `S: …` from the server. */
type LineStep = { readonly kind: 'line'; readonly text: string }

/** The result comes from the cache. */
type CachedStep = {
  readonly kind: 'cached'
  /** When the mail server answered, epoch ms. */
  readonly checkedAt: number
  readonly text: string
}
