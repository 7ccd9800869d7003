import { publicSuffixes } from '../../platform/public-suffixes.ts'
import { TYPO_COST, typoDistance } from './typo-distance.ts'

/** Endings that people mean, the likeliest first. */
const GENERIC = ['com', 'net', 'org', 'edu', 'gov', 'info', 'biz']
const COUNTRIES =
  `ru de fr it uk pl br ca au es nl jp in mx be ch at se no dk fi cz pt gr hu ro ie nz za
  ua tr kr cn tw hk sg my ph id vn th ar cl co pe il ae eu us`.split(/\s+/)
/** Endings of two labels that have lost their dot: `couk`, `combr`. */
const PAIRS = new Map(
  `co.uk org.uk ac.uk com.br com.au net.au com.mx com.ar com.tr com.cn com.tw com.sg com.my com.ph com.co
  com.pe com.ua com.pl com.hk com.vn co.jp ne.jp or.jp co.in co.nz co.za co.kr co.il co.id co.th`
    .split(/\s+/)
    .map(pair => [pair.replace('.', ''), pair]),
)
/** `com` too short, or with a zero; asked only of endings that do not exist. */
const BROKEN_COM = /^(?:c|m+|c?[o0]*m+)$/
/** What may hang on to a whole ending: `comcom`, `netl`. */
const TAIL_LENGTH_MAX = 3

/** The ending that was meant by one that does not exist, or null if none is near: `vom` → `com`, `couk` → `co.uk`. */
export function correctedTld(ending: string, before: string | undefined): string | null {
  if (GENERIC.includes(ending)) return ending
  const pair = PAIRS.get(ending)
  if (pair !== undefined) return pair
  if (BROKEN_COM.test(ending)) return 'com'
  const whole = GENERIC.find(
    candidate =>
      ending.startsWith(candidate) && ending.length <= candidate.length + TAIL_LENGTH_MAX,
  )
  if (whole !== undefined) return whole
  const country = countryOf(before, ending)
  if (country !== null) return country
  if (ending.length === 1) {
    return [...GENERIC, ...COUNTRIES].find(candidate => candidate.startsWith(ending)) ?? null
  }
  const generic = nearest(ending, GENERIC)
  if (generic !== null) return generic
  if (ending.length === 3 && typoDistance(`.${ending}`, '.com') <= 2 * TYPO_COST) return 'com'
  // A country is too short to guess at, unless a letter was struck twice.
  return ending.length === 3 && /(.)\1/.test(ending) ? nearest(ending, COUNTRIES) : null
}

/** The country of an ending whose second level is whole: `com.rb` → `br`, `co.yk` → `uk`. */
function countryOf(before: string | undefined, ending: string): string | null {
  if (before === undefined) return null
  const pairs = [...PAIRS.values()].filter(pair => pair.startsWith(`${before}.`))
  return nearest(
    ending,
    pairs.map(pair => pair.slice(before.length + 1)),
  )
}

/** The ending that was meant by one whose second level is broken: `firm.cm.br` → `com.br`; else null. */
export function correctedTldPair(name: string): string | null {
  const [third, second = '', top = ''] = name.split('.').slice(-3)
  if (third === undefined || top === '' || second.length > SECOND_LEVEL_LENGTH_MAX) return null
  const pairs = [...PAIRS.values()].filter(pair => pair.endsWith(`.${top}`))
  if (pairs.length === 0 || publicSuffixes().parse(name).publicSuffix !== top) return null
  const intended = pairs.find(
    pair => typoDistance(`.${second}`, `.${pair.split('.', 1)[0] ?? ''}`, TYPO_COST) <= TYPO_COST,
  )
  return intended ?? null
}

/** A longer label before a country is a name, not a broken `com`. */
const SECOND_LEVEL_LENGTH_MAX = 4

/** Whether this is an ending of two labels without its dot, such as `couk`. */
export const isPair = (ending: string): boolean => PAIRS.has(ending)

/** One key amiss, be it near or far. */
const TLD_DISTANCE_MAX = 1.5 * TYPO_COST

function nearest(ending: string, candidates: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    // The dot before both: in an ending, the first letter is as likely wrong as any.
    const far = typoDistance(`.${ending}`, `.${candidate}`)
    if (far <= TLD_DISTANCE_MAX && far < bestDistance) [best, bestDistance] = [candidate, far]
  }
  return best
}

const COMMON = new Set([...GENERIC, ...COUNTRIES])

/** Whether the root zone has the ending of this name. */
export function hasRegisteredTld(name: string): boolean {
  if (COMMON.has(name.slice(name.lastIndexOf('.') + 1))) return true
  const { isIcann, isPrivate } = publicSuffixes().parse(name)
  return isIcann === true || isPrivate === true
}
