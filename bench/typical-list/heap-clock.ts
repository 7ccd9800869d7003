import type { Clock } from '../../src/platform/clock.ts'

/**
 * Timers are rounded up to multiples of this, which saves event loop turns; nothing here needs more
 * precision.
 */
const STEP_MS = 20

type Timer = {
  readonly at: number
  /** Timers that are due at the same time fire in the order in which they were set, as in Node. */
  readonly order: number
  callback: (() => void) | null
}

/** A virtual clock for millions of timers, which advances as fast as their callbacks run. */
export class HeapClock implements Clock {
  #now = 0
  #set = 0
  readonly #heap: Timer[] = []

  now(): number {
    return this.#now
  }

  monotonicNow(): number {
    return this.#now
  }

  after(delayMs: number, callback: () => void): () => void {
    const at = Math.ceil((this.#now + Math.max(0, delayMs)) / STEP_MS) * STEP_MS
    const timer: Timer = { at, order: this.#set++, callback }
    this.#push(timer)
    return () => {
      timer.callback = null
    }
  }

  /** Advances until no timer is left or `isDone` returns true. */
  run(isDone: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = () => {
        const first = this.#heap[0]
        if (first === undefined || isDone()) return resolve()
        this.#now = Math.max(this.#now, first.at)
        try {
          this.#fire()
        } catch (error) {
          return reject(error)
        }
        // Callbacks set their next timers before the clock advances.
        setImmediate(step)
      }
      setImmediate(step)
    })
  }

  #fire(): void {
    for (let due = this.#heap[0]; due !== undefined && due.at <= this.#now; due = this.#heap[0]) {
      this.#pop()
      due.callback?.()
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as Timer
      if (!isEarlier(timer, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      const right = heap[child + 1]
      if (right !== undefined && isEarlier(right, heap[child] as Timer)) child++
      if (!isEarlier(heap[child] as Timer, last)) break
      heap[at] = heap[child] as Timer
      at = child
    }
    heap[at] = last
  }
}

const isEarlier = (one: Timer, other: Timer) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)
