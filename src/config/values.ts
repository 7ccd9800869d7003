import { isIP } from 'node:net'
import { DAY, SECOND } from '../platform/clock.ts'
import { parseUrl } from '../platform/url.ts'

/** A value is invalid. The message is a phrase that describes the allowed values. */
export class Expected extends Error {}

/** Returns a parser that accepts texts as they are; `takes` describes the allowed ones. */
const fitting =
  (takes: string, fits: (input: string) => boolean) =>
  (input: string): string => {
    if (fits(input)) return input
    throw new Expected(takes)
  }

export const text = fitting('a non-empty text', input => input.trim() !== '')

export function list(input: string): string[] {
  const parts = input.split(',').map(part => part.trim())
  if (parts.some(part => part === '')) throw new Expected('a comma-separated list such as a,b')
  return parts
}

const listOf =
  (takes: string, fits: (part: string) => boolean) =>
  (input: string): readonly string[] => {
    const all = list(input)
    if (all.every(fits)) return all
    throw new Expected(takes)
  }

/** Parses DNS servers: IP addresses with an optional port. */
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

/** More would make the check itself a load on the DNS server. */
const CHECK_NAMES_MAX = 10

/** Parses domain names; returns none for `off`. */
export function checkNames(input: string): string[] {
  if (/^(false|off|0|no)$/i.test(input)) return []
  const names = list(input).map(name => name.toLowerCase().replace(/\.$/, ''))
  if (names.length > CHECK_NAMES_MAX || !names.every(name => HOST_NAME.test(name))) {
    throw new Expected(
      `off, or up to ${CHECK_NAMES_MAX} domain names such as gmail.com,outlook.com`,
    )
  }
  return names
}

/** Parses IPv4 and IPv6 addresses and CIDRs. */
export const ranges = listOf('IP addresses or CIDRs such as 10.0.0.0/8 or fd00::/8', isRange)

function isRange(text: string): boolean {
  const [, address = '', bits = '0'] = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && Number(bits) <= (family === 4 ? 32 : 128)
}

export const proxy = fitting('socks5://host:port or socks5://user:password@host:port', input => {
  const url = parseUrl(input)
  return url !== null && /^socks5h?:$/.test(url.protocol) && url.hostname !== ''
})

export function onOff(input: string): boolean {
  if (/^(true|on|1|yes)$/i.test(input)) return true
  if (/^(false|off|0|no)$/i.test(input)) return false
  throw new Expected('on or off')
}

const between =
  (kind: string, form: RegExp) =>
  (min: number, max: number) =>
  (input: string): number => {
    const value = Number(input)
    if (form.test(input) && value >= min && value <= max) return value
    throw new Expected(`${kind} from ${min} to ${max}`)
  }

export const number = between('a number', /\S/)
export const integer = between('a whole number', /^\d+$/)

export const seconds = (input: string): number => number(0, 86_400)(input) * SECOND
/** Parses MB to bytes; at most a petabyte. */
export const megabytes = (input: string): number => integer(0, 1_000_000_000)(input) * MEGABYTE
/** Parses days to ms; at most ten years. */
export const days = (input: string): number => number(0, 3_650)(input) * DAY

export const MEGABYTE = 1_000_000

export const oneOf =
  <T extends string>(...words: readonly T[]) =>
  (input: string): T => {
    const word = words.find(one => one === input)
    if (word === undefined) throw new Expected(words.join(', '))
    return word
  }

/** Parses a list of these words. */
export const someOf =
  <T extends string>(...words: readonly T[]) =>
  (input: string): readonly T[] =>
    list(input).map(part => {
      const word = words.find(one => one === part)
      if (word === undefined) throw new Expected(`a list of ${words.join(', ')}`)
      return word
    })

export const word = fitting('a short name such as office', input =>
  /^[a-z0-9][a-z0-9._-]{0,62}$/i.test(input),
)

export const ip = fitting('an IP address such as 192.0.2.1', input => isIP(input) !== 0)

