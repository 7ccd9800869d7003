import { domainToASCII, domainToUnicode } from 'node:url'
import { DAY, HOUR, MINUTE, SECOND } from '../../../platform/clock.ts'
import type { Reply } from '../reply.ts'

/**
 * The longest text to classify, in UTF-16 units: four lines of the length in RFC 5321 §4.5.3.1.5.
 */
const TEXT_LENGTH_MAX = 2_048
/** The longest delay to honor: no retry waits longer than a day. */
const RETRY_AFTER_MAX_MS = DAY

/**
 * Returns the text of a reply for the patterns: no codes, lower case, no accents, single spaces.
 * Addresses become `<>`, whatever encloses them, and their domains are removed elsewhere, so that a
 * name such as `spamhaus@blocked.example` neither changes the meaning nor splits a phrase.
 */
export function plainText(reply: Reply, recipient?: string): string {
  const form = recipient === undefined ? null : toSampleForm(reply.text, recipient)
  if (form === null) return findPlainText(reply.text, recipient)
  const known = PLAIN_TEXTS.get(form)
  if (known !== undefined) return known
  const plain = findPlainText(form, SAMPLE)
  if (PLAIN_TEXTS.size >= PLAIN_TEXTS_MAX) PLAIN_TEXTS.clear()
  PLAIN_TEXTS.set(form, plain)
  return plain
}

/** Plain texts by their sample form: a server says the same to many recipients. */
const PLAIN_TEXTS = new Map<string, string>()
const PLAIN_TEXTS_MAX = 1_000
const SAMPLE = 'qz7.sample@qz7-sample.example'

/**
 * Returns a text with the sample in place of the recipient, which has the same plain text; null if it
 * may have another one, because the name is unusual or a part of it is elsewhere in the text.
 */
function toSampleForm(text: string, recipient: string): string | null {
  if (text.length > SAMPLE_FORM_MAX || !ORDINARY.test(recipient) || !ASCII.test(text)) return null
  const around = text.split(recipient)
  const at = recipient.indexOf('@')
  const others = around.join(' ').toLowerCase()
  if (others.includes(recipient.slice(0, at).toLowerCase())) return null
  if (others.includes(recipient.slice(at + 1).toLowerCase())) return null
  return around.length === 1 ? text : around.join(SAMPLE)
}

/** Longer texts are cut, at a place that depends on the length of the name. */
const SAMPLE_FORM_MAX = 1_000
/** Names that the patterns below read like the sample: neither codes, keys nor encoded. */
const ORDINARY =
  /^[a-z][a-z0-9._-]{1,63}@(?!(?:.*\.)?xn--)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}$/i

function findPlainText(text: string, recipient: string | undefined): string {
  const folded = fold(stripCodes(text.slice(0, TEXT_LENGTH_MAX)))
  const own = recipient === undefined ? null : splitAddress(recipient)
  // Most replies name no address, and no part of the recipient.
  if (!MAY_NAME.test(folded) && !hasPartOf(folded, own)) return collapseSpace(folded).trim()
  return collapseSpace(tidyMasks(maskNames(collapseSpace(folded), own))).trim()
}

/** The parts of an address as `fold` writes them. The local part is empty if there is no `@`. */
type Names = { readonly local: string; readonly domains: readonly string[] }

function splitAddress(address: string): Names {
  const at = address.lastIndexOf('@')
  return {
    local: fold(address.slice(0, Math.max(at, 0))),
    domains: spellDomain(address.slice(at + 1).toLowerCase()),
  }
}

/** Spells a domain as written, with A-labels and with U-labels (RFC 5890). */
function spellDomain(domain: string): string[] {
  if (!domain.includes('xn--') && ASCII.test(domain)) return [domain]
  const spellings = [domain, domainToASCII(domain), domainToUnicode(domain)].map(fold)
  return [...new Set(spellings)].filter(spelling => spelling !== '')
}

const hasPartOf = (text: string, own: Names | null) =>
  own !== null && [own.local, ...own.domains].some(part => text.includes(part))

