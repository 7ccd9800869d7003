import type { Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isSameIp } from './reverse-name.ts'

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
  const found = await addressesOf(resolver, helo, signal)
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
