import { FAR_ADDED, TYPO_COST, typoDistance } from './typo-distance.ts'
import { hasRegisteredTld } from './typo-tld.ts'

/** A provider whose name people mistype every day. */
type KnownProvider = {
  /** The first label: `gmail`. */
  readonly name: string
  /** What follows it, if nothing better is known: `com`. */
  readonly ending: string
  /** Other endings that the provider really has. */
  readonly endings: readonly string[]
  /** How many slips (see slip.ts) a guess may lie away: more for long names that little else resembles. */
  readonly distanceMax: number
}

/** The great ones: what stands a single slip beside them lives on such slips, so it is a listed typo. */
export const MULTI_TLD_PROVIDERS: readonly KnownProvider[] = [
  { name: 'gmail', ending: 'com', endings: [], distanceMax: 2.25 },
  { name: 'googlemail', ending: 'com', endings: [], distanceMax: 3 },
  { name: 'icloud', ending: 'com', endings: [], distanceMax: 1.5 },
  { name: 'protonmail', ending: 'com', endings: ['ch'], distanceMax: 2 },
  {
    name: 'hotmail',
    ending: 'com',
    endings:
      `be ca ch co.id co.il co.in co.jp co.kr co.nz co.th co.uk co.za com.ar com.au com.br com.hk
      com.mx com.tr com.tw cz de dk es fi fr gr hu it jp my nl no ph rs ru se sg`.split(/\s+/),
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

/** Providers with one domain, and names that no common word resembles. */
const DISTINCT = `comcast.net verizon.net sbcglobal.net bellsouth.net earthlink.net mindspring.com optonline.net
  windstream.net centurylink.net suddenlink.net roadrunner.com netzero.net prodigy.net ameritech.net
  embarqmail.com frontiernet.net btinternet.com btopenworld.com virginmedia.com blueyonder.co.uk
  ntlworld.com talktalk.net rocketmail.com hushmail.com tutanota.com fastmail.com sympatico.ca
  videotron.ca bigpond.com optusnet.com.au wanadoo.fr laposte.net club-internet.fr t-online.de
  freenet.de virgilio.it libero.it tiscali.it telefonica.net yandex.ru rambler.ru rediffmail.com
  hanmail.net seznam.cz bluewin.ch telenet.be skynet.be kpnmail.nl interia.pl charter.net`

/** Too short to guess at, but a broken ending or a lost dot still shows them. */
const SHORT = `me.com mac.com mail.com gmx.com gmx.de gmx.net web.de zoho.com
  cox.net att.net shaw.ca rogers.com free.fr orange.fr sfr.fr mail.ru bk.ru inbox.ru list.ru ya.ru qq.com
  163.com 126.com sina.com daum.net nate.com naver.com wp.pl o2.pl onet.pl abv.bg ukr.net alice.it
  tin.it juno.com sky.com proton.me pm.me tuta.com hey.com uol.com.br terra.com.br globo.com xtra.co.nz`

/** How far a guess may go, by the length of the name: the longer, the less else resembles it. */
const distanceMaxFor = (name: string) => (name.length >= 8 ? 2 : name.length === 7 ? 1.5 : 1)

const SINGLE_DOMAIN_PROVIDERS: readonly KnownProvider[] = [
  ...DISTINCT.split(/\s+/).map(domain =>
    single(domain, distanceMaxFor(domain.split('.', 1)[0] ?? '')),
  ),
  // One letter struck twice, and no more, is still theirs.
  ...['aol.com', 'live.com', 'msn.com'].map(domain => single(domain, 0.75)),
  single('ymail.com', 1),
  ...SHORT.split(/\s+/).map(domain => single(domain, 0)),
]

/** Real names within a few slips of a famous one: they are what they say, whatever their ending. */
const REAL_NEIGHBOURS: ReadonlySet<string> = new Set(
  `email mail gail grail gmx html cloud outlooks foxmail postmail homemail dotmail botmail boxmail popmail
  gotmail hotmart hotrail wahoo yoho yodo yazoo yakoo comcasts planet plant prontomail proton liberia libera
  liberi rambles ramble freenets skynets horizon`.split(/\s+/),
)
/** Every letter before `mail` has made a service, so none of them is a slip for another. */
const ONE_LETTER_MAIL = /^[a-z]mail$/

/** Whether a first label is a name of its own, however much it resembles a famous one. */
const isKnownSimilarDomain = (first: string): boolean =>
  REAL_NEIGHBOURS.has(first) || (ONE_LETTER_MAIL.test(first) && first !== 'gmail')

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
  if (isKnownSimilarDomain(first)) return null
  for (const family of MULTI_TLD_PROVIDERS) {
    // People add a plural, too: `hotmails.com`.
    if (first !== `${family.name}s` && typoDistance(first, family.name, TYPO_COST) > TYPO_COST)
      continue
    const intended = intendedDomain(family, ending, name)
    if (intended !== null) return differs(name, `${family.name}.${intended}`)
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
  return MULTI_TLD_PROVIDERS.some(
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

const differs = (name: string, intended: string) => (intended === name ? null : intended)

/** The ending that belongs behind a famous name for the one that was typed, or null if that may be another's domain. */
function intendedDomain(knownProvider: KnownProvider, ending: string, name: string): string | null {
  if (ending === knownProvider.ending || knownProvider.endings.includes(ending)) return ending
  if (MISTAKEN_ENDINGS[knownProvider.ending]?.includes(ending)) return knownProvider.ending
  if (hasRegisteredTld(name)) return null
  return nearestTld(knownProvider, ending)
}

/** An ending this near the provider's first one means that, whatever else it resembles. */
const FIRST_TLD_DISTANCE_MAX = 2 * TYPO_COST

/** Of the provider's endings the one that an ending which does not exist resembles; when in doubt the first. */
function nearestTld(knownProvider: KnownProvider, ending: string): string {
  const joined = ending.replaceAll('.', '')
  const far = (real: string) => typoDistance(joined, real.replaceAll('.', ''), FAR_ADDED)
  const exact = knownProvider.endings.find(real => far(real) === 0)
  if (exact !== undefined) return exact
  if (typoDistance(`.${joined}`, `.${knownProvider.ending}`) <= FIRST_TLD_DISTANCE_MAX)
    return knownProvider.ending
  return knownProvider.endings.find(real => far(real) <= FAR_ADDED) ?? knownProvider.ending
}

const ALL = [...MULTI_TLD_PROVIDERS, ...SINGLE_DOMAIN_PROVIDERS]
const domainOf = ({ name, ending }: KnownProvider) => `${name}.${ending}`
const squeezed = (knownProvider: KnownProvider) => domainOf(knownProvider).replaceAll('.', '')
const SQUEEZED = new Map(
  ALL.flatMap(knownProvider =>
    [knownProvider.ending, ...knownProvider.endings].map(ending => {
      const domain = `${knownProvider.name}.${ending}`
      return [domain.replaceAll('.', ''), domain] as const
    }),
  ),
)

/** The famous domain meant by a word without a dot: `gmail`, `gmailcom`, `yaho`; else null. */
export function domainNamed(word: string): string | null {
  const exact = SQUEEZED.get(word.replaceAll('-', ''))
  if (exact !== undefined) return exact
  const found =
    ALL.find(knownProvider => hasKeyForDot(word, knownProvider)) ??
    MULTI_TLD_PROVIDERS.find(({ name }) => typoDistance(word, name, TYPO_COST) <= TYPO_COST) ??
    MULTI_TLD_PROVIDERS.find(family => typoDistance(word, squeezed(family), TYPO_COST) <= TYPO_COST)
  return found === undefined ? null : domainOf(found)
}

/** `aollcom`: a key beside the dot was struck. */
const hasKeyForDot = (word: string, { name, ending }: KnownProvider) =>
  word.length === name.length + 1 + ending.length && word.startsWith(name) && word.endsWith(ending)

/** The domains of the great providers, such as `gmail.com`. */
export const knownProviderDomains = (): string[] => MULTI_TLD_PROVIDERS.map(domainOf)

/** `gmailc.om`, `verizonn.et`, `hot.mail.com`, `www.gmail.com`. */
function movedDot(name: string): string | null {
  const found = SQUEEZED.get(name.replace(/^www\./, '').replaceAll('.', ''))
  return found === undefined ? null : differs(name, found)
}

/** `gmail.com.com`, `hotmail.com.net`: a great name with an ending after its ending; not `yahoo.com.ve`, a real one. */
function trailingLabel(name: string): string | null {
  const found = MULTI_TLD_PROVIDERS.find(family => name.startsWith(`${domainOf(family)}.`))
  if (found === undefined) return null
  const extra = name.slice(domainOf(found).length + 1)
  const isExtra = ['com', 'net', 'org'].includes(extra) || !hasRegisteredTld(name)
  return isExtra || COM_ALONE.has(found.name) ? domainOf(found) : null
}

/** `yahoomail.com`, `gmailyahoo.com`: two names in one go; the first is meant. */
function runTogether(name: string): string | null {
  const { first, ending } = split(name)
  const family = MULTI_TLD_PROVIDERS.find(
    ({ name: great }) => first.startsWith(great) && first !== great,
  )
  if (family === undefined || ending !== family.ending) return null
  const rest = first.slice(family.name.length)
  const other = ['mail', ...MULTI_TLD_PROVIDERS.map(great => great.name)]
  return other.some(great => typoDistance(rest, great, TYPO_COST) <= TYPO_COST)
    ? domainOf(family)
    : null
}

/** A shorter rest may be any name: `gml`. */
const CONSONANTS_MIN = 4
const withoutLaterVowels = (name: string) => name.charAt(0) + name.slice(1).replace(/[aeiou]/g, '')

/** `icld.com`, `otlk.com`: a large provider without the vowels after the first letter. */
function withoutVowels(name: string): string | null {
  const { first, ending } = split(name)
  if (first.length < CONSONANTS_MIN || isKnownSimilarDomain(first)) return null
  const family = MULTI_TLD_PROVIDERS.find(
    great => great.ending === ending && withoutLaterVowels(great.name) === first,
  )
  return family === undefined ? null : domainOf(family)
}

/** Below this a name says so little that a letter lost and another wrong make another name: `gaol` is not `gmail`. */
const SHORT_NAME_LENGTH = 5

function nearest(name: string): string | null {
  const { first, ending } = split(name)
  if (isKnownSimilarDomain(first)) return null
  let best: string | null = null
  let bestDistant = Number.POSITIVE_INFINITY
  for (const knownProvider of ALL) {
    const byName = typoDistance(first, knownProvider.name, knownProvider.distanceMax)
    if (
      byName > knownProvider.distanceMax ||
      (byName > TYPO_COST && isCutShort(first, knownProvider.name))
    )
      continue
    const behind = intendedDomain(knownProvider, ending, name) ?? extraEnding(knownProvider, byName)
    // The nearer ending decides between namesakes such as gmx.de and gmx.net.
    const far = byName + typoDistance(ending, knownProvider.ending) / 10
    if (behind !== null && far < bestDistant)
      [best, bestDistant] = [`${knownProvider.name}.${behind}`, far]
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

const extraEnding = (knownProvider: KnownProvider, byName: number) =>
  UNMISTAKABLE.has(knownProvider.name) && byName <= TYPO_COST ? knownProvider.ending : null
