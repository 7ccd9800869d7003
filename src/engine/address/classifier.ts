import { EvError } from '../../platform/error.ts'
import { createLru } from '../../platform/lru.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Address } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import {
  type CustomListName,
  ENTRY_FORMAT_HINT,
  mailboxKey,
  readEntry,
} from './custom-list-entry.ts'
import { isListed, REAL_PROVIDERS, RELAYS, withParents } from './name-list.ts'
import { listedTypo } from './typo.ts'

/**
 * Role mailboxes that companies number: `info2`, `sales1`. Only these; personal names have numbers,
 * too.
 */
const NUMBERED =
  /^(info|sales|support|admin|contact|office|marketing|billing|help|helpdesk|service|webmaster|team|reception|booking|orders)\d{1,2}$/
/** Automated senders: `alerts-noreply`, `no-reply-jobs`, `bounces`; RFC 2142 §8 `staff-request`. */
const MACHINE =
  /(?:^|[._-])(?:no[._-]?reply|do[._-]?not[._-]?reply|mailer-daemon)(?:[._-]|$)|.-request$|^owner-./
/** Shorter names without their dots are ambiguous: `al.la` is a person. */
const SQUEEZED_LENGTH_MIN = 8

/** Returns a local part in lower case, without its `+tag`. */
function getUntagged(local: string): string {
  const lower = local.toLowerCase()
  const tagAt = lower.indexOf('+')
  return tagAt < 0 ? lower : lower.slice(0, tagAt)
}

/**
 * Whether a mailbox belongs to a role, not to a person. Compares whole words; ignores case, accents
 * and `+tag`.
 */
function isRole(local: string, more: ReadonlySet<string>): boolean {
  const name = getUntagged(local)
  if (isRoleName(name, more)) return true
  return /[^\0-\x7F]/.test(name) && withoutAccents(name).some(plain => isRoleName(plain, more))
}

function isRoleName(name: string, more: ReadonlySet<string>): boolean {
  const isRoleWord = (word: string) => more.has(word) || isListed('role', word)
  if (isRoleWord(name) || MACHINE.test(name) || NUMBERED.test(name)) return true
  const end = name.search(/[._-]/)
  if (end < 0) return false
  const squeezed = name.replace(/[._-]/g, '')
  if (squeezed.length >= SQUEEZED_LENGTH_MIN && isRoleWord(squeezed)) return true
  if (isRoleWord(name.replace(/[._]/g, '-'))) return true
  const [first = '', ...others] = name.split(/[._-]/)
  if (!isRoleWord(first)) return false
  if (others.every(isRoleWord)) return true
  const [market = ''] = others
  return others.length === 1 && first.length >= MARKET_ROLE_LENGTH_MIN && MARKETS.has(market)
}

/** Shorter words before a market are ambiguous: `dev.in`. */
const MARKET_ROLE_LENGTH_MIN = 4
/** Countries, languages and regions for which companies have a mailbox each; none is a surname. */
const MARKETS: ReadonlySet<string> = new Set(
  `de at ch fr es it uk us usa eu nl be lu pl cz sk hu ro bg gr tr ru ua se dk fi ie pt ca au nz jp cn hk sg
  in br mx ar cl na en emea apac latam dach benelux nordics`.split(/\s+/),
)

/** Returns a name in ASCII as people write it: `büro` as `buero` and as `buro`. */
function withoutAccents(name: string): string[] {
  const german = name.replace(/[äöüß]/g, letter => GERMAN[letter] ?? letter)
  return [...new Set([german, name])].map(text =>
    text
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/[łıøæđß]/g, letter => UNDECOMPOSED[letter] ?? letter),
  )
}

const GERMAN: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' }
/** Letters that Unicode does not decompose. */
const UNDECOMPOSED: Readonly<Record<string, string>> = {
  ł: 'l',
  ı: 'i',
  ø: 'o',
  æ: 'ae',
  đ: 'd',
  ß: 'ss',
}

/**
 * Whether a local part looks made up: form filler words, one repeated character, a keyboard walk or
 * a long random string. Returns false in doubt.
 */
function isLowQualityLocalPart(local: string): boolean {
  const bare = getUntagged(local)
  const name = bare.replace(/[._-]/g, '')
  // With separators between them, equal letters may be initials.
  return FILLER.test(name) || /^(.)\1{3,}$/u.test(bare) || isKeyboardWalk(name) || isRandom(name)
}

