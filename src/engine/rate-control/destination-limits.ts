import { type Clock, HOUR } from '../../platform/clock.ts'
import { networkOf } from '../../platform/ip.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { RateController } from './controller.ts'
import {
  DestinationBucket,
  type DestinationKind,
  type LimitRequest,
  type LimitStart,
} from './destination-bucket.ts'
import type { DestinationLimit, RateLimits } from './limit-table.ts'
import { acquireBoth, type ConnectionPermit } from './permit-queue.ts'
import type { SharedRateState } from './shared-state.ts'

/** A permit for a connection to one IP address. */
export type AddressPermit = ConnectionPermit & {
  /** Records that the server at this address throttled us. */
  throttled(retryAfterMs: number | null): void
  /** Records that the server refused a further connection while it served others. */
  limitReached(): void
  /** Records a successful session. */
  succeeded(): void
}

export type AddressStart =
  | { readonly permit: AddressPermit }
  | Exclude<LimitStart, { readonly permit: ConnectionPermit }>

type DestinationLimitsOptions = {
  readonly clock: Clock
  /** The limits of an operator that is not in the table. */
  readonly limits: RateLimits
  /** The limits of each IP address, and of each network. */
  readonly address: DestinationLimit
  readonly network: DestinationLimit
  /** Whether the table or the settings have limits for this operator. */
  readonly isKnown: (operator: string) => boolean
  readonly hasSeveralEgresses: () => boolean
  readonly share: SharedRateState | null
}

/** The most limits in memory, for the destinations of a long list; about 400 bytes each, 8 MB. */
const LIMITS_MAX = 20_000
/** Longer than any pause. */
const LIMIT_TTL_MS = 2 * HOUR
/** A single operator at an address is limited by its own state, which is already shared. */
const ADDRESS_SHARING = { sharedFromUsers: 2, keepsUsers: true }
/** With fewer addresses of a network in use, a few processes together stay below its limit. */
const NETWORK_SHARING = { sharedFromUsers: 40, keepsUsers: false }
/** Replaces the egress name in the key of a state; no egress name contains a star. */
export const ALL_EGRESSES = '*'

/**
 * Additional limits for operators that are not in the table, besides the limit per egress. Such an
 * operator is often one small server. Its limit covers all egresses, so that more egresses do not
 * add load. Each IP address and each network has a limit too, because many names may lead to one
 * server. A known operator has limits in the table, which suit its servers.
 */
export class DestinationLimits {
  readonly #options: DestinationLimitsOptions
  readonly #addressKind: DestinationKind
  readonly #networkKind: DestinationKind
  readonly #operators: TtlMap<RateController>
  readonly #addresses: TtlMap<DestinationBucket>
  readonly #networks: TtlMap<DestinationBucket>

  constructor(options: DestinationLimitsOptions) {
    const { clock, address, network } = options
    const map = { sizeMax: LIMITS_MAX, clock }
    this.#options = options
    this.#addressKind = toKind(options, address, ADDRESS_SHARING)
    this.#networkKind = toKind(options, network, NETWORK_SHARING)
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
    const { clock, limits, share, hasSeveralEgresses } = this.#options
    if (!this.includes(operator) || !hasSeveralEgresses()) return null
    const key = { operator, egress: ALL_EGRESSES }
    const create = () => new RateController(limits, clock, share?.open(key, limits))
    return this.#operators.getOrCreate(operator, create, LIMIT_TTL_MS)
  }

  /**
   * Returns a permit to dial an address, or why there is none: at once if the state decides it, else a
   * promise. The permit of the address comes first, then that of its network.
   */
  start(operator: string, ip: string, request: LimitRequest): AddressStart | Promise<AddressStart> {
    const address = bucketOf(this.#addresses, ip, this.#addressKind)
    const started = acquireBoth(address.start(operator, request), () =>
      bucketOf(this.#networks, networkOf(ip), this.#networkKind).start(ip, request),
    )
    return 'then' in started
      ? started.then(start => toAddressStart(address, start))
      : toAddressStart(address, started)
  }

  /** Returns the time until this address may be dialed, in ms, as far as this process knows. */
  waitMs(ip: string): number {
    const limits = [this.#addresses.get(ip), this.#networks.get(networkOf(ip))]
    return Math.max(...limits.map(limit => limit?.waitMs ?? 0))
  }
}

function toKind(
  { clock, limits, share }: DestinationLimitsOptions,
  limit: DestinationLimit,
  { sharedFromUsers, keepsUsers }: typeof ADDRESS_SHARING,
): DestinationKind {
  const { sessionsMax, sessionsPerSecond } = limit
  const shared: RateLimits = { ...limits, sessionsMax, sessionsPerSecond }
  const openShared =
    share === null
      ? null
      : (key: string) => {
          const state = share.open({ operator: `ip ${key}`, egress: ALL_EGRESSES }, shared)
          return new RateController(shared, clock, state)
        }
  return { clock, limit, openShared, sharedFromUsers, keepsUsers }
}

/** Returns the bucket of a key, and creates it if needed. */
const bucketOf = (buckets: TtlMap<DestinationBucket>, key: string, kind: DestinationKind) =>
  buckets.getOrCreate(key, () => new DestinationBucket(kind, key), LIMIT_TTL_MS)

const toAddressStart = (address: DestinationBucket, start: LimitStart): AddressStart =>
  'permit' in start ? { permit: new BucketPermit(address, start.permit) } : start

class BucketPermit implements AddressPermit {
  readonly #address: DestinationBucket
  readonly #permit: ConnectionPermit

  constructor(address: DestinationBucket, permit: ConnectionPermit) {
    this.#address = address
    this.#permit = permit
  }

  release(): void {
    this.#permit.release()
  }

  throttled(retryAfterMs: number | null): void {
    this.#address.throttled(retryAfterMs)
  }

  limitReached(): void {
    this.#address.limitReached()
  }

  succeeded(): void {
    this.#address.succeeded()
  }
}
