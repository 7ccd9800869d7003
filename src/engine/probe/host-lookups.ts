import { isNegative, type Resolver } from '../dns/resolver.ts'
import {
  type AddressFamilies,
  addressesOf,
  cachedAddressesOf,
  type HostLookup,
} from '../dns/route.ts'
import type { ProbeDeps } from './egress.ts'
import { getLimitDivisor, type MxGroupPlan, type ProbeTarget } from './mx-groups.ts'

/**
 * Hosts to try. A host without an address does not count, because it takes only two queries and the
 * next one may accept mail; a failed lookup counts, because it may take seconds.
 */
const HOSTS_MAX = 3
/**
 * Hosts whose addresses are looked up. More names that do not exist in one zone are not a mistake:
 * they make resolvers attack its name servers (NXNSAttack, USENIX Security 2020).
 */
const LOOKUPS_MAX = 10

type HostWithAddresses = { readonly host: string; readonly lookup: HostLookup }

/** The IPv4 addresses of a host whose lookup of IPv6 addresses may not have ended. */
type PartialLookup = { readonly host: string; readonly ipv4: readonly string[] }

/**
 * Looks up hosts one after another, each when it is its turn. IPv4 addresses do not wait for the
 * answer to AAAA. It is used if it is there when they have failed; otherwise it is waited for after
 * all other hosts.
 */
export class HostLookups {
  readonly #resolver: Resolver
  readonly #families: AddressFamilies
  readonly #signal: AbortSignal
  readonly #hosts: readonly string[]
  readonly #hostsMax: number
  #looked = 0
  #found = 0
  /** The last host that was returned, if its answer to AAAA is used next. */
  #last: PartialLookup | null = null
  readonly #unfinished: PartialLookup[] = []

  constructor(
    { resolver, egress: { getFamilies } }: ProbeDeps,
    hosts: readonly string[],
    plan: Pick<MxGroupPlan<ProbeTarget>, 'sharesLimits'>,
    signal: AbortSignal,
  ) {
    this.#resolver = resolver
    this.#families = getFamilies?.() ?? 'both'
    this.#signal = signal
    this.#hosts = hosts
    this.#hostsMax = Math.ceil(HOSTS_MAX / getLimitDivisor(plan))
  }

  /** Returns the next host with its addresses; null after the last one. A promise if it waits. */
  next(): HostWithAddresses | null | Promise<HostWithAddresses | null> {
    const rest = this.#rest
    if (rest === null && this.#last !== null) this.#unfinished.push(this.#last)
    this.#last = null
    if (rest !== null) return rest
    const host = this.#nextHost
    if (host === undefined) return this.#finish()
    this.#looked++
    const known = cachedAddressesOf(this.#resolver, host, this.#families)
    if (known !== null) return this.#count(host, known)
    return this.#lookUp(host)
  }

  /** Whether `next` has further hosts or addresses, as far as is known. */
  get hasMore(): boolean {
    if (this.#nextHost !== undefined || this.#unfinished.length > 0) return true
    const lookup = this.#rest?.lookup ?? null
    return lookup !== null && 'addresses' in lookup && lookup.addresses.length > 0
  }

  /** Whether there are more hosts than are looked up. */
  get isCut(): boolean {
    return this.#hosts.length > LOOKUPS_MAX
  }

  /** Undefined after the last one. */
  get #nextHost(): string | undefined {
    const isEnough = this.#found === this.#hostsMax || this.#looked === LOOKUPS_MAX
    return isEnough ? undefined : this.#hosts[this.#looked]
  }

  /**
   * The last host with those of its addresses that were not returned; null if they were, or while
   * there is no answer.
   */
  get #rest(): HostWithAddresses | null {
    if (this.#last === null) return null
    const { host, ipv4 } = this.#last
    const complete = cachedAddressesOf(this.#resolver, host)
    return complete === null ? null : { host, lookup: excludeAddresses(complete, ipv4) }
  }

  async #lookUp(host: string): Promise<HostWithAddresses> {
    const options = { signal: this.#signal, families: this.#families, isUrgent: true }
    const lookup = await addressesOf(this.#resolver, host, options)
    if ('addresses' in lookup && this.#families === 'both')
      this.#last = { host, ipv4: lookup.addresses }
    return this.#count(host, lookup)
  }

  #count(host: string, lookup: HostLookup): HostWithAddresses {
    if ('addresses' in lookup || !isNegative(lookup)) this.#found++
    return { host, lookup }
  }

  /** Waits for the answers to AAAA that were not there in time. */
  async #finish(): Promise<HostWithAddresses | null> {
    const last = this.#unfinished.shift()
    if (last === undefined) return null
    const { host, ipv4 } = last
    const complete = await addressesOf(this.#resolver, host, { signal: this.#signal })
    return this.#signal.aborted ? null : { host, lookup: excludeAddresses(complete, ipv4) }
  }
}

const excludeAddresses = (lookup: HostLookup, dialed: readonly string[]): HostLookup =>
  'fault' in lookup
    ? { addresses: [] }
    : { addresses: lookup.addresses.filter(ip => !dialed.includes(ip)) }
