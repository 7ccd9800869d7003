import { readFileSync } from 'node:fs'
import { EvError, errorMessage } from '../../platform/error.ts'

/** Built-in lists (tools/bake-lists.mjs): one name per line, ASCII, sorted by bytes. */
type ListName = 'disposable' | 'free' | 'role'

const NEWLINE = 0x0a
const bytesOf = new Map<ListName, Buffer>()

/**
 * Whether `name`, in lower case, is on the list. The file is read at the first lookup and searched
 * in place: a Set of 138,000 names would cost 60 ms and 15 MB at every start.
 */
export function isListed(list: ListName, name: string): boolean {
  if (list === 'role') return roleNames().has(name)
  const bytes = load(list)
  let low = 0
  let high = bytes.length
  while (low < high) {
    const start = lineStart(bytes, (low + high) >>> 1)
    const order = compareLine(bytes, start, name)
    if (order === 0) return true
    if (order > 0) high = start
    else low = nextLine(bytes, start)
  }
  return false
}

function lineStart(bytes: Buffer, at: number): number {
  let start = at
  while (start > 0 && bytes[start - 1] !== NEWLINE) start--
  return start
}

/** A loop, because for a dozen bytes a call of `indexOf` costs ten times as much. */
function nextLine(bytes: Buffer, at: number): number {
  let end = at
  while (end < bytes.length && bytes[end] !== NEWLINE) end++
  return end + 1
}

/** Compares the line at `start` with `name`; negative if the line sorts first. */
function compareLine(bytes: Buffer, start: number, name: string): number {
  for (let index = 0; index < name.length; index++) {
    const order = (bytes[start + index] ?? NEWLINE) - name.charCodeAt(index)
    if (order !== 0) return order
  }
  return bytes[start + name.length] === NEWLINE ? 0 : 1
}

/** Returns the name and its parent domains, longest first, without the last label alone. */
export function withParents(domain: string): string[] {
  const names: string[] = []
  let start = 0
  for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', start)) {
    names.push(domain.slice(start))
    start = dot + 1
  }
  return names
}

let roles: ReadonlySet<string> | undefined

/** The role list is short and used for every word of every address, so it is a Set (0.3 ms). */
function roleNames(): ReadonlySet<string> {
  roles ??= new Set(load('role').toString('latin1').trimEnd().split('\n'))
  return roles
}

/** Throws EvError if the lists are missing, as in a bundle without them. */
export function checkLists(): void {
  roleNames()
}

function load(list: ListName): Buffer {
  const known = bytesOf.get(list)
  if (known !== undefined) return known
  const bytes = readList(list)
  bytesOf.set(list, bytes)
  return bytes
}

function readList(list: ListName): Buffer {
  try {
    // A bundler may leave out the file, or `import.meta.url`.
    return readFileSync(new URL(`./lists/${list}.txt`, import.meta.url))
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `The built-in list ${list}.txt of evmail-engine cannot be read: ${errorMessage(cause)}. ` +
        'If a bundler made this program, mark evmail-engine as external and deploy node_modules with it. ' +
        'Otherwise, reinstall the package.',
      { cause },
    )
  }
}

/**
 * Privacy relays: aliases for one correspondent that forward to a real mailbox. People use them for
 * years, so they are never disposable. Includes subdomains (`ann.anonaddy.com`).
 */
export const RELAYS: ReadonlySet<string> = new Set([
  'privaterelay.appleid.com',
  'duck.com',
  'mozmail.com',
  'relay.firefox.com',
  ...['simplelogin.com', 'simplelogin.co', 'simplelogin.io', 'simplelogin.fr', 'aleeas.com'],
  ...['slmail.me', 'slmails.com', 'silomails.com', '8alias.com', '8shield.net', 'dralias.com'],
  ...['passmail.net', 'passmail.com', 'passinbox.com', 'passfwd.com'],
  ...['anonaddy.com', 'anonaddy.me', 'addy.io', 'addymail.com', '4wrd.cc', 'mailer.me'],
  'erine.email',
])

