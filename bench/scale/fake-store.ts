/** Addresses of one list that are taken together. */
export type Taken = { readonly list: number; readonly count: number }

/** Addresses that wait, counted by operator and list: a thousand million rows would not fit. */
export class Shelf {
  readonly #rings: Ring[] = []

  put(operator: number, list: number): void {
    const ring = this.#rings[operator] ?? new Ring()
    this.#rings[operator] = ring
    // The rows of a list come one after another.
    if (!ring.addToLast(list)) ring.push(list, 1)
  }

  has(operator: number): boolean {
    return (this.#rings[operator]?.size ?? 0) > 0
  }

  /** Up to `max`, from all lists in turn: each gives its share, and what is left over comes from those with more. */
  take(operator: number, max: number): Taken[] {
    const ring = this.#rings[operator]
    if (ring === undefined) return []
    const served = Array.from({ length: Math.min(max, ring.size) }, () => ({
      ...ring.shift(),
      count: 0,
    }))
    let left = max
    for (let withMore = served; withMore.length > 0 && left > 0; ) {
      const share = Math.max(1, Math.floor(left / withMore.length))
      for (const list of withMore) {
        const count = Math.min(share, left, list.waiting - list.count)
        list.count += count
        left -= count
      }
      withMore = withMore.filter(({ waiting, count }) => waiting > count)
    }
    // Those that were served wait behind the others now.
    for (const { list, waiting, count } of served)
      if (waiting > count) ring.push(list, waiting - count)
    return served
  }
}

/** Lists that wait for an operator, and how many addresses each has: two numbers a list, the first served first. */
class Ring {
  #pairs = new Int32Array(2)
  #head = 0
  size = 0

  addToLast(list: number): boolean {
    const last = this.#place(this.size - 1)
    if (this.size === 0 || this.#pairs[last] !== list) return false
    this.#pairs[last + 1] = (this.#pairs[last + 1] as number) + 1
    return true
  }

  push(list: number, waiting: number): void {
    if (this.size * 2 === this.#pairs.length) this.#grow()
    const place = this.#place(this.size++)
    this.#pairs[place] = list
    this.#pairs[place + 1] = waiting
  }

  shift(): { list: number; waiting: number } {
    const first = this.#head
    this.#head = this.#place(1)
    this.size--
    return { list: this.#pairs[first] as number, waiting: this.#pairs[first + 1] as number }
  }

  /** Where a list stands, counted from the first; the length is a power of two. */
  #place(number: number): number {
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
