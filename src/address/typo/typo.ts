import { hasRealEnding } from './ending.ts'
import { FAMILIES, type Famous, isRealNeighbour, SINGLES } from './famous.ts'
import { FAR_ADDED, SLIP, slips } from './slip.ts'

/** Real endings that, behind a famous name, are a slip of its own. */
const MISTAKEN_ENDINGS: Record<string, readonly string[]> = {
  com: ['co', 'cm', 'om'],
  net: ['ne'],
}
/** Names that have no other ending, so that any other is a mistake. */
const COM_ALONE = new Set(['gmail', 'googlemail'])
/** Names that nobody else has, so that behind a misspelling of one any unknown ending is a mistake. */
const UNMISTAKABLE = new Set([...COM_ALONE, 'hotmail', 'protonmail'])

/** The great provider one slip beside `name`, which is a typo even if somebody registered it; else null. */
export function listedTypo(name: string): string | null {
  const { first, ending } = split(name)
  if (isRealNeighbour(first)) return null
  for (const family of FAMILIES) {
    // People add a plural, too: `hotmails.com`.
    if (first !== `${family.name}s` && slips(first, family.name, SLIP) > SLIP) continue
    const meant = meantBehind(family, ending, name)
    if (meant !== null) return differs(name, `${family.name}.${meant}`)
  }
  return null
}

/** The famous provider that `name` most resembles, if near enough; it may be a name of its own. */
export function guessedTypo(name: string): string | null {
  return (
    movedDot(name) ??
    trailingLabel(name) ??
    runTogether(name) ??
    withoutVowels(name) ??
    nearest(name)
  )
}

/** Whether a domain belongs to one of the large providers, which squatters imitate. */
export const isLargeProvider = (domain: string): boolean => {
  const { first, ending } = split(domain)
  return FAMILIES.some(
    ({ name, ending: usual, endings }) =>
      name === first && (usual === ending || endings.includes(ending)),
  )
}

const split = (name: string) => {
  const dot = name.indexOf('.')
  return dot < 0
    ? { first: name, ending: '' }
    : { first: name.slice(0, dot), ending: name.slice(dot + 1) }
}

const differs = (name: string, meant: string) => (meant === name ? null : meant)

/** The ending that belongs behind a famous name for the one that was typed, or null if that may be another's domain. */
function meantBehind(famous: Famous, ending: string, name: string): string | null {
  if (ending === famous.ending || famous.endings.includes(ending)) return ending
  if (MISTAKEN_ENDINGS[famous.ending]?.includes(ending)) return famous.ending
  if (hasRealEnding(name)) return null
  return nearestEnding(famous, ending)
}

/** An ending this near the provider's first one means that, whatever else it resembles. */
const FIRST_ENDING_SLIPS_MAX = 2 * SLIP

/** Of the provider's endings the one that an ending which does not exist resembles; when in doubt the first. */
function nearestEnding(famous: Famous, ending: string): string {
  const joined = ending.replaceAll('.', '')
  const far = (real: string) => slips(joined, real.replaceAll('.', ''), FAR_ADDED)
  const exact = famous.endings.find(real => far(real) === 0)
  if (exact !== undefined) return exact
  if (slips(`.${joined}`, `.${famous.ending}`) <= FIRST_ENDING_SLIPS_MAX) return famous.ending
  return famous.endings.find(real => far(real) <= FAR_ADDED) ?? famous.ending
}

const ALL = [...FAMILIES, ...SINGLES]
const domainOf = ({ name, ending }: Famous) => `${name}.${ending}`
const squeezed = (famous: Famous) => domainOf(famous).replaceAll('.', '')
const SQUEEZED = new Map(
  ALL.flatMap(famous =>
    [famous.ending, ...famous.endings].map(ending => {
      const domain = `${famous.name}.${ending}`
      return [domain.replaceAll('.', ''), domain] as const
    }),
  ),
)

/** The famous domain meant by a word without a dot: `gmail`, `gmailcom`, `yaho`; else null. */
export function domainNamed(word: string): string | null {
  const exact = SQUEEZED.get(word.replaceAll('-', ''))
  if (exact !== undefined) return exact
  const found =
    ALL.find(famous => hasKeyForDot(word, famous)) ??
    FAMILIES.find(({ name }) => slips(word, name, SLIP) <= SLIP) ??
    FAMILIES.find(family => slips(word, squeezed(family), SLIP) <= SLIP)
  return found === undefined ? null : domainOf(found)
}

