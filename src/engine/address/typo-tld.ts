import { publicSuffixes } from '../../platform/domain-names.ts'
import { TYPO_COST, typoDistance } from '../../platform/typo-distance.ts'

/** Common endings, most likely first. */
const GENERIC = ['com', 'net', 'org', 'edu', 'gov', 'info', 'biz']
const COUNTRIES =
  `ru de fr it uk pl br ca au es nl jp in mx be ch at se no dk fi cz pt gr hu ro ie nz za
  ua tr kr cn tw hk sg my ph id vn th ar cl co pe il ae eu us`.split(/\s+/)
/** Endings of two labels by their form without the dot: `couk`, `combr`. */
const PAIRS = new Map(
  `co.uk org.uk ac.uk com.br com.au net.au com.mx com.ar com.tr com.cn com.tw com.sg com.my com.ph com.co
  com.pe com.ua com.pl com.hk com.vn co.jp ne.jp or.jp co.in co.nz co.za co.kr co.il co.id co.th`
    .split(/\s+/)
    .map(pair => [pair.replace('.', ''), pair]),
)
/** Misspellings of `com`: too short, or with a zero. Used only for endings that do not exist. */
const BROKEN_COM = /^(?:c|m+|c?[o0]*m+)$/
/** Extra characters after a complete ending: `comcom`, `netl`. */
const TAIL_LENGTH_MAX = 3

/**
 * Returns the intended ending for one that does not exist: `vom` → `com`, `couk` → `co.uk`; else
 * null.
 */
export function correctedTld(ending: string, before: string | undefined): string | null {
  if (GENERIC.includes(ending)) return ending
  const pair = PAIRS.get(ending)
  if (pair !== undefined) return pair
  const country = countryOf(before, ending)
  if (country !== null) return country
  if (BROKEN_COM.test(ending)) return 'com'
  const prefix = GENERIC.find(
    candidate =>
      ending.startsWith(candidate) && ending.length <= candidate.length + TAIL_LENGTH_MAX,
  )
  if (prefix !== undefined) return prefix
  if (ending.length === 1) {
    return [...GENERIC, ...COUNTRIES].find(candidate => candidate.startsWith(ending)) ?? null
  }
  const generic = nearest(ending, GENERIC)
  if (generic !== null) return generic
  if (ending.length === 3 && typoDistance(`.${ending}`, '.com') <= 2 * TYPO_COST) return 'com'
  // Country endings are too short to guess, except for a doubled letter.
  return ending.length === 3 && /(.)\1/.test(ending) ? nearest(ending, COUNTRIES) : null
}

/** Returns the ending without its misplaced dot: `co.m` → `com`, `cou.k` → `co.uk`; else null. */
export function withoutMisplacedDot(before: string, ending: string): string | null {
  const joined = before + ending
  return COMMON.has(joined) ? joined : (PAIRS.get(joined) ?? null)
}

/** Compares countries by how likely they are: `fr` before `fi`, so that `f` means France. */
export const compareCountries = (one: string, other: string): number =>
  getRank(one) - getRank(other)

const getRank = (ending: string) => {
  const rank = COUNTRIES.indexOf(ending.slice(ending.lastIndexOf('.') + 1))
  return rank < 0 ? COUNTRIES.length : rank
}

/**
 * Returns the country of an ending with a correct second level: `com.rb` → `br`, `co.yk` → `uk`.
 */
function countryOf(before: string | undefined, ending: string): string | null {
  if (before === undefined) return null
  const pairs = [...PAIRS.values()].filter(pair => pair.startsWith(`${before}.`))
  return nearest(
    ending,
    pairs.map(pair => pair.slice(before.length + 1)),
  )
}

/** Returns the intended ending for a wrong second level: `firm.cm.br` → `com.br`; else null. */
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

/** A longer label before a country is a name, not a misspelled `com`. */
const SECOND_LEVEL_LENGTH_MAX = 4

/** Whether an ending is one of two labels without its dot, such as `couk`. */
export const isPair = (ending: string): boolean => PAIRS.has(ending)

/** One wrong key, adjacent or not. */
const TLD_DISTANCE_MAX = 1.5 * TYPO_COST

function nearest(ending: string, candidates: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    // The dot makes the first letters equal: in an ending, each letter is equally likely to be
    // wrong.
    const distance = typoDistance(`.${ending}`, `.${candidate}`)
    if (distance <= TLD_DISTANCE_MAX && distance < bestDistance) {
      ;[best, bestDistance] = [candidate, distance]
    }
  }
  return best
}

const COMMON = new Set([...GENERIC, ...COUNTRIES])

/** Whether the ending of this name exists in the public suffix list. */
export function hasRegisteredTld(name: string): boolean {
  if (COMMON.has(name.slice(name.lastIndexOf('.') + 1))) return true
  const { isIcann, isPrivate } = publicSuffixes().parse(name)
  return isIcann === true || isPrivate === true
}
