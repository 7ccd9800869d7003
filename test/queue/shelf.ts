import type { Clock } from '../../src/base/clock.ts'
import type { Entries } from '../../src/queue/entries.ts'

/** Claims that nobody kept for so long are another's. */
const HEARTBEAT_MS = 10_000

type Row = {
  readonly key: string
  readonly id: string
  order: number
  dueAt: number
  attempt: number
  isActive: boolean
  againAt: number | null
  touchedAt: number
}

/** Entries that several kinds share, in memory: what a database does, by the same rules, on the test's clock. */
export class Shelf implements Entries {
  readonly #clock: Clock
  readonly #rows = new Map<string, Row>()
  #orders = 0
  /** What was asked, in order. */
  readonly calls: string[] = []
  /** Every call fails with it. */
  fault: Error | null = null
  /** Calls wait for it, once it is set. */
  gate: Promise<void> | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get keys(): string[] {
    return [...this.#rows.keys()]
  }

  put: Entries['put'] = async wanted => {
    await this.#asked(`put ${wanted.map(({ key }) => key)}`)
    for (const { key, waitMs } of wanted) {
      const dueAt = this.#clock.ticks() + waitMs
      const row = this.#rows.get(key)
      if (row === undefined) this.#add(key, dueAt)
      else if (row.isActive) row.againAt = Math.min(row.againAt ?? dueAt, dueAt)
      else row.dueAt = Math.min(row.dueAt, dueAt)
    }
  }

  take: Entries['take'] = async max => {
    await this.#asked('take')
    const due = [...this.#rows.values()]
      .filter(row => !row.isActive && row.dueAt <= this.#clock.ticks())
      .toSorted((a, b) => a.order - b.order)
      .slice(0, max)
    for (const row of due) {
      row.isActive = true
      row.attempt++
      row.touchedAt = this.#clock.ticks()
    }
    return due.map(({ key, id, attempt }) => ({ key, id, attempt }))
  }

  end: Entries['end'] = async ended => {
    await this.#asked(`end ${ended.map(({ claim }) => claim.key)}`)
    return ended.map(({ claim, waitMs }) => {
      const row = this.#rows.get(claim.key)
      if (!isHeld(row, claim)) return 'lost'
      const now = this.#clock.ticks()
      const times = [waitMs === null ? null : now + waitMs, row.againAt].filter(at => at !== null)
      if (times.length === 0) this.#rows.delete(row.key)
      else {
        Object.assign(row, { isActive: false, againAt: null, order: this.#orders++ })
        row.dueAt = Math.min(...times)
      }
      return times.length === 0 ? null : Math.max(0, row.dueAt - now)
    })
  }

  touch: Entries['touch'] = async claims => {
    await this.#asked('touch')
    const held = claims.filter(claim => isHeld(this.#rows.get(claim.key), claim))
    for (const { key } of held) {
      const row = this.#rows.get(key)
      if (row !== undefined) row.touchedAt = this.#clock.ticks()
    }
    return new Set(held.map(({ id }) => id))
  }

  /** What nobody kept waits again. */
  expire(): void {
    for (const row of this.#rows.values()) {
      if (this.#clock.ticks() - row.touchedAt > HEARTBEAT_MS) row.isActive = false
    }
  }

  /** As if its worker had not been heard of. */
  takeAway(key: string): void {
    const row = this.#rows.get(key)
    if (row === undefined) throw new Error(`${key} is not there`)
    row.isActive = false
  }

  #add(key: string, dueAt: number) {
    const order = this.#orders++
    const fresh = { isActive: false, againAt: null, touchedAt: 0, attempt: 0 }
    this.#rows.set(key, { key, id: `${order}`, order, dueAt, ...fresh })
  }

  async #asked(call: string): Promise<void> {
    this.calls.push(call)
    await this.gate
    if (this.fault !== null) throw this.fault
  }
}

const isHeld = (row: Row | undefined, claim: { id: string; attempt: number }): row is Row =>
  row?.isActive === true && row.id === claim.id && row.attempt === claim.attempt
