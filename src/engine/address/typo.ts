import {
  lettersOf,
  minimumDistance,
  TYPO_COST,
  typoDistance,
  UNRELATED_INSERTION_COST,
  WRONG_FIRST_LETTER_COST,
} from '../../platform/typo-distance.ts'
import { compareCountries, hasRegisteredTld } from './typo-tld.ts'

/** A provider whose name is often mistyped. */
type KnownProvider = {
  /** The first label: `gmail`. */
  readonly name: string
  /** The default ending: `com`. */
  readonly ending: string
  /** Other endings that the provider uses. */
  readonly endings: readonly string[]
  /** The greatest typo distance of a guess: more for long names, which few others resemble. */
  readonly distanceMax: number
}

/** The large providers. A domain one typo away from one is a squatter, so it is a listed typo. */
export const MULTI_TLD_PROVIDERS: readonly KnownProvider[] = [
  { name: 'gmail', ending: 'com', endings: [], distanceMax: 2.25 },
  { name: 'googlemail', ending: 'com', endings: [], distanceMax: 3 },
  { name: 'icloud', ending: 'com', endings: [], distanceMax: 1.5 },
  { name: 'protonmail', ending: 'com', endings: ['ch'], distanceMax: 2 },
  {
    name: 'hotmail',
    ending: 'com',
    endings:
      `be ca ch cl co.id co.il co.in co.jp co.kr co.nz co.th co.uk co.za com.ar com.au com.br com.hk
      com.mx com.tr com.tw com.vn cz de dk es fi fr gr hu it jp lt lv my nl no ph rs ru se sg
      sk`.split(/\s+/),
    distanceMax: 2.5,
  },
  {
    name: 'yahoo',
    ending: 'com',
    endings:
      `ae at be bg ca ch cn co.id co.il co.in co.jp co.kr co.nz co.th co.uk co.za com.ar com.au com.br
      com.cn com.co com.hk com.mx com.my com.pe com.ph com.sg com.tr com.tw com.ve com.vn cz de dk ee es fi fr
      gr hr hu ie in it jp lt lv nl no pl pt ro rs ru se si sk`.split(/\s+/),
    distanceMax: 2.25,
  },
  {
    name: 'outlook',
    ending: 'com',
    endings:
      `at be bg cl co.id co.il co.nz co.th com.ar com.au com.br com.gr com.hr com.pe com.tr com.ua
      com.vn cz de dk ec es fr hu ie in it jp kr lv my ph pt ro sa sg si sk tw`.split(/\s+/),
    distanceMax: 2.5,
  },
]

const single = (domain: string, distanceMax: number): KnownProvider => {
  const dot = domain.indexOf('.')
  return { name: domain.slice(0, dot), ending: domain.slice(dot + 1), endings: [], distanceMax }
}

/** Providers with one domain and a name that no common word resembles. */
const DISTINCT = `comcast.net verizon.net sbcglobal.net bellsouth.net earthlink.net mindspring.com optonline.net
  windstream.net centurylink.net suddenlink.net roadrunner.com netzero.net prodigy.net ameritech.net
  embarqmail.com frontiernet.net btinternet.com btopenworld.com virginmedia.com blueyonder.co.uk
  ntlworld.com talktalk.net rocketmail.com hushmail.com tutanota.com fastmail.com sympatico.ca
  videotron.ca bigpond.com optusnet.com.au laposte.net club-internet.fr t-online.de
  freenet.de virgilio.it libero.it tiscali.it telefonica.net yandex.ru rambler.ru rediffmail.com
  hanmail.net seznam.cz bluewin.ch telenet.be skynet.be kpnmail.nl interia.pl charter.net`

/** Names too short to guess, but recognizable with a wrong ending or a missing dot. */
const SHORT = `me.com mac.com mail.com zoho.com
  cox.net att.net shaw.ca rogers.com free.fr sfr.fr mail.ru bk.ru inbox.ru list.ru ya.ru qq.com
  163.com 126.com sina.com daum.net nate.com naver.com wp.pl o2.pl onet.pl abv.bg ukr.net alice.it
  tin.it juno.com sky.com pm.me tuta.com hey.com uol.com.br terra.com.br globo.com xtra.co.nz`

