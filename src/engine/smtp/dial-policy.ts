import { BlockList, isIP } from 'node:net'
import { EvError } from '../../platform/error.ts'
import { nat64Ipv4 } from '../../platform/ip.ts'

/**
 * Returns the policy that decides which IP may be dialed, by SMTP, webhooks and anything else:
 * global unicast addresses, and those in `allowRanges` (IPv4 and IPv6 addresses and CIDRs). It
 * takes an IP as text and denies everything else, such as a name. An IPv4-mapped address
 * (`::ffff:127.0.0.1`) is allowed only if a range contains its IPv4 address; an address behind a
 * NAT64 also if its IPv4 address is global (RFC 6052 §3.1), because a network with IPv6 alone reaches
 * IPv4 hosts through it. Throws `bad_config` for an invalid range.
 */
export function createIpPolicy(allowRanges: readonly string[]): (ip: string) => boolean {
  const allowed = new BlockList()
  for (const range of allowRanges) addRange(allowed, range)
  return ip => {
    const family = isIP(ip)
    // A zone (`fe80::1%lo`) names an interface of this machine, which BlockList does not handle.
    if (family === 0 || ip.includes('%')) return false
    // First, because a BlockList creates an object for each address.
    if (family === 4 && !isSpecialIpv4(ip)) return true
    if (allowed.check(ip, family === 4 ? 'ipv4' : 'ipv6')) return true
    const translated = nat64Ipv4(ip)
    if (translated !== null) return !isSpecialIpv4(translated)
    return family === 6 && GLOBAL_IPV6().check(ip, 'ipv6') && !SPECIAL_IPV6().check(ip, 'ipv6')
  }
}

function addRange(list: BlockList, range: string): void {
  const [, ip = '', prefix] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(range) ?? []
  const family = isIP(ip)
  const bits = family === 4 ? 32 : 128
  const length = prefix === undefined ? bits : Number(prefix)
  if (family === 0 || length > bits) {
    throw new EvError(
      'bad_config',
      `"${range}" is not an IP address or CIDR range. Use a value such as 10.0.0.0/8 or fd00::/8.`,
    )
  }
  list.addSubnet(ip, length, family === 4 ? 'ipv4' : 'ipv6')
}

/** Builds the list at first use, because it takes 3 ms and a run may dial nothing. */
function ranges(...texts: string[]): () => BlockList {
  let list: BlockList | undefined
  return () => {
    list ??= toBlockList(texts)
    return list
  }
}

function toBlockList(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) addRange(list, text)
  return list
}

/** The IANA IPv4 special-purpose registry (RFC 6890), multicast, and internal ranges of clouds. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network, RFC 791; 0.0.0.0 reaches this machine
  '10.0.0.0/8', // private, RFC 1918
  '100.64.0.0/10', // carrier-grade NAT, RFC 6598; metadata of Alibaba
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's host, reachable from every virtual machine there
  '169.254.0.0/16', // link-local, RFC 3927; metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocols, RFC 6890; metadata of Oracle
  '192.0.2.0/24', // documentation, RFC 5737
  '192.31.196.0/24', // AS112, RFC 7535: a sink for queries
  '192.52.193.0/24', // AMT relays, RFC 7450
  '192.88.99.0/24', // 6to4 relays, RFC 7526
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112, RFC 7534
  '198.18.0.0/15', // benchmarks, RFC 2544
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved; 255.255.255.255 is broadcast
].map(range => {
  const [ip = '', length] = range.split('/')
  return { first: toNumber(ip), size: 2 ** (32 - Number(length)) }
})

/** Whether a valid IPv4 address is in one of these ranges. */
function isSpecialIpv4(ip: string): boolean {
  const address = toNumber(ip)
  return SPECIAL_IPV4.some(({ first, size }) => address >= first && address < first + size)
}

/** Returns the 32 bits of a valid IPv4 address as a number. */
function toNumber(ip: string): number {
  return ip.split('.').reduce((bits, part) => bits * 256 + Number(part), 0)
}

/**
 * All that IANA assigns as global unicast. This excludes ::, ::1, IPv4-compatible ::/96, mapped
 * ::ffff:0:0/96, NAT64 64:ff9b::/96 (see above) and 64:ff9b:1::/48, discard 100::/64, SRv6 5f00::/16, fc00::/7,
 * fe80::/10, fec0::/10 and ff00::/8.
 */
const GLOBAL_IPV6 = ranges('2000::/3')

/** The special-purpose ranges inside 2000::/3 (IANA IPv6 special-purpose registry). */
const SPECIAL_IPV6 = ranges(
  '2001::/23', // IETF protocols, RFC 2928: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation, RFC 3849
  '2002::/16', // 6to4, RFC 7526: embeds an IPv4 address
  '2620:4f:8000::/48', // AS112, RFC 7534
  '3ffe::/16', // 6bone, returned to IANA, RFC 3701
  '3fff::/20', // documentation, RFC 9637
)
