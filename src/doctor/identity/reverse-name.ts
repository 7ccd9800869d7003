import type { DnsAnswer, Resolver } from '../../engine/dns/resolver.ts'
import { addressesOf } from '../../engine/dns/route.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isSameIp, partsOf, reverseZoneName } from './ip.ts'

/** Whether our address has a name, that name our address, and both the look of a mail server. */
export async function reverseName(
  resolver: Resolver,
  ip: string,
  helo: string,
  signal: AbortSignal,
): Promise<Finding> {
  const answer = await resolver.resolve(reverseZoneName(ip), 'PTR', signal)
  if ('fault' in answer) return unnamed(ip, helo, answer)
  const names = answer.records.slice(0, NAMES_MAX).map(plain)
  const found = await Promise.all(names.map(name => addressesOf(resolver, name, signal)))
  const back = names.filter((_, i) => {
    const entry = found[i]
    return entry !== undefined && 'addresses' in entry && has(entry.addresses, ip)
  })
  const name = back.find(one => one === plain(helo)) ?? back[0]
  return name === undefined
    ? unconfirmed(ip, names, found)
    : toFinding(resolver, ip, name, helo, signal)
}

/** RFC 7208 §5.5 looks at as many; one is right. */
const NAMES_MAX = 10

async function toFinding(
  resolver: Resolver,
  ip: string,
  name: string,
  helo: string,
  signal: AbortSignal,
): Promise<Finding> {
  const says = `${ip} is called ${name}, and ${name} leads back to it`
  if (looksGeneric(name, ip)) {
    return warn(
      `${says}; but it looks like a name given to each of many customers, which some servers refuse`,
      `Ask whoever gives you the address for a PTR record with a name of your own, such as ${exampleOf(helo)}.`,
    )
  }
  if (name === plain(helo)) return ok(`${says}; it is our HELO name too`)
  const ours = await addressesOf(resolver, plain(helo), signal)
  if ('addresses' in ours && has(ours.addresses, ip)) {
    return ok(`${says}; our HELO name ${helo} leads to it too`)
  }
  return warn(`${says}; but we say HELO ${helo}`, `Set --helo ${name}.`)
}

function unnamed(
  ip: string,
  helo: string,
  { fault }: Extract<DnsAnswer<'PTR'>, { fault: unknown }>,
) {
  if (fault === 'server' || fault === 'timeout') {
    return warn(
      `the DNS could not tell whether ${ip} has a name (PTR record)`,
      'Run this again; if it stays so, ask whoever gives you the address to mend its reverse DNS.',
    )
  }
  return fail(
    `${ip} has no name (PTR record); Google, Microsoft and many others refuse such clients`,
    `Set a PTR record for ${ip} in the console of your hoster, or ask it to: ${exampleOf(helo)}.`,
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
  const says = `${ip} is called ${name}, but ${name} does not lead back to it`
  return failed
    ? warn(`${says}, as the DNS could not tell`, 'Run this again.')
    : fail(
        says,
        `Give ${name} an address record with ${ip}, or let the PTR record name another host.`,
      )
}

/** The address in its name, in either order, or a word for ranges that are dealt out. */
function looksGeneric(name: string, ip: string): boolean {
  const deps = partsOf(ip)
  if (deps.length === 4) {
    const numbers = name.split(/[^0-9]+/).map(text => text.replace(/^0+(?=\d)/, ''))
    const line = `.${numbers.join('.')}.`
    const orders = [deps, deps.toReversed()].map(order => `.${order.join('.')}.`)
    const hex = deps.map(part => Number(part).toString(16).padStart(2, '0')).join('')
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
