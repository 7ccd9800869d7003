import { type Domain, parseDomain } from './domain.ts'
import {
  type AddressSyntaxError,
  invisibleCharError,
  isSyntaxError,
  type SyntaxErrorCode,
  syntaxError,
} from './syntax-error.ts'

export {
  type AddressSyntaxError as SyntaxFault,
  isSyntaxError as isFault,
  type SyntaxErrorCode as FaultCode,
} from './syntax-error.ts'

/** A mailbox address (RFC 5321 §4.1.2, RFC 6531 §3.3). */
export type Address = {
  /** The address as people write it: local part and domain as given, in NFC. */
  readonly text: string
  /** The local part as it goes on the wire, in NFC: quoted only if it was given quoted and must be. */
  readonly local: string
  readonly domain: Domain
}

/** RFC 5321 §4.5.3.1.3: a path has 256 octets, two of them the angle brackets. */
const ADDRESS_OCTETS_MAX = 254

/** Reads a mailbox address: no comments, no folding, no display name, nothing around it; never throws. */
export function parseAddress(text: string): Address | AddressSyntaxError {
  if (text === '') return syntaxError('empty', text, 0)
  // A UTF-16 unit is at least one octet, so this refuses what is far too long before anything reads it.
  if (text.length > ADDRESS_OCTETS_MAX) return syntaxError('too_long', text, ADDRESS_OCTETS_MAX)
  if (PRINTABLE_ASCII.test(text)) return parseMailbox(text)
  const hidden = invisibleCharError(text)
  if (hidden !== null) return hidden
  const nfc = text.normalize('NFC')
  const asGiven = parseMailbox(text)
  // Judged in both forms: to compose characters must neither hide a forbidden one nor make one.
  return nfc === text || isSyntaxError(asGiven) ? asGiven : parseMailbox(nfc)
}

/** What RCPT TO carries between the angle brackets: local part and A-label domain. */
export const wireAddress = ({ local, domain }: Address): string => `${local}@${domain.ascii}`

/** The key under which the address is remembered and deduplicated: local part exact, domain as A-label in lower case. */
export const addressKey = (address: Address): string => wireAddress(address)

/** Takes away what people paste around an address; each thing taken is named in `notes`. What is valid stays as it is. */
export const cleanAddress = (text: string): { text: string; notes: string[] } =>
  extractAddress(text, inner => !isSyntaxError(parseAddress(inner)))

const PRINTABLE_ASCII = /^[\x20-\x7E]+$/

function parseMailbox(text: string): Address | AddressSyntaxError {
  const parsed = parseOne(text)
  if (!isSyntaxError(parsed)) return parsed
  const second = SECOND_ADDRESS.exec(text)
  return second === null ? parsed : syntaxError('several_addresses', text, second[0].length)
}

