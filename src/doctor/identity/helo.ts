import type { Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isSameIp } from './reverse-name.ts'

/** Whether the name that we give ourselves is one that servers accept: a full host name that leads to us. */
export async function heloName(
  resolver: Resolver,
  helo: string,
  ourAddresses: readonly string[],
  signal: AbortSignal,
): Promise<Finding> {
  if (helo.startsWith('[')) {
    return warn(`we say HELO ${helo}, an address in place of a name, which some refuse`, SET_ONE)
  }
  if (!helo.includes('.')) {
    return fail(
      `we say HELO ${helo}, which is no full host name; many servers refuse that`,
      SET_ONE,
    )
  }
  const found = await addressesOf(resolver, helo, signal)
  if ('fault' in found) {
    return found.fault === 'server' || found.fault === 'timeout'
      ? warn(`the DNS could not tell whether our HELO name ${helo} exists`, 'Run this again.')
      : fail(
          `our HELO name ${helo} has no address in the DNS; many servers refuse that`,
          `Give ${helo} an address record with our own address, or set another name with --helo.`,
        )
  }
  const says = `our HELO name ${helo} leads to ${found.addresses.join(', ')}`
  if (ourAddresses.length === 0) return ok(`${says}; whether that is us is not known`)
  const strange = ourAddresses.filter(
    ours => !found.addresses.some(address => isSameIp(address, ours)),
  )
  if (strange.length === 0) return ok(says)
  return warn(
    `${says}, but we come from ${strange.join(', ')}`,
    `Add an address record with ${strange.join(' and ')} to ${helo}, or set with --helo a name that leads there.`,
  )
}

const SET_ONE =
  'Set the full name of this host with --helo probe.example.com: one that leads to our address, as its PTR record does.'
