import { domainToUnicode } from 'node:url'
import { type Address, cleanAddress, isFault, PRINTABLE_ASCII, parseAddress } from './address.ts'
import type { Domain } from './domain.ts'
import { replaceLookAlikes } from './look-alikes.ts'
import { isListed, REAL_PROVIDERS } from './name-list.ts'
import { findAddresses } from './several.ts'
import { domainNamed, guessedTypo, isImitation, knownProviderDomains, listedTypo } from './typo.ts'
import {
  correctedTld,
  correctedTldPair,
  hasRegisteredTld,
  isPair,
  withoutMisplacedDot,
} from './typo-tld.ts'

/** The domain that was most likely intended. */
type Suggestion = {
  readonly domain: string
  /** True for a listed typo, false for a guess. */
  readonly sure: boolean
  /**
   * Most names that resemble the intended provider like this belong to squatters with a mail server
   * (Szurdi and Christin, "Email Typosquatting", IMC 2017), so a working MX does not refute it.
   */
  readonly isImitation: boolean
}

/** Returns the domain that was probably intended; null for known providers and dissimilar names. */
export function suggestDomain(domain: Domain): Suggestion | null {
  const known = SUGGESTIONS.get(domain)
  if (known !== undefined) return known
  const suggestion = findSuggestion(domain)
  SUGGESTIONS.set(domain, suggestion)
  return suggestion
}

/** The parser returns the same object for a domain that it has parsed recently. */
const SUGGESTIONS = new WeakMap<Domain, Suggestion | null>()

function findSuggestion({ ascii, kind }: Domain): Suggestion | null {
  if (kind !== 'name') return null
  const listed = listedTypo(ascii)
  if (listed !== null) return { domain: listed, sure: true, isImitation: true }
  if (REAL_PROVIDERS.has(ascii) || isListed('free', ascii)) return null
  const lookAlike = ascii.includes('xn--') ? findLookAlike(domainToUnicode(ascii)) : null
  if (lookAlike !== null) return lookAlike
  const guessed = guessedTypo(ascii) ?? withCorrectedTld(ascii)
  if (guessed === null) return null
  return { domain: guessed, sure: false, isImitation: isImitation(ascii, guessed) }
}

/**
 * Returns the provider that an international name looks like: surely, if only its letters are of
 * another alphabet (`gmаil.com` with a Cyrillic а), and else perhaps (`gmàil.com`).
 */
function findLookAlike(name: string): Suggestion | null {
  const same = replaceLookAlikes(name)
  const plain = same.normalize('NFKD').replace(/\p{M}/gu, '')
  if (!REAL_PROVIDERS.has(plain)) return null
  return { domain: plain, sure: same === plain, isImitation: true }
}

/** Returns the name with the intended ending, if its own ending does not exist. */
function withCorrectedTld(name: string): string | null {
  const labels = name.split('.')
  if (hasRegisteredTld(name)) {
    const pair = correctedTldPair(name)
    return pair === null ? null : [...labels.slice(0, -2), pair].join('.')
  }
  const ending = labels.pop() ?? ''
  const before = labels.length > 1 ? labels.at(-1) : undefined
  const joined = before === undefined ? null : withoutMisplacedDot(before, ending)
  if (joined !== null) return [...labels.slice(0, -1), joined].join('.')
  const intended = correctedTld(ending, before)
  if (intended === null) return null
  // An ending that is there twice is one: `firm.com.comm`.
  return (intended === before ? labels : [...labels, intended]).join('.')
}

/**
 * Returns the address with the name that was probably intended; null if it is as expected. A
 * spreadsheet marks a cell as text with an apostrophe, which the grammar allows (RFC 5322 §3.2.3), and
 * so it does curly quotes and other look-alikes of ASCII (RFC 6531 §3.3), but people do not.
 */
export function correctLocal({ text }: Address): Address | null {
  const [quote] = LEADING_QUOTE.exec(text) ?? ['']
  if (quote === '' && PRINTABLE_ASCII.test(text)) return null
  const unquoted = quote === '' ? text : text.slice(quote.length).replace(CLOSING_QUOTE, '')
  const at = unquoted.lastIndexOf('@')
  const local = replaceLookAlikes(unquoted.slice(0, at))
  const corrected = PRINTABLE_ASCII.test(local) ? local + unquoted.slice(at) : unquoted
  const address = corrected === text ? null : parseAddress(corrected)
  return address === null || isFault(address) ? null : address
}

