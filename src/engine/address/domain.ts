import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import { isSpecialUse } from '../../platform/domain-names.ts'
import {
  type FaultCode,
  invisibleCharError,
  isFault,
  type SyntaxFault,
  syntaxError,
} from './syntax-error.ts'

/** A domain in both forms, so that it is converted only once. */
export type Domain = {
  /**
   * Lower-case A-labels, for DNS and SMTP; for an address literal, the literal with its brackets.
   */
  readonly ascii: string
  /** The name in U-labels, for display. */
  readonly unicode: string
  /**
   * `literal`: `[192.0.2.1]` or `[IPv6:…]`. `special`: a special-use name that the public DNS does
   * not resolve (RFC 6761, 7686, 8375, 9476).
   */
  readonly kind: 'name' | 'literal' | 'special'
}

/** RFC 1035 §2.3.4: 255 octets on the wire are 253 characters of text. */
const DOMAIN_LENGTH_MAX = 253
/** Octets of a label (RFC 1035 §2.3.4). */
const LABEL_LENGTH_MAX = 63
/** The label separators of UTS #46 §2.3. */
const DOTS = /[.\u3002\uFF0E\uFF61]/

/** Parses the part after the @; `shift` is its index in the whole address, for error positions. */
export function parseDomain(text: string, shift = 0): Domain | SyntaxFault {
  if (text === '') return syntaxError('no_domain', text, 0, shift)
  if (text.length > DOMAIN_LENGTH_MAX) {
    return syntaxError('domain_too_long', text, DOMAIN_LENGTH_MAX, shift)
  }
  const known = PARSED.get(text)
  if (known !== undefined) return known
  if (ORDINARY.test(text) && !/xn--/i.test(text)) return plainDomain(text)
  if (text.startsWith('[')) return parseLiteral(text, shift)
  const wrong = WRONG_CHARACTER.exec(text)
  if (wrong !== null)
    return invisibleCharError(text, shift) ?? characterError(text, wrong.index, shift)
  return PLAIN.test(text) ? plainName(text, shift) : internationalName(text, shift)
}

/** The fast path for almost all names: two or more valid labels, the last one not a number. */
const ORDINARY = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

/** ASCII other than letters, digits, hyphens and dots; and non-ASCII spaces. */
const WRONG_CHARACTER = /[^a-zA-Z0-9.\-\u{80}-\u{10FFFF}]|[\p{Cc}\p{Z}]/v
/** ASCII names without an A-label, which need no conversion. */
const PLAIN = /^(?!.*xn--)[a-z0-9.-]+$/i

function plainName(text: string, shift: number): Domain | SyntaxFault {
  return labelsError(text.toLowerCase(), text, shift) ?? plainDomain(text)
}

function plainDomain(text: string): Domain {
  const key = copyText(text)
  const ascii = key.toLowerCase()
  const domain: Domain = { ascii, unicode: ascii, kind: kindOf(ascii) }
  PARSED.set(key, domain)
  return domain
}

/** Returns a copy: V8 keeps the whole text of a list in memory as long as a part of it is in use. */
const copyText = (part: string): string => Buffer.from(part).toString()

/**
 * Recently parsed domains, about 300 bytes each: the addresses of a list share few domains, and
 * whatever follows from a domain alone is cached by this object.
 */
const PARSED = new LRUCache<string, Domain>({ max: 10_000 })

function internationalName(text: string, shift: number): Domain | SyntaxFault {
  const domain = convertedName(text, shift)
  if (!isFault(domain)) PARSED.set(copyText(text), domain)
  return domain
}

function convertedName(text: string, shift: number): Domain | SyntaxFault {
  const hidden = invisibleCharError(text, shift)
  if (hidden !== null) return hidden
  const empty = emptyLabelError(text, shift)
  if (empty !== null) return empty
  const long = lengthError(text, shift)
  if (long !== null) return long
  const ascii = tr46().toASCII(text, TR46_OPTIONS)
  if (ascii === null) return syntaxError('domain_idn', text, invalidLabelAt(text), shift)
  const fault = labelsError(ascii, text, shift) ?? reservedLabelError(ascii, text, shift)
  if (fault !== null) return fault
  // The A-labels are already validated, so the reverse conversion needs no checks.
  const unicode = tr46().toUnicode(ascii, {}).domain
  return signError(unicode, text, shift) ?? { ascii, unicode, kind: kindOf(ascii) }
}

