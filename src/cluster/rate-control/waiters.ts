import type { QueuePosition } from './wait-tickets.ts'

/** Those in this process who wait for a connection of one pace. */
export class Waiters {
  /** Whom to call when something changed, and whether somebody waits for the answer. */
  readonly #calls = new Map<() => void, boolean>()
  #since: number | null = null

  get isEmpty(): boolean {
    return this.#calls.size === 0
  }

  get hasSingle(): boolean {
    return [...this.#calls.values()].includes(true)
  }

  add(call: () => void, single: boolean, now: number): () => void {
    this.#since ??= now
    this.#calls.set(call, single)
    return () => void this.#calls.delete(call)
  }

  callAll(): void {
    for (const call of [...this.#calls.keys()]) call()
  }

  /** Since when somebody waits; `now` where nobody does yet. */
  since(now: number): number {
    return this.#since ?? now
  }

  /** One of them was let in: the others wait anew. */
  served(now: number): void {
    this.#since = this.isEmpty ? null : now
  }

  /** Their place among those who wait elsewhere; null: nobody waits. Who is `asking` just now waits too. */
  place(asking: readonly { readonly single: boolean }[], now: number): QueuePosition | null {
    if (this.isEmpty && asking.length === 0) {
      this.#since = null
      return null
    }
    const single = this.hasSingle || asking.some(({ single }) => single)
    return { since: this.since(now), single }
  }
}
