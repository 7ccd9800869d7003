import { startInOrder } from '../rate-control/connection-limit.ts'
import type { AcquireResult, RateController } from '../rate-control/controller.ts'
import type { AddressPermit, AddressStart } from '../rate-control/destination-limits.ts'
import type { ProbeDeps } from './egress.ts'

export type ConnectionPermitsOptions = {
  readonly deps: Pick<ProbeDeps, 'connectionSlots' | 'destinationLimits'>
  readonly rateController: RateController
  readonly operator: string
  /** The set of exchangers: its connections wait for one turn at an address. */
  readonly key: string
  readonly single: boolean
  /** Somebody waits: no connection slot of lists is taken. */
  readonly isUrgent: boolean
  readonly timeoutMs: number
  /** What has to wait long for an address is handed back. */
  readonly isReturnable: boolean
  readonly signal: AbortSignal
}

/**
 * The permits that a connection needs. They are taken in one order, so that nobody waits in a circle: the
 * operator's for this egress, the operator's over all egresses, the address's, the network's, and last a
 * connection slot of the process, which is so held by nobody who waits for something else.
 */
export class ConnectionPermits {
  readonly #options: ConnectionPermitsOptions

  constructor(options: ConnectionPermitsOptions) {
    this.#options = options
  }

  /** Waits for the right to open a connection to the operator. */
  async operator(): Promise<AcquireResult> {
    const { rateController, deps, operator, single, timeoutMs, signal } = this.#options
    const limit = deps.destinationLimits?.operator(operator) ?? null
    const rateControllers = limit === null ? [rateController] : [rateController, limit]
    return startInOrder(rateControllers.map(one => () => one.start(timeoutMs, signal, single)))
  }

  /** Waits for the right to dial one of its addresses. */
  async address(ip: string): Promise<AddressStart> {
    const { deps, operator, key, single, isUrgent, timeoutMs, isReturnable, signal } = this.#options
    const limits = deps.destinationLimits
    const request = { key, single, signal, timeoutMs, isReturnable }
    const start: AddressStart = limits?.includes(operator)
      ? await limits.start(operator, ip, request)
      : UNLIMITED
    if (!('permit' in start) || single || isUrgent) return start
    const releaseSlot = await deps.connectionSlots.take()
    const { permit } = start
    const release = () => {
      releaseSlot()
      permit.release()
    }
    return { permit: { ...permit, release } }
  }

  /** The addresses of one host, in their order, those first that may be dialled at once. */
  inOrder(ips: readonly string[]): readonly string[] {
    const { deps, operator } = this.#options
    const limits = deps.destinationLimits
    if (ips.length < 2 || !limits?.includes(operator)) return ips
    const waits = new Map(ips.map(ip => [ip, limits.waitMs(ip)]))
    return ips.toSorted((a, b) => (waits.get(a) as number) - (waits.get(b) as number))
  }
}

const noLimit: AddressPermit = { release() {}, throttled() {}, succeeded() {} }
const UNLIMITED: AddressStart = { permit: noLimit }
