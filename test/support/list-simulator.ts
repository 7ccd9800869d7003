import type { Scenario } from '../../src/simulator/scenario.ts'
import { withOwnHosts } from './own-hosts.ts'

/** A list with known results, and the scenario of its mail servers. */
export type List = {
  readonly rows: number
  readonly domains: number
}

/** Polite hosts with latency, each a separate operator; every tenth is a catch-all. */
export function scenarioOf({ domains }: List, roundTripMs: number): Scenario {
  const names = Array.from({ length: domains }, (_, n) => `d${n}.test`)
  return {
    roundTripMs,
    mailboxes: ['user*'],
    ...withOwnHosts(
      Object.fromEntries(
        names.map((name, n) => [name, { behavior: isOpen(n) ? 'catch-all' : 'polite' }]),
      ),
    ),
  }
}

export const addressesOf = ({ rows, domains }: List): string[] =>
  Array.from({ length: rows }, (_, n) => `${isGone(n) ? 'gone' : 'user'}${n}@d${n % domains}.test`)

/** Returns the correct reason of a row, from 0. */
export function reasonOf({ domains }: List, row: number): string {
  if (isOpen(row % domains)) return 'catch_all'
  return isGone(row) ? 'rejected_email' : 'accepted_email'
}

const isOpen = (domain: number) => domain % 10 === 7
const isGone = (row: number) => row % 11 === 3
