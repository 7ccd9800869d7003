import { type Clock, HOUR } from '../../platform/clock.ts'
import { networkOf } from '../../platform/ip.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import {
  ConnectionLimit,
  type LimitRequest,
  type LimitStart,
  startInOrder,
} from './connection-limit.ts'
import { type ConnectionPermit, RateController } from './controller.ts'
import { type RateLimits } from './limit-table.ts'
import type { SharedRateState } from './shared-state.ts'

/** The right to hold a connection to one address. */
export type AddressPermit = ConnectionPermit & {
  /** The server there asked us to slow down. */
  readonly throttled: (retryAfterMs: number | null) => void
  /** The conversation ended well. */
  readonly succeeded: () => void
}

export type AddressStart =
  | { readonly permit: AddressPermit }
  | Exclude<LimitStart, { readonly permit: ConnectionPermit }>

export type DestinationLimitsOptions = {
  readonly clock: Clock
  /** The limits of an operator that nobody knows. */
  readonly row: RateLimits
  /** Whether the table or the settings say how this operator is asked. */
  readonly isKnown: (operator: string) => boolean
  readonly hasSeveralEgresses: () => boolean
  readonly share: SharedRateState | null
}

/** As many as a long list dials before the first are forgotten; about 2 KB each. */
const LIMITS_MAX = 10_000
/** Longer than any pause. */
const LIMIT_TTL_MS = 2 * HOUR
/**
 * A network may hold 254 strangers, or be a single hoster's with an address for each customer. It gets as
 * much as 100 operators: 100 new connections a second by default. One Postfix with its 100 processes
 * (default_process_limit) serves as many sessions of a second each.
 */
const NETWORK_FACTOR = 100
/** One operator at an address is limited by its own state, which is shared already. */
const ADDRESS_SHARING = { sharedFromUsers: 2, keepsUsers: true }
/** Where fewer addresses of a network are dialled at once, a few processes together stay below its limit. */
const NETWORK_SHARING = { sharedFromUsers: 40, keepsUsers: false }
/** Stands in the key of a state for the name of an egress, none of which has a star. */
const ALL_EGRESSES = '*'

/**
 * What limits connections beside an operator's own limit for each egress, at operators that the table does
 * not know. Such an operator is often one small server. Its limit holds over all egresses, so that more
 * egresses do not ask it harder. The same limit holds for each IP address, as many names may lead to one
 * server. A known operator has its own row, which was chosen with its servers in mind.
 */
export class DestinationLimits {
  readonly #options: DestinationLimitsOptions
  readonly #operators: TtlMap<RateController>
  readonly #addresses: TtlMap<ConnectionLimit>
  readonly #networks: TtlMap<ConnectionLimit>

  constructor(options: DestinationLimitsOptions) {
    const map = { sizeMax: LIMITS_MAX, clock: options.clock }
    this.#options = options
    this.#operators = new TtlMap(map)
    this.#addresses = new TtlMap(map)
    this.#networks = new TtlMap(map)
  }

  /** Whether these limits hold for an operator. */
  includes(operator: string): boolean {
    return !this.#options.isKnown(operator)
  }

  /** The limit of an operator over all egresses; null: each egress has its own and no other holds. */
  operator(operator: string): RateController | null {
    const { clock, row, share, hasSeveralEgresses } = this.#options
    if (!this.includes(operator) || !hasSeveralEgresses()) return null
    const key = { operator, egress: ALL_EGRESSES }
    const rateController =
      this.#operators.get(operator) ?? new RateController(row, clock, share?.open(key, row))
    this.#operators.set(operator, rateController, LIMIT_TTL_MS)
    return rateController
  }

  /** Waits for the right to dial an address: first that of the address, then that of its network. */
  async start(operator: string, ip: string, request: LimitRequest): Promise<AddressStart> {
    const address = this.#address(ip)
    const start = await startInOrder([
      () => address.start(operator, request),
      () => this.#network(ip).start(ip, request),
    ])
    return 'permit' in start ? { permit: addressPermit(address, start.permit) } : start
  }

  /** How long until this address may be dialled, as far as this process knows. */
  waitMs(ip: string): number {
    const limits = [this.#addresses.get(ip), this.#networks.get(networkOf(ip))]
    return Math.max(...limits.map(limit => limit?.waitMs ?? 0))
  }

  #address(ip: string): ConnectionLimit {
    const { row } = this.#options
    return this.#limit(this.#addresses, ip, row, ADDRESS_SHARING)
  }

  #network(ip: string): ConnectionLimit {
    const { row } = this.#options
    const generous = {
      ...row,
      sessionsMax: row.sessionsMax * NETWORK_FACTOR,
      sessionsPerSecond: row.sessionsPerSecond * NETWORK_FACTOR,
    }
    return this.#limit(this.#networks, networkOf(ip), generous, NETWORK_SHARING)
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
