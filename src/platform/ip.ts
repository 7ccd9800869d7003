import { BlockList, isIP } from 'node:net'

/** An IP address as it is compared and shown: IPv4 out of its IPv6 mapping, no zone; null: the text is none. */
export function plainIp(text: string): string | null {
  const ip = MAPPED.exec(text)?.[1] ?? text.replace(/%.*$/, '')
  return isIP(ip) === 0 ? null : ip
}

/** How Node names an IPv4 client of a socket that takes both. */
const MAPPED = /^::ffff:(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i

/** Whether a text is an address or a CIDR, IPv4 or IPv6. */
export function isIpRange(text: string): boolean {
  const [, ip = '', bits] = RANGE.exec(text) ?? []
  const family = isIP(ip)
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128)
}

const RANGE = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/

/** Tells whether a plain IP lies in one of these ranges; what is no range counts for nothing. */
export function inRanges(ranges: readonly string[]): (ip: string) => boolean {
  // One list for each family: a BlockList takes every IPv4 address for one of ::/0.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const range of ranges.filter(isIpRange)) {
    const [ip = ''] = range.split('/')
    const family = isIP(ip) === 4 ? 'ipv4' : 'ipv6'
    lists[family].addSubnet(ip, bitsOf(range), family)
  }
  return ip => {
    const family = isIP(ip) === 4 ? 'ipv4' : 'ipv6'
    return isIP(ip) !== 0 && lists[family].check(ip, family)
  }
}

/** Whether every address of the range `inner` lies in the range `outer`. Both are ranges by `isIpRange`. */
export function containsRange(outer: string, inner: string): boolean {
  const [ip = ''] = inner.split('/')
  return (
    familyOf(outer) === familyOf(inner) && bitsOf(outer) <= bitsOf(inner) && inRanges([outer])(ip)
  )
}

const familyOf = (range: string) => isIP(range.split('/')[0] ?? '')
const bitsOf = (range: string) => Number(range.split('/')[1] ?? (familyOf(range) === 4 ? 32 : 128))

/**
 * What limits count an address by: an IPv4 address itself; of an IPv6 address its first 64 bits, as whoever has
 * one address has all of those.
 */
export function countedIp(ip: string): string {
  if (isIP(ip) !== 6) return ip
  const [head = '', tail] = ip.toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  // Two groups of an address may be written as an IPv4 address, which is in its last 64 bits then.
  const length = left.length + right.length + (ip.includes('.') ? 1 : 0)
  const groups = tail === undefined ? left : [...left, ...Array(8 - length).fill('0'), ...right]
  return `${groups
    .slice(0, 4)
    .map(group => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

/** The network of an address: the first 24 bits of IPv4, the first 64 of IPv6. */
export const networkOf = (ip: string): string =>
  isIP(ip) === 4 ? ip.replace(/\d+$/, '0/24') : countedIp(ip)
