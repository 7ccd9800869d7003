import { type Clock, HOUR } from '../../platform/clock.ts'
import { networkOf } from '../../platform/ip.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import {
  acquireInOrder,
  ConnectionLimit,
  type LimitRequest,
  type LimitStart,
  releaseAll,
} from './connection-limit.ts'
import { type ConnectionPermit, RateController } from './controller.ts'
import type { RateLimits } from './limit-table.ts'
import type { SharedRateState } from './shared-state.ts'

/** A permit for a connection to one IP address. */
export type AddressPermit = ConnectionPermit & {
  /** Records that the server at this address throttled us. */
  readonly throttled: (retryAfterMs: number | null) => void
  /** Records a successful session. */
  readonly succeeded: () => void
}

export type AddressStart =
  | { readonly permit: AddressPermit }
  | Exclude<LimitStart, { readonly permit: ConnectionPermit }>

type DestinationLimitsOptions = {
  readonly clock: Clock
  /** The limits of an operator that is not in the table. */
  readonly row: RateLimits
  /** Whether the table or the settings have limits for this operator. */
  readonly isKnown: (operator: string) => boolean
  readonly hasSeveralEgresses: () => boolean
  readonly share: SharedRateState | null
}

/** The most limits in memory, for the destinations of a long list; about 1.3 KB each, 26 MB. */
const LIMITS_MAX = 20_000
/** Longer than any pause. */
const LIMIT_TTL_MS = 2 * HOUR
/**
 * A network may hold 254 independent servers, or belong to one hoster with an address per customer.
 * It gets the limits of 100 operators: 100 new connections per second by default. One Postfix with
 * its 100 processes (default_process_limit) serves as many sessions of one second each.
 */
const NETWORK_FACTOR = 100
/** A single operator at an address is limited by its own state, which is already shared. */
const ADDRESS_SHARING = { sharedFromUsers: 2, keepsUsers: true }
/** With fewer addresses of a network in use, a few processes together stay below its limit. */
const NETWORK_SHARING = { sharedFromUsers: 40, keepsUsers: false }
/** Replaces the egress name in the key of a state; no egress name contains a star. */
export const ALL_EGRESSES = '*'

/**
 * Additional limits for operators that are not in the table, besides the limit per egress. Such an
 * operator is often one small server. Its limit covers all egresses, so that more egresses do not
 * add load. The same limit applies to each IP address, because many names may lead to one server. A
 * known operator has its own row, which suits its servers.
 */
export class DestinationLimits {
  readonly #options: DestinationLimitsOptions
  readonly #networkRow: RateLimits
  readonly #operators: TtlMap<RateController>
  readonly #addresses: TtlMap<ConnectionLimit>
  readonly #networks: TtlMap<ConnectionLimit>

  constructor(options: DestinationLimitsOptions) {
    const map = { sizeMax: LIMITS_MAX, clock: options.clock }
    const { row } = options
    this.#options = options
    this.#networkRow = {
      ...row,
      sessionsMax: row.sessionsMax * NETWORK_FACTOR,
      sessionsPerSecond: row.sessionsPerSecond * NETWORK_FACTOR,
    }
    this.#operators = new TtlMap(map)
    this.#addresses = new TtlMap(map)
    this.#networks = new TtlMap(map)
  }

  /** Whether these limits apply to an operator. */
  includes(operator: string): boolean {
    return !this.#options.isKnown(operator)
  }

  /**
   * Returns the limit of an operator over all egresses; null if only the limit per egress applies.
   */
  operator(operator: string): RateController | null {
    const { clock, row, share, hasSeveralEgresses } = this.#options
    if (!this.includes(operator) || !hasSeveralEgresses()) return null
    const key = { operator, egress: ALL_EGRESSES }
    const rateController =
      this.#operators.get(operator) ?? new RateController(row, clock, share?.open(key, row))
    this.#operators.set(operator, rateController, LIMIT_TTL_MS)
    return rateController
  }

  /** Waits for a permit to dial an address: first of the address, then of its network. */
  async start(operator: string, ip: string, request: LimitRequest): Promise<AddressStart> {
    const address = this.#address(ip)
    const acquired = await acquireInOrder([
      () => address.start(operator, request),
      () => this.#network(ip).start(ip, request),
    ])
    return 'permit' in acquired ? { permit: addressPermit(address, acquired.permit) } : acquired
  }

  /** Does the same without waiting; null if that is not possible. */
  startNow(operator: string, ip: string, request: LimitRequest): AddressPermit | null {
    const address = this.#address(ip)
    const network = this.#network(ip)
    if (!address.mayStartNow(request.single) || !network.mayStartNow(request.single)) return null
    const permit = address.startNow(operator, request)
    const networkPermit = network.startNow(ip, request)
    return addressPermit(address, { release: () => releaseAll([networkPermit, permit]) })
  }

  /** Returns the time until this address may be dialed, in ms, as far as this process knows. */
  waitMs(ip: string): number {
    const limits = [this.#addresses.get(ip), this.#networks.get(networkOf(ip))]
    return Math.max(...limits.map(limit => limit?.waitMs ?? 0))
  }

  #address(ip: string): ConnectionLimit {
    const { row } = this.#options
    return this.#limit(this.#addresses, ip, row, ADDRESS_SHARING)
  }

  #network(ip: string): ConnectionLimit {
    return this.#limit(this.#networks, networkOf(ip), this.#networkRow, NETWORK_SHARING)
  }

  #limit(
    map: TtlMap<ConnectionLimit>,
    key: string,
    row: RateLimits,
    sharing: typeof ADDRESS_SHARING,
  ): ConnectionLimit {
    const { clock, share } = this.#options
    const openShared =
      share === null ? null : () => share.open({ operator: `ip ${key}`, egress: ALL_EGRESSES }, row)
    const limit = map.get(key) ?? new ConnectionLimit({ clock, row, openShared, ...sharing })
    map.set(key, limit, LIMIT_TTL_MS)
    return limit
  }
}

const addressPermit = (limit: ConnectionLimit, permit: ConnectionPermit): AddressPermit => ({
  ...permit,
  throttled: retryAfterMs => limit.throttled(retryAfterMs),
  succeeded: () => limit.succeeded(),
})
