import type { Scenario } from '../../src/simulator/scenario.ts'

/** A shape of list, with the limits of all variants. */
export type Shape = {
  readonly name: string
  readonly addresses: number
  readonly domains: number
  readonly hosts: number
  /** Concurrent connections to one host. */
  readonly sessionsPerHost: number
  /** Recipients per connection of ev; the naive variants have one. */
  readonly recipientsPerSession: number
  /** Concurrent connections in total. */
  readonly concurrency: number
  /**
   * Number of addresses for the naive variants with latency, where their rate does not depend on
   * it.
   */
  readonly naiveAddresses: number
}

/** The default limits of an unknown operator. */
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
    // Postfix accepts fifty per transaction (default_destination_recipient_limit), plus the random
    // one.
    recipientsPerSession: 51,
    naiveAddresses: 10_000,
  },
  usual: {
    ...USUAL,
    name: '10,000 addresses on 100 domains, with the default limits',
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
    // All of them would take the naive variant eight minutes n 50 ms.
    naiveAddresses: 500,
  },
} as const satisfies Record<string, Shape>

export type ShapeName = keyof typeof SHAPES

/** Polite hosts. If there are fewer hosts than domains, the domains share them evenly. */
export function scenarioFor(shape: Shape, roundTripMs: number): Scenario {
  const hosts = range(shape.hosts).map(n => [hostName(n), { behavior: 'polite' }] as const)
  const domains = range(shape.domains).map(
    n => [domainName(n), { mx: [[10, hostName(n % shape.hosts)]] }] as const,
  )
  return {
    roundTripMs,
    mailboxes: ['user*'],
    hosts: Object.fromEntries(hosts),
    domains: Object.fromEntries(domains),
  } as Scenario
}

/**
 * Addresses in a round-robin over the domains, which keeps all hosts of the naive variants busy;
 * nine of ten exist.
 */
export function addressesOf(shape: Shape): string[] {
  return range(shape.addresses).map(n => {
    const round = Math.floor(n / shape.domains)
    const name = (n + round) % 10 === 0 ? 'unknown' : 'user'
    return `${name}${n}@${domainName(n % shape.domains)}`
  })
}

/** Whether an address of this benchmark exists. */
export const exists = (address: string) => address.startsWith('user')

const domainName = (n: number) => `list${n}.example`
const hostName = (n: number) => `mx.operator${n}.test`
const range = (length: number) => Array.from({ length }, (_, n) => n)
