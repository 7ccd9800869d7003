import { type Domain, parseDomain } from './domain.ts'
import { isPlaceholder } from './placeholder.ts'
import { findAddresses, nameAddresses, readWide } from './several.ts'
import {
  type FaultCode,
  invisibleCharError,
  isFault,
  type SyntaxFault,
  syntaxError,
} from './syntax-error.ts'

export { isFault, type SyntaxFault } from './syntax-error.ts'

/** A mailbox address (RFC 5321 §4.1.2, RFC 6531 §3.3). */
export type Address = {
  /** The address as people write it: local part and domain as in the input, in NFC. */
  readonly text: string
  /** The local part as sent in SMTP, in NFC: quoted only if the input is quoted and it must be. */
  readonly local: string
  readonly domain: Domain
}

/** RFC 5321 §4.5.3.1.3: a path has 256 octets, two of them the angle brackets. */
const ADDRESS_OCTETS_MAX = 254

/**
 * Parses a mailbox address. Comments, folding, display names and surrounding text are errors.
 * Full-width forms are read as ASCII. Never throws.
 */
export function parseAddress(text: string): Address | SyntaxFault {
  const parsed = parseText(text)
  if (!isFault(parsed)) return parsed
  if (text !== '' && isPlaceholder(text)) return syntaxError('placeholder', text, 0)
  return severalError(text) ?? parsed
}

/** Whether a text is not a malformed address, but stands for a missing one. */
export const isMissing = ({ fault }: SyntaxFault): boolean =>
  fault === 'empty' || fault === 'placeholder'

function parseText(text: string): Address | SyntaxFault {
  if (text === '') return syntaxError('empty', text, 0)
  // A UTF-16 unit is at least one octet, so very long texts are rejected before any parsing.
  if (text.length > ADDRESS_OCTETS_MAX) return syntaxError('too_long', text, ADDRESS_OCTETS_MAX)
  if (PRINTABLE_ASCII.test(text)) return parseMailbox(text)
  const hidden = invisibleCharError(text)
  if (hidden !== null) return hidden
  const narrow = readWide(text)
  const nfc = narrow.normalize('NFC')
  const original = parseMailbox(narrow)
  // Both forms are checked: composition must neither hide nor create a forbidden character.
  return nfc === narrow || isFault(original) ? original : parseMailbox(nfc)
}

/** Returns an error that names the addresses if a text has more than one; else null. */
function severalError(text: string): SyntaxFault | null {
  if (text.length > PASTED_LENGTH_MAX) return null
  const found = findAddresses(text)
  const [, second] = found
  return second === undefined
    ? null
    : syntaxError('several_addresses', text, second.at, 0, nameAddresses(found))
}

/** Returns the form for RCPT TO, without angle brackets: local part and A-label domain. */
export const wireAddress = ({ local, domain }: Address): string => `${local}@${domain.ascii}`

/** Returns the key for caching and deduplication: exact local part, lower-case A-label domain. */
export const addressKey = (address: Address): string => wireAddress(address)

/** A text without what was pasted around the address. */
type CleanAddress = {
  readonly text: string
  /** What was removed. */
  readonly notes: readonly string[]
  /** The parsed text; null if it is not an address. */
  readonly address: Address | null
}

/**
 * Removes text pasted around an address. Valid text is unchanged, except that full-width forms
 * become ASCII.
 */
export const cleanAddress = (text: string): CleanAddress => extractAddress(readWide(text))

export const PRINTABLE_ASCII = /^[\x20-\x7E]+$/

function parseMailbox(text: string): Address | SyntaxFault {
  if (!text.includes('@')) return syntaxError('no_at', text, text.length - 1)
  const local = parseLocal(text)
  if (isFault(local)) return local
  const domain = parseDomain(text.slice(local.end + 1), local.end + 1)
  if (isFault(domain)) return domain
  const address = { text, local: local.wire, domain }
  // Both forms of the domain may be sent: the A-label, or the U-label with SMTPUTF8 (RFC 6531
  // §3.3).
  const octets = Math.max(Buffer.byteLength(text), Buffer.byteLength(wireAddress(address)))
  return octets > ADDRESS_OCTETS_MAX ? syntaxError('too_long', text, text.length - 1) : address
}

/** A longer text is not a pasted address; the parser rejects it. */
const PASTED_LENGTH_MAX = 2_000
/**
 * Nested wrappings: quotes, display name, angle brackets, mailto. Deeper nesting was not observed.
 */
const ROUNDS_MAX = 5

/** Removes one wrapping at a time until the text is an address; `notes` names the wrappings. */
function extractAddress(text: string): CleanAddress {
  const notes: string[] = []
  if (text.length > PASTED_LENGTH_MAX) return { text, notes, address: null }
  let clean = text
  for (let round = 0; ; round++) {
    const address = parseText(clean)
    if (!isFault(address)) return { text: clean, notes, address }
    const step = round < ROUNDS_MAX ? unwrapOnce(clean) : null
    if (step === null) return { text: clean, notes, address: null }
    clean = step.text
    if (!notes.includes(step.note)) notes.push(step.note)
  }
}

