import { isIP } from 'node:net'
import { DAY, SECOND } from '../platform/clock.ts'

/** What a setting takes, said to whoever gave it something else. */
export class Expected extends Error {}

/** Reads a text that fits as it is; `takes` says what fits. */
const fitting =
  (takes: string, fits: (given: string) => boolean) =>
  (given: string): string => {
    if (fits(given)) return given
    throw new Expected(takes)
  }

export const text = fitting('some text', given => given.trim() !== '')

export function list(given: string): string[] {
  const deps = given.split(',').map(part => part.trim())
  if (deps.some(part => part === '')) throw new Expected('a list with commas between, such as a,b')
  return deps
}

const listOf =
  (takes: string, fits: (part: string) => boolean) =>
  (given: string): readonly string[] => {
    const all = list(given)
    if (all.every(fits)) return all
    throw new Expected(takes)
  }

/** DNS servers: IP addresses, each with a port if need be. */
export const servers = listOf(
  'IP addresses such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:5353',
  isServer,
)

function isServer(text: string): boolean {
  if (text.includes('%')) return false // A zone names an interface; the resolver drops it.
  if (isIP(text) !== 0) return true
  const [, v6, v4, port] = /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d+))?$/.exec(text) ?? []
  if (isIP(v6 ?? v4 ?? '') !== (v6 === undefined ? 4 : 6)) return false
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
}

/** More would make the check of a DNS server a burden of its own. */
const CHECK_NAMES_MAX = 10

/** Domain names; none for `off`. */
export function checkNames(given: string): string[] {
  if (/^(false|off|0|no)$/i.test(given)) return []
  const names = list(given).map(name => name.toLowerCase().replace(/\.$/, ''))
  if (names.length > CHECK_NAMES_MAX || !names.every(name => HOST_NAME.test(name))) {
    throw new Expected(
      `off, or up to ${CHECK_NAMES_MAX} domain names such as gmail.com,outlook.com`,
    )
  }
  return names
}

/** Addresses and CIDRs, IPv4 and IPv6. */
export const ranges = listOf('IP addresses or CIDRs such as 10.0.0.0/8 or fd00::/8', isRange)

function isRange(text: string): boolean {
  const [, address = '', bits = '0'] = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && Number(bits) <= (family === 4 ? 32 : 128)
}

export const proxy = fitting('socks5://host:port or socks5://user:password@host:port', given => {
  const url = URL.parse(given)
  return url !== null && /^socks5h?:$/.test(url.protocol) && url.hostname !== ''
})

export function onOff(given: string): boolean {
  if (/^(true|on|1|yes)$/i.test(given)) return true
  if (/^(false|off|0|no)$/i.test(given)) return false
  throw new Expected('on or off')
}

const between =
  (what: string, form: RegExp) =>
  (min: number, max: number) =>
  (given: string): number => {
    const value = Number(given)
    if (form.test(given) && value >= min && value <= max) return value
    throw new Expected(`${what} from ${min} to ${max}`)
  }

export const number = between('a number', /\S/)
export const integer = between('a whole number', /^\d+$/)

export const seconds = (given: string): number => number(0, 86_400)(given) * SECOND
/** In bytes; at most a petabyte. */
export const megabytes = (given: string): number => integer(0, 1_000_000_000)(given) * MEGABYTE
/** Ten years is for ever. */
export const days = (given: string): number => number(0, 3_650)(given) * DAY

export const MEGABYTE = 1_000_000

export const oneOf =
  <T extends string>(...words: readonly T[]) =>
  (given: string): T => {
    const word = words.find(one => one === given)
    if (word === undefined) throw new Expected(words.join(', '))
    return word
  }

export const word = fitting('a short name such as office', given =>
  /^[a-z0-9][a-z0-9._-]{0,62}$/i.test(given),
)

export const ip = fitting('an IP address such as 192.0.2.1', given => isIP(given) !== 0)

