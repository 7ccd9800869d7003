import type { RateController } from '../rate-control/controller.ts'
import type { AddressPermit, AddressStart } from '../rate-control/destination-limits.ts'
import { type AcquireResult, acquireBoth, releaseAll } from '../rate-control/permit-queue.ts'
import type { ProbeDeps } from './egress.ts'

type ConnectionPermitsOptions = {
  readonly deps: Pick<ProbeDeps, 'connectionSlots' | 'destinationLimits'>
  readonly rateController: RateController
  readonly operator: string
  /** The MX group: its connections share one position in the wait queue of an address. */
  readonly key: string
  readonly single: boolean
  /** A caller waits for the result, so no connection slot is used. */
  readonly isUrgent: boolean
  readonly timeoutMs: number
  /** True if a target that would wait long for an address is returned to the caller. */
  readonly isReturnable: boolean
  readonly signal: AbortSignal
}

/**
 * Acquires the permits that a connection needs, always in the same order to prevent a deadlock: of
 * the operator for this egress, of the operator over all egresses, of the address, of the network,
 * and last a connection slot of the process. No connection holds a slot while it waits for a
 * permit.
 */
export class ConnectionPermits {
  readonly #options: ConnectionPermitsOptions

  constructor(options: ConnectionPermitsOptions) {
    this.#options = options
  }

  /** Acquires a permit to open a connection to the operator. */
  operator(): AcquireResult | Promise<AcquireResult> {
    const { rateController, deps, operator, single, timeoutMs, signal } = this.#options
    const own = rateController.start(timeoutMs, signal, single)
    const overall = deps.destinationLimits?.operator(operator) ?? null
    if (overall === null) return own
    return acquireBoth(own, () => overall.start(timeoutMs, signal, single))
  }

  /** Acquires a permit to dial one of its addresses. */
  address(ip: string): AddressStart | Promise<AddressStart> {
    const { deps, operator, key, single, timeoutMs, isReturnable, signal } = this.#options
    const limits = deps.destinationLimits
    if (!limits?.includes(operator)) return this.#withSlot(UNLIMITED)
    const start = limits.start(operator, ip, { key, single, signal, timeoutMs, isReturnable })
    return 'then' in start ? start.then(one => this.#withSlot(one)) : this.#withSlot(start)
  }

  /** Acquires a connection slot, unless a caller waits. */
  #withSlot(start: AddressStart): AddressStart | Promise<AddressStart> {
    const { deps, single, isUrgent } = this.#options
    if (!('permit' in start) || single || isUrgent) return start
    const releaseSlot = deps.connectionSlots.tryAcquire()
    if (releaseSlot !== null) return { permit: new PermitWithSlot(start.permit, releaseSlot) }
    return deps.connectionSlots
      .acquire()
      .then(release => ({ permit: new PermitWithSlot(start.permit, release) }))
  }

  /**
   * Returns the addresses of one host in their order, but those that may be dialed at once first.
   */
  inOrder(ips: readonly string[]): readonly string[] {
    const { deps, operator } = this.#options
    const limits = deps.destinationLimits
    if (ips.length < 2 || !limits?.includes(operator)) return ips
    const waits = new Map(ips.map(ip => [ip, limits.waitMs(ip)]))
    return ips.toSorted((a, b) => (waits.get(a) as number) - (waits.get(b) as number))
  }
}

/** A permit that also holds a connection slot. */
class PermitWithSlot implements AddressPermit {
  readonly #permit: AddressPermit
  readonly #releaseSlot: () => void

  constructor(permit: AddressPermit, releaseSlot: () => void) {
    this.#permit = permit
    this.#releaseSlot = releaseSlot
  }

  release(): void {
    releaseAll([{ release: this.#releaseSlot }, this.#permit])
  }

  throttled(retryAfterMs: number | null): void {
    this.#permit.throttled(retryAfterMs)
  }

  limitReached(): void {
    this.#permit.limitReached()
  }

  succeeded(): void {
    this.#permit.succeeded()
  }
}

const noLimit: AddressPermit = { release() {}, throttled() {}, limitReached() {}, succeeded() {} }
const UNLIMITED: AddressStart = { permit: noLimit }
