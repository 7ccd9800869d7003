import type { MxRecord } from './dns/resolver.ts'
import type { Route } from './dns/route.ts'

/** What has just happened in a verification; `text` says it to people. Plain data, and clean. */
export type Step = SyntaxStep | DomainStep | ServerStep | LineStep | CachedStep

/** The address was read: always the first step. */
export type SyntaxStep = {
  readonly kind: 'syntax'
  readonly ok: boolean
  /** Null where it is no address. */
  readonly address: { readonly local: string; readonly domain: string } | null
  /** A whole address that was perhaps meant, where that is plain from its writing alone. */
  readonly suggestion: string | null
  readonly text: string
}

/** It was looked up where mail for the domain goes. */
export type DomainStep = {
  readonly kind: 'domain'
  /** Null: the DNS could not tell. */
  readonly ok: boolean | null
  readonly route: Route['kind']
  /** The mail servers, best first. */
  readonly hosts: readonly MxRecord[]
  /** The name of who runs them. */
  readonly operator: string | null
  readonly text: string
}

/** A mail server answers, or does not. Of one server there may be several: the last one counts. */
export type ServerStep = {
  readonly kind: 'server'
  readonly ok: boolean
  /** Null: none of them was called. */
  readonly host: string | null
  readonly ip: string | null
  readonly text: string
}

/** A line of the conversation, ours (`C: …`) or theirs (`S: …`). */
export type LineStep = { readonly kind: 'line'; readonly text: string }

/** The answer of the mail server is known from before. */
export type CachedStep = {
  readonly kind: 'cached'
  /** When it was given, epoch ms. */
  readonly checkedAt: number
  readonly text: string
}
