import { LRUCache } from 'lru-cache'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Address } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import {
  type CustomListName,
  ENTRY_FORMAT_HINT,
  mailboxKey,
  readEntry,
} from './custom-list-entry.ts'
import { keysInFile } from './custom-list-file.ts'
import { isDisposable, isDisposableHost, isRelay } from './disposable.ts'
import { isLowQualityLocalPart } from './local-part-quality.ts'
import { isListed, withParents } from './name-list.ts'
import { isRole } from './role.ts'
import { listedTypo } from './typo.ts'

/** What an address tells of itself, before anyone asks a server. */
export type AddressFlags = {
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

/** Additions to the built-in lists: domains with all below them, or whole addresses for `blocked` and `spamTrap`. */
export type ClassifierOptions = {
  readonly disposable?: Iterable<string>
  /** Wins over every disposable list. */
  readonly allow?: Iterable<string>
  readonly blocked?: Iterable<string>
  readonly spamTrap?: Iterable<string>
  /** Local parts. */
  readonly role?: Iterable<string>
}

/** Files with more of each; null: none. */
export type ClassifierFiles = { readonly [list in CustomListName]?: string | null }

export type AddressClassifier = {
  of(address: Address): AddressFlags
  /** Whether this mail exchanger of `domain` serves throw-away domains and nothing else. */
  disposableHost(mxHost: string, domain: string): boolean
}

/**
 * Builds a reader of flags over the built-in lists and the operator's own; of the built-in ones no file is read
 * before the first address. Throws EvError('bad_config') on a bad file and EvError('usage') on a bad option.
 */
export function createClassifier(
  options: ClassifierOptions = {},
  files: ClassifierFiles = {},
): AddressClassifier {
  const own = customLists(options, files)
  // A list asks about the same domains again and again.
  const domains = new LRUCache<string, DomainFlags>({ max: DOMAINS_MAX })
  const ofDomain = (domain: string): DomainFlags => {
    const known = domains.get(domain)
    if (known !== undefined) return known
    const flags = {
      disposable:
        isDisposable(domain, own.disposable, own.allow) && !isTypo(domain, own.disposable),
      free: isListed('free', domain),
      relay: isRelay(domain),
    }
    domains.set(domain, flags)
    return flags
  }
  return {
    of: address => flagsFor(address, own, ofDomain(address.domain.ascii)),
    disposableHost: (mxHost, domain) =>
      isDisposableHost(mxHost) && !isUnder(own.allow, mxHost) && !isUnder(own.allow, domain),
  }
}

type CustomLists = Readonly<Record<CustomListName, ReadonlySet<string>>>
type DomainFlags = Pick<AddressFlags, 'disposable' | 'free' | 'relay'>

const DOMAINS_MAX = 2_000

function customLists(options: ClassifierOptions, files: ClassifierFiles): CustomLists {
  const read = (list: CustomListName) => {
    const keys = new Set<string>()
    for (const key of keysFrom(list, options[list] ?? [])) keys.add(key)
    const file = files[list] ?? null
    if (file !== null) for (const key of keysInFile(list, file)) keys.add(key)
    return keys
  }
  return {
    disposable: read('disposable'),
    allow: read('allow'),
    blocked: read('blocked'),
    spamTrap: read('spamTrap'),
    role: read('role'),
  }
}

function* keysFrom(list: CustomListName, entries: Iterable<string>): Generator<string> {
  for (const given of entries) {
    const text = given.trim()
    if (text === '') continue
    const entry = readEntry(list, text)
    if ('key' in entry) yield entry.key
    else {
      const takes = `It takes ${ENTRY_FORMAT_HINT[list]}.`
      throw new EvError('usage', `lists.${list} has "${sanitizeText(text)}". ${entry.why} ${takes}`)
    }
  }
}

function flagsFor(address: Address, own: CustomLists, ofDomain: DomainFlags): AddressFlags {
  return {
    ...ofDomain,
    role: isRole(address.local, own.role),
    blocked: holds(own.blocked, address),
    spamTrap: holds(own.spamTrap, address),
    // A relay makes up its names by chance; that is no fault of the person behind it.
    quality: !ofDomain.relay && isLowQualityLocalPart(address.local) ? 'low' : null,
    canonical: canonicalAddress(address),
  }
}

/** Squatters of misspelled providers stand on disposable lists; who writes to one meant the provider. */
const isTypo = (domain: string, disposable: ReadonlySet<string>) =>
  listedTypo(domain) !== null && !isUnder(disposable, domain)

/** By the whole address in any of its spellings, or by its domain or one above it. */
const holds = (list: ReadonlySet<string>, address: Address) =>
  list.size > 0 && (list.has(mailboxKey(address)) || isUnder(list, address.domain.ascii))

const isUnder = (list: ReadonlySet<string>, name: string) =>
  list.size > 0 && withParents(name.toLowerCase()).some(parent => list.has(parent))