const FILLER =
  /^(?:(?:(?:my)?tests?(?:ing|er|test|user|mail|email|account|address)?|fake(?:mail|email|name|user)?|foobar|blabla(?:bla)?|abcd?|dummy|dummy(?:mail|email|user))\d{0,6}|no(?:t?)(?:mail|email|one|name|thanks|way|spam)|none|null|nil|undefined|nothing|nada|invalid|unknown|anonym(?:ous)?|idonthave(?:one|it|email|anemail)?|donthave(?:one|email)?|example|sample|whatever|n\/?a)$/

const ROWS = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', 'qwertzuiop', 'azertyuiop']
const DIGITS = '1234567890'
/**
 * A keyboard walk of this length is never a name, whichever key it starts at; `wert` and `rew` are.
 */
const WALK_LENGTH_MIN = 6
/** From the left edge of a row, four keys are enough: `asdf`, `qwer`. */
const EDGE_WALK_LENGTH_MIN = 4

const backwards = (row: string) => [...row].reverse().join('')
/**
 * The first three letters of a keyboard walk in either direction; very few names start like this.
 */
const WALK_STARTS: ReadonlySet<string> = new Set(
  ROWS.flatMap(row => [row, backwards(row)]).flatMap(row =>
    Array.from({ length: row.length - 2 }, (_, at) => row.slice(at, at + 3)),
  ),
)

/**
 * Whether a name runs along a key row, with repeats or trailing digits: `asdf`, `asdasd`, `qwe123`.
 */
function isKeyboardWalk(name: string): boolean {
  if (!WALK_STARTS.has(name.slice(0, 3))) return false
  const [, letters = '', digits = ''] = /^([a-z]+)(\d*)$/.exec(name) ?? []
  if (letters === '' || (digits !== '' && !DIGITS.startsWith(digits.slice(0, 10)))) return false
  const unit = /^(.{3,}?)\1+$/.exec(letters)?.[1] ?? letters
  const fromEdge = ROWS.some(row => row.startsWith(unit))
  if (fromEdge && unit.length >= EDGE_WALK_LENGTH_MIN) return true
  if (fromEdge && unit.length === 3) return letters.length > 3 || digits.length >= 3
  return unit.length >= WALK_LENGTH_MIN && ROWS.some(row => isAlong(row, unit))
}

const isAlong = (row: string, unit: string) => row.includes(unit) || backwards(row).includes(unit)

/** Shorter strings may be initials, a phone number or a name with a birth date. */
const RANDOM_LENGTH_MIN = 20

/** Whether a name mixes letters and digits at random, or has too few vowels to be a word. */
function isRandom(name: string): boolean {
  if (name.length < RANDOM_LENGTH_MIN || !/^[a-z0-9]+$/.test(name)) return false
  const changes = name.match(/[a-z](?=\d)|\d(?=[a-z])/g)?.length ?? 0
  const vowels = name.match(/[aeiouy]/g)?.length ?? 0
  const letters = name.replace(/\d/g, '').length
  return changes >= 6 || (letters >= RANDOM_LENGTH_MIN && vowels / letters < 0.15)
}

/** Properties of an address that follow from its text and the lists alone. */
export type AddressFlags = {
  /** The domain provides disposable mailboxes. */
  readonly disposable: boolean
  /** The mailbox belongs to a role, not to a person. */
  readonly role: boolean
  /** The provider offers free mailboxes to the public. */
  readonly free: boolean
  /**
   * A privacy relay: mail is forwarded to a person who hides the real address. Never disposable.
   */
  readonly relay: boolean
  /** On the custom list of blocked entries. */
  readonly blocked: boolean
  /** On the custom list of spam traps. */
  readonly spamTrap: boolean
  /** `low` if the local part looks made up. */
  readonly quality: 'low' | null
  /** The canonical spelling of the mailbox; all its spellings reach it. */
  readonly canonical: string
}

/**
 * Additions to the built-in lists: domains with their subdomains, or addresses for `blocked` and
 * `spamTrap`.
 */
export type ClassifierOptions = {
  readonly disposable?: Iterable<string>
  /** Takes precedence over every disposable list. */
  readonly allow?: Iterable<string>
  readonly blocked?: Iterable<string>
  readonly spamTrap?: Iterable<string>
  /** Role names, as local parts without a domain. */
  readonly role?: Iterable<string>
}

