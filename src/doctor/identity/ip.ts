/** An IP address as a number, to compare and to take apart. */
export type Ip = { readonly value: bigint; readonly bits: 32 | 128 }

export const isIpv6 = (ip: string): boolean => parseIp(ip)?.bits === 128

/** Reads an IP address of either family; an IPv4 address mapped into IPv6 is read as IPv4. Null where it is none. */
export function parseIp(text: string): Ip | null {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

/** Whether both are one address, however they are written; what is no address is the same as nothing. */
export function isSameIp(one: string, other: string): boolean {
  const [a, b] = [parseIp(one), parseIp(other)]
  return a !== null && b !== null && a.bits === b.bits && a.value === b.value
}

/** `1.2.0.192`, or the 32 nibbles of an IPv6 address: as reverse names and block lists have it (RFC 3596 §2.5, RFC 5782 §2). */
export function reversed(ip: string): string {
  return partsOf(ip).toReversed().join('.')
}

/** The name under which the PTR record of an address stands. */
export const reverseZoneName = (ip: string): string =>
  `${reversed(ip)}.${isIpv6(ip) ? 'ip6' : 'in-addr'}.arpa`

/** Octets in decimal, or nibbles. */
export function partsOf(ip: string): string[] {
  const parsed = parseIp(ip)
  if (parsed === null) return []
  const { value, bits } = parsed
  if (bits === 128) return value.toString(16).padStart(32, '0').split('')
  return [24n, 16n, 8n, 0n].map(shift => `${(value >> shift) & 255n}`)
}

function parseIpv4(text: string): Ip | null {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return null
  const octets = text.split('.').map(Number)
  if (octets.some(octet => octet > 255)) return null
  return { value: octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n), bits: 32 }
}

function parseIpv6(text: string): Ip | null {
  // The URL parser knows every way of writing one, and writes it as groups of hexadecimal digits.
  const url = `http://[${text}]/`
  if (!/^[0-9a-f:.]+$/i.test(text) || !URL.canParse(url)) return null
  const [head = '', tail] = new URL(url).hostname.slice(1, -1).split('::')
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')]
  const zeros = Array(8 - before.length - after.length).fill('0')
  const groups = [...before, ...(tail === undefined ? [] : zeros), ...after]
  const value = BigInt(`0x${groups.map(group => group.padStart(4, '0')).join('')}`)
  return value >> 32n === MAPPED ? { value: value & 0xffffffffn, bits: 32 } : { value, bits: 128 }
}

/** RFC 4291 §2.5.5.2: ::ffff:0:0/96. */
const MAPPED = 0xffffn

const groupsOf = (text: string) => text.split(':').filter(group => group !== '')
