import type { MxOperator } from './dns/operators.ts'
import type { ProbeTask } from './probing/prepare.ts'
import type { AttemptHistory } from './probing/retry-policy.ts'
import type { RateLimits } from './rate-control/limit-table.ts'

/** An address of a stream that waits for a probe, with its attempt history. */
export type PendingAddress = Omit<AttemptHistory, 'waitedMs'> & {
  readonly task: ProbeTask
  /** When it first became ready for a probe, monotonic ms. */
  readonly since: number
}

/** The pending addresses of one operator, and the number of workers per egress. */
export class OperatorQueue {
  readonly operator: MxOperator
  /** The rate limits of the operator. */
  readonly limits: RateLimits
  /** True while the gather timer runs, because more addresses may arrive. */
  gathering = false
  /** True when nothing arrived for a while: a partial batch is probed then, too. */
  ready = false
  /** When the last address arrived, monotonic ms. */
  lastAt = 0
  /** Addresses that any egress may probe. */
  #free: PendingAddress[] = []
  /** Addresses pinned to one egress. */
  readonly #pinned = new Map<string, PendingAddress[]>()
  readonly #workers = new Map<string, number>()

  constructor(operator: MxOperator, limits: RateLimits) {
    this.operator = operator
    this.limits = limits
  }

  add(pending: PendingAddress) {
    const { egress } = pending
    const target = egress === null ? this.#free : this.#pinnedTo(egress)
    target.push(pending)
    if (egress !== null) this.#pinned.set(egress, target)
  }

  /**
   * Returns how many addresses an egress can take: those pinned to it, and the free ones if
   * allowed.
   */
  pendingFor(egress: string, takesFree: boolean): number {
    return this.#pinnedTo(egress).length + (takesFree ? this.#free.length : 0)
  }

  /** Whether addresses are pinned to this egress. */
  needs(egress: string): boolean {
    return this.#pinnedTo(egress).length > 0
  }

  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** Whether the pending addresses fill a connection, the catch-all probe included. */
  get fillsConnection(): boolean {
    return this.#size >= this.limits.recipientsPerSession - 1
  }

  get #size(): number {
    let count = this.#free.length
    for (const pinned of this.#pinned.values()) count += pinned.length
    return count
  }

  /** Returns the address that `take` would return first. */
  next(egress: string, takesFree: boolean): PendingAddress | undefined {
    return this.#pinnedTo(egress)[0] ?? (takesFree ? this.#free[0] : undefined)
  }

  /** Removes and returns the next recipients for one connection of an egress. */
  take(egress: string, sizeMax: number, takesFree: boolean): PendingAddress[] {
    const [pinned, pinnedRest] = splitBatch(this.#pinnedTo(egress), sizeMax)
    if (pinned.length > 0) this.#pinned.set(egress, pinnedRest)
    if (!takesFree || pinned.length >= sizeMax) return pinned
    const [free, freeRest] = splitBatch(this.#free, sizeMax - pinned.length)
    this.#free = freeRest
    return pinned.length === 0 ? free : [...pinned, ...free]
  }

  workers(egress: string): number {
    return this.#workers.get(egress) ?? 0
  }

  /** Records that a worker started (1) or stopped (-1). */
  countWorker(egress: string, change: 1 | -1) {
    this.#workers.set(egress, this.workers(egress) + change)
  }

  /** Whether no address is pending and no worker runs. */
  get isDone(): boolean {
    return this.isEmpty && [...this.#workers.values()].every(workers => workers === 0)
  }

  #pinnedTo(egress: string): PendingAddress[] {
    return this.#pinned.get(egress) ?? []
  }
}

/**
 * Splits off at most `sizeMax` addresses: first those of the domain that has waited longest, then
 * the others in order.
 */
function splitBatch(
  pending: PendingAddress[],
  sizeMax: number,
): [batch: PendingAddress[], rest: PendingAddress[]] {
  if (pending.length <= sizeMax) return [pending, []]
  const domain = pending[0]?.task.address.domain.ascii
  const same = pending.filter(({ task }) => task.address.domain.ascii === domain)
  const others = pending.filter(({ task }) => task.address.domain.ascii !== domain)
  const capacity = Math.max(0, sizeMax - same.length)
  return [
    [...same.slice(0, sizeMax), ...others.slice(0, capacity)],
    [...same.slice(sizeMax), ...others.slice(capacity)],
  ]
}