/** Keys of further entries of each list, as `keysInFile` reads them. */
export type CustomKeys = { readonly [list in CustomListName]?: Iterable<string> }

export type AddressClassifier = {
  of(address: Address): AddressFlags
  /** Whether this mail exchanger of `domain` serves only disposable domains. */
  disposableHost(mxHost: string, domain: string): boolean
}

/**
 * Creates a classifier over the built-in and the custom lists. Built-in files are read at the first
 * lookup. Throws EvError('usage') on an invalid option.
 */
export function createClassifier(
  options: ClassifierOptions = {},
  keys: CustomKeys = {},
): AddressClassifier {
  const custom = customLists(options, keys)
  // The addresses of a list share few domains.
  const domains = createLru<DomainFlags>(DOMAINS_MAX)
  const ofDomain = (domain: string): DomainFlags => {
    const known = domains.get(domain)
    if (known !== undefined) return known
    const flags = {
      disposable:
        isDisposable(domain, custom.disposable, custom.allow) && !isTypo(domain, custom.disposable),
      free: isListed('free', domain),
      relay: isRelay(domain),
    }
    domains.set(domain, flags)
    return flags
  }
  return {
    of: address => flagsFor(address, custom, ofDomain(address.domain.ascii)),
    disposableHost: (mxHost, domain) =>
      isDisposableHost(mxHost) && !isUnder(custom.allow, mxHost) && !isUnder(custom.allow, domain),
  }
}

type CustomLists = Readonly<Record<CustomListName, ReadonlySet<string>>>
type DomainFlags = Pick<AddressFlags, 'disposable' | 'free' | 'relay'>

const DOMAINS_MAX = 2_000

function customLists(options: ClassifierOptions, given: CustomKeys): CustomLists {
  const read = (list: CustomListName) => {
    const keys = new Set<string>()
    for (const key of keysFrom(list, options[list] ?? [])) keys.add(key)
    for (const key of given[list] ?? []) keys.add(key)
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
  for (const item of entries) {
    const text = item.trim()
    if (text === '') continue
    const entry = readEntry(list, text)
    if ('key' in entry) yield entry.key
    else {
      const takes = `It takes ${ENTRY_FORMAT_HINT[list]}.`
      throw new EvError('usage', `lists.${list} has "${sanitizeText(text)}". ${entry.why} ${takes}`)
    }
  }
}

function flagsFor(address: Address, custom: CustomLists, ofDomain: DomainFlags): AddressFlags {
  return {
    disposable: ofDomain.disposable,
    free: ofDomain.free,
    relay: ofDomain.relay,
    role: isRole(address.local, custom.role),
    blocked: isOnList(custom.blocked, address),
    spamTrap: isOnList(custom.spamTrap, address),
    // A relay generates random local parts, which says nothing about the person.
    quality: !ofDomain.relay && isLowQualityLocalPart(address.local) ? 'low' : null,
    canonical: canonicalAddress(address),
  }
}

/**
 * Whether a disposable domain is a misspelled provider. Disposable lists include typo squatters; an
 * address at one was intended for the provider.
 */
const isTypo = (domain: string, disposable: ReadonlySet<string>) =>
  listedTypo(domain) !== null && !isUnder(disposable, domain)

/** Whether a list has the address in any spelling, its domain or a parent domain. */
const isOnList = (list: ReadonlySet<string>, address: Address) =>
  list.size > 0 && (list.has(mailboxKey(address)) || isUnder(list, address.domain.ascii))

const isUnder = (list: ReadonlySet<string>, name: string) =>
  list.size > 0 && withParents(name.toLowerCase()).some(parent => list.has(parent))

/**
 * Domains of mail exchangers that disposable email services run for any number of rotating domains:
 * the services that fakefilter lists, and the exchangers that served hundreds of disposable domains
 * and almost no others in public surveys of 2026. Never a host that legitimate domains share
 * (Google, Cloudflare, a registrar, a forwarder).
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

/** Whether a domain or a parent provides disposable mailboxes; the allow list takes precedence. */
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

/** Whether a mail exchanger serves only disposable domains. */
const isDisposableHost = (mxHost: string): boolean =>
  withParents(mxHost.toLowerCase().replace(/\.$/, '')).some(name => HOST_DOMAINS.has(name))
