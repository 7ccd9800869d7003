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
  if (isIP(ip) !== 6) return ip
  const [head = '', tail] = ip.toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  // The last two groups may be written as an IPv4 address (RFC 4291 §2.2).
  const length = left.length + right.length + (ip.includes('.') ? 1 : 0)
  const groups = tail === undefined ? left : [...left, ...Array(8 - length).fill('0'), ...right]
  return `${groups
    .slice(0, 4)
    .map(group => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

/** Returns the network of an address: its /24 for IPv4, its /64 for IPv6. */
export const networkOf = (ip: string): string =>
  isIP(ip) === 4 ? `${ip.slice(0, ip.lastIndexOf('.'))}.0/24` : rateLimitIp(ip)

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
