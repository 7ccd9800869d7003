import type { Address } from './address.ts'

/** What an address tells of itself, before anyone asks a server. */
export type Traits = {
  /** The domain hands out throw-away mailboxes. */
  readonly disposable: boolean
  /** The mailbox belongs to a task, not to a person. */
  readonly role: boolean
  /** Anyone may have a mailbox at this provider for nothing. */
  readonly free: boolean
  /** A privacy relay: mail is forwarded to a person who hides the real address. Never disposable. */
  readonly relay: boolean
  /** On the operator's own blocked list. */
  readonly blocked: boolean
  /** On the operator's own list of spam traps. */
  readonly spamTrap: boolean
  /** `low` if nobody would choose such a name for a mailbox in earnest. */
  readonly quality: 'low' | null
  /** The one address under which the provider delivers all spellings of this one. */
  readonly canonical: string
}

/** Additions to the built-in lists: domains, or whole addresses for `blocked` and `spamTrap`. */
export type TraitOptions = {
  readonly disposable?: Iterable<string>
  /** Wins over every disposable list. */
  readonly allow?: Iterable<string>
  readonly blocked?: Iterable<string>
  readonly spamTrap?: Iterable<string>
  /** Local parts. */
  readonly role?: Iterable<string>
}

export type TraitReader = {
  of(address: Address): Traits
  /** Whether this mail exchanger serves throw-away domains and nothing else. */
  disposableHost(mxHost: string): boolean
}

export declare function createTraits(options?: TraitOptions): TraitReader