/** `aollcom`: a key beside the dot was struck. */
const hasKeyForDot = (word: string, { name, ending }: Famous) =>
  word.length === name.length + 1 + ending.length && word.startsWith(name) && word.endsWith(ending)

/** The domains of the great providers, such as `gmail.com`. */
export const famousDomains = (): string[] => FAMILIES.map(domainOf)

/** `gmailc.om`, `verizonn.et`, `hot.mail.com`, `www.gmail.com`. */
function movedDot(name: string): string | null {
  const found = SQUEEZED.get(name.replace(/^www\./, '').replaceAll('.', ''))
  return found === undefined ? null : differs(name, found)
}

/** `gmail.com.com`, `hotmail.com.net`: a great name with an ending after its ending; not `yahoo.com.ve`, a real one. */
function trailingLabel(name: string): string | null {
  const found = FAMILIES.find(family => name.startsWith(`${domainOf(family)}.`))
  if (found === undefined) return null
  const extra = name.slice(domainOf(found).length + 1)
  const isStray = ['com', 'net', 'org'].includes(extra) || !hasRealEnding(name)
  return isStray || COM_ALONE.has(found.name) ? domainOf(found) : null
}

/** `yahoomail.com`, `gmailyahoo.com`: two names in one go; the first is meant. */
function runTogether(name: string): string | null {
  const { first, ending } = split(name)
  const family = FAMILIES.find(({ name: great }) => first.startsWith(great) && first !== great)
  if (family === undefined || ending !== family.ending) return null
  const rest = first.slice(family.name.length)
  const other = ['mail', ...FAMILIES.map(great => great.name)]
  return other.some(great => slips(rest, great, SLIP) <= SLIP) ? domainOf(family) : null
}

/** A shorter rest may be any name: `gml`. */
const CONSONANTS_MIN = 4
const withoutLaterVowels = (name: string) => name.charAt(0) + name.slice(1).replace(/[aeiou]/g, '')

/** `icld.com`, `otlk.com`: a large provider without the vowels after the first letter. */
function withoutVowels(name: string): string | null {
  const { first, ending } = split(name)
  if (first.length < CONSONANTS_MIN || isRealNeighbour(first)) return null
  const family = FAMILIES.find(
    great => great.ending === ending && withoutLaterVowels(great.name) === first,
  )
  return family === undefined ? null : domainOf(family)
}

/** Below this a name says so little that a letter lost and another wrong make another name: `gaol` is not `gmail`. */
const SHORT_NAME_LENGTH = 5

function nearest(name: string): string | null {
  const { first, ending } = split(name)
  if (isRealNeighbour(first)) return null
  let best: string | null = null
  let bestFar = Number.POSITIVE_INFINITY
  for (const famous of ALL) {
    const byName = slips(first, famous.name, famous.slipsMax)
    if (byName > famous.slipsMax || (byName > SLIP && isCutShort(first, famous.name))) continue
    const behind = meantBehind(famous, ending, name) ?? strayEnding(famous, byName)
    // The nearer ending decides between namesakes such as gmx.de and gmx.net.
    const far = byName + slips(ending, famous.ending) / 10
    if (behind !== null && far < bestFar) [best, bestFar] = [`${famous.name}.${behind}`, far]
  }
  return best === null ? null : differs(name, best)
}

/**
 * A lost first letter is dear already, so it may be the one that is missing. One letter lost and
 * the others in another order is still the same name: `yhao` is `yahoo`.
 */
function isCutShort(first: string, name: string): boolean {
  if (first.charAt(0) !== name.charAt(0)) return false
  const lost = name.length - first.length
  if (lost === 1 && [...first].every(letter => name.includes(letter))) return false
  return lost > (name.length <= SHORT_NAME_LENGTH ? 0 : 1)
}

const strayEnding = (famous: Famous, byName: number) =>
  UNMISTAKABLE.has(famous.name) && byName <= SLIP ? famous.ending : null
