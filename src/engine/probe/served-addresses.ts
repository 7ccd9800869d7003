import { type Clock, MINUTE } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

const ADDRESSES_MAX = 20_000
/**
 * How long an address that fails after it served us is expected back: longer than a restart, and than
 * the ban of ten minutes that is the default of fail2ban.
 */
const SERVED_MS = 15 * MINUTE

/** The IP addresses that answered EHLO recently, through any egress, or had such a connection open. */
export class ServedAddresses {
  readonly #addresses: TtlMap<object>

  constructor(clock: Clock) {
    this.#addresses = new TtlMap({ sizeMax: ADDRESSES_MAX, clock })
  }

  add(ip: string): void {
    this.#addresses.set(ip, SERVED, SERVED_MS)
  }

  has(ip: string): boolean {
    return this.#addresses.get(ip) !== undefined
  }
}

const SERVED = {}
