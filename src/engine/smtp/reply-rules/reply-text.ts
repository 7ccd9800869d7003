import { DAY, HOUR, MINUTE, SECOND } from '../../../platform/clock.ts'
import type { Reply } from '../reply.ts'

/** Longest text that is read for its meaning, in UTF-16 units; a reply of RFC 5321 §4.5.3.1.5 is four such lines at most. */
const TEXT_LENGTH_MAX = 2_048
/** A server that names a longer wait than a day means "no": nothing here waits so long. */
const RETRY_AFTER_MAX_MS = DAY

/**
 * The words of a reply, ready for patterns: no codes, lower case, no accents, single blanks. Addresses become `<>`, and
 * the recipient's own domain goes, so that a name such as `spamhaus@blocked.example` cannot sway the meaning.
 */
export function plainText(reply: Reply, recipient?: string): string {
  const folded = fold(withoutCodes(reply.text.slice(0, TEXT_LENGTH_MAX)))
  const { domains, locals } = namesIn(folded, recipient)
  const short = folded.includes('<') ? folded.replaceAll(BRACKETED, '<>') : folded
  const rest = domains.reduce((text, domain) => text.replaceAll(domain, ' '), short)
  return withoutNames(rest, locals).trim()
}

function withoutCodes(text: string): string {
  const bare = (line: string) => line.trimStart().replace(LEADING_CODES, '')
  return text.includes('\n') ? text.split(/\r?\n/).map(bare).join(' ') : bare(text)
}

/** Lower case, no accents. Nearly every reply is ASCII, and lists hear many: that way is short. */
function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().replaceAll('`', "'")
  return text
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(/[’‘`´]/g, "'")
}

/**
 * Addresses become `<>`, and so does a given local part in quotes or as the subject of a clause ("mailbox
 * ann is disabled", "ann has moved"); what is between words one blank. Any other bare word stays: in "mailbox full" it is
 * what the server means, even for a user named `full`.
 */
function withoutNames(text: string, locals: readonly string[]): string {
  const rest = locals.reduce(
    (text, local) => (text.includes(local) ? withoutLocal(text, local) : text),
    text,
  )
  if (!rest.includes('@')) return UNTIDY.test(rest) ? rest.replace(/\s+/g, ' ') : rest
  return rest
    .split(/\s+/)
    .map(word => (word.includes('@') ? word.replace(ADDRESS, '<>') : word))
    .join(' ')
}

function withoutLocal(text: string, local: string): string {
  const escaped = local.replace(/[^a-z0-9]/g, '\\$&')
  const subject = new RegExp(
    `(?<=${SUBJECT} )${escaped}(?= ${VERB})|^${escaped}(?= has moved)`,
    'g',
  )
  const rest = text.replaceAll(`"${local}"`, '<>').replaceAll(`'${local}'`, '<>')
  return rest.replace(subject, '<>')
}

/** The enhanced code: the reply's own, else the first of the code's class that stands in the text, as qmail's `(#5.1.1)`. */
export function enhancedOf(reply: Reply): string {
  if (reply.enhanced !== null) return reply.enhanced
  const found = ENHANCED_IN_TEXT.exec(reply.text.slice(0, TEXT_LENGTH_MAX))?.[1] ?? ''
  return found.charAt(0) === String(reply.code).charAt(0) ? found : ''
}

/** The wait that a text of `plainText` names, in ms, at most a day; null where it names none. */
export function retryAfterMs(text: string): number | null {
  const clock = WAIT_BY_CLOCK.exec(text)
  const [hours = 0, minutes = 0, seconds = 0] = clock ? clock.slice(1).map(Number) : []
  const named = clock ? hours * HOUR + minutes * MINUTE + seconds * SECOND : waitInWords(text)
  return named > 0 ? Math.min(named, RETRY_AFTER_MAX_MS) : null
}

function waitInWords(text: string): number {
  const first = WAIT_IN_WORDS.exec(text)
  if (!first) return 0
  const [whole, number, unit = ''] = first
  const more = WAIT_GOES_ON.exec(text.slice(first.index + whole.length))
  return Number(number) * unitMs(unit) + (more ? Number(more[1]) * unitMs(more[2] ?? '') : 0)
}

const unitMs = (unit: string) =>
  unit.startsWith('d') ? DAY : unit.startsWith('h') ? HOUR : unit.startsWith('m') ? MINUTE : SECOND

/** The names of whoever stands in angle brackets, and of the recipient. */
function namesIn(text: string, recipient: string | undefined) {
  const addresses = text.includes('<') ? bracketed(text) : []
  if (recipient !== undefined) addresses.push(recipient.toLowerCase())
  const split = addresses.map(address => [
    address.slice(0, Math.max(address.lastIndexOf('@'), 0)),
    address.slice(address.lastIndexOf('@') + 1),
  ])
  const locals = split.map(([local = '']) => local)
  return {
    domains: split.map(([, domain = '']) => domain).filter(domain => domain.includes('.')),
    locals: locals.filter(local => local !== ''),
  }
}

const bracketed = (text: string) =>
  [...text.matchAll(BRACKETED)].map(match => match[1] ?? '').slice(0, NAMES_MAX)

const ASCII = /^[\0-\x7F]*$/
/** Anything between words but one blank. */
const UNTIDY = /\s\s|[^\S ]/
const LEADING_CODES = /^(?:[2-5]\d\d(?:[ -]|$))?\s?(?:#?[245]\.\d{1,3}\.\d{1,3}[ :-]{0,3})?/
const ENHANCED_IN_TEXT = /(?<![\d.])([245]\.\d\.\d{1,3})(?![\d.]\d)(?!\d)/
const BRACKETED = /<([^<>\s]{1,320})>/g
const ADDRESS = /[^<>()[\]"',;:=]{0,256}@[^<>()[\]"',;:=]{0,256}/g
/** Replies name one or two addresses; more is noise. */
const NAMES_MAX = 8

const SUBJECT = '\\b(?:mailbox|user|recipient|account|address)'
const VERB = '(?:is|has|was|does|did|not|can|cannot|could)\\b'

const BEFORE_WAIT =
  '(?:\\bin|\\bfor|after|wait|least|delay(?:ed)?|dans|nach|retry:?|=)(?: about| another| the next)?'
const UNIT =
  '(s|secs?|seconds?|secondes?|sekunden|m|mins?|minutes?|minuten|h|hrs?|hours?|heures?|stunden?|d|days?)'
const WAIT_BY_CLOCK = new RegExp(`${BEFORE_WAIT} (\\d{1,2}):(\\d{2}):(\\d{2})\\b`)
const WAIT_IN_WORDS = new RegExp(`${BEFORE_WAIT} ?(\\d{1,6}) ?${UNIT}\\b`)
const WAIT_GOES_ON = new RegExp(`^(?:,? and|,)? (\\d{1,6}) ?${UNIT}\\b`)
