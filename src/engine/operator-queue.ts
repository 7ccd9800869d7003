import type { MxOperator } from './dns/operator-table.ts'
import type { ProbeTask } from './probing/prepare.ts'
import type { AttemptHistory } from './probing/retry-policy.ts'
import type { RateLimits } from './rate-control/controller.ts'

/** An address of a stream that is to be asked, and what it has been through. */
export type PendingAddress = Omit<AttemptHistory, 'waitedMs'> & {
  readonly task: ProbeTask
  /** When it was ready to be asked for the first time, monotonic ms. */
  readonly since: number
}

/** What waits for one operator, and how many connections of each egress work on it. */
export class OperatorQueue {
  readonly operator: MxOperator
  /** How the operator is asked. */
  readonly row: RateLimits
  /** Its timer runs: more may come. */
  gathering = false
  /** Nothing more came for a while: what waits is walked even if it fills no connection. */
  ready = false
  /** When the last one came, monotonic ms. */
  lastAt = 0
  /** For any egress. */
  #free: PendingAddress[] = []
  /** For the one that must ask. */
  readonly #bound = new Map<string, PendingAddress[]>()
  readonly #workers = new Map<string, number>()

  constructor(operator: MxOperator, row: RateLimits) {
    this.operator = operator
    this.row = row
  }

  add(waiting: PendingAddress) {
    const { egress } = waiting
    const line = egress === null ? this.#free : this.#boundTo(egress)
    line.push(waiting)
    if (egress !== null) this.#bound.set(egress, line)
  }

  /** How many wait for an egress: those that it must ask, and the free ones if it may have them. */
  waitingFor(egress: string, mayHaveFree: boolean): number {
    return this.#boundTo(egress).length + (mayHaveFree ? this.#free.length : 0)
  }

  /** Whether some wait that only this egress may ask. */
  needs(egress: string): boolean {
    return this.#boundTo(egress).length > 0
  }

  get isEmpty(): boolean {
    return this.#waiting === 0
  }

  /** As many wait as may fill a connection, the random recipient counted. */
  get fillsConnection(): boolean {
    return this.#waiting >= this.row.recipientsPerSession - 1
  }

  get #waiting(): number {
    let count = this.#free.length
    for (const bound of this.#bound.values()) count += bound.length
    return count
  }

  /** Whom `take` gives first. */
  next(egress: string, mayHaveFree: boolean): PendingAddress | undefined {
    return this.#boundTo(egress)[0] ?? (mayHaveFree ? this.#free[0] : undefined)
  }

  /** The next recipients for one connection of an egress. */
  take(egress: string, sizeMax: number, mayHaveFree: boolean): PendingAddress[] {
    const [bound, boundRest] = cut(this.#boundTo(egress), sizeMax)
    if (bound.length > 0) this.#bound.set(egress, boundRest)
    if (!mayHaveFree || bound.length >= sizeMax) return bound
    const [free, freeRest] = cut(this.#free, sizeMax - bound.length)
    this.#free = freeRest
    return bound.length === 0 ? free : [...bound, ...free]
  }

  workers(egress: string): number {
    return this.#workers.get(egress) ?? 0
  }

  /** A walker comes (1) or goes (-1). */
  count(egress: string, change: 1 | -1) {
    this.#workers.set(egress, this.workers(egress) + change)
  }

  /** Nobody waits, and nobody is at work. */
  get isDone(): boolean {
    return this.isEmpty && [...this.#workers.values()].every(workers => workers === 0)
  }

  #boundTo(egress: string): PendingAddress[] {
    return this.#bound.get(egress) ?? []
  }
}

/** At most `sizeMax` of them, and the rest: those of the domain that waits longest, and then of the next. */
function cut(
  waiting: PendingAddress[],
  sizeMax: number,
): [taken: PendingAddress[], rest: PendingAddress[]] {
  if (waiting.length <= sizeMax) return [waiting, []]
  const domain = waiting[0]?.task.address.domain.ascii
  const same = waiting.filter(({ task }) => task.address.domain.ascii === domain)
  const others = waiting.filter(({ task }) => task.address.domain.ascii !== domain)
  const room = Math.max(0, sizeMax - same.length)
  return [
    [...same.slice(0, sizeMax), ...others.slice(0, room)],
    [...same.slice(sizeMax), ...others.slice(room)],
  ]
}