const HOST_NAME = /^(?=.{1,255}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i

/** RFC 5321 §4.1.1.1: a domain name or an address literal; checked here, as it goes on the wire. */
export const heloName = fitting(
  'a host name such as probe.example.com',
  given => HOST_NAME.test(given) || /^\[[0-9a-f:.IPv]+\]$/i.test(given),
)

export const sender = (given: string): string => bareSender(given.replace(/^<(.*)>$/, '$1').trim())

const bareSender = fitting(
  'an address such as probe@example.com, or <>',
  // Printable ASCII without what would end the command's path: this goes on the wire.
  bare => bare === '' || /^[!-;=?-~]{1,64}@[a-z0-9.-]{1,255}$/i.test(bare),
)

/** An address of a person, as it goes into the head of a mail of ours: nothing in it needs quoting there. */
export const mailbox = fitting('an address such as ops@example.com', given => {
  const atoms = /^(?=.{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@(.+)$/
  return HOST_NAME.test(atoms.exec(given)?.[2] ?? '')
})

/** A mail server that takes mail of ours; it may ask for a name and a password. */
export const smtpUrl = fitting(
  'smtp://host:port or smtps://user:password@host:port, with %23 for a # in a password, %2F for a /, and so on',
  given => {
    const url = URL.parse(given)
    return url !== null && isMailServer(url)
  },
)

/** A character of a password that was left as it is, such as # or /, makes another URL: one with a path or the like. */
function isMailServer({ protocol, hostname, pathname, search, hash, username, password }: URL) {
  const isHost = HOST_NAME.test(hostname) || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0
  const isBare = (pathname === '' || pathname === '/') && search === '' && hash === ''
  const isLogin = (username === '') === (password === '')
  return /^smtps?:$/.test(protocol) && isHost && isBare && isLogin && isEncoded(username + password)
}

/** Whether each % stands before what it encodes, and nothing in it would end a line. */
function isEncoded(text: string): boolean {
  try {
    return !/\p{Cc}/u.test(decodeURIComponent(text))
  } catch {
    return false
  }
}

/** Where data is kept: in a file, or on a server of PostgreSQL that several machines may share. */
export const databaseUrl = fitting(
  'sqlite:FILE or postgres://USER:PASSWORD@HOST/NAME, with %23 for a # in a password, %2F for a /, and so on',
  given => /^sqlite:./.test(given) || isServerUrl(given),
)

/** A character of a password that was left as it is makes another URL, mostly one without the name of a database. */
function isServerUrl(given: string): boolean {
  const url = URL.parse(given)
  if (!/^postgres(ql)?:\/\/[^/]/.test(given) || url === null) return false
  const { hostname, pathname, hash, username, password } = url
  const isNamed = /^\/[^/]+$/.test(pathname) && isEncoded(pathname)
  return hostname !== '' && isNamed && hash === '' && isEncoded(username + password)
}

/** HOST:PORT in its two parts; a host that is an IPv6 address stands in brackets. Port 0: any that is free. */
export function hostPort(given: string): { readonly host: string; readonly port: number } {
  const [, v6, name, port = ''] = /^(?:\[([^\]]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(given) ?? []
  const isHost = v6 === undefined ? name !== undefined : isIP(v6) === 6
  if (!isHost || Number(port) > 65_535) {
    throw new Expected('HOST:PORT such as 127.0.0.1:8080, 0.0.0.0:443 or [::1]:8080')
  }
  return { host: (v6 ?? name) as string, port: Number(port) }
}

export function endpoint(given: string): string {
  hostPort(given)
  return given
}

export function baseUrl(given: string): string {
  const url = URL.parse(given)
  const isPlain = url !== null && url.username === '' && url.search === '' && url.hash === ''
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new Expected('https://host such as https://ev.example.com')
  }
  return url.href.replace(/\/+$/, '')
}

/** Shorter ones can be guessed. */
const SECRET_LENGTH_MIN = 16

export const secret = fitting(
  `at least ${SECRET_LENGTH_MIN} letters, digits and signs, without blanks`,
  given => new RegExp(`^[!-~]{${SECRET_LENGTH_MIN},1024}$`).test(given),
)
