import type { DnsAnswer, Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { isIpv6, isSameIp, splitIp } from '../../platform/ip.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'

/**
 * Checks that an IP address has a PTR record that resolves back to it and does not look generic.
 */
export async function reverseName(
  resolver: Resolver,
  ip: string,
  helo: string,
  signal: AbortSignal,
): Promise<Finding> {
  const answer = await resolver.resolve(reverseZoneName(ip), 'PTR', signal)
  if ('fault' in answer) return unnamed(ip, helo, answer)
  const names = answer.records.slice(0, NAMES_MAX).map(plain)
  const found = await Promise.all(names.map(name => addressesOf(resolver, name, { signal })))
  const confirmed = names.filter((_, i) => {
    const entry = found[i]
    return entry !== undefined && 'addresses' in entry && has(entry.addresses, ip)
  })
  const name = confirmed.find(one => one === plain(helo)) ?? confirmed[0]
  return name === undefined
    ? unconfirmed(ip, names, found)
    : toFinding(resolver, ip, name, helo, signal)
}

/** The limit of RFC 7208 §5.5; one name is normal. */
const NAMES_MAX = 10

async function toFinding(
  resolver: Resolver,
  ip: string,
  name: string,
  helo: string,
  signal: AbortSignal,
): Promise<Finding> {
  const says = `${ip} has the PTR name ${name}, which resolves back to it`
  if (looksGeneric(name, ip)) {
    return warn(
      `${says}; but the name looks generic, which some servers reject`,
      `Ask your hosting provider for a PTR record with a name of your own, such as ${exampleOf(helo)}.`,
    )
  }
  if (name === plain(helo)) return ok(`${says} and is the HELO name`)
  const ours = await addressesOf(resolver, plain(helo), { signal })
  if ('addresses' in ours && has(ours.addresses, ip)) {
    return ok(`${says}; the HELO name ${helo} also resolves to it`)
  }
  return warn(`${says}; but the HELO name is ${helo}`, `Set --helo ${name}.`)
}

function unnamed(
  ip: string,
  helo: string,
  { fault }: Extract<DnsAnswer<'PTR'>, { fault: unknown }>,
) {
  if (fault === 'server' || fault === 'timeout') {
    return warn(
      `the lookup of the PTR record of ${ip} failed`,
      'Run this again. If it keeps failing, ask your hosting provider to fix the reverse DNS.',
    )
  }
  return fail(
    `${ip} has no PTR record; Google, Microsoft and many others reject such clients`,
    `Set a PTR record for ${ip} at your hosting provider, such as ${exampleOf(helo)}.`,
  )
}

function unconfirmed(
  ip: string,
  names: readonly string[],
  found: readonly (object | undefined)[],
): Finding {
  const name = names[0] ?? ''
  const failed = found.some(
    one => one && 'fault' in one && (one.fault === 'server' || one.fault === 'timeout'),
  )
  const says = `${ip} has the PTR name ${name}, which does not resolve back to it`
  return failed
    ? warn(`${says}: the DNS lookup failed`, 'Run this again.')
    : fail(
        says,
        `Add an address record for ${name} with ${ip}, or change the PTR record to another host.`,
      )
}

/** Detects the address in its name, in either order, or a word for dynamic and customer ranges. */
function looksGeneric(name: string, ip: string): boolean {
  const parts = splitIp(ip) ?? []
  if (parts.length === 4) {
    const numbers = name.split(/[^0-9]+/).map(text => text.replace(/^0+(?=\d)/, ''))
    const line = `.${numbers.join('.')}.`
    const orders = [parts, parts.toReversed()].map(order => `.${order.join('.')}.`)
    const hex = parts.map(part => Number(part).toString(16).padStart(2, '0')).join('')
    if (orders.some(order => line.includes(order)) || name.includes(hex)) return true
  }
  return /(^|[.-])(dyn|dynamic|dhcp|pool|[av]?dsl|pppoe?|dial(up|in)|broadband|cable|cust|customers?|residential|unassigned)\d*[.-]/.test(
    name,
  )
}

const has = (addresses: readonly string[], ip: string) =>
  addresses.some(address => isSameIp(address, ip))

const exampleOf = (helo: string) =>
  helo.includes('.') && !helo.startsWith('[') ? helo : 'probe.example.com'

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')

/**
 * Reverses an address as reverse DNS and blocklists need it: `1.2.0.192`, or the 32 nibbles of an
 * IPv6 address (RFC 3596 §2.5, RFC 5782 §2).
 */
export const reverseIp = (ip: string): string => (splitIp(ip) ?? []).toReversed().join('.')

/** Returns the DNS name of the PTR record of an address. */
export const reverseZoneName = (ip: string): string =>
  `${reverseIp(ip)}.${isIpv6(ip) ? 'ip6' : 'in-addr'}.arpa`

/** Checks that the HELO name is a fully qualified host name that resolves to our addresses. */
export async function heloName(
  resolver: Resolver,
  helo: string,
  ourAddresses: readonly string[],
  signal: AbortSignal,
): Promise<Finding> {
  if (helo.startsWith('[')) {
    return warn(`the HELO name ${helo} is an address literal, which some servers reject`, SET_HELO)
  }
  if (!helo.includes('.')) {
    return fail(
      `the HELO name ${helo} is not a fully qualified host name; many servers reject it`,
      SET_HELO,
    )
  }
  const found = await addressesOf(resolver, helo, { signal })
  if ('fault' in found) {
    return found.fault === 'server' || found.fault === 'timeout'
      ? warn(`the DNS lookup of the HELO name ${helo} failed`, 'Run this again.')
      : fail(
          `the HELO name ${helo} has no address in the DNS; many servers reject it`,
          `Add an address record for ${helo} with the public IP address, or set another name with --helo.`,
        )
  }
  const says = `the HELO name ${helo} resolves to ${found.addresses.join(', ')}`
  if (ourAddresses.length === 0) return ok(`${says}; the public IP address is unknown`)
  const missing = ourAddresses.filter(
    ours => !found.addresses.some(address => isSameIp(address, ours)),
  )
  if (missing.length === 0) return ok(says)
  return warn(
    `${says}, but the public IP address is ${missing.join(', ')}`,
    `Add an address record with ${missing.join(' and ')} for ${helo}, or set a name that resolves to it with --helo.`,
  )
}

const SET_HELO =
  'Set the fully qualified name of this host with --helo probe.example.com. It must resolve to the public IP address and match its PTR record.'
