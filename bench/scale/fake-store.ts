/** Addresses of one list that are claimed together. */
export type ClaimedPart = { readonly list: number; readonly count: number }

/**
 * Waiting addresses, counted by operator and list, as a thousand million rows would not fit in
 * memory.
 */
export class FakeStore {
  readonly #queues: ListQueue[] = []

  put(operator: number, list: number): void {
    const queue = this.#queues[operator] ?? new ListQueue()
    this.#queues[operator] = queue
    // Consecutive rows belong to the same list.
    if (!queue.addToLast(list)) queue.push(list, 1)
  }

  has(operator: number): boolean {
    return (this.#queues[operator]?.size ?? 0) > 0
  }

  /**
   * Claims up to `max` addresses, shared evenly between the waiting lists; what short lists leave
   * goes to longer ones.
   */
  claim(operator: number, max: number): ClaimedPart[] {
    const queue = this.#queues[operator]
    if (queue === undefined) return []
    const served = Array.from({ length: Math.min(max, queue.size) }, () => ({
      ...queue.shift(),
      count: 0,
    }))
    let left = max
    for (let unfilled = served; unfilled.length > 0 && left > 0; ) {
      const share = Math.max(1, Math.floor(left / unfilled.length))
      for (const list of unfilled) {
        const count = Math.min(share, left, list.waiting - list.count)
        list.count += count
        left -= count
      }
      unfilled = unfilled.filter(({ waiting, count }) => waiting > count)
    }
    // Lists with remaining addresses go to the end.
    for (const { list, waiting, count } of served)
      if (waiting > count) queue.push(list, waiting - count)
    return served
  }
}

/** A queue of lists at one operator with their numbers of addresses, as two integers per list. */
class ListQueue {
  #pairs = new Int32Array(2)
  #head = 0
  size = 0

  addToLast(list: number): boolean {
    const last = this.#index(this.size - 1)
    if (this.size === 0 || this.#pairs[last] !== list) return false
    this.#pairs[last + 1] = (this.#pairs[last + 1] as number) + 1
    return true
  }

  push(list: number, waiting: number): void {
    if (this.size * 2 === this.#pairs.length) this.#grow()
    const index = this.#index(this.size++)
    this.#pairs[index] = list
    this.#pairs[index + 1] = waiting
  }

  shift(): { list: number; waiting: number } {
    const first = this.#head
    this.#head = this.#index(1)
    this.size--
    return { list: this.#pairs[first] as number, waiting: this.#pairs[first + 1] as number }
  }

  /** Returns the index of a list by its position; the length is a power of two. */
  #index(number: number): number {
    return (this.#head + 2 * number) & (this.#pairs.length - 1)
  }

  #grow(): void {
    const pairs = new Int32Array(this.#pairs.length * 2)
    pairs.set(this.#pairs.subarray(this.#head))
    pairs.set(this.#pairs.subarray(0, this.#head), this.#pairs.length - this.#head)
    this.#pairs = pairs
    this.#head = 0
  }
}
