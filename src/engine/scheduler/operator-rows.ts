import type { Row } from './feed.ts'

/** The functions of the run that `OperatorRows` calls. */
type OperatorRowsDeps = {
  /** Returns how many more rows of an operator the run may have in memory that has `size` rows. */
  readonly getRoom: (operator: string, size: number) => number
  /** The run has more or fewer rows of an operator; it had `size`. */
  readonly countRows: (operator: string, size: number, change: number) => void
  /**
   * Asks the sink for refused rows of an operator, and returns how many the feed supplies again; null
   * if the sink has none because rows that it refuses are kept here.
   */
  readonly ask: ((operator: string, room: number) => number | Promise<number>) | null
  /** Routes rows that were kept here. */
  readonly supply: (rows: readonly Row<unknown>[]) => void
  /** Aborts when nothing new is started. */
  readonly draining: AbortSignal
  /** Ends the run after an error of `ask`. */
  readonly fail: (error: unknown) => void
}

/**
 * Counts the rows of a run by operator, and knows of which operators rows were refused for lack of
 * room: they are asked for again as soon as half of the room is free.
 */
export class OperatorRows {
  readonly #deps: OperatorRowsDeps
  /** Number of rows by operator, with the refused ones that it has asked for. */
  readonly #sizes = new Map<string, number>()
  /** Operators of which rows were refused. */
  readonly #refusing = new Set<string>()
  /** Operators with a call of `ask` in progress; true if a row was refused since the call. */
  readonly #asking = new Map<string, boolean>()
  /** Rows that are not routed yet, by the operator that has asked for them. */
  readonly #asked = new Map<Row<unknown>, string>()
  /** Number of these by operator. */
  readonly #askedCounts = new Map<string, number>()
  /** Refused rows by operator, if they are kept here. */
  readonly #kept = new Map<string, Row<unknown>[]>()

  constructor(deps: OperatorRowsDeps) {
    this.#deps = deps
  }

  /** The operators with rows. */
  get operators(): Iterable<string> {
    return this.#sizes.keys()
  }

  /** Counts more or fewer rows of an operator. */
  count(operator: string, change: number): void {
    const before = this.#sizes.get(operator) ?? 0
    const size = before + change
    if (size === 0) this.#sizes.delete(operator)
    else this.#sizes.set(operator, size)
    this.#deps.countRows(operator, before, change)
  }

  /** Whether the run may take no further row of an operator. It may always take the first one. */
  isFull(operator: string): boolean {
    const size = this.#sizes.get(operator)
    return size !== undefined && this.#deps.getRoom(operator, size) <= 0
  }

  /** Whether rows of an operator wait until it has room. */
  isRefusing(operator: string): boolean {
    return this.#refusing.has(operator)
  }

  /** Records that a row was refused. Returns false if it is kept here. */
  refuse(operator: string, row: Row<unknown>): boolean {
    this.#refusing.add(operator)
    if (this.#asking.has(operator)) this.#asking.set(operator, true)
    if (this.#deps.ask !== null) return true
    const kept = this.#kept.get(operator)
    if (kept === undefined) this.#kept.set(operator, [row])
    else kept.push(row)
    return false
  }

  /** Records that a row arrived that was asked for. */
  arrived(row: Row<unknown>): void {
    if (row.askedBy !== undefined) this.#asked.set(row, row.askedBy)
  }

  /** Records that a row is routed. Returns the operator that had asked for it; null if none had. */
  routed(row: Row<unknown>): string | null {
    const askedBy = this.#asked.get(row)
    if (askedBy === undefined) return null
    this.#asked.delete(row)
    this.#countAsked(askedBy, -1)
    return askedBy
  }

  /** Asks for refused rows of an operator if half of its room is free. */
  askForMore(operator: string): void {
    if (!this.#refusing.has(operator) || this.#asking.has(operator)) return
    const size = this.#sizes.get(operator) ?? 0
    const room = this.#deps.getRoom(operator, size)
    if (size > room) return
    try {
      const asked = this.#deps.ask?.(operator, room) ?? this.#supplyKept(operator, room)
      if (typeof asked === 'number') this.#onAsked(operator, asked)
      else void this.#awaitAsked(operator, asked)
    } catch (error) {
      this.#deps.fail(error)
    }
  }

  /** Forgets all rows, because the run has ended. */
  clear(): void {
    for (const [operator, size] of this.#sizes) this.#deps.countRows(operator, size, -size)
    this.#sizes.clear()
  }

  async #awaitAsked(operator: string, asked: Promise<number>): Promise<void> {
    this.#asking.set(operator, false)
    try {
      const count = await asked
      const hasRefused = this.#asking.get(operator) ?? false
      this.#asking.delete(operator)
      if (count === 0 && hasRefused) this.askForMore(operator)
      else this.#onAsked(operator, count)
    } catch (error) {
      this.#deps.fail(error)
    }
  }

  /** The feed supplies this number of rows again. */
  #onAsked(operator: string, count: number) {
    if (this.#deps.draining.aborted) return
    if (count > 0) this.#countAsked(operator, count)
    else if (!this.#askedCounts.has(operator)) this.#refusing.delete(operator)
  }

  #countAsked(operator: string, change: number) {
    const count = (this.#askedCounts.get(operator) ?? 0) + change
    if (count === 0) this.#askedCounts.delete(operator)
    else this.#askedCounts.set(operator, count)
    this.count(operator, change)
  }

  #supplyKept(operator: string, room: number): number {
    const kept = this.#kept.get(operator) ?? []
    const rows = kept.splice(0, room)
    if (kept.length === 0) this.#kept.delete(operator)
    for (const row of rows) this.#asked.set(row, operator)
    this.#deps.supply(rows)
    return rows.length
  }
}
