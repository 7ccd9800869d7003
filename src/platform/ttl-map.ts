import type { Clock } from './clock.ts'

/** An entry of the list from the most recently used to the least recently used one. */
type Entry<V> = {
  readonly key: string
  value: V
  expiresAt: number
  newer: Entry<V> | null
  older: Entry<V> | null
}

/** A bounded map with expiring entries. When full it evicts the least recently used entry. */
export class TtlMap<V extends object> {
  readonly #entries = new Map<string, Entry<V>>()
  readonly #sizeMax: number
  readonly #clock: Clock
  #newest: Entry<V> | null = null
  #oldest: Entry<V> | null = null

  constructor(options: { readonly sizeMax: number; readonly clock: Clock }) {
    this.#sizeMax = options.sizeMax
    this.#clock = options.clock
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.expiresAt <= this.#clock.monotonicNow()) {
      this.#remove(entry)
      return undefined
    }
    this.#use(entry)
    return entry.value
  }

  set(key: string, value: V, ttlMs: number): void {
    const expiresAt = this.#clock.monotonicNow() + ttlMs
    const known = this.#entries.get(key)
    if (known !== undefined) {
      known.value = value
      known.expiresAt = expiresAt
      this.#use(known)
      return
    }
    const entry: Entry<V> = { key, value, expiresAt, newer: null, older: null }
    this.#entries.set(key, entry)
    this.#append(entry)
    if (this.#entries.size > this.#sizeMax && this.#oldest !== null) this.#remove(this.#oldest)
  }

  /** Returns the value of a key, which `create` makes if there is none, for `ttlMs` from now. */
  getOrCreate(key: string, create: () => V, ttlMs: number): V {
    const now = this.#clock.monotonicNow()
    const known = this.#entries.get(key)
    if (known !== undefined && known.expiresAt > now) {
      known.expiresAt = now + ttlMs
      this.#use(known)
      return known.value
    }
    const value = create()
    this.set(key, value, ttlMs)
    return value
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined) this.#remove(entry)
  }

  clear(): void {
    this.#entries.clear()
    this.#newest = null
    this.#oldest = null
  }

  /** Iterates the unexpired entries, the most recently used first. Does not count as a use. */
  *entries(): IterableIterator<[string, V]> {
    const now = this.#clock.monotonicNow()
    for (let entry = this.#newest; entry !== null; entry = entry.older) {
      if (entry.expiresAt > now) yield [entry.key, entry.value]
    }
  }

  get size(): number {
    return this.#entries.size
  }

  #use(entry: Entry<V>) {
    if (entry === this.#newest) return
    this.#unlink(entry)
    this.#append(entry)
  }

  #append(entry: Entry<V>) {
    entry.newer = null
    entry.older = this.#newest
    if (this.#newest === null) this.#oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  #unlink({ newer, older }: Entry<V>) {
    if (newer === null) this.#newest = older
    else newer.older = older
    if (older === null) this.#oldest = newer
    else older.newer = newer
  }

  #remove(entry: Entry<V>) {
    this.#unlink(entry)
    this.#entries.delete(entry.key)
  }
}