/** The greatest distance of a guess by the length of the name: fewer names resemble a long one. */
const distanceMaxFor = (name: string) => (name.length >= 8 ? 2 : name.length === 7 ? 1.5 : 1)

const OTHER_PROVIDERS: readonly KnownProvider[] = [
  { name: 'wanadoo', ending: 'fr', endings: ['es', 'nl', 'co.uk'], distanceMax: 1.5 },
  {
    name: 'gmx',
    ending: 'de',
    endings: 'net com at ch fr es li us co.uk'.split(' '),
    distanceMax: 1,
  },
  single('web.de', 1),
  ...['orange.fr', 'proton.me'].map(domain => single(domain, 1)),
  ...DISTINCT.split(/\s+/).map(domain =>
    single(domain, distanceMaxFor(domain.split('.', 1)[0] ?? '')),
  ),
  // Only a doubled letter is close enough to these short names.
  {
    name: 'aol',
    ending: 'com',
    endings: 'co.nz co.uk com.ar com.au com.br com.mx de es fr it se'.split(' '),
    distanceMax: 0.75,
  },
  {
    name: 'live',
    ending: 'com',
    endings:
      `at be ca cl cn co.jp co.kr co.uk co.za com.ar com.au com.mx com.my com.ph com.pt com.sg de dk
      fi fr hk ie in it jp nl no ru se`.split(/\s+/),
    distanceMax: 0.75,
  },
  single('msn.com', 0.75),
  single('ymail.com', 1),
  ...SHORT.split(/\s+/).map(domain => single(domain, 0)),
]

/**
 * Other providers whose misspellings belong to squatters with a mail server. Such a misspelling has
 * one typo (`isOneTypo`), because squatters register the likely ones.
 */
const IMITATED_NAMES = new Set(
  `comcast sbcglobal bellsouth verizon btinternet freenet t-online gmx web wanadoo`.split(' '),
)

/** Real names close to a known provider: never typos, whatever their ending. */
const REAL_SIMILAR_NAMES: ReadonlySet<string> = new Set(
  `email mail gail grail html cloud outlooks foxmail postmail homemail dotmail botmail boxmail popmail
  gotmail hotmart hotrail wahoo yoho yodo yazoo yakoo comcasts planet plant prontomail liberia libera
  liberi libro librero ligero rambles ramble freenets skynets telnet horizon wandoo lacoste prodige
  telefonia telefonias telefonicas carter chapter chanter charger charmer charters chatter proto orang
  oranger oranges orage orante gmc gmd gms weg ewb webb aweb eweb qweb sweb`.split(/\s+/),
)
/** A service exists for every letter before `mail`, so such a name is not a typo of another. */
const ONE_LETTER_MAIL = /^[a-z]mail$/

/** Whether a first label is a real name despite its resemblance to a known provider. */
const isKnownSimilarDomain = (first: string): boolean =>
  REAL_SIMILAR_NAMES.has(first) || (ONE_LETTER_MAIL.test(first) && first !== 'gmail')

/** Existing endings that are typos after the name of a known provider, with the intended one. */
const MISTAKEN_ENDINGS = new Map([
  ['co', 'com'],
  ['cm', 'com'],
  ['om', 'com'],
  ['ne', 'net'],
])
/** Names with one ending only, so that any other is a typo. */
const COM_ONLY = new Set(['gmail', 'googlemail'])
/** Unique names, so that any unknown ending after a misspelling of one is a typo, too. */
const UNIQUE_NAMES = new Set([...COM_ONLY, 'hotmail', 'protonmail', 'sbcglobal'])

/**
 * Returns the large provider one typo away from `name`, even if `name` is registered; else null.
 */
export function listedTypo(name: string): string | null {
  const { first, ending } = split(name)
  if (isKnownSimilarDomain(first)) return null
  for (const provider of MULTI_TLD_PROVIDERS) {
    // A plural also counts as one typo: `hotmails.com`.
    if (first !== `${provider.name}s` && typoDistance(first, provider.name, TYPO_COST) > TYPO_COST)
      continue
    const intended = intendedDomain(provider, ending, name)
    if (intended !== null) return differs(name, `${provider.name}.${intended}`)
  }
  return null
}