/** Masks addresses before domains: without its domain, the rest of an address is not recognized. */
function maskNames(text: string, own: Names | null): string {
  const found = own === null ? [] : [own]
  const mask = (address: string): string => {
    if (found.length < NAMES_MAX) found.push(splitAddress(address))
    return '<>'
  }
  const masked = text
    .replace(ADDRESS, (address, offset: number) => {
      // An address without brackets may be that of a blocklist, whose domain tells who blocks.
      if (text[offset - 1] === '<') return mask(address)
      return `${keyBefore(address, own)}<>`
    })
    .replace(BRACKETED, (_, name: string) => mask(name))
  const encoded = own === null ? masked : maskEncoded(masked, own)
  const domains = new Set(found.flatMap(names => names.domains).filter(name => name.includes('.')))
  const locals = new Set(found.map(({ local }) => local))
  return [...locals].reduce(maskLocal, [...domains].reduce(removeDomain, encoded))
}

/**
 * Masks the recipient if its `@` is encoded or spelled out: `ann%40example.com`, `ann at
 * example.com`, `ann (example.com)`, `example.com!ann`.
 */
function maskEncoded(text: string, own: Names): string {
  if (own.local === '' || !own.domains.some(domain => text.includes(domain))) return text
  const local = anyOf([own.local, percentEncode(own.local)])
  const domain = anyOf(own.domains)
  const forms = [
    `${local}${ENCODED_AT}${domain}(?![a-z0-9@-])`,
    `${domain}!${local}${NAME_END}`,
    ...(NOUN.test(own.local)
      ? []
      : [
          `${local} (?:at|in|of|on)(?: (?:the )?domain)? ${domain}${NAME_END}`,
          `${local} ?(?:\\(${domain}\\)|\\[${domain}\\])`,
        ]),
  ]
  return text.replace(new RegExp(`(?<![a-z0-9])(?:${forms.join('|')})`, 'g'), '<>')
}

