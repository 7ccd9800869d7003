/** A provider whose name people mistype every day. */
export type KnownProvider = {
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

export const SINGLE_DOMAIN_PROVIDERS: readonly KnownProvider[] = [
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
export const isKnownSimilarDomain = (first: string): boolean =>
  REAL_NEIGHBOURS.has(first) || (ONE_LETTER_MAIL.test(first) && first !== 'gmail')