/**
 * Returns the known provider that `name` most resembles, if close enough; `name` may be a real one.
 */
export function guessedTypo(name: string): string | null {
  return (
    withMisplacedDot(name) ??
    withExtraEnding(name) ??
    withJoinedNames(name) ??
    withoutVowels(name) ??
    nearest(name)
  )
}

/** Whether `typed` resembles the domain of a provider as the names that squatters register do. */
export function isImitation(typed: string, domain: string): boolean {
  const { first: name, ending } = split(domain)
  if (IMITATED_NAMES.has(name)) return isOneTypo(split(typed).first, name)
  return MULTI_TLD_PROVIDERS.some(
    provider => provider.name === name && listEndings(provider).includes(ending),
  )
}

/**
 * Whether a name is one typo away from a provider's, which may be in the first letter. Of a name as
 * short as `gmx`, only letters that are swapped, doubled or added are typos: one letter less or
 * another one makes the name of another company.
 */
function isOneTypo(typed: string, name: string): boolean {
  const isInitialKept = typed.charAt(0) === name.charAt(0)
  const costMax = isInitialKept ? TYPO_COST : FIRST_LETTER_TYPO_COST
  if (typoDistance(typed, name, costMax) > costMax) return false
  return name.length > SHORT_NAME_LENGTH || typed.length > name.length || isSwapped(typed, name)
}

const isSwapped = (typed: string, name: string) =>
  [...typed].sort().join('') === [...name].sort().join('')

const FIRST_LETTER_TYPO_COST = TYPO_COST + WRONG_FIRST_LETTER_COST

/** Another first letter makes another word of a shorter name. */
const LONG_NAME_LENGTH = 7

/** Whether a typo in the first letter is recognized. */
const allowsFirstLetter = ({ name }: KnownProvider) =>
  IMITATED_NAMES.has(name) || name.length >= LONG_NAME_LENGTH

const split = (name: string) => {
  const dot = name.indexOf('.')
  return dot < 0
    ? { first: name, ending: '' }
    : { first: name.slice(0, dot), ending: name.slice(dot + 1) }
}

const listEndings = ({ ending, endings }: KnownProvider) => [ending, ...endings]

const differs = (name: string, intended: string) => (intended === name ? null : intended)

/** Returns the intended ending of a provider; null if `name` may be a domain of another owner. */
function intendedDomain(knownProvider: KnownProvider, ending: string, name: string): string | null {
  const all = listEndings(knownProvider)
  if (all.includes(ending)) return ending
  const mistaken = MISTAKEN_ENDINGS.get(ending)
  if (mistaken !== undefined && all.includes(mistaken)) return mistaken
  if (hasRegisteredTld(name)) return null
  return nearestTld(knownProvider, ending)
}

/** An ending this close to the default ending of the provider always means the default. */
const FIRST_TLD_DISTANCE_MAX = 2 * TYPO_COST
/** One wrong key, adjacent or not, in an ending such as `co.uk`. */
const PAIR_DISTANCE_MAX = 1.5 * TYPO_COST

/** Returns the ending of the provider closest to one that does not exist; the default in doubt. */
function nearestTld(knownProvider: KnownProvider, typed: string): string {
  const { ending: usual, endings } = knownProvider
  const joined = removeDots(typed)
  const exact = listEndings(knownProvider).find(real => removeDots(real) === joined)
  if (exact !== undefined) return exact
  // The dot makes the first letters equal.
  const distanceTo = (real: string) => typoDistance(`.${joined}`, `.${removeDots(real)}`)
  // An ending of two labels means a country: `co.n` is not `com`.
  const isPair = typed.includes('.')
  if (!isPair && distanceTo(usual) <= FIRST_TLD_DISTANCE_MAX) return usual
  const distanceMax = isPair ? PAIR_DISTANCE_MAX : UNRELATED_INSERTION_COST
  const [nearest] = endings
    .filter(real => real.includes('.') === isPair)
    .map(real => ({ real, distance: distanceTo(real) }))
    .filter(({ distance }) => distance <= distanceMax)
    .sort((a, b) => a.distance - b.distance || compareCountries(a.real, b.real))
  return nearest?.real ?? usual
}