/**
 * Real providers that public disposable lists include by mistake; they take precedence over every
 * list.
 */
export const REAL_PROVIDERS: ReadonlySet<string> = new Set(
  `gmail.com googlemail.com google.com outlook.com hotmail.com live.com msn.com hotmail.co.uk hotmail.fr
  hotmail.de hotmail.it hotmail.es live.co.uk live.fr live.nl outlook.fr outlook.de outlook.es yahoo.com
  yahoo.co.uk yahoo.fr yahoo.de yahoo.it yahoo.es yahoo.co.jp yahoo.co.in yahoo.com.br yahoo.ca ymail.com
  rocketmail.com aol.com aol.de aol.co.uk aim.com icloud.com me.com mac.com proton.me protonmail.com
  protonmail.ch pm.me tuta.com tuta.io tutanota.com tutanota.de tutamail.com keemail.me fastmail.com
  fastmail.fm fastmail.net hey.com zoho.com zoho.eu zohomail.com zohomail.eu gmx.com gmx.net gmx.de gmx.at
  gmx.ch gmx.us gmx.co.uk gmx.fr mail.com email.com usa.com web.de freenet.de t-online.de arcor.de posteo.de
  posteo.net mailbox.org mail.de runbox.com hushmail.com startmail.com disroot.org riseup.net mailfence.com
  ctemplar.com migadu.com kolabnow.com countermail.com soverin.net vivaldi.net yandex.ru yandex.com ya.ru
  mail.ru bk.ru inbox.ru list.ru internet.ru rambler.ru ukr.net i.ua meta.ua qq.com foxmail.com 163.com
  126.com yeah.net sina.com sina.cn sohu.com aliyun.com 139.com 189.cn 21cn.com tom.com naver.com hanmail.net
  daum.net nate.com kakao.com docomo.ne.jp ezweb.ne.jp softbank.ne.jp au.com rediffmail.com rediff.com
  sify.com orange.fr wanadoo.fr free.fr sfr.fr neuf.fr laposte.net bbox.fr libero.it virgilio.it alice.it
  tin.it tiscali.it inwind.it iol.it poste.it telefonica.net terra.es uol.com.br bol.com.br terra.com.br
  ig.com.br globo.com globomail.com oi.com.br sapo.pt iol.pt wp.pl o2.pl onet.pl interia.pl gazeta.pl
  seznam.cz centrum.cz email.cz post.cz azet.sk zoznam.sk freemail.hu citromail.hu abv.bg mail.bg dir.bg
  inbox.lv one.lt telia.com spray.se bredband.net online.no home.no jubii.dk mail.dk bluewin.ch hispeed.ch
  skynet.be telenet.be proximus.be ziggo.nl kpnmail.nl planet.nl hetnet.nl xs4all.nl home.nl upcmail.nl
  comcast.net xfinity.com verizon.net att.net sbcglobal.net bellsouth.net cox.net charter.net spectrum.net
  optonline.net optimum.net earthlink.net mindspring.com juno.com netzero.net frontier.com windstream.net
  centurylink.net roadrunner.com rr.com twc.com shaw.ca rogers.com sympatico.ca bell.net telus.net
  videotron.ca btinternet.com btopenworld.com sky.com virginmedia.com virgin.net ntlworld.com talktalk.net
  blueyonder.co.uk tiscali.co.uk o2.co.uk bigpond.com bigpond.net.au optusnet.com.au iinet.net.au tpg.com.au
  xtra.co.nz walla.com walla.co.il netvision.net.il mail.ee hot.ee lycos.com excite.com inbox.com
  pobox.com sdf.org cock.li airmail.cc firemail.cc cock.email cock.lu memeware.net tfwno.gf waifu.club
  teknik.io lavabit.com gaggle.net mihanmail.ir sohu.net mailo.com net-c.com caramail.com safe-mail.net
  luukku.com kolumbus.fi elisanet.fi suomi24.fi saunalahti.fi forwardemail.net improvmx.com`.split(
    /\s+/,
  ),
)
