import { isFault, parseAddress } from '../../engine/address/address.ts'
import { canonicalAddress } from '../../engine/address/canonical.ts'
import type { ExternalResult } from '../../engine/verdict/external.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import type { Repeated } from './item-import.ts'
import { hasNoAddress, isAddress, type ParsedRow, parseRow } from './submission.ts'

/**
 * Maximum number of domains counted, about 100 bytes each. Domains that first occur after that have
 * few addresses.
 */
const DOMAINS_MAX = 50_000

/**
 * A parsed row with its position in the list, from 1; `duplicateOf` is the position of the row that
 * it duplicates, or null.
 */
type CountedRow = ParsedRow & {
  readonly position: number
  readonly duplicateOf: number | null
}

/** Counts the rows of a list while it is read, for an import or a dry run. */
export class ImportCounter {
  /** Null if duplicates are verified separately. */
  readonly #firsts: DedupeIndex | null
  total = 0
  /** Number of rows that are malformed addresses. */
  malformed = 0
  /** Number of rows without an address, not even a malformed one. */
  noAddress = 0
  /** Number of rows that duplicate an earlier one. */
  duplicates = 0
  /** Number of addresses to verify, at most one credit each. */
  addressCount = 0
  /** These addresses by domain; domains beyond the maximum are not counted. */
  readonly domains = new Map<string, number>()

  constructor(o: { readonly deduplicate: boolean; readonly random: Random }) {
    this.#firsts = o.deduplicate ? new DedupeIndex(o.random) : null
  }

  /** Adds a row; one that keeps an external result is not verified. */
  add(text: string, isKept = false): CountedRow {
    const position = ++this.total
    const entry = parseRow(text, position)
    const duplicateOf = this.#firsts?.add(entry.dedupeKey, position) ?? null
    if (hasNoAddress(entry)) this.noAddress++
    else if (!isAddress(entry)) this.malformed++
    else if (duplicateOf === null && !isKept) this.#countAddress(entry)
    if (duplicateOf !== null) this.duplicates++
    const { dedupeKey } = entry
    return { position, text: entry.text, dedupeKey, duplicateOf }
  }

  #countAddress({ dedupeKey }: ParsedRow) {
    this.addressCount++
    const domain = dedupeKey.slice(dedupeKey.lastIndexOf('@') + 1)
    const count = this.domains.get(domain) ?? 0
    if (count > 0 || this.domains.size < DOMAINS_MAX) this.domains.set(domain, count + 1)
  }

  /** Yields the rows that have duplicates, in list order. */
  *repeated(): Generator<Repeated> {
    yield* this.#firsts?.repeated() ?? []
  }
}

type CountableRow = { readonly text: string; readonly external?: ExternalResult | null }

/** Counts the rows of a list without storing them; stops early when `signal` aborts. */
export async function countImportedRows(
  batches: AsyncIterable<readonly CountableRow[]>,
  o: { readonly deduplicate: boolean; readonly random: Random; readonly signal: AbortSignal },
): Promise<ImportCounter> {
  const counter = new ImportCounter(o)
  for await (const batch of batches) {
    if (o.signal.aborted) break
    for (const { text, external } of batch) counter.add(text, external != null)
    // Parsing a batch of addresses blocks the event loop.
    await yieldToEventLoop()
  }
  return counter
}

/** What makes two rows the same: their address, or the mailbox that it is a spelling of. */
export const DEDUPLICATE_BY = ['address', 'canonical'] as const
export type DeduplicateBy = (typeof DEDUPLICATE_BY)[number]

/** Returns whether a row is the first of its address, or of its mailbox, among the rows asked about. */
export type IsFirst = (row: { readonly dedupeKey: string; readonly position: number }) => boolean

/** Creates a filter that keeps the first of the rows that are the same. Rows come in list order. */
export function createFirstFilter(by: DeduplicateBy, random: Random): IsFirst {
  const index = new DedupeIndex(random)
  return ({ dedupeKey, position }) => {
    const key = by === 'canonical' ? toCanonicalKey(dedupeKey) : dedupeKey
    return index.add(key, position) === null
  }
}

function toCanonicalKey(dedupeKey: string): string {
  const address = parseAddress(dedupeKey)
  return isFault(address) ? dedupeKey : canonicalAddress(address)
}

