import { cleanAddress, isFault, parseAddress } from './address.ts'
import { domainNamed, knownProviderDomains } from './typo.ts'
import { correctedTld, isPair } from './typo-tld.ts'

/** What is longer was no slip of the finger; and some patterns here cost the square of the length. */
const REPAIRED_LENGTH_MAX = 128

/** The address that a text plainly meant which is none: a lost dot or @, a comma for a dot, a stray mark; else null. */
export function repairAddress(text: string): string | null {
  if (text.length > REPAIRED_LENGTH_MAX) return null
  const withAt = spelledOut(cleanAddress(text).text)
  const [local, ...rest] = withAt.includes('@') ? withAt.split(/@+/) : lostAt(withAt)
  if (local === undefined || rest.length === 0) return null
  const domain = repairDomain(rest.join('.'))
  const repaired = `${repairLocal(local)}@${domain}`
  return repaired === text || isFault(parseAddress(repaired)) ? null : repaired
}

/** `ann (at) example (dot) com`, as people write it against robots. */
const spelledOut = (text: string) =>
  text.replace(/\s*[([{]at[)\]}]\s*|\s+at\s+/i, '@').replace(/\s*[([{]dot[)\]}]\s*/gi, '.')

/** `anngmail.com`: the @ is lost, but a great provider ends the text. */
function lostAt(text: string): string[] {
  const domain = knownProviderDomains().find(knownProvider =>
    text.toLowerCase().endsWith(knownProvider),
  )
  if (domain === undefined) return []
  const local = text.slice(0, -domain.length).replace(/[.#&!"' ]$/, '')
  return local === '' || /^www$|[/:]/i.test(local) ? [] : [local, domain]
}

/** Dots and spaces that slipped in; nothing that may belong to the name. */
const repairLocal = (local: string) =>
  local
    .trim()
    .replace(/^["'<(]+|["'>)]+$/g, '')
    .replace(/\s*\.[\s.]*/g, '.')
    .replace(/^\.|\.$/g, '')

function repairDomain(domain: string): string {
  const name = domain
    .toLowerCase()
    .replace(/\s+/g, '')
    .replace(/^[^\p{L}\d[]+|[^\p{L}\d\]]+$/gu, '')
    .replace(/[.,;:/\\_]+/g, '.')
  return name.includes('.') || name.startsWith('[') ? name : withDot(name)
}

/** A word that ends like a domain must leave at least this much before its ending. */
const NAME_LENGTH_MIN = 2

/** `gmailcom`, `gmail`, `example-net`, `firmcouk`. */
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
