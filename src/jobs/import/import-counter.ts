import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import type { Repeated } from './item-import.ts'
import { isAddress, type ParsedRow, parseRow } from './submission.ts'

/** About 100 bytes each. Of more domains those that come last have few addresses. */
const DOMAINS_MAX = 50_000

/** A row as it is asked, with its place in the list, from 1; `duplicateOf`: the place of the row that it repeats. */
export type CountedRow = ParsedRow & {
  readonly position: number
  readonly duplicateOf: number | null
}

/** Counts the rows of a list while they are read, whatever becomes of them then. */
export class ImportCounter {
  /** Null: rows that come again are asked again. */
  readonly #firsts: DedupeIndex | null
  total = 0
  /** Rows that are no address. */
  malformed = 0
  /** Rows that repeat another one. */
  duplicates = 0
  /** Addresses that will be asked: one credit each, at most. */
  asked = 0
  /** These by domain; those of further domains are not counted. */
  readonly domains = new Map<string, number>()

  constructor(o: { readonly deduplicate: boolean; readonly random: Random }) {
    this.#firsts = o.deduplicate ? new DedupeIndex(o.random) : null
  }

  take(text: string): CountedRow {
    const entry = parseRow(text)
    const position = ++this.total
    const duplicateOf = this.#firsts?.take(entry.dedupeKey, position) ?? null
    if (!isAddress(entry)) this.malformed++
    else if (duplicateOf === null) this.#ask(entry)
    if (duplicateOf !== null) this.duplicates++
    return { position, ...entry, duplicateOf }
  }

  #ask({ dedupeKey }: ParsedRow) {
    this.asked++
    const domain = dedupeKey.slice(dedupeKey.lastIndexOf('@') + 1)
    const count = this.domains.get(domain) ?? 0
    if (count > 0 || this.domains.size < DOMAINS_MAX) this.domains.set(domain, count + 1)
  }

  /** The rows that came again, in their order. */
  *repeated(): Generator<Repeated> {
    yield* this.#firsts?.repeated() ?? []
  }
}

/** Counts a list that nobody submits; stops early when `signal` aborts. */
export async function countImportedRows(
  batches: AsyncIterable<readonly { readonly text: string }[]>,
  o: { readonly deduplicate: boolean; readonly random: Random; readonly signal: AbortSignal },
): Promise<ImportCounter> {
  const tally = new ImportCounter(o)
  for await (const batch of batches) {
    if (o.signal.aborted) break
    for (const { text } of batch) tally.take(text)
    // Reading addresses takes time.
    await yieldToEventLoop()
  }
  return tally
}

/** Rows that there is room for at first. */
const ROOM_MIN = 1_024
/** Of one slot: two halves of a hash, and a position. */
const SLOT_WORDS = 3

/**
 * Knows which rows of a list came before, while the list is read: to ask the database at its end would hold up
 * everybody for seconds. A row takes 30 bytes, as a file may have a million; so it is known by 64 bits of a hash, whose
 * seeds nobody can foresee.
 */
export class DedupeIndex {
  readonly #seeds: readonly [number, number]
  /** Hash, hash, position; position 0: free. A key is in the first free slot from where its hash points to. */
  #slots = new Uint32Array(ROOM_MIN * SLOT_WORDS)
  /** How often the row at that position stands in the list. */
  #copies = new Uint32Array(ROOM_MIN)
  #size = 0

  constructor(random: Random) {
    this.#seeds = [random.below(WORD), random.below(WORD)]
  }

  /** Gives the position of the first row with this key; null: it is this one. Positions begin at 1 and grow. */
  take(key: string, position: number): number | null {
    if (position >= this.#copies.length) this.#copies = widened(this.#copies)
    // A third stays free, or ways to a free slot become long.
    if (this.#size * 3 >= this.#room * 2) this.#grow()
    const hash = hashOf(key, this.#seeds)
    const at = this.#find(hash)
    const first = this.#slots[at + 2] ?? 0
    this.#copies[first || position] = (this.#copies[first || position] ?? 0) + 1
    if (first !== 0) return first
    this.#slots.set([...hash, position], at)
    this.#size++
    return null
  }

  /** The rows that came again, in their order. */
  *repeated(): Generator<Repeated> {
    for (const [position, copies] of this.#copies.entries()) {
      if (copies > 1) yield { position, copies }
    }
  }

  get #room() {
    return this.#slots.length / SLOT_WORDS
  }

  /** Where a hash is, or would be. */
  #find([one, other]: Hash): number {
    const slots = this.#slots
    for (let slot = bucketOf(one, this.#room); ; slot = (slot + 1) % this.#room) {
      const at = slot * SLOT_WORDS
      if (slots[at + 2] === 0 || (slots[at] === one && slots[at + 1] === other)) return at
    }
  }

  /** The last one moves 700,000 rows in one go: plainly, and in the order of the memory, as that takes 15 ms instead of 130. */
  #grow() {
    const before = this.#slots
    const slots = new Uint32Array(before.length * 2)
    const room = slots.length / SLOT_WORDS
    for (let at = 0; at < before.length; at += SLOT_WORDS) {
      const position = before[at + 2] as number
      if (position === 0) continue
      const one = before[at] as number
      let to = bucketOf(one, room) * SLOT_WORDS
      while (slots[to + 2] !== 0) to = (to + SLOT_WORDS) % slots.length
      slots[to] = one
      slots[to + 1] = before[at + 1] as number
      slots[to + 2] = position
    }
    this.#slots = slots
  }
}

/** The slot that a hash points to. By its upper bits, so that what is neighbours stays so when there is more room. */
const bucketOf = (one: number, room: number) => Math.floor((one / WORD) * room)

type Hash = readonly [number, number]

const WORD = 2 ** 32

function widened(words: Uint32Array): Uint32Array<ArrayBuffer> {
  const wide = new Uint32Array(words.length * 2)
  wide.set(words)
  return wide
}

/** Two hashes of 32 bits in one go, each mixed with the other at the end (after cyrb53, public domain). */
function hashOf(key: string, seeds: Hash): Hash {
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
