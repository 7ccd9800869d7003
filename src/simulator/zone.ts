import { isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import { CHECK_NAMES } from '../platform/domain-names.ts'
import type { DnsTrouble, DomainPlan } from './scenario.ts'

export type ZoneRecord =
  | { readonly type: 'MX'; readonly preference: number; readonly exchange: string }
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'TXT'; readonly text: string }
  | { readonly type: 'PTR'; readonly host: string }

/** DNS data of a name: an error or its records; null if the name does not exist. */
export type ZoneAnswer = {
  readonly trouble: DnsTrouble | null
  readonly records: readonly ZoneRecord[]
  /** Records of other names for the additional section. */
  readonly additional?: readonly { readonly name: string; readonly record: ZoneRecord }[]
} | null

/** All simulated names with their records. */
export type Zone = { answer(name: string, type: string): ZoneAnswer }

/** Builds the zone; `addresses` contains the addresses of the mail servers by name. */
export function createZone(
  domains: Readonly<Record<string, DomainPlan>>,
  addresses: ReadonlyMap<string, readonly string[]>,
  sendsAdditional = false,
): Zone {
  const plans = new Map(Object.entries(domains).map(([name, plan]) => [asciiName(name), plan]))
  const hosts = new Map([...addresses].map(([name, ips]) => [asciiName(name), ips]))
  const parents = new Set([...plans.keys(), ...hosts.keys()].flatMap(parentsOf))
  const addressesOfExchanger = (record: ZoneRecord) => {
    if (record.type !== 'MX') return []
    const name = record.exchange
    const all = (type: 'A' | 'AAAA') => recordsOf(type, plans.get(name), hosts.get(name))
    return [...all('A'), ...all('AAAA')].map(record => ({ name, record }))
  }
  return {
    answer(name, type) {
      const key = name.toLowerCase().replace(/\.$/, '')
      const plan = plans.get(key) ?? CHECK_PLANS.get(key)
      const host = hosts.get(key)
      if (plan === undefined && host === undefined) return parents.has(key) ? NO_DATA : null
      const records = recordsOf(type, plan, host)
      const additional = sendsAdditional ? records.flatMap(addressesOfExchanger) : []
      return { trouble: plan?.fault ?? null, records, additional }
    },
  }
}

function recordsOf(
  type: string,
  plan: DomainPlan = {},
  hostIps: readonly string[] = [],
): ZoneRecord[] {
  if (type === 'MX') return exchangers(plan.mx)
  if (type === 'TXT') return (plan.txt ?? []).map(text => ({ type, text }))
  if (type === 'PTR') return plan.ptr === undefined ? [] : [{ type, host: asciiName(plan.ptr) }]
  return addressRecords(type, [...(plan.a ?? []), ...(plan.aaaa ?? []), ...hostIps])
}

/** The names of the resolver check exist with a null MX (RFC 7505) unless the scenario has them. */
const CHECK_PLANS: ReadonlyMap<string, DomainPlan> = new Map(
  CHECK_NAMES.map(name => [name, { mx: 'null' }]),
)

const NO_DATA: ZoneAnswer = { trouble: null, records: [] }

function exchangers(mx: DomainPlan['mx'] = 'none'): ZoneRecord[] {
  if (mx === 'none') return []
  // A null MX: one record with preference 0 and the root as exchanger (RFC 7505 §3).
  if (mx === 'null') return [{ type: 'MX', preference: 0, exchange: '.' }]
  return mx.map(([preference, host]) => ({ type: 'MX', preference, exchange: asciiName(host) }))
}

const addressRecords = (type: string, ips: readonly string[]): ZoneRecord[] =>
  type === 'A' || type === 'AAAA'
    ? ips.filter(ip => isIPv6(ip) === (type === 'AAAA')).map(address => ({ type, address }))
    : []

const asciiName = (name: string) => domainToASCII(name) || name.toLowerCase()

/**
 * Returns the parents of a name, which exist without records: `b.test` and `test` for `a.b.test`.
 */
const parentsOf = (name: string) =>
  name
    .split('.')
    .map((_, index, labels) => labels.slice(index + 1).join('.'))
    .filter(Boolean)
