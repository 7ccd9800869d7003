import type { Scenario } from '../../src/simulator/scenario.ts'

/** A list, its mail servers, and the correct verdicts. */
export type List = {
  readonly title: string
  readonly scenario: Scenario
  /** The addresses with the reason of the correct verdict. */
  readonly addresses: ReadonlyMap<string, string>
  /** Whether each domain is a separate operator; otherwise one operator has all of them. */
  readonly ownOperators: boolean
}

const ROUND_TRIP_MS = 50
const IP = '127.30.0.1'
const DOMAINS_PER_HOSTER = 100
/** More than it takes for a domain to count as blocking. */
const BLOCKED_RECIPIENTS = 5

export const LISTS = {
  vanity: () => vanityDomains(400),
  tenants: () => tenants(40),
  hoster: (count: number) => hoster(count),
} satisfies Record<string, (count: number) => List>

/** Domains with individually named exchangers on one IP address. */
function vanityDomains(count: number): List {
  const names = namesOf('vanity', count)
  return {
    title: `${count} vanity domains on one address`,
    scenario: {
      roundTripMs: ROUND_TRIP_MS,
      mailboxes: ['user*'],
      domains: domainsAt(names, name => `mx.${name}`),
      hosts: { 'server.test': { behavior: 'polite', ip: IP } },
    },
    addresses: new Map(names.map(name => [`user1@${name}`, 'accepted_email'])),
    ownOperators: true,
  }
}

/** Tenants of Microsoft 365, the first of which blocks the client at RCPT. */
function tenants(count: number): List {
  const names = namesOf('tenant', count)
  const [blocking = '', ...others] = names
  const blocked = Array.from({ length: BLOCKED_RECIPIENTS }, (_, n) => `user${n}@${blocking}`)
  const reply = '550 5.7.1 Service unavailable, access denied by the policy of this organization'
  return {
    title: `${count} tenants, one of which blocks the client`,
    scenario: {
      roundTripMs: ROUND_TRIP_MS,
      mailboxes: ['user*'],
      domains: domainsAt(names, name => `${name.replace('.', '-')}.mail.protection.outlook.com`),
      hosts: {
        'server.test': {
          behavior: 'polite',
          ip: IP,
          rules: [{ on: 'RCPT', to: `*@${blocking}`, reply }],
        },
      },
    },
    addresses: new Map([
      ...blocked.map(address => [address, 'probe_blocked'] as const),
      ...others.map(name => [`user1@${name}`, 'accepted_email'] as const),
    ]),
    ownOperators: false,
  }
}

function hoster(count: number): List {
  const names = namesOf('customer', DOMAINS_PER_HOSTER)
  const domains = names.map(name => [name, { mx: [[10, 'mx.hoster.test']] as const }] as const)
  const addresses = Array.from({ length: count }, (_, n) => {
    return [`user${n}@${names[n % names.length]}`, 'accepted_email'] as const
  })
  return {
    title: `${count.toLocaleString('en')} addresses at one hoster`,
    scenario: {
      roundTripMs: ROUND_TRIP_MS,
      mailboxes: ['user*'],
      domains: Object.fromEntries(domains),
      hosts: { 'mx.hoster.test': { behavior: 'polite', ip: IP } },
    },
    addresses: new Map(addresses),
    ownOperators: false,
  }
}

const namesOf = (word: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${word}${n}.test`)

function domainsAt(names: readonly string[], hostOf: (name: string) => string) {
  return Object.fromEntries(
    names.flatMap(name => [
      [name, { mx: [[10, hostOf(name)]] as const }],
      [hostOf(name), { a: [IP] }],
    ]),
  )
}
