import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { DedupeIndex } from './dedupe-index.ts'
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