const removeDots = (text: string) => text.replaceAll('.', '')

const ALL = [...MULTI_TLD_PROVIDERS, ...OTHER_PROVIDERS]
/** A provider, and what rules it out at once for most names. */
type Candidate = {
  readonly provider: KnownProvider
  readonly length: number
  readonly letters: number
  /** The name without its first two letters; null if a typo in the first letter is not recognized. */
  readonly tail: string | null
  /** The greatest distance of any name: `distanceMax` of the provider, or more with the tail. */
  readonly distanceMax: number
}

const CANDIDATES: readonly Candidate[] = ALL.map(provider => {
  const tail = allowsFirstLetter(provider) ? provider.name.slice(2) : null
  return {
    provider,
    length: provider.name.length,
    letters: lettersOf(provider.name),
    tail,
    distanceMax:
      tail === null ? provider.distanceMax : Math.max(provider.distanceMax, FIRST_LETTER_TYPO_COST),
  }
})
const domainOf = ({ name, ending }: KnownProvider) => `${name}.${ending}`
const squeezed = (domain: string) => domain.replaceAll(/[.-]/g, '')
const SQUEEZED = new Map(
  ALL.flatMap(knownProvider =>
    listEndings(knownProvider).map(ending => {
      const domain = `${knownProvider.name}.${ending}`
      return [squeezed(domain), domain] as const
    }),
  ),
)

/** Returns the provider domain for a word without a dot: `gmail`, `gmailcom`, `yaho`; else null. */
export function domainNamed(word: string): string | null {
  const exact = SQUEEZED.get(word.replaceAll('-', ''))
  if (exact !== undefined) return exact
  const found =
    ALL.find(knownProvider => hasKeyForDot(word, knownProvider)) ??
    MULTI_TLD_PROVIDERS.find(({ name }) => typoDistance(word, name, TYPO_COST) <= TYPO_COST) ??
    MULTI_TLD_PROVIDERS.find(
      provider => typoDistance(word, squeezed(domainOf(provider)), TYPO_COST) <= TYPO_COST,
    )
  return found === undefined ? null : domainOf(found)
}

/** Whether one key replaces the dot: `aollcom`. */
const hasKeyForDot = (word: string, { name, ending }: KnownProvider) =>
  word.length === name.length + 1 + ending.length && word.startsWith(name) && word.endsWith(ending)

/** Returns the default domains of the large providers, such as `gmail.com`. */
export const knownProviderDomains = (): string[] => MULTI_TLD_PROVIDERS.map(domainOf)

/** Finds a provider with misplaced dots: `gmailc.om`, `hot.mail.com`, `www.gmail.com`. */
function withMisplacedDot(name: string): string | null {
  const found = SQUEEZED.get(name.replace(/^www\./, '').replaceAll('.', ''))
  return found === undefined ? null : differs(name, found)
}

/** Finds a provider with an extra ending: `gmail.com.com`; not `yahoo.com.ve`, which exists. */
function withExtraEnding(name: string): string | null {
  const found = MULTI_TLD_PROVIDERS.find(provider => name.startsWith(`${domainOf(provider)}.`))
  if (found === undefined) return null
  const extra = name.slice(domainOf(found).length + 1)
  const isExtra = ['com', 'net', 'org'].includes(extra) || !hasRegisteredTld(name)
  return isExtra || COM_ONLY.has(found.name) ? domainOf(found) : null
}

/** Finds the first of two joined names: `yahoomail.com`, `gmailyahoo.com`. */
function withJoinedNames(name: string): string | null {
  const { first, ending } = split(name)
  const provider = MULTI_TLD_PROVIDERS.find(({ name }) => first.startsWith(name) && first !== name)
  if (provider === undefined || ending !== provider.ending) return null
  const rest = first.slice(provider.name.length)
  const other = ['mail', ...MULTI_TLD_PROVIDERS.map(({ name }) => name)]
  return other.some(word => typoDistance(rest, word, TYPO_COST) <= TYPO_COST)
    ? domainOf(provider)
    : null
}