/** Initial capacity in rows. */
const CAPACITY_MIN = 1_024
/** Words per slot: two halves of a hash, and a position. */
const SLOT_WORDS = 3

/**
 * Detects duplicate rows while a list is read, because a query at its end would block other
 * requests for seconds. A file may have a million rows, so each takes only 30 bytes: a row is
 * identified by 64 bits of a hash with unpredictable seeds.
 */
export class DedupeIndex {
  readonly #seeds: readonly [number, number]
  /**
   * Open addressing: each slot holds hash, hash, position; position 0 marks a free slot. A key
   * occupies the first free slot from the one that its hash points to.
   */
  #slots = new Uint32Array(CAPACITY_MIN * SLOT_WORDS)
  /** Number of occurrences of a row in the list, by its position. */
  #copies = new Uint32Array(CAPACITY_MIN)
  #size = 0

  constructor(random: Random) {
    this.#seeds = [random.below(WORD), random.below(WORD)]
  }

  /**
   * Adds a row. Returns the position of the first row with this key; null if it is this one.
   * Positions start at 1 and increase.
   */
  add(key: string, position: number): number | null {
    if (position >= this.#copies.length) this.#copies = widen(this.#copies)
    // A third of the slots stays free, or searches for a free slot become long.
    if (this.#size * 3 >= this.#capacity * 2) this.#grow()
    const hash = hashKey(key, this.#seeds)
    const at = this.#find(hash)
    const first = this.#slots[at + 2] ?? 0
    this.#copies[first || position] = (this.#copies[first || position] ?? 0) + 1
    if (first !== 0) return first
    this.#slots[at] = hash[0]
    this.#slots[at + 1] = hash[1]
    this.#slots[at + 2] = position
    this.#size++
    return null
  }

  /** Yields the rows that have duplicates, in list order. */
  *repeated(): Generator<Repeated> {
    for (const [position, copies] of this.#copies.entries()) {
      if (copies > 1) yield { position, copies }
    }
  }

  get #capacity() {
    return this.#slots.length / SLOT_WORDS
  }

  /** Returns the index of the slot that holds a hash, or of the free slot for it. */
  #find([one, other]: Hash): number {
    const slots = this.#slots
    for (let slot = slotFor(one, this.#capacity); ; slot = (slot + 1) % this.#capacity) {
      const at = slot * SLOT_WORDS
      if (slots[at + 2] === 0 || (slots[at] === one && slots[at + 1] === other)) return at
    }
  }

  /**
   * Moves rows in memory order with plain loops: the last growth step of a large list moves 700,000
   * rows at once, in 15 ms instead of 130.
   */
  #grow() {
    const before = this.#slots
    const slots = new Uint32Array(before.length * 2)
    const capacity = slots.length / SLOT_WORDS
    for (let at = 0; at < before.length; at += SLOT_WORDS) {
      const position = before[at + 2] as number
      if (position === 0) continue
      const one = before[at] as number
      let to = slotFor(one, capacity) * SLOT_WORDS
      while (slots[to + 2] !== 0) to = (to + SLOT_WORDS) % slots.length
      slots[to] = one
      slots[to + 1] = before[at + 1] as number
      slots[to + 2] = position
    }
    this.#slots = slots
  }
}

/**
 * Returns the slot that a hash points to, by its upper bits, so that neighbors stay neighbors in a
 * larger table.
 */
const slotFor = (one: number, capacity: number) => Math.floor((one / WORD) * capacity)

type Hash = readonly [number, number]

const WORD = 2 ** 32

function widen(words: Uint32Array): Uint32Array<ArrayBuffer> {
  const wide = new Uint32Array(words.length * 2)
  wide.set(words)
  return wide
}

/**
 * Computes two 32-bit hashes in one pass, each mixed with the other at the end (after cyrb53,
 * public domain).
 */
function hashKey(key: string, seeds: Hash): Hash {
  let [one, other] = seeds
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at)
    one = Math.imul(one ^ unit, 0x9e3779b1)
    other = Math.imul(other ^ unit, 0x5f356495)
  }
  one = Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35)
  other = Math.imul(other ^ (other >>> 16), 0x85ebca6b) ^ Math.imul(one ^ (one >>> 13), 0xc2b2ae35)
  return [one >>> 0, other >>> 0]
}
