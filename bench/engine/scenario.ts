import type { Scenario } from '../../src/simulator/scenario.ts'

/** One shape of list, and how hard both ways may press on it. */
export type Shape = {
  readonly name: string
  readonly addresses: number
  readonly domains: number
  readonly hosts: number
  /** Connections at once to one host: the same for both ways. */
  readonly sessionsPerHost: number
  /** Recipients in one connection: ours alone, as the naive way has one. */
  readonly recipientsPerSession: number
  /** Connections at once in all: the same for both ways. */
  readonly concurrency: number
  /** How many of the addresses the naive way is given where there is a distance: then its rate does not depend on it. */
  readonly naiveAddresses: number
}

/** What the pace table gives an operator that nobody knows. */
const USUAL = { sessionsPerHost: 2, recipientsPerSession: 20, concurrency: 200 } as const

export const SHAPES = {
  thousand: {
    ...USUAL,
    name: '1,000 addresses on 1,000 domains',
    addresses: 1_000,
    domains: 1_000,
    hosts: 1_000,
    naiveAddresses: 1_000,
  },
  hundred: {
    ...USUAL,
    name: '10,000 addresses on 100 domains',
    addresses: 10_000,
    domains: 100,
    hosts: 100,
    // As many as Postfix puts into one transaction (default_destination_recipient_limit), and the random one.
    recipientsPerSession: 51,
    naiveAddresses: 10_000,
  },
  usual: {
    ...USUAL,
    name: '10,000 addresses on 100 domains, as the pace table has it',
    addresses: 10_000,
    domains: 100,
    hosts: 100,
    naiveAddresses: 2_000,
  },
  one: {
    ...USUAL,
    name: '10,000 addresses on one operator',
    addresses: 10_000,
    domains: 100,
    hosts: 1,
    sessionsPerHost: 10,
    // In full it would take the naive way eight minutes at 50 ms.
    naiveAddresses: 500,
  },
} as const satisfies Record<string, Shape>

export type ShapeName = keyof typeof SHAPES

/** Polite hosts; domains take turns where there are fewer hosts than domains. */
export function worldOf(shape: Shape, roundTripMs: number): Scenario {
  const hosts = range(shape.hosts).map(at => [hostName(at), { behavior: 'polite' }] as const)
  const domains = range(shape.domains).map(
    at => [domainName(at), { mx: [[10, hostName(at % shape.hosts)]] }] as const,
  )
  return {
    roundTripMs,
    mailboxes: ['user*'],
    hosts: Object.fromEntries(hosts),
    domains: Object.fromEntries(domains),
  } as Scenario
}

/** Domain after domain in turn, so that the naive way finds every host free; nine of ten exist. */
export function addressesOf(shape: Shape): string[] {
  return range(shape.addresses).map(at => {
    const round = Math.floor(at / shape.domains)
    const name = (at + round) % 10 === 0 ? 'nobody' : 'user'
    return `${name}${at}@${domainName(at % shape.domains)}`
  })
}

/** What is true of an address of this bench. */
export const exists = (address: string) => address.startsWith('user')

const domainName = (at: number) => `list${at}.example`
const hostName = (at: number) => `mx.operator${at}.test`
const range = (length: number) => Array.from({ length }, (_, at) => at)
