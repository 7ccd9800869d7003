import { BlockList, isIP } from 'node:net'

/**
 * Normalizes an IP address for comparison and display: unmaps IPv4-mapped IPv6, drops the zone.
 * Returns null if the text is not an IP address.
 */
export function plainIp(text: string): string | null {
  if (isIP(text) === 4) return text
  const ip = MAPPED.exec(text)?.[1] ?? text.replace(/%.*/s, '')
  return isIP(ip) === 0 ? null : ip
}

/** IPv4-mapped IPv6, as Node reports IPv4 clients of a dual-stack socket. */
const MAPPED = /^::ffff:(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i

/** Whether a text is an IPv4 or IPv6 address or CIDR. */
export function isIpRange(text: string): boolean {
  const [, ip = '', bits] = RANGE.exec(text) ?? []
  const family = isIP(ip)
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128)
}

const RANGE = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/

/** Returns a test for whether a plain IP is in one of the ranges. Invalid ranges are ignored. */
export function inRanges(ranges: readonly string[]): (ip: string) => boolean {
  if (ranges.length === 0) return () => false
  // One list per family: a BlockList matches every IPv4 address against ::/0.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const range of ranges.filter(isIpRange)) {
    const [ip = ''] = range.split('/')
    const family = isIP(ip) === 4 ? 'ipv4' : 'ipv6'
    lists[family].addSubnet(ip, prefixLength(range), family)
  }
  return ip => {
    const version = isIP(ip)
    if (version === 0) return false
    const family = version === 4 ? 'ipv4' : 'ipv6'
    return lists[family].check(ip, family)
  }
}

/** Whether the range `inner` is a subset of `outer`. Both must pass `isIpRange`. */
export function containsRange(outer: string, inner: string): boolean {
  const [ip = ''] = inner.split('/')
  return (
    ipFamily(outer) === ipFamily(inner) &&
    prefixLength(outer) <= prefixLength(inner) &&
    inRanges([outer])(ip)
  )
}

const ipFamily = (range: string) => isIP(range.split('/')[0] ?? '')
const prefixLength = (range: string) =>
  Number(range.split('/')[1] ?? (ipFamily(range) === 4 ? 32 : 128))

/**
 * Returns the rate limit key of an address: the address itself for IPv4, the /64 for IPv6, as a
 * client usually controls a whole /64.
 */
export function rateLimitIp(ip: string): string {
  return isIP(ip) === 6 ? `${groupsOf(ip).slice(0, 4).join(':')}::/64` : ip
}

/** Returns the eight groups of an IPv6 address without a zone, in lower case without zeros ahead. */
function groupsOf(ip: string): string[] {
  const [head = '', tail] = ip.toLowerCase().replace(DOTTED, toGroups).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].map(group => group.replace(/^0+(?=.)/, ''))
}

/** Returns the IPv4 address in the last two of eight groups. */
function lastIpv4(groups: readonly string[]): string {
  const bits = groups.slice(6).map(group => Number.parseInt(group, 16))
  return bits.flatMap(both => [both >> 8, both & 0xff]).join('.')
}

/**
 * Returns the parts of an IP address in any notation: four octets, also of an IPv4-mapped address, or
 * 32 hexadecimal digits. Returns null if the text is not an IP address.
 */
export function splitIp(text: string): string[] | null {
  const ip = plainIp(text)
  if (ip === null) return null
  if (isIP(ip) === 4) return ip.split('.')
  const groups = groupsOf(ip)
  return groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff'
    ? lastIpv4(groups).split('.')
    : groups.flatMap(group => [...group.padStart(4, '0')])
}

export const isIpv6 = (text: string): boolean => splitIp(text)?.length === 32

/** Compares two IP addresses in any notation. A text that is none equals nothing. */
export function isSameIp(one: string, other: string): boolean {
  const parts = splitIp(one)
  return parts !== null && parts.join('.') === splitIp(other)?.join('.')
}

/** The last two groups may be written as an IPv4 address (RFC 4291 §2.2). */
const DOTTED = /(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/
const toGroups = (_: string, ...bytes: unknown[]) => {
  const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/**
 * Returns the IPv4 address that a NAT64 translates an address to: the last 32 bits in the
 * well-known prefix 64:ff9b::/96 (RFC 6052 §2.1), which DNS64 uses. Null for all others.
 */
export function nat64Ipv4(ip: string): string | null {
  if (!/^0*64:/.test(ip) || isIP(ip) !== 6) return null
  const groups = groupsOf(ip)
  return groups.slice(0, 6).join(':') === '64:ff9b:0:0:0:0' ? lastIpv4(groups) : null
}

/** Returns the network of an address: its /24 for IPv4, also behind a NAT64, its /64 for IPv6. */
export function networkOf(ip: string): string {
  const ipv4 = isIP(ip) === 4 ? ip : nat64Ipv4(ip)
  return ipv4 === null ? rateLimitIp(ip) : `${ipv4.slice(0, ipv4.lastIndexOf('.'))}.0/24`
}

const LOOPBACK_RANGES = ['127.0.0.0/8', '::1'] as const

/** Whether a plain IP is a loopback address (RFC 1122 §3.2.1.3 (g), RFC 4291 §2.5.3). */
export function isLoopback(ip: string): boolean {
  // Each request asks, and a BlockList creates an object for each address.
  if (isIP(ip) === 4) return ip.startsWith('127.')
  loopback ??= inRanges(LOOPBACK_RANGES)
  return loopback(ip)
}

/** Built on first use: the pattern of node:net for IPv6 addresses takes 5 ms to compile. */
let loopback: ((ip: string) => boolean) | undefined

/** Whether the host name of a URL is this machine. */
export const isLoopbackHost = (host: string): boolean =>
  host.toLowerCase() === 'localhost' || isLoopback(host.replace(/^\[|\]$/g, ''))
