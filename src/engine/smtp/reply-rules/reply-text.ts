import { DAY, HOUR, MINUTE, SECOND } from '../../../platform/clock.ts'
import type { Reply } from '../reply.ts'

/**
 * The longest text to classify, in UTF-16 units: four lines of the length in RFC 5321 §4.5.3.1.5.
 */
const TEXT_LENGTH_MAX = 2_048
/** The longest delay to honor: no retry waits longer than a day. */
const RETRY_AFTER_MAX_MS = DAY

/**
 * Normalizes the text of a reply for the patterns: no codes, lower case, no accents, single spaces.
 * Addresses become `<>` and the recipient's domain is removed, so that a name such as
 * `spamhaus@blocked.example` cannot change the meaning.
 */
export function plainText(reply: Reply, recipient?: string): string {
  const folded = fold(stripCodes(reply.text.slice(0, TEXT_LENGTH_MAX)))
  // Most replies name no address, and no part of the recipient.
  if (!folded.includes('<') && !hasPartOf(folded, recipient)) return maskNames(folded, []).trim()
  const { domains, locals } = findNames(folded, recipient)
  const masked = folded.includes('<') ? folded.replaceAll(BRACKETED, '<>') : folded
  const rest = domains.reduce((text, domain) => text.replaceAll(domain, ' '), masked)
  return maskNames(rest, locals).trim()
}

function hasPartOf(text: string, recipient: string | undefined): boolean {
  if (recipient === undefined) return false
  const address = recipient.toLowerCase()
  const at = Math.max(address.lastIndexOf('@'), 0)
  return text.includes(address.slice(0, at)) || text.includes(address.slice(at + 1))
}

function stripCodes(text: string): string {
  const strip = (line: string) => line.trimStart().replace(LEADING_CODES, '')
  return text.includes('\n') ? text.split(/\r?\n/).map(strip).join(' ') : strip(text)
}

/** Converts to lower case without accents. ASCII, by far the most common case, has a fast path. */
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
 * Replaces addresses by `<>`, and also a given local part in quotes or as the subject of a clause
 * ("mailbox ann is disabled", "ann has moved"). Collapses whitespace. Any other word stays: in
 * "mailbox full" it carries the meaning, even for a user named `full`.
 */
function maskNames(text: string, locals: readonly string[]): string {
  const rest = locals.reduce(
    (text, local) => (text.includes(local) ? maskLocal(text, local) : text),
    text,
  )
  if (!rest.includes('@')) return IRREGULAR_SPACE.test(rest) ? rest.replace(/\s+/g, ' ') : rest
  return rest
    .split(/\s+/)
    .map(word => (word.includes('@') ? word.replace(ADDRESS, '<>') : word))
    .join(' ')
}

function maskLocal(text: string, local: string): string {
  const escaped = local.replace(/[^a-z0-9]/g, '\\$&')
  const subject = new RegExp(
    `(?<=${SUBJECT} )${escaped}(?= ${VERB})|^${escaped}(?= has moved)`,
    'g',
  )
  const rest = text.replaceAll(`"${local}"`, '<>').replaceAll(`'${local}'`, '<>')
  return rest.replace(subject, '<>')
}

/** Returns the enhanced code of a reply, else the first in its text, such as qmail's `(#5.1.1)`. */
export function enhancedOf(reply: Reply): string {
  if (reply.enhanced !== null) return reply.enhanced
  const found = ENHANCED_IN_TEXT.exec(reply.text.slice(0, TEXT_LENGTH_MAX))?.[1] ?? ''
  return found.charAt(0) === String(reply.code).charAt(0) ? found : ''
}

/**
 * Returns the retry delay in a text from `plainText`, in ms, at most a day; null if there is none.
 */
export function retryAfterMs(text: string): number | null {
  const clock = WAIT_BY_CLOCK.exec(text)
  const [hours = 0, minutes = 0, seconds = 0] = clock ? clock.slice(1).map(Number) : []
  const waitMs = clock ? hours * HOUR + minutes * MINUTE + seconds * SECOND : parseWaitPhrase(text)
  return waitMs > 0 ? Math.min(waitMs, RETRY_AFTER_MAX_MS) : null
}

function parseWaitPhrase(text: string): number {
  const first = WAIT_IN_WORDS.exec(text)
  if (!first) return 0
  const [match, number, unit = ''] = first
  const more = WAIT_CONTINUED.exec(text.slice(first.index + match.length))
  return Number(number) * unitMs(unit) + (more ? Number(more[1]) * unitMs(more[2] ?? '') : 0)
}

const unitMs = (unit: string) =>
  unit.startsWith('d') ? DAY : unit.startsWith('h') ? HOUR : unit.startsWith('m') ? MINUTE : SECOND

/** Returns the domains and local parts of the addresses in angle brackets and of the recipient. */
function findNames(text: string, recipient: string | undefined) {
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
  [...text.matchAll(BRACKETED)].map(found => found[1] ?? '').slice(0, NAMES_MAX)

const ASCII = /^[\0-\x7F]*$/
/** Any whitespace other than a single space. */
const IRREGULAR_SPACE = /\s\s|[^\S ]/
const LEADING_CODES = /^(?:[2-5]\d\d(?:[ -]|$))?\s?(?:#?[245]\.\d{1,3}\.\d{1,3}[ :-]{0,3})?/
const ENHANCED_IN_TEXT = /(?<![\d.])([245]\.\d\.\d{1,3})(?![\d.]\d)(?!\d)/
const BRACKETED = /<([^<>\s]{1,320})>/g
const ADDRESS = /[^<>()[\]"',;:=]{0,256}@[^<>()[\]"',;:=]{0,256}/g
/** A reply contains one or two addresses; further ones are ignored. */
const NAMES_MAX = 8

const SUBJECT = '\\b(?:mailbox|user|recipient|account|address)'
const VERB = '(?:is|has|was|does|did|not|can|cannot|could)\\b'

const BEFORE_WAIT =
  '(?:\\bin|\\bfor|after|wait|least|delay(?:ed)?|dans|nach|retry:?|=)(?: about| another| the next)?'
const UNIT =
  '(s|secs?|seconds?|secondes?|sekunden|m|mins?|minutes?|minuten|h|hrs?|hours?|heures?|stunden?|d|days?)'
const WAIT_BY_CLOCK = new RegExp(`${BEFORE_WAIT} (\\d{1,2}):(\\d{2}):(\\d{2})\\b`)
const WAIT_IN_WORDS = new RegExp(`${BEFORE_WAIT} ?(\\d{1,6}) ?${UNIT}\\b`)
const WAIT_CONTINUED = new RegExp(`^(?:,? and|,)? (\\d{1,6}) ?${UNIT}\\b`)