/** Wrappings in order of precedence; a row that does not change the text does not apply. */
const WRAPPINGS: readonly [note: string, unwrap: (text: string) => string][] = [
  ['surrounding space', trim],
  ['escapes', withoutEscapes],
  ['mailto:', withoutMailto],
  ['smtp:', text => text.replace(/^smtp:/i, '')], // Proxy addresses of directory exports.
  ['list marker', withoutListMarker],
  ['label', withoutLabel],
  ['JSON', withoutJson],
  ['formula', withoutFormula],
  ['comment', withoutComment],
  ['display name', withoutDisplayName],
  ['angle brackets', text => inside(text, '<', '>')],
  ['trailing punctuation', withoutTail],
  ['wrapping quotes', withoutQuotes],
  ['link', withoutLink],
]

function unwrapOnce(text: string) {
  for (const [note, unwrap] of WRAPPINGS) {
    const inner = unwrap(text)
    if (inner !== text) return { text: inner, note }
  }
  return null
}

/** White space of any kind, and invisible characters. */
const BLANK = /[\s\p{Zs}\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\0]/u

function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && BLANK.test(text.charAt(start))) start++
  while (end > start && BLANK.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

/** Decodes what HTML and workbooks escape: `o&#039;neil@example.com`, `ann@example.com_x000D_`. */
function withoutEscapes(text: string): string {
  return text.replace(ESCAPE, (_, decimal?: string, hex?: string, name?: string) =>
    name === undefined
      ? String.fromCharCode(
          decimal === undefined ? Number.parseInt(hex ?? 'D', 16) : Number(decimal),
        )
      : (ENTITIES[name.toLowerCase()] ?? ''),
  )
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  commat: '@',
  gt: '>',
  lt: '<',
  nbsp: '\u00A0',
  quot: '"',
}
const ESCAPE = /&(?:#(\d{1,5})|#x([\da-f]{1,4})|(amp|apos|commat|gt|lt|nbsp|quot));|_x000[AD]_/gi

/**
 * Removes `mailto:`, decodes percent-encoding and drops the headers after `?` (RFC 6068), and the text
 * after `|`, as in links of Slack.
 */
function withoutMailto(text: string): string {
  const scheme = /^mailto:(?:\/\/)?/i.exec(text)?.[0]
  if (scheme === undefined) return text
  const target = text.slice(scheme.length).split(/[?|]/, 1)[0] ?? ''
  try {
    return decodeURIComponent(target)
  } catch {
    return target // An invalid percent-encoding is kept as literal text.
  }
}

/**
 * Returns the only address of a link without its fields, as HTML, Markdown and Outlook write it:
 * `<a href="mailto:…">…</a>`, `[…](mailto:…)`, `ann@example.com<mailto:…>`.
 */
function withoutLink(text: string): string {
  if (!/^.+mailto:/is.test(text)) return text
  const [found, second] = findAddresses(text.replace(/\?[^\s"'<>()|]*|"/g, ' '))
  return found === undefined || second !== undefined ? text : found.text
}

/**
 * Removes the mark of a line in a pasted list: `- ann@example.com`, `1. ann@example.com`; also the ID
 * of an item, as in exports of SharePoint: `12;#ann@example.com`, `Ann Lee;#12;#ann@example.com`.
 */
export function withoutListMarker(text: string): string {
  return text.replace(LIST_MARKER, '')
}

const LIST_MARKER = /^(?:(?:[-–—*•·‣◦▪●○→]|\d{1,4}[.)])\s+|(?:[^@;#]{1,200};#)?\d{1,10};#)(?=\S)/

/** Removes the brackets and the key around a text in JSON: `["a"`, `{"emails": ["a"`, `"email": "a"}`. */
export function withoutJson(text: string): string {
  return text.replace(JSON_MARKS, '')
}

const JSON_MARKS = /^[[{\s]*(?:"[^"]*"\s*:[[{\s]*)?(?=["'])|(?<=["'])[\]}\s]+$/g

/** Removes the formula of `="ann@example.com"`, as exports write texts for spreadsheets. */
export function withoutFormula(text: string): string {
  return text.replace(/^="([^"]*)"$/, '$1')
}

/**
 * Removes the label of `To: ann@example.com`, which is one word and a colon. A word in ASCII other
 * than `email` needs a space after the colon, because it may be the scheme of a URI.
 */
export function withoutLabel(text: string): string {
  return text.replace(LABEL, '')
}

const LABEL = /^(?:[\p{L}-]+:\s|(?:e-?mail|(?=[a-z-]*[^\0-\x7f])[\p{L}-]+):)\s*(?=\S)/iu

/**
 * Removes the comment of `ann@example.com (Ann Lee)` (RFC 5322 §3.2.2), and the name of `Lee, Ann
 * (ann@example.com)`, which Outlook writes. A text with several addresses is unchanged.
 */
function withoutComment(text: string): string {
  const [, before = '', inner = ''] = /^([^()]*)\(([^()]+)\)$/.exec(text) ?? []
  if (!inner.includes('@')) return before.includes('@') ? before : text
  const isAnother = before.includes('@') && before.trim() !== inner.trim()
  return isAnother ? text : inner
}

/**
 * Removes the name of `Name <ann@example.com>` and `"Name" <ann@example.com>` (RFC 5322 §3.4
 * name-addr). A text with several addresses is unchanged.
 */
function withoutDisplayName(text: string): string {
  const open = text.indexOf('<')
  if (open <= 0 || !text.endsWith('>') || text.includes('<', open + 1)) return text
  const name = text
    .slice(0, open)
    .replace(/"[^"]*"/g, '')
    .trim()
  const isAnother =
    name.includes('@') && name.toLowerCase() !== text.slice(open + 1, -1).toLowerCase()
  return isAnother ? text : text.slice(open)
}

const inside = (text: string, open: string, close: string) =>
  text.length > 2 && text.startsWith(open) && text.endsWith(close) ? text.slice(1, -1) : text

/**
 * Removes a trailing list separator, an escaped line break, and a period only after a space, where
 * it ends a sentence.
 */
function withoutTail(text: string): string {
  if (/[,;]$/.test(text)) return text.slice(0, -1)
  if (/\\[nrt]$/.test(text)) return text.slice(0, -2)
  return /\s\.$/.test(text) ? text.slice(0, -2) : text
}

/** Removes quotation marks and brackets around the whole text, as left by CSV, SQL and people. */
function withoutQuotes(text: string): string {
  const pairs = [
    '""',
    "''",
    '“”',
    '„“',
    '‘’',
    '«»',
    '‹›',
    '``',
    '「」',
    '『』',
    '【】',
    '〈〉',
    '《》',
    '[]',
    '{}',
  ]
  const found = pairs.map(pair => inside(text, pair.charAt(0), pair.charAt(1)))
  return found.find(inner => inner !== text) ?? text
}

/** RFC 5321 §4.5.3.1.1, in octets. */
const LOCAL_OCTETS_MAX = 64

/** A parsed local part: the index of its @, and its form in SMTP. */
type Local = { readonly end: number; readonly wire: string }

/**
 * Parses the local part up to its @: dot-string or quoted-string (RFC 5321 §4.1.2, RFC 6531 §3.3).
 */
function parseLocal(text: string): Local | SyntaxFault {
  const local = text.startsWith('"') ? readQuoted(text) : readDotString(text)
  if (isFault(local)) return local
  const octets = Buffer.byteLength(text.slice(0, local.end))
  return octets > LOCAL_OCTETS_MAX ? syntaxError('local_too_long', text, local.end - 1) : local
}

/**
 * Atext of RFC 5322 §3.2.3, and non-ASCII except spaces (RFC 6531 §3.3). A combining mark must
 * follow a base character.
 */
const ATOM = String.raw`(?!\p{M})(?:[\w!#$%&'*+\-\/=?^\x60\{\|\}~]|[[\u{80}-\u{10FFFF}]--[\p{Z}]])+`
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*`, 'v')

function readDotString(text: string): Local | SyntaxFault {
  const end = DOT_STRING.exec(text)?.[0].length ?? 0
  if (text[end] === '@' && end > 0) return { end, wire: text.slice(0, end) }
  const isDotInPlace = end > 0 && /^\.[^.@]/.test(text.slice(end))
  const at = isDotInPlace ? end + 1 : end
  return syntaxError(dotStringError(text, at), text, at)
}

/** Returns why a dot-string is invalid at `at`. */
function dotStringError(text: string, at: number): FaultCode {
  const character = text.charAt(at)
  if (character === '@') return 'no_local'
  if (character === '.') return 'local_dot'
  if (character === '"') return 'quote_inside'
  if (character === '(' || character === ')') return 'comment'
  if (character === '<' || character === '>') return 'angle_bracket'
  return /\s/.test(character) ? 'local_space' : 'local_character'
}

/** Quoted characters, with a backslash where required; the only space allowed is U+0020. */
const QUOTED_STRING =
  /^"((?:[\x20!\x23-\x5B\x5D-\x7E]|[[\u{80}-\u{10FFFF}]--[\p{Z}]]|\\[\x20-\x7E])*)"/v

function readQuoted(text: string): Local | SyntaxFault {
  const found = QUOTED_STRING.exec(text)
  if (found === null) return quotedStringError(text)
  const [{ length: end }, quoted = ''] = found
  if (text[end] !== '@') return syntaxError('quote_tail', text, end)
  return { end, wire: minimallyQuoted(quoted) }
}

/**
 * Returns the error of an unparsable quoted-string: a space other than U+0020, or no closing quote.
 */
function quotedStringError(text: string): SyntaxFault {
  const space = text.search(/(?! )\p{Z}/u)
  return space < 0 ? syntaxError('quote_open', text, 0) : syntaxError('local_space', text, space)
}

/** Returns the form with the least quoting, which is the one to send (RFC 5321 §4.1.2). */
function minimallyQuoted(quoted: string): string {
  const bare = quoted.replace(/\\(.)/gu, '$1')
  const needless = DOT_STRING.exec(bare)?.[0] === bare
  return needless ? bare : `"${bare.replace(/["\\]/g, '\\$&')}"`
}
