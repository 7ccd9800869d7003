import type { Operator } from '../../dns/operator.ts'
import type { PaceRow } from '../../probe/pace.ts'
import type { Past } from '../inquiry/again.ts'
import type { Inquiry } from '../inquiry/prepare.ts'

/** An address of a stream that is to be asked, and what it has been through. */
export type Waiting = Omit<Past, 'waitedMs'> & {
  readonly inquiry: Inquiry
  /** When it was ready to be asked for the first time, monotonic ms. */
  readonly since: number
}

/** What waits for one operator, and how many connections of each egress work on it. */
export class Line {
  readonly operator: Operator
  /** How the operator is asked. */
  readonly row: PaceRow
  /** Its timer runs: more may come. */
  gathering = false
  /** Nothing more came for a while: what waits is walked even if it fills no connection. */
  ripe = false
  /** When the last one came, monotonic ms. */
  lastAt = 0
  /** For any egress. */
  #free: Waiting[] = []
  /** For the one that must ask. */
  readonly #bound = new Map<string, Waiting[]>()
  readonly #walkers = new Map<string, number>()

  constructor(operator: Operator, row: PaceRow) {
    this.operator = operator
    this.row = row
  }

  add(waiting: Waiting) {
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
  next(egress: string, mayHaveFree: boolean): Waiting | undefined {
    return this.#boundTo(egress)[0] ?? (mayHaveFree ? this.#free[0] : undefined)
  }

  /** The next recipients for one connection of an egress. */
  take(egress: string, sizeMax: number, mayHaveFree: boolean): Waiting[] {
    const [bound, boundRest] = cut(this.#boundTo(egress), sizeMax)
    if (bound.length > 0) this.#bound.set(egress, boundRest)
    if (!mayHaveFree || bound.length >= sizeMax) return bound
    const [free, freeRest] = cut(this.#free, sizeMax - bound.length)
    this.#free = freeRest
    return bound.length === 0 ? free : [...bound, ...free]
  }

  walkers(egress: string): number {
    return this.#walkers.get(egress) ?? 0
  }

  /** A walker comes (1) or goes (-1). */
  count(egress: string, change: 1 | -1) {
    this.#walkers.set(egress, this.walkers(egress) + change)
  }

  /** Nobody waits, and nobody is at work. */
  get isOver(): boolean {
    return this.isEmpty && [...this.#walkers.values()].every(walkers => walkers === 0)
  }

  #boundTo(egress: string): Waiting[] {
    return this.#bound.get(egress) ?? []
  }
}

/** At most `sizeMax` of them, and the rest: those of the domain that waits longest, and then of the next. */
function cut(waiting: Waiting[], sizeMax: number): [taken: Waiting[], rest: Waiting[]] {
  if (waiting.length <= sizeMax) return [waiting, []]
  const domain = waiting[0]?.inquiry.address.domain.ascii
  const same = waiting.filter(({ inquiry }) => inquiry.address.domain.ascii === domain)
  const others = waiting.filter(({ inquiry }) => inquiry.address.domain.ascii !== domain)
  const room = Math.max(0, sizeMax - same.length)
  return [
    [...same.slice(0, sizeMax), ...others.slice(0, room)],
    [...same.slice(sizeMax), ...others.slice(room)],
  ]
}