/**
 * Returns the least encoded length: `xn--` and one character for each encoded one (RFC 3492 §6.3).
 */
const leastLength = (label: string) =>
  (/[^\0-\x7F]/.test(label) ? 'xn--'.length : 0) + [...label].length

/**
 * Returns an error if the name is too long in any encoding, so that hostile names cost no
 * conversion. NFKC comes first because a single character may map to 18.
 */
function lengthError(text: string, shift: number): SyntaxFault | null {
  const labels = text.normalize('NFKC').split(DOTS)
  const least = labels.reduce((sum, label) => sum + leastLength(label) + 1, -1)
  if (least > DOMAIN_LENGTH_MAX) return syntaxError('domain_too_long', text, text.length - 1, shift)
  const index = labels.findIndex(label => leastLength(label) > LABEL_LENGTH_MAX)
  if (index < 0) return null
  return syntaxError('label_too_long', text, labelAt(text, index), shift)
}

const labelAt = (text: string, index: number) =>
  text
    .split(DOTS)
    .slice(0, index)
    .reduce((sum, label) => sum + label.length + 1, 0)

/**
 * Characters that UTS #46 allows but IDNA2008 (RFC 5892) does not: quotation marks, dashes, arrows,
 * currency signs, © and ®. Emoji are allowed, because such names are registered and resolve, and so
 * are the middle dots and quotes of RFC 5892 appendix A.
 */
const SIGN =
  /[^\p{L}\p{M}\p{N}[\p{Extended_Pictographic}--[\u00A9\u00AE]]\p{Emoji_Component}.\-\u00B7\u0375\u05F3\u05F4\u30FB\u200C\u200D]/v

function signError(unicode: string, text: string, shift: number): SyntaxFault | null {
  const sign = SIGN.exec(unicode)?.[0]
  if (sign === undefined) return null
  const at = text.indexOf(sign)
  if (at < 0) return syntaxError('domain_idn', text, 0, shift)
  return syntaxError('domain_character', text, at, shift)
}

/**
 * Returns the first label error of a name. Its position is exact for names that need no conversion,
 * else the start of the label.
 */
function labelsError(ascii: string, text: string, shift: number): SyntaxFault | null {
  const empty = emptyLabelError(text, shift)
  if (empty !== null) return empty
  if (ascii.length > DOMAIN_LENGTH_MAX) {
    return syntaxError('domain_too_long', text, text.length - 1, shift)
  }
  const labels = text.split(DOTS)
  let at = 0
  for (const [index, label] of ascii.split('.').entries()) {
    if (label.length > LABEL_LENGTH_MAX) return syntaxError('label_too_long', text, at, shift)
    if (label.startsWith('-')) return syntaxError('label_hyphen', text, at, shift)
    const length = labels[index]?.length ?? 0
    if (label.endsWith('-')) return syntaxError('label_hyphen', text, at + length - 1, shift)
    at += length + 1
  }
  return tldError(ascii, text, shift)
}

/**
 * RFC 5891 §4.2.3.1: a converted label must not have hyphens in the third and fourth position
 * unless it is an A-label. Plain ASCII names may have them, because real hosts do.
 */
function reservedLabelError(ascii: string, text: string, shift: number): SyntaxFault | null {
  const labels = text.split(DOTS)
  const index = ascii
    .split('.')
    .findIndex((label, n) => /^(?!xn).{2}--/.test(label) && !PLAIN.test(labels[n] ?? ''))
  return index < 0 ? null : syntaxError('domain_idn', text, labelAt(text, index), shift)
}

function emptyLabelError(text: string, shift: number): SyntaxFault | null {
  if (DOTS.test(text.charAt(0))) return syntaxError('label_empty', text, 0, shift)
  const double = text.search(/[.\u3002\uFF0E\uFF61]{2}/)
  if (double >= 0) return syntaxError('label_empty', text, double + 1, shift)
  const last = text.length - 1
  return DOTS.test(text.charAt(last)) ? syntaxError('trailing_dot', text, last, shift) : null
}

