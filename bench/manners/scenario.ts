import type { Scenario } from '../../src/simulator/scenario.ts'

/** One list, the mail servers that it is about, and what is true of each address. */
export type List = {
  readonly title: string
  readonly scenario: Scenario
  /** Each address with the reason of the right verdict. */
  readonly addresses: ReadonlyMap<string, string>
  /** Each domain is an operator of its own; else one operator has all of them. */
  readonly ownOperators: boolean
}

const ROUND_TRIP_MS = 50
const IP = '127.30.0.1'
const DOMAINS_PER_HOSTER = 100
/** More than make a domain count as refusing us. */
const REFUSED_RECIPIENTS = 5

export const LISTS = {
  vanity: () => vanityDomains(400),
  tenants: () => tenants(40),
  hoster: (count: number) => hoster(count),
} satisfies Record<string, (count: number) => List>

/** Domains whose exchangers have names of their own, all at one address. */
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

/** Tenants of Microsoft 365, of which the first refuses us at RCPT. */
function tenants(count: number): List {
  const names = namesOf('tenant', count)
  const [refusing = '', ...others] = names
  const refused = Array.from({ length: REFUSED_RECIPIENTS }, (_, n) => `user${n}@${refusing}`)
  const reply = '550 5.7.1 Service unavailable, access denied by the policy of this organization'
  return {
    title: `${count} tenants, one of which refuses us`,
    scenario: {
      roundTripMs: ROUND_TRIP_MS,
      mailboxes: ['user*'],
      domains: domainsAt(names, name => `${name.replace('.', '-')}.mail.protection.outlook.com`),
      hosts: {
        'server.test': {
          behavior: 'polite',
          ip: IP,
          rules: [{ on: 'RCPT', to: `*@${refusing}`, reply }],
        },
      },
    },
    addresses: new Map([
      ...refused.map(address => [address, 'probe_blocked'] as const),
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
