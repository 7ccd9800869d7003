import type { QueuePosition } from './wait-tickets.ts'

/** The requests of this process that wait for a connection under one rate state. */
export class Waiters {
  /** Callbacks on changes; true if a client waits for the answer. */
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

  /** Since when a request waits; `now` if none does. */
  since(now: number): number {
    return this.#since ?? now
  }

  /** Records that a request got its permit: the others wait from now on. */
  served(now: number): void {
    this.#since = this.isEmpty ? null : now
  }

  /**
   * Returns their position among the waiting members; null if none waits. `asking` are requests
   * that wait from now on.
   */
  position(pending: readonly { readonly single: boolean }[], now: number): QueuePosition | null {
    if (this.isEmpty && pending.length === 0) {
      this.#since = null
      return null
    }
    const single = this.hasSingle || pending.some(({ single }) => single)
    return { since: this.since(now), single }
  }
}
