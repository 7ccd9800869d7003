import type { Scenario } from '../../src/simulator/scenario.ts'

export const DOMAINS = 500
export const ROUND_TRIP_MS = 50

/** Many domains on hosts without limits, with this round trip time. */
export const scenarioAt = (roundTripMs: number) =>
  ({
    roundTripMs,
    mailboxes: ['user*'],
    hosts: Object.fromEntries(each(at => [`mx${at}.example`, { behavior: 'polite' }])),
    domains: Object.fromEntries(each(at => [`d${at}.example`, { mx: [[10, `mx${at}.example`]] }])),
  }) as Scenario

function each<T>(make: (at: number) => T): T[] {
  return Array.from({ length: DOMAINS }, (_, at) => make(at))
}