/** All before a second address: one address, then a separator that no address has outside quotes. */
const SECOND_ADDRESS = /^[^@"]+@[^@\s,;<>|]+[\s,;<>|]+(?=[^@\s,;<>|]+@[^@])/

function parseOne(text: string): Address | AddressSyntaxError {
  if (!text.includes('@')) return syntaxError('no_at', text, text.length - 1)
  const local = parseLocal(text)
  if (isSyntaxError(local)) return local
  const domain = parseDomain(text.slice(local.end + 1), local.end + 1)
  if (isSyntaxError(domain)) return domain
  const address = { text, local: local.wire, domain }
  // Both forms of the domain may travel: the A-label, or the U-label with SMTPUTF8 (RFC 6531 §3.3).
  const octets = Math.max(Buffer.byteLength(text), Buffer.byteLength(wireAddress(address)))
  return octets > ADDRESS_OCTETS_MAX ? syntaxError('too_long', text, text.length - 1) : address
}

/** What is longer is no pasted address, and is left to the parser to refuse. */
const PASTED_LENGTH_MAX = 2_000
/** Wrappings within wrappings: quotes, a name, angle brackets, mailto; no more has been seen. */
const ROUNDS_MAX = 5

/** Takes one wrapping after the other from `text` until `isDone` says that an address is left; `notes` names them. */
function extractAddress(
  text: string,
  isDone: (text: string) => boolean,
): { text: string; notes: string[] } {
  const notes: string[] = []
  let clean = text
  if (text.length > PASTED_LENGTH_MAX) return { text, notes }
  for (let round = 0; round < ROUNDS_MAX && !isDone(clean); round++) {
    const step = firstStep(clean)
    if (step === null) break
    clean = step.text
    if (!notes.includes(step.note)) notes.push(step.note)
  }
  return { text: clean, notes }
}

/** Rows in reading order: what is taken, and how; a row that changes nothing does not apply. */
const STEPS: readonly [note: string, take: (text: string) => string][] = [
  ['surrounding space', trim],
  ['mailto:', withoutMailto],
  ['smtp:', text => text.replace(/^smtp:/i, '')], // As directories export proxy addresses.
  ['display name', withoutDisplayName],
  ['angle brackets', text => inside(text, '<', '>')],
  ['trailing punctuation', withoutTail],
  ['wrapping quotes', withoutQuotes],
]

function firstStep(text: string) {
  for (const [note, take] of STEPS) {
    const taken = take(text)
    if (taken !== text) return { text: taken, note }
  }
  return null
}

/** White space of any kind, and characters that nobody sees. */
const BLANK = /[\s\p{Zs}\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\0]/u

function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && BLANK.test(text.charAt(start))) start++
  while (end > start && BLANK.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

/** RFC 6068: `mailto:` with its percent-encoding, and without the headers after the question mark. */
function withoutMailto(text: string): string {
  const scheme = /^mailto:(?:\/\/)?/i.exec(text)?.[0]
  if (scheme === undefined) return text
  const target = text.slice(scheme.length).split('?', 1)[0] ?? ''
  try {
    return decodeURIComponent(target)
  } catch {
    return target // A percent sign that encodes nothing stands for itself.
  }
}

/** `Name <ann@example.com>` and `"Name" <ann@example.com>` (RFC 5322 §3.4 name-addr); not one of several addresses. */
function withoutDisplayName(text: string): string {
  const open = text.indexOf('<')
  if (open <= 0 || !text.endsWith('>') || text.includes('<', open + 1)) return text
  const name = text
    .slice(0, open)
    .replace(/"[^"]*"/g, '')
    .trim()
  const isAnother =
    name.includes('@') && name.toLowerCase() !== text.slice(open + 1, -1).toLowerCase()
  return isAnother || /[,;]/.test(name) ? text : text.slice(open)
}

const inside = (text: string, open: string, close: string) =>
  text.length > 2 && text.startsWith(open) && text.endsWith(close) ? text.slice(1, -1) : text

/** A list's comma or semicolon; a full stop only if a space shows that it ends a sentence. */
function withoutTail(text: string): string {
  if (/[,;]$/.test(text)) return text.slice(0, -1)
  return /\s\.$/.test(text) ? text.slice(0, -2) : text
}

/** Quotation marks around the whole, as CSV, SQL and word processors leave them. */
function withoutQuotes(text: string): string {
  const pairs = ['""', "''", '“”', '„“', '‘’', '«»', '``']
  const found = pairs.map(pair => inside(text, pair.charAt(0), pair.charAt(1)))
  return found.find(taken => taken !== text) ?? text
}

/** RFC 5321 §4.5.3.1.1, in octets. */
const LOCAL_OCTETS_MAX = 64

/** A local part: where its @ stands, and how it goes on the wire. */
type Local = { readonly end: number; readonly wire: string }

/** Reads the local part of an address up to its @, as dot-string or quoted-string (RFC 5321 §4.1.2, RFC 6531 §3.3). */
function parseLocal(text: string): Local | AddressSyntaxError {
  const local = text.startsWith('"') ? readQuoted(text) : readDotString(text)
  if (isSyntaxError(local)) return local
  const octets = Buffer.byteLength(text.slice(0, local.end))
  return octets > LOCAL_OCTETS_MAX ? syntaxError('local_too_long', text, local.end - 1) : local
}

/** Atext of RFC 5322 §3.2.3, and all beyond ASCII but spaces (RFC 6531 §3.3); a mark needs something to stand on. */
const ATOM = String.raw`(?!\p{M})(?:[\w!#$%&'*+\-\/=?^\x60\{\|\}~]|[[\u{80}-\u{10FFFF}]--[\p{Z}]])+`
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*`, 'v')

function readDotString(text: string): Local | AddressSyntaxError {
  const end = DOT_STRING.exec(text)?.[0].length ?? 0
  if (text[end] === '@' && end > 0) return { end, wire: text.slice(0, end) }
  const isDotInPlace = end > 0 && /^\.[^.@]/.test(text.slice(end))
  const at = isDotInPlace ? end + 1 : end
  return syntaxError(dotStringError(text, at), text, at)
}

/** Why a dot-string cannot go on at `at`. */
function dotStringError(text: string, at: number): SyntaxErrorCode {
  const character = text.charAt(at)
  if (character === '@') return 'no_local'
  if (character === '.') return 'local_dot'
  if (character === '"') return 'quote_inside'
  if (character === '(' || character === ')') return 'comment'
  if (character === '<' || character === '>') return 'angle_bracket'
  return /\s/.test(character) ? 'local_space' : 'local_character'
}

/** A backslash and any character it quotes, or one that needs no backslash; spaces only as U+0020. */
const QUOTED_STRING =
  /^"((?:[\x20!\x23-\x5B\x5D-\x7E]|[[\u{80}-\u{10FFFF}]--[\p{Z}]]|\\[\x20-\x7E])*)"/v

function readQuoted(text: string): Local | AddressSyntaxError {
  const found = QUOTED_STRING.exec(text)
  if (found === null) return isUnquotable(text)
  const [{ length: end }, quoted = ''] = found
  if (text[end] !== '@') return syntaxError('quote_tail', text, end)
  return { end, wire: minimallyQuoted(quoted) }
}

/** Of spaces, only U+0020 may be quoted; else the closing mark is missing. */
function isUnquotable(text: string): AddressSyntaxError {
  const space = text.search(/(?! )\p{Z}/u)
  return space < 0 ? syntaxError('quote_open', text, 0) : syntaxError('local_space', text, space)
}

/** RFC 5321 §4.1.2: the form with the least quoting is the one to send. */
function minimallyQuoted(quoted: string): string {
  const bare = quoted.replace(/\\(.)/gu, '$1')
  const needless = DOT_STRING.exec(bare)?.[0] === bare
  return needless ? bare : `"${bare.replace(/["\\]/g, '\\$&')}"`
}