function tldError(ascii: string, text: string, shift: number): SyntaxFault | null {
  const lastDot = ascii.lastIndexOf('.')
  if (lastDot < 0) return syntaxError('dotless', text, 0, shift)
  // RFC 3696 §2: no top-level domain is all digits, so a name cannot be mistaken for an IP address.
  if (!/^\d+$/.test(ascii.slice(lastDot + 1))) return null
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(ascii)) return syntaxError('bare_ip', text, 0, shift)
  return syntaxError('numeric_tld', text, text.length - (ascii.length - lastDot - 1), shift)
}

function characterError(text: string, at: number, shift: number): SyntaxFault {
  return syntaxError(CHARACTER_ERRORS[text.charAt(at)] ?? spaceOr(text.charAt(at)), text, at, shift)
}

const CHARACTER_ERRORS: Record<string, FaultCode> = {
  '@': 'two_ats',
  '(': 'comment',
  ')': 'comment',
  '<': 'angle_bracket',
  '>': 'angle_bracket',
}

const spaceOr = (character: string): FaultCode =>
  /\s/.test(character) ? 'domain_space' : 'domain_character'

const kindOf = (ascii: string) => (isSpecialUse(ascii) ? 'special' : 'name')

function invalidLabelAt(text: string): number {
  let at = 0
  for (const label of text.split(DOTS)) {
    if (tr46().toASCII(label, TR46_OPTIONS) === null) return at
    at += label.length + 1
  }
  return 0 // Each label is valid alone, so the mix of writing directions is invalid (RFC 5893 §2).
}

/**
 * `checkHyphens` is off because it also rejects plain names with hyphens in the third and fourth
 * position, which real hosts have. `verifyDNSLength` is off because the error must name the label.
 */
const TR46_OPTIONS = {
  checkHyphens: false,
  checkBidi: true,
  checkJoiners: true,
  useSTD3ASCIIRules: true,
  verifyDNSLength: false,
  transitionalProcessing: false,
}

type Tr46 = {
  toASCII(name: string, options: typeof TR46_OPTIONS): string | null
  toUnicode(name: string, options: Partial<typeof TR46_OPTIONS>): { domain: string; error: boolean }
}

let loaded: Tr46 | null = null

/** Loads tr46 at the first internationalized name, because its tables take 12 ms to load. */
function tr46(): Tr46 {
  loaded ??= createRequire(import.meta.url)('tr46') as Tr46
  return loaded
}

/** Parses an address literal such as `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3). */
function parseLiteral(text: string, shift = 0): Domain | SyntaxFault {
  const hidden = invisibleCharError(text, shift)
  if (hidden !== null) return hidden
  const close = text.indexOf(']')
  if (close < 0) return syntaxError('literal_open', text, 0, shift)
  if (close < text.length - 1) return syntaxError('literal_tail', text, close + 1, shift)
  const inside = text.slice(1, close)
  const good = /^ipv6:/i.test(inside) ? isIpv6(inside.slice(5)) : isIpv4(inside)
  if (!good) return syntaxError('literal_bad', text, 1, shift)
  const ascii = `[${inside.toLowerCase().replace('ipv6:', 'IPv6:')}]`
  return { ascii, unicode: ascii, kind: 'literal' }
}

function isIpv4(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every(part => /^\d{1,3}$/.test(part) && Number(part) <= 255)
}

/**
 * RFC 5321 §4.1.3: eight groups, or `::` for at least two of them; the last two may be written as
 * IPv4.
 */
function isIpv6(text: string): boolean {
  const halves = text.split('::')
  if (halves.length > 2) return false
  const [head = '', tail] = halves
  const before = groupCount(head, tail === undefined)
  if (tail === undefined) return before === 8
  return before + groupCount(tail, true) <= 6
}

/** Returns the number of 16-bit groups; Infinity if one is invalid. */
function groupCount(text: string, isEnd: boolean): number {
  if (text === '') return 0
  const groups = text.split(':')
  const last = groups.at(-1) ?? ''
  const ipv4 = isEnd && last.includes('.')
  if (ipv4 && !isIpv4(last)) return Number.POSITIVE_INFINITY
  const hex = ipv4 ? groups.slice(0, -1) : groups
  if (!hex.every(group => /^[0-9a-f]{1,4}$/i.test(group))) return Number.POSITIVE_INFINITY
  return hex.length + (ipv4 ? 2 : 0)
}