/** RFC 3986 §2.1, in lower case. */
const percentEncode = (text: string) =>
  text.replace(/[!-,/:-@[-^`{-}]/g, character => `%${character.charCodeAt(0).toString(16)}`)

/** Returns the `to=` of `to=ann@example.com`, which is not part of the address. */
function keyBefore(address: string, own: Names | null): string {
  const key = /^([a-z_]{1,20})=(?=[^=]+$)/.exec(address)
  return key === null || key[1] === own?.local ? '' : key[0]
}

/** Removes a domain with the quotes or brackets around it. */
function removeDomain(text: string, domain: string): string {
  if (!text.includes(domain)) return text
  const name = `@?${escapePattern(domain)}`
  const alone = `(?<![a-z0-9-])${name}${NAME_END}`
  return text.replace(new RegExp(`${enclose(name)}|${alone}`, 'g'), ' ')
}

/**
 * Masks a local part that stands alone in quotes or as the subject of a clause ("mailbox ann is
 * disabled", "no such user: ann", "ann has moved"). Any other word stays: in "mailbox full" it
 * carries the meaning, even for a user named `full`.
 */
function maskLocal(text: string, local: string): string {
  if (local === '' || !text.includes(local)) return text
  const name = escapePattern(local)
  const places = [
    `["']${name}["']`,
    `(?<=${SUBJECT} )${name}(?= ${VERB})`,
    `(?<=${SUBJECT}:? )(?:${enclose(name)})`,
    `(?<=(?:${SUBJECT}|unknown): )${name}${NAME_END}`,
    `(?<=${NO_SUCH} ${SUBJECT} )${name}${NAME_END}`,
    `^${name}(?= has moved)`,
  ]
  return text.replace(new RegExp(places.join('|'), 'g'), '<>')
}

/** Removes the quotes, brackets and commas around masks, and separates masks from words. */
function tidyMasks(text: string): string {
  let tidy = text
  for (let depth = 0; depth < ENCLOSURES_MAX; depth++) tidy = tidy.replace(ENCLOSED_MASK, '<>')
  return tidy
    .replace(/(?<=[a-z])<>/g, ' <>')
    .replace(/<>(?=[a-z])/g, '<> ')
    .replace(/(?:, ?)?<>,/g, ' <>')
}

const collapseSpace = (text: string) =>
  IRREGULAR_SPACE.test(text) ? text.replace(/\s+/g, ' ') : text

const escapePattern = (text: string) => text.replace(/[^a-z0-9]/g, '\\$&')
const anyOf = (texts: readonly string[]) => `(?:${texts.map(escapePattern).join('|')})`

function stripCodes(text: string): string {
  const strip = (line: string) => line.trimStart().replace(LEADING_CODES, '')
  return text.includes('\n') ? text.split(/\r?\n/).map(strip).join(' ') : strip(text)
}

/** Converts to lower case without accents. ASCII, by far the most common case, has a fast path. */
function fold(text: string): string {
  const characters = text.includes('&') ? decodeEntities(text) : text
  if (ASCII.test(characters)) return characters.toLowerCase().replaceAll('`', "'")
  return characters
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(/[’‘`´]/g, "'")
    .replace(/[“”„«»]/g, '"')
}

/** Some gateways write `&lt;ann@example.com&gt;`. */
const decodeEntities = (text: string) =>
  text.replace(/&(?:lt|gt|quot|#39|#64);/gi, entity => ENTITIES[entity.toLowerCase()] ?? entity)

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&#64;': '@',
}

/**
 * A text from `plainText` without what differs between recipients and sessions. `local` is the local
 * part of the recipient, in lower case.
 */
type MaskedText = {
  /** Numbers of up to five digits are kept: they may be error codes. */
  readonly exact: string
  /** All numbers are masked. Two texts that agree only here have different short numbers. */
  readonly loose: string
}

/**
 * Masks the local part as `<>`, and IP addresses, host names, times and IDs as `#`. Only these parts
 * of a word are masked, so that `…/help?ip=192.0.2.1&cause=spam` keeps its cause.
 */
export function maskVariables(text: string, local: string): MaskedText {
  const words = text.split(' ').map(word => {
    if (word === local) return '<>'
    const named = local.length > 2 ? word.replaceAll(local, '<>') : word
    return named.replace(IP_OR_TIME, '#').replace(HOST_NAME, '#').replace(ID, '#')
  })
  const exact = words.join(' ')
  return { exact, loose: exact.replace(/\d+/g, '#').replace(MASKED_RUN, '#') }
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

/** Returns true if a text from `plainText` asks to send again later. */
export const asksToRetry = (text: string): boolean =>
  RETRY.test(text) || OTHER_RETRY.test(text) || retryAfterMs(text) !== null

function parseWaitPhrase(text: string): number {
  const first = WAIT_IN_WORDS.exec(text)
  if (!first) return 0
  const [match, number, unit = ''] = first
  const more = WAIT_CONTINUED.exec(text.slice(first.index + match.length))
  return Number(number) * unitMs(unit) + (more ? Number(more[1]) * unitMs(more[2] ?? '') : 0)
}

const unitMs = (unit: string) =>
  unit.startsWith('d') ? DAY : unit.startsWith('h') ? HOUR : unit.startsWith('m') ? MINUTE : SECOND

const ASCII = /^[\0-\x7F]*$/
/** Any whitespace other than a single space. */
const IRREGULAR_SPACE = /\s\s|[^\S ]/
const LEADING_CODES = /^(?:[2-5]\d\d(?:[ -]|$))?\s?(?:#?[245]\.\d{1,3}\.\d{1,3}[ :-]{0,3})?/
const ENHANCED_IN_TEXT = /(?<![\d.])([245]\.\d\.\d{1,3})(?![\d.]\d)(?!\d)/

/** Whether a text may contain an address. */
const MAY_NAME = /[<@]/
/** A name in angle brackets. Servers name control characters like this too, as in `bare <LF>`. */
const BRACKETED = /<(?!(?:cr|lf|crlf|nul)>)([^<>\s]{1,320})>/g
/** An address with at least one domain; a forwarded one may have two (`ann@example.com@relay`). */
const ADDRESS =
  /(?:(?:mailto|smtp|rfc822)[:;] ?)?(?:"[^"]{1,64}"|(?:[^\s<>()[\]"',;:@|]|(?<=[a-z0-9])'(?=[a-z0-9])){1,256})(?:@(?:\[[^\s[\]]{1,64}\]|[^\s<>()[\]"',;:=@|]{0,254}[^\s<>()[\]"',;:=@|.!?])){1,3}/g
/** A reply contains one or two addresses; further ones are ignored. */
const NAMES_MAX = 8

const IP_OR_TIME =
  /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]\d)|[\da-f]{0,4}(?::{1,2}[\da-f]{1,4}){2,7}/g
/** Three labels at least: two words with a missing space after a period are not a host name. */
const HOST_NAME = /(?<![\w.-])(?:[a-z\d_-]{1,63}\.){2,8}[a-z][a-z\d-]{1,62}(?![\w.])/g
/** Six characters with a digit: queue IDs and timestamps are longer, error codes shorter. */
const ID = /(?<![a-z\d])(?=[a-z]{0,64}\d)[a-z\d]{6,}/g
/** Masked parts with nothing but signs between them. */
const MASKED_RUN = /#(?:[^\p{L}<#]{0,8}#){1,64}/gu

const NAME_END = '(?![a-z0-9-])'
const ENCODED_AT = '(?: @ |%40|=40|\\+40|%|=| ?[([{] ?at ?[)\\]}] ?)'
/** A local part that is a noun of the replies: "no such user at example.com" does not name it. */
const NOUN =
  /^(?:users?|mail-?box|recipients?|accounts?|address|name|alias|person|customer|e?-?mail|domain|server|host)$/
const SUBJECT = '\\b(?:mailbox|user|recipient|account|address)'
const VERB = '(?:is|has|was|does|did|not|can|cannot|could)\\b'
const NO_SUCH = '\\b(?:no|such|unknown|invalid|find|locate)'

/** Returns an expression for a name in quotes or brackets. */
const enclose = (name: string) =>
  `\\( ?${name} ?\\)|\\[ ?${name} ?\\]|\\{ ?${name} ?\\}|"${name}"|'${name}'(?![a-z])`
const ENCLOSED_MASK = new RegExp(`${enclose('<>')}|< ?<> ?>|<<>|<>>`, 'g')
/** An address in quotes and in brackets, as in `("<ann@example.com>")`. */
const ENCLOSURES_MAX = 3

const BEFORE_WAIT =
  '(?:\\bin|\\bfor|after|wait|least|delay(?:ed)?|dans|nach|retry:?|=)(?: about| another| the next)?'
const UNIT =
  '(s|secs?|seconds?|secondes?|sekunden|m|mins?|minutes?|minuten|h|hrs?|hours?|heures?|stunden?|d|days?)'
const WAIT_BY_CLOCK = new RegExp(`${BEFORE_WAIT} (\\d{1,2}):(\\d{2}):(\\d{2})\\b`)
const WAIT_IN_WORDS = new RegExp(`${BEFORE_WAIT} ?(\\d{1,6}) ?${UNIT}\\b`)
const WAIT_CONTINUED = new RegExp(`^(?:,? and|,)? (\\d{1,6}) ?${UNIT}\\b`)

const RETRY =
  /\b(?:re-?)?(?:try|send|submit|deliver|connect)(?:ing)? (?:it |this |the message |your message )?(?:again|later|after|in \d)|\b(?:retry|re-?send|repeat|re-?deliver)|\blater\b|come (?:back|again)|\bwait\b|\bdefer|\bdelay|postpone|temporar|temp[- ]?fail|momentar|for now\b|right now|(?:for|at) (?:the|this) (?:moment|time)|not yet/
const OTHER_RETRY =
  /spater|erneut|vorubergehend|plus tard|reessa|temporaire|mas tarde|intente|reintent|piu tardi|riprov|mais tarde|novamente|opnieuw|tijdelijk|pozniej|ponownie|pozdeji|znovu|позже|повтор|временн|daha sonra|tekrar|稍[后後]|重试|再度|一時|しばらく|나중에|다시|일시/
