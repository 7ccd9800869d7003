import { isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import { CHECK_NAMES } from '../platform/check-names.ts'
import type { DnsTrouble, DomainPlan } from './scenario.ts'

export type ZoneRecord =
  | { readonly type: 'MX'; readonly preference: number; readonly exchange: string }
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'TXT'; readonly text: string }
  | { readonly type: 'PTR'; readonly host: string }

/** What the world's DNS knows of a name: trouble, its records, or (null) that there is no such name. */
export type ZoneAnswer = {
  readonly trouble: DnsTrouble | null
  readonly records: readonly ZoneRecord[]
  /** Records of other names that are sent along. */
  readonly additional?: readonly { readonly name: string; readonly record: ZoneRecord }[]
} | null

/** All names of the world with their records. */
export type Zone = { answer(name: string, type: string): ZoneAnswer }

/** Builds the zone; `addresses` are those of the mail servers, by name. */
export function createZone(
  domains: Readonly<Record<string, DomainPlan>>,
  addresses: ReadonlyMap<string, readonly string[]>,
  sendsAdditional = false,
): Zone {
  const plans = new Map(Object.entries(domains).map(([name, plan]) => [asciiName(name), plan]))
  const machines = new Map([...addresses].map(([name, ips]) => [asciiName(name), ips]))
  const parents = new Set([...plans.keys(), ...machines.keys()].flatMap(parentsOf))
  const addressesOfExchanger = (record: ZoneRecord) => {
    if (record.type !== 'MX') return []
    const name = record.exchange
    const all = (type: 'A' | 'AAAA') => recordsOf(type, plans.get(name), machines.get(name))
    return [...all('A'), ...all('AAAA')].map(record => ({ name, record }))
  }
  return {
    answer(name, type) {
      const key = name.toLowerCase().replace(/\.$/, '')
      const plan = plans.get(key) ?? CHECKED.get(key)
      const machine = machines.get(key)
      if (plan === undefined && machine === undefined) return parents.has(key) ? NO_DATA : null
      const records = recordsOf(type, plan, machine)
      const additional = sendsAdditional ? records.flatMap(addressesOfExchanger) : []
      return { trouble: plan?.fault ?? null, records, additional }
    },
  }
}

function recordsOf(
  type: string,
  plan: DomainPlan = {},
  machine: readonly string[] = [],
): ZoneRecord[] {
  if (type === 'MX') return exchangers(plan.mx)
  if (type === 'TXT') return (plan.txt ?? []).map(text => ({ type, text }))
  if (type === 'PTR') return plan.ptr === undefined ? [] : [{ type, host: asciiName(plan.ptr) }]
  return addressRecords(type, [...(plan.a ?? []), ...(plan.aaaa ?? []), ...machine])
}

/**
 * The names of the resolver check exist here too. They take no mail (RFC 7505) unless the scenario
 * says otherwise.
 */
const CHECKED: ReadonlyMap<string, DomainPlan> = new Map(
  CHECK_NAMES.map(name => [name, { mx: 'null' }]),
)

const NO_DATA: ZoneAnswer = { trouble: null, records: [] }

function exchangers(mx: DomainPlan['mx'] = 'none'): ZoneRecord[] {
  if (mx === 'none') return []
  // RFC 7505 §3: one record, preference 0, the root as exchanger.
  if (mx === 'null') return [{ type: 'MX', preference: 0, exchange: '.' }]
  return mx.map(([preference, host]) => ({ type: 'MX', preference, exchange: asciiName(host) }))
}

const addressRecords = (type: string, ips: readonly string[]): ZoneRecord[] =>
  type === 'A' || type === 'AAAA'
    ? ips.filter(ip => isIPv6(ip) === (type === 'AAAA')).map(address => ({ type, address }))
    : []

const asciiName = (name: string) => domainToASCII(name) || name.toLowerCase()

/** `a.b.test` has the parents `b.test` and `test`: they exist, though they hold nothing. */
const parentsOf = (name: string) =>
  name
    .split('.')
    .map((_, index, labels) => labels.slice(index + 1).join('.'))
    .filter(Boolean)
