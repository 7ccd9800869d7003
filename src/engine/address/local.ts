import {
  type AddressSyntaxError,
  isSyntaxError,
  type SyntaxErrorCode,
  syntaxError,
} from './syntax-error.ts'

/** RFC 5321 §4.5.3.1.1, in octets. */
const LOCAL_OCTETS_MAX = 64

/** A local part: where its @ stands, and how it goes on the wire. */
export type Local = { readonly end: number; readonly wire: string }

/** Reads the local part of an address up to its @, as dot-string or quoted-string (RFC 5321 §4.1.2, RFC 6531 §3.3). */
export function parseLocal(text: string): Local | AddressSyntaxError {
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