const HOST_NAME = /^(?=.{1,255}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i

/** A domain name or an address literal (RFC 5321 §4.1.1.1). Validated, as it is sent in EHLO. */
export const heloName = fitting(
  'a host name such as probe.example.com',
  input => HOST_NAME.test(input) || /^\[[0-9a-f:.IPv]+\]$/i.test(input),
)

export const sender = (input: string): string => bareSender(input.replace(/^<(.*)>$/, '$1').trim())

const bareSender = fitting(
  'an address such as probe@example.com, or <>',
  // Printable ASCII without <, > and spaces, which would end the path of the MAIL command.
  bare => bare === '' || /^[!-;=?-~]{1,64}@[a-z0-9.-]{1,255}$/i.test(bare),
)

/** A mailbox for mail headers: a dot-atom local part, which needs no quoting there. */
export const mailbox = fitting('an address such as ops@example.com', input => {
  const atoms = /^(?=.{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@(.+)$/
  return HOST_NAME.test(atoms.exec(input)?.[2] ?? '')
})

/** URL of a mail server that relays our mail, with optional credentials. */
export const smtpUrl = fitting(
  'smtp://host:port or smtps://user:password@host:port, with %23 for a # in a password, %2F for a /, and so on',
  input => {
    const url = parseUrl(input)
    return url !== null && isMailServer(url)
  },
)

/** An unencoded # or / in the password yields a URL with a path or a hash, which is refused. */
function isMailServer({ protocol, hostname, pathname, search, hash, username, password }: URL) {
  const isHost = HOST_NAME.test(hostname) || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0
  const isBare = (pathname === '' || pathname === '/') && search === '' && hash === ''
  const isLogin = (username === '') === (password === '')
  return /^smtps?:$/.test(protocol) && isHost && isBare && isLogin && isEncoded(username + password)
}

/** Whether all percent-encodings are valid and none is a control character. */
function isEncoded(text: string): boolean {
  try {
    return !/\p{Cc}/u.test(decodeURIComponent(text))
  } catch {
    return false
  }
}

/** A SQLite file, or a PostgreSQL database, which several machines may share. */
export const databaseUrl = fitting(
  'sqlite:FILE or postgres://USER:PASSWORD@HOST/NAME, with %23 for a # in a password, %2F for a /, and so on',
  input => /^sqlite:./.test(input) || isServerUrl(input),
)

/** An unencoded character of the password usually yields a URL without a database name. */
function isServerUrl(input: string): boolean {
  const url = parseUrl(input)
  if (!/^postgres(ql)?:\/\/[^/]/.test(input) || url === null) return false
  const { hostname, pathname, hash, username, password } = url
  const isNamed = /^\/[^/]+$/.test(pathname) && isEncoded(pathname)
  return hostname !== '' && isNamed && hash === '' && isEncoded(username + password)
}

/** Parses HOST:PORT; an IPv6 address is in brackets. Port 0 means any free port. */
export function hostPort(input: string): { readonly host: string; readonly port: number } {
  const [, v6, name, port = ''] = /^(?:\[([^\]]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(input) ?? []
  const isHost = v6 === undefined ? name !== undefined : isIP(v6) === 6
  if (!isHost || Number(port) > 65_535) {
    throw new Expected('HOST:PORT such as 127.0.0.1:8080, 0.0.0.0:443 or [::1]:8080')
  }
  return { host: (v6 ?? name) as string, port: Number(port) }
}

/** Formats a host and a port as `hostPort` parses them. */
export const formatEndpoint = ({ host, port }: ReturnType<typeof hostPort>): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`

/** Parses a host to listen on; brackets around an IPv6 address are removed. */
export function listenHost(input: string): string {
  const bare = input.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) !== 0 || HOST_NAME.test(input)) return bare
  throw new Expected('a host name or an IP address such as 127.0.0.1, 0.0.0.0 or ::1')
}

export function endpoint(input: string): string {
  hostPort(input)
  return input
}

/** Without a path: those of the API and the dashboard begin at the host. */
export function baseUrl(input: string): string {
  const url = parseUrl(input)
  const isBare = url !== null && /^https?:$/.test(url.protocol) && /^\/+$/.test(url.pathname)
  if (!isBare || `${url.username}${url.password}${url.search}${url.hash}` !== '') {
    throw new Expected('https://host such as https://ev.example.com, without a path')
  }
  return url.origin
}

/** The issuer identifier of an OpenID provider (OpenID Connect Discovery 1.0 §3). */
export const issuer = fitting(
  'https://host or https://host/path, as "issuer" in the metadata of the provider, without /.well-known/…',
  input => {
    const url = parseUrl(input)
    if (url === null || /[\s\p{Cc}]/u.test(input) || url.pathname.includes('/.well-known/'))
      return false
    const isBare = url.username === '' && url.password === '' && !/[?#]/.test(input)
    return isBare && (url.protocol === 'https:' || isLoopbackUrl(url))
  },
)

/** Plain HTTP is for tests. The policy of addresses still applies. */
const isLoopbackUrl = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/** RFC 6749 §A.1: printable ASCII. */
export const clientId = fitting('1 to 500 letters, digits and symbols, without spaces', input =>
  /^[!-~]{1,500}$/.test(input),
)

/** A name that fits on a button. */
export const shortName = fitting('a name of 1 to 40 characters, such as Example Login', input =>
  /^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,40}$/u.test(input),
)

/** Shorter secrets can be guessed. */
const SECRET_LENGTH_MIN = 16

export const secret = fitting(
  `at least ${SECRET_LENGTH_MIN} letters, digits and symbols, without spaces`,
  input => new RegExp(`^[!-~]{${SECRET_LENGTH_MIN},1024}$`).test(input),
)

/** Returns a URL without its password, for display. */
export const withoutPassword = (url: string): string =>
  url.replace(/^([a-z0-9+.-]+:\/\/).*@/is, '$1…@').replace(/([?&](?:ssl)?password=)[^&#]*/gi, '$1…')

/** Whether a URL contains a password: before the host, or as a query parameter of PostgreSQL. */
export function hasPassword(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { password, searchParams } = new URL(url)
  return password !== '' || searchParams.has('password') || searchParams.has('sslpassword')
}
