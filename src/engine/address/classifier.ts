import { LRUCache } from 'lru-cache'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Address } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import {
  type CustomListName,
  ENTRY_FORMAT_HINT,
  keysInFile,
  mailboxKey,
  readEntry,
} from './custom-list-file.ts'
import { isListed, withParents } from './name-list.ts'
import { REAL_PROVIDERS, RELAYS } from './provider.ts'
import { listedTypo } from './typo.ts'

/** Mailboxes that firms number: `info2`, `sales1`. Only these, because names are numbered too. */
const NUMBERED =
  /^(info|sales|support|admin|contact|office|marketing|billing|help|helpdesk|service|webmaster|team|reception|booking|orders)\d{1,2}$/
/** Machines that send under many names: `alerts-noreply`, `no-reply-jobs`, `bounces`; RFC 2142 §8 `staff-request`. */
const MACHINE =
  /(?:^|[._-])(?:no[._-]?reply|do[._-]?not[._-]?reply|mailer-daemon)(?:[._-]|$)|.-request$|^owner-./
/** Below this a name without its dots says too little: `al.la` is a person. */
const SQUEEZED_LENGTH_MIN = 8

/** Whether a mailbox belongs to a task, not to a person; whole words only, case and `+tag` aside. */
function isRole(local: string, more: ReadonlySet<string>): boolean {
  const name = local.toLowerCase().split('+', 1)[0] ?? ''
  const knows = (word: string) => more.has(word) || isListed('role', word)
  if (knows(name) || MACHINE.test(name) || NUMBERED.test(name)) return true
  const end = name.search(/[._-]/)
  if (end < 0) return false
  const squeezed = name.replace(/[._-]/g, '')
  if (squeezed.length >= SQUEEZED_LENGTH_MIN && knows(squeezed)) return true
  if (knows(name.replace(/[._]/g, '-'))) return true
  return knows(name.slice(0, end)) && name.split(/[._-]/).every(knows)
}

/**
 * Whether nobody would choose this local part in earnest: words that fill a form, one character held down, a finger
 * drawn along the keyboard, a long random string. When in doubt it is no junk.
 */
function isLowQualityLocalPart(local: string): boolean {
  const bare = local.toLowerCase().split('+', 1)[0] ?? ''
  const name = bare.replace(/[._-]/g, '')
  // With separators between them, equal letters may be initials.
  return FILLER.test(name) || /^(.)\1{3,}$/u.test(bare) || isKeyboardWalk(name) || isRandom(name)
}

const FILLER =
  /^(?:(?:(?:my)?tests?(?:ing|er|test|user|mail|email|account|address)?|fake(?:mail|email|name|user)?|foobar|blabla(?:bla)?|abcd?|dummy|dummy(?:mail|email|user))\d{0,6}|no(?:t?)(?:mail|email|one|name|thanks|way|spam)|none|null|nil|undefined|nothing|nada|invalid|unknown|anonym(?:ous)?|idonthave(?:one|it|email|anemail)?|donthave(?:one|email)?|example|sample|whatever|n\/?a)$/

const ROWS = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', 'qwertzuiop', 'azertyuiop']
const DIGITS = '1234567890'
/** A walk this long in one go is no name, whatever key it starts from; `wert` and `rew` are. */
const WALK_LENGTH_MIN = 6
/** From the left edge of a row, as `asdf` and `qwer`, four keys are plain. */
const EDGE_WALK_LENGTH_MIN = 4

const backwards = (row: string) => [...row].reverse().join('')
/** Three letters that begin a walk in either direction; hardly any name begins so. */
const STEPS: ReadonlySet<string> = new Set(
  ROWS.flatMap(row => [row, backwards(row)]).flatMap(row =>
    Array.from({ length: row.length - 2 }, (_, at) => row.slice(at, at + 3)),
  ),
)

/** Letters along a row, perhaps again and again, perhaps with digits after: `asdf`, `qwertyuiop`, `asdasd`, `qwe123`. */
function isKeyboardWalk(name: string): boolean {
  if (!STEPS.has(name.slice(0, 3))) return false
  const [, letters = '', digits = ''] = /^([a-z]+)(\d*)$/.exec(name) ?? []
  if (letters === '' || (digits !== '' && !DIGITS.startsWith(digits.slice(0, 10)))) return false
  const unit = /^(.{3,}?)\1+$/.exec(letters)?.[1] ?? letters
  const fromEdge = ROWS.some(row => row.startsWith(unit))
  if (fromEdge && unit.length >= EDGE_WALK_LENGTH_MIN) return true
  if (fromEdge && unit.length === 3) return letters.length > 3 || digits.length >= 3
  return unit.length >= WALK_LENGTH_MIN && ROWS.some(row => isAlong(row, unit))
}

