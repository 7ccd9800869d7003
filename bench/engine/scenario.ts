import type { Scenario } from '../../src/simulator/scenario.ts'
import type { ResultFaults } from './run-options.ts'

/** A shape of list. */
export type Shape = {
  readonly name: string
  readonly addresses: number
  readonly domains: number
  readonly hosts: number
  readonly isShuffled?: boolean
  /** Maximum number of connections per address of ev; by default it is not checked. */
  readonly connectionsPerAddressMax?: number
}

/** Limits so high that the programs and round trips decide. The bare probe has only the first. */
export const LIMITS = {
  /** Concurrent connections in total. */
  concurrency: 1_000,
  /** Concurrent connections to one host. */
  sessionsPerHost: 100,
  sessionsPerSecond: 1_000,
  /** A hundred, which every server must accept (RFC 5321 §4.5.3.1.8), and the random one. */
  recipientsPerSession: 101,
} as const

export const SHAPES = {
  '1k-1k': {
    name: '1,000 on 1,000 domains',
    addresses: 1_000,
    domains: 1_000,
    hosts: 1_000,
    connectionsPerAddressMax: 1,
  },
  '10k-10k': {
    name: '10,000 on 10,000 domains',
    addresses: 10_000,
    domains: 10_000,
    hosts: 10_000,
    connectionsPerAddressMax: 1,
  },
  '10k-100': {
    name: '10,000 on 100 domains',
    addresses: 10_000,
    domains: 100,
    hosts: 100,
    connectionsPerAddressMax: 0.06,
  },
  '10k-hoster': {
    name: '10,000 on 1,000 domains of one hoster',
    addresses: 10_000,
    domains: 1_000,
    hosts: 1,
    connectionsPerAddressMax: 0.06,
  },
  '100k-10k': {
    name: '100,000 on 10,000 domains, shuffled',
    addresses: 100_000,
    domains: 10_000,
    hosts: 10_000,
    isShuffled: true,
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

/** Addresses in a round-robin over the domains, or shuffled; nine of ten exist. */
export function addressesOf(shape: Shape): string[] {
  const addresses = range(shape.addresses).map(n => {
    const round = Math.floor(n / shape.domains)
    const name = (n + round) % 10 === 0 ? 'unknown' : 'user'
    return `${name}${n}@${domainName(n % shape.domains)}`
  })
  return shape.isShuffled === true ? shuffle(addresses) : addresses
}

/** Shuffles in place (Fisher-Yates), in the same order in every run (xorshift32). */
function shuffle<T>(items: T[]): T[] {
  let state = 1
  for (let at = items.length - 1; at > 0; at -= 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    const other = (state >>> 0) % (at + 1)
    const item = items[at] as T
    items[at] = items[other] as T
    items[other] = item
  }
  return items
}

/** The definite reasons of ev; the others mean that the mailbox is unknown. */
export const DELIVERABLE_BY_REASON: Readonly<Record<string, boolean>> = {
  accepted_email: true,
  rejected_email: false,
}

/** Compares the results of a run with the mailboxes of the simulator. */
export function findFaults(
  addresses: readonly string[],
  results: readonly (readonly [address: string, deliverable: boolean | null])[],
): ResultFaults {
  const seen = new Set(results.map(([address]) => address))
  return {
    missing: addresses.filter(address => !seen.has(address)).length,
    repeated: results.length - seen.size,
    wrong: results.filter(([address, deliverable]) => deliverable !== exists(address)).length,
  }
}

const exists = (address: string) => address.startsWith('user')
const domainName = (n: number) => `list${n}.example`
const hostName = (n: number) => `mx.operator${n}.test`
const range = (length: number) => Array.from({ length }, (_, n) => n)