const LEADING_QUOTE = /^['`´‘’‚‛“”„‟«»‹›′]+/
const CLOSING_QUOTE = /['`´‘’‚‛“”„‟«»‹›′]+(?=@[^@]*$)/

/**
 * Returns the intended address of a text with an obvious syntax error, a listed typo, a quotation mark
 * before it or look-alikes of ASCII in its name, which needs no DNS; else null. `address` is the text
 * as the caller parsed it.
 */
export function suggestAddress(text: string, address = parseAddress(text)): string | null {
  if (isFault(address)) return suggestForSyntaxError(text)
  const corrected = correctLocal(address)
  const intended = suggestDomain(address.domain)
  if (!intended?.sure) return corrected?.text ?? null
  return `${(corrected ?? address).local}@${intended.domain}`
}

/** Returns the intended address of a text with an obvious syntax error; else null. */
export function suggestForSyntaxError(text: string): string | null {
  const repaired = repairAddress(text)
  const address = repaired === null ? null : parseAddress(repaired)
  if (address === null || isFault(address)) return null
  const intended = suggestDomain(address.domain)
  return intended === null ? repaired : `${address.local}@${intended.domain}`
}

/** Longer texts are not typos, and some patterns here take quadratic time. */
const REPAIRED_LENGTH_MAX = 128

/** Repairs an invalid address: a missing dot or @, a comma for a dot, an extra mark; else null. */
function repairAddress(text: string): string | null {
  if (text.length > REPAIRED_LENGTH_MAX || findAddresses(text).length > 1) return null
  const withAt = decodeAtAndDot(cleanAddress(replaceLookAlikes(text)).text).replace(/@+$/, '')
  const [local, ...parts] = withAt.includes('@') ? withAt.split(/@+/) : splitWithoutAt(withAt)
  // A form that appends the domain makes `ann@a.com@a.com`.
  const rest = new Set(parts).size === 1 ? parts.slice(0, 1) : parts
  if (local === undefined || rest.length === 0) return null
  // A second @ is taken for a dot only before an ending: `ann@gmail@com`, not `ann@a.com@b.com`.
  if (rest.length > 1 && !/^[\p{L}\d-]+(?:\.co)?\.[a-z]+$/u.test(rest.join('.'))) return null
  const domain = repairDomain(rest.join('.'))
  const repaired = `${repairLocal(local)}@${domain}`
  return repaired === text || isFault(parseAddress(repaired)) ? null : repaired
}

/**
 * Decodes `ann (at) example (dot) com` and `ann at example dot com`, which are meant to confuse
 * crawlers, `ann_at_example.com`, and `%40` as in URLs.
 */
function decodeAtAndDot(text: string): string {
  const decoded = text
    .replace(/\s*[([{]at[)\]}]\s*|\s+at\s+|%40/i, '@')
    .replace(/\s*[([{](?:dot|\.)[)\]}]\s*|\s+dot\s+/gi, '.')
  return decoded.includes('@') ? decoded : decoded.replace(/_at_/i, '@')
}

/** Splits `anngmail.com`: the @ is missing, but the text ends with a large provider. */
function splitWithoutAt(text: string): string[] {
  const domain = knownProviderDomains().find(knownProvider =>
    text.toLowerCase().endsWith(knownProvider),
  )
  if (domain === undefined) return []
  const local = text.slice(0, -domain.length).replace(/[.#&!"' ]$/, '')
  return local === '' || /^www$|[/:]/i.test(local) ? [] : [local, domain]
}

/** Removes extra dots, spaces and marks, but nothing that may belong to the name. */
const repairLocal = (local: string) =>
  local
    .trim()
    .replace(/^["<(]+|["'>)\\]+$/g, '')
    .replace(LEADING_QUOTE, '')
    .replace(/\s*\.[\s.]*/g, '.')
    .replace(/^\.|\.$/g, '')

const LITERAL_START = /^[^\p{L}\d[]*\[(?:\d|ipv6:)/iu
const AROUND_LITERAL = /^[^\p{L}\d[]+|[^\p{L}\d\]]+$/gu
const AROUND_NAME = /^[^\p{L}\d]+|[^\p{L}\d]+$/gu

function repairDomain(domain: string): string {
  const name = domain
    .toLowerCase()
    .replace(/\s+/g, '')
    .replace(/^https?[:/]+/, '')
    .replace(LITERAL_START.test(domain) ? AROUND_LITERAL : AROUND_NAME, '')
    .replace(/[.,;:/\\_]+/g, '.')
  return name.includes('.') || name.startsWith('[') ? name : withDot(name)
}

/** A word that ends like a domain needs at least this many characters before the ending. */
const NAME_LENGTH_MIN = 2

/** Inserts the missing dot: `gmailcom`, `gmail`, `example-net`, `firmcouk`. */
function withDot(name: string): string {
  const knownProvider = domainNamed(name)
  if (knownProvider !== null) return knownProvider
  const ending = endingWithin(name)
  const before = name.slice(0, name.length - ending.length).replace(/-+$/, '')
  if (ending === '' || before.length < NAME_LENGTH_MIN) return name
  return `${before}.${correctedTld(ending, undefined) ?? ending}`
}

const endingWithin = (name: string) =>
  [/com?[a-z]{2}$/, /(?:com|net|org|edu|gov|info)$/]
    .map(pattern => pattern.exec(name)?.[0] ?? '')
    .find(ending => ending !== '' && isEnding(ending)) ?? ''

const isEnding = (ending: string) => /^(?:com|net|org|edu|gov|info)$/.test(ending) || isPair(ending)