/** Fewer consonants may be any name: `gml`. */
const CONSONANTS_MIN = 4
const withoutLaterVowels = (name: string) => name.charAt(0) + name.slice(1).replace(/[aeiou]/g, '')

/** Finds a large provider without its later vowels: `icld.com`, `otlk.com`. */
function withoutVowels(name: string): string | null {
  const { first, ending } = split(name)
  if (first.length < CONSONANTS_MIN || isKnownSimilarDomain(first)) return null
  const provider = WITHOUT_VOWELS.find(
    ({ consonants, ending: usual }) => consonants === first && usual === ending,
  )
  return provider === undefined ? null : domainOf(provider)
}

const WITHOUT_VOWELS = MULTI_TLD_PROVIDERS.map(provider => ({
  ...provider,
  consonants: withoutLaterVowels(provider.name),
}))

/**
 * In names up to this length, a missing and a wrong letter make another name: `gaol` is not
 * `gmail`.
 */
const SHORT_NAME_LENGTH = 5

function nearest(name: string): string | null {
  const { first, ending } = split(name)
  if (isKnownSimilarDomain(first)) return null
  let best: string | null = null
  let bestDistance = Number.POSITIVE_INFINITY
  const letters = lettersOf(first)
  for (const candidate of CANDIDATES) {
    const least = minimumDistance(first.length, letters, candidate.length, candidate.letters)
    if (least > candidate.distanceMax) continue
    const { provider: knownProvider, tail } = candidate
    const distanceMax =
      tail !== null && first.endsWith(tail) ? candidate.distanceMax : knownProvider.distanceMax
    if (least > distanceMax) continue
    // Most names have an ending that the provider does not use, so they need no distance.
    const intended = intendedDomain(knownProvider, ending, name)
    if (intended === null && !UNIQUE_NAMES.has(knownProvider.name)) continue
    const byName = typoDistance(first, knownProvider.name, distanceMax)
    if (!resembles(first, knownProvider, byName)) continue
    const tld = intended ?? endingOfUniqueName(knownProvider, ending, byName)
    // The closer ending decides between providers of the same name, such as gmx.de and gmx.net.
    const distance = byName + typoDistance(ending, knownProvider.ending) / 10
    if (tld !== null && distance < bestDistance)
      [best, bestDistance] = [`${knownProvider.name}.${tld}`, distance]
  }
  return best === null ? null : differs(name, best)
}

/** Two letters are other initials than three. */
const INITIALS_LENGTH = 3

function resembles(first: string, provider: KnownProvider, distance: number): boolean {
  const { name, distanceMax } = provider
  if (distance > TYPO_COST && isCutShort(first, name)) return false
  if (name.length <= INITIALS_LENGTH && first.length < name.length) return false
  if (distance <= distanceMax) return true
  return allowsFirstLetter(provider) && isOneTypo(first, name)
}

/**
 * Whether letters of the name are missing beyond a plausible typo. A missing first letter is
 * allowed, because its cost is high already, and so is one missing letter with the others
 * reordered: `yhao` is `yahoo`.
 */
function isCutShort(first: string, name: string): boolean {
  if (first.charAt(0) !== name.charAt(0)) return false
  const lost = name.length - first.length
  if (lost === 1 && [...first].every(letter => name.includes(letter))) return false
  return lost > (name.length <= SHORT_NAME_LENGTH ? 0 : 1)
}

/** Returns the ending of a unique name for its country, if it has one: `hotmail.uk`; else the default. */
function endingOfUniqueName(
  { ending: usual, endings }: KnownProvider,
  typed: string,
  distance: number,
): string | null {
  if (distance > TYPO_COST) return null
  const country = typed.slice(typed.lastIndexOf('.') + 1)
  return endings.find(real => real.endsWith(`.${country}`) || real === country) ?? usual
}
