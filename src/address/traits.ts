import { LRUCache } from 'lru-cache'
import { type Address, addressKey, isFault, parseAddress } from './address.ts'
import { parseDomain } from './domain.ts'
import { isListed, withParents } from './name-list.ts'
import { canonicalAddress } from './trait/canonical.ts'
import { isDisposable, isDisposableHost, isRelay } from './trait/disposable.ts'
import { isJunk } from './trait/quality.ts'
import { isRole } from './trait/role.ts'
import { listedTypo } from './typo/typo.ts'

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

/** Builds a reader of traits over the built-in lists and the operator's own; reads no file before the first address. */
export function createTraits(options: TraitOptions = {}): TraitReader {
  const own = {
    disposable: keys(options.disposable),
    allow: keys(options.allow),
    blocked: keys(options.blocked),
    spamTrap: keys(options.spamTrap),
    role: keys(options.role),
  }
  // A list asks about the same domains again and again.
  const domains = new LRUCache<string, DomainTraits>({ max: DOMAINS_MAX })
  const ofDomain = (domain: string): DomainTraits => {
    const known = domains.get(domain)
    if (known !== undefined) return known
    const traits = {
      disposable:
        isDisposable(domain, own.disposable, own.allow) && !isTypo(domain, own.disposable),
      free: isListed('free', domain),
      relay: isRelay(domain),
    }
    domains.set(domain, traits)
    return traits
  }
  return {
    of: address => traitsOf(address, own, ofDomain(address.domain.ascii)),
    disposableHost: mxHost =>
      isDisposableHost(mxHost) &&
      !withParents(mxHost.toLowerCase()).some(name => own.allow.has(name)),
  }
}

type OwnLists = Readonly<Record<keyof TraitOptions, ReadonlySet<string>>>
type DomainTraits = Pick<Traits, 'disposable' | 'free' | 'relay'>

const DOMAINS_MAX = 2_000

function traitsOf(address: Address, own: OwnLists, ofDomain: DomainTraits): Traits {
  return {
    ...ofDomain,
    role: isRole(address.local, own.role),
    blocked: holds(own.blocked, address),
    spamTrap: holds(own.spamTrap, address),
    // A relay makes up its names by chance; that is no fault of the person behind it.
    quality: !ofDomain.relay && isJunk(address.local) ? 'low' : null,
    canonical: canonicalAddress(address),
  }
}

/** Squatters of misspelled providers stand on disposable lists; who writes to one meant the provider. */
const isTypo = (domain: string, disposable: ReadonlySet<string>) =>
  listedTypo(domain) !== null && !withParents(domain).some(name => disposable.has(name))

/** One key for each entry of an operator's list: addresses and domains in A-labels, all in lower case. */
function keys(entries: Iterable<string> = []): ReadonlySet<string> {
  return new Set([...entries].map(key).filter(entry => entry !== ''))
}

function key(entry: string): string {
  const text = entry.trim().toLowerCase()
  const address = text.includes('@') ? parseAddress(text) : null
  if (address !== null && !isFault(address)) return addressKey(address)
  const domain = parseDomain(text.replace(/^\*?[@.]/, ''))
  return isFault(domain) ? text : domain.ascii
}

/** By the whole address, by its canonical form, or by its domain or one above it. */
function holds(list: ReadonlySet<string>, address: Address): boolean {
  if (list.size === 0) return false
  const exact = addressKey(address).toLowerCase()
  const names = withParents(address.domain.ascii)
  return (
    list.has(exact) || list.has(canonicalAddress(address)) || names.some(name => list.has(name))
  )
}