const isAlong = (row: string, unit: string) => row.includes(unit) || backwards(row).includes(unit)

/** Shorter strings may be initials, a phone number, a name with a birthday. */
const RANDOM_LENGTH_MIN = 20

/** Letters and digits thrown together, or letters that no tongue can speak. */
function isRandom(name: string): boolean {
  if (name.length < RANDOM_LENGTH_MIN || !/^[a-z0-9]+$/.test(name)) return false
  const changes = name.match(/[a-z](?=\d)|\d(?=[a-z])/g)?.length ?? 0
  const vowels = name.match(/[aeiouy]/g)?.length ?? 0
  const letters = name.replace(/\d/g, '').length
  return changes >= 6 || (letters >= RANDOM_LENGTH_MIN && vowels / letters < 0.15)
}

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

/**
 * Domains under which services of throw-away mail run their own mail exchangers, for any number of
 * rotating domains: the services that fakefilter names, and the exchangers that in public surveys of
 * 2026 stood behind hundreds of disposable domains and next to nothing else. Never a host that honest
 * domains share (Google, Cloudflare, a registrar, a forwarder).
 */
const HOST_DOMAINS: ReadonlySet<string> = new Set(
  `mailinator.com guerrillamail.com guerrillamail.org sharklasers.com yopmail.com yopmail.net
  temp-mail.org temp-mail.io tempmail.plus mailto.plus 10minutemail.com 10minutemail.net minuteinbox.com
  maildrop.cc mailsac.com mailnesia.com mailcatch.com dispostable.com getnada.com inboxes.com
  trashmail.com trashmail.de trash-mail.com discard.email spambog.com mohmal.com moakt.com
  emailondeck.com emailfake.com email-fake.com generator.email mail.tm mail.gw 1secmail.com dropmail.me
  10mail.org burnermail.io mytemp.email tempr.email harakirimail.com mintemail.com throwawaymail.com
  tempmailo.com tempmail.ninja tempmailin.com fakemail.net fakeinbox.com spamgourmet.com spam4.me
  grr.la mail7.io inboxkitten.com mailpoof.com muellmail.com wegwerfmail.de byom.de einrot.com
  fakemailgenerator.com armyspy.com smailpro.com etempmail.com internxt-temp.com luxusmail.org
  tmail.link tempinbox.com mytrashmail.com mailexpire.com jetable.org incognitomail.org
  wabblywabble.com wallywatts.com unstablemail.com beavis99.com beavis99.net emlhub.com emlpro.com
  emltmp.com freeml.net yomail.info spymail.one cleantempmail.com gravityengine.cc tinyhost.shop
  email.chatgpt.org.uk papierkorb.me fex.plus tempm.com mail-temp.com edumail.icu kuku.lu
  cryptogmail.com fakermail.com linshiyouxiang.net throwaway.io mail1.io kopeechka.store
  temporary-mail.net wegwerfemailadresse.com temporarymail.com disposablemail.com anonymmail.net
  emailnator.com tmail.gg onetimemail.org nukemail.app`.split(/\s+/),
)

/** Whether a domain, or one that it lies under, hands out throw-away mailboxes; what is allowed wins. */
function isDisposable(
  domain: string,
  more: ReadonlySet<string>,
  allow: ReadonlySet<string>,
): boolean {
  const names = withParents(domain)
  if (names.some(name => allow.has(name) || REAL_PROVIDERS.has(name))) return false
  return !isRelay(domain) && names.some(name => more.has(name) || isListed('disposable', name))
}

const isRelay = (domain: string): boolean => withParents(domain).some(name => RELAYS.has(name))

/** Whether a mail exchanger serves throw-away domains and nothing else. */
const isDisposableHost = (mxHost: string): boolean =>
  withParents(mxHost.toLowerCase().replace(/\.$/, '')).some(name => HOST_DOMAINS.has(name))
