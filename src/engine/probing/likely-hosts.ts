import { type Clock, DAY } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { Route } from '../dns/route.ts'

/** About 200 bytes each. */
const DOMAINS_MAX = 20_000
/** A wrong guess costs one question, so a guess may be old. */
const RETENTION_MS = DAY

/** Providers with one best exchanger, as their public MX records name it. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'gmail.com': 'gmail-smtp-in.l.google.com',
  'googlemail.com': 'gmail-smtp-in.l.google.com',
  'outlook.com': 'outlook-com.olc.protection.outlook.com',
  'hotmail.com': 'hotmail-com.olc.protection.outlook.com',
  'live.com': 'live-com.olc.protection.outlook.com',
  'msn.com': 'msn-com.olc.protection.outlook.com',
}

/**
 * The exchanger that a domain most likely has, so that its address is asked for together with the MX
 * records: one round trip less. The MX answer alone decides who is dialled.
 */
export class LikelyHosts {
  readonly #known: TtlMap<{ readonly host: string }>

  constructor(clock: Clock) {
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
  }

  get(domain: string): string | null {
    const provider = Object.hasOwn(PROVIDERS, domain) ? PROVIDERS[domain] : undefined
    return this.#known.get(domain)?.host ?? provider ?? null
  }

  /** Remembers the first host of a route, unless others of equal preference may be dialled instead. */
  learn(domain: string, route: Route): void {
    if (route.kind !== 'mx') return
    const [first, second] = route.hosts
    if (first === undefined || first.preference === second?.preference) return
    // A list learns the same again and again.
    if (this.#known.get(domain)?.host === first.host) return
    this.#known.set(domain, { host: first.host }, RETENTION_MS)
  }
}
