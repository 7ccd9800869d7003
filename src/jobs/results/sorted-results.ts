import { sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk } from '../../db/paging.ts'
import type { Reader } from '../../db/reader.ts'
import { textAt } from '../../db/sql-dialect.ts'
import { REASON_TEXTS, type Reason } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import {
  CLASS,
  lastPosition,
  matches,
  matchingRows,
  RESULT,
  type ResultRow,
  type RowConditions,
  readRows,
  reasonIn,
} from './result-store.ts'

/** What rows can be sorted by. */
export const SORT_FIELDS = ['row', 'email', 'class', 'reason', 'operator'] as const
export type SortField = (typeof SORT_FIELDS)[number]

export type RowOrder = { readonly field: SortField; readonly isDescending: boolean }

/** A position in sorted rows: after the row with this key. */
export type SortedPosition = {
  /** Null for a row without a value, such as one without a result. These rows come last. */
  readonly key: string | null
  readonly position: number
}

export type SortedOptions = RowConditions & {
  readonly jobId: string
  readonly order: RowOrder
  /** The last row of the previous page; null for the first page. */
  readonly after: SortedPosition | null
  readonly max: number
  /** Aborts the scan when the client disconnects. */
  readonly signal?: AbortSignal
}

export type SortedPage = {
  /** Without their cells. */
  readonly rows: readonly ResultRow[]
  /** Number of rows of the list that match the conditions. */
  readonly total: number
  /** Number of them before this page. */
  readonly offset: number
  /** The last row of this page; null if no rows follow. */
  readonly last: SortedPosition | null
}

/**
 * Finds a page of sorted rows and counts all rows that match. Scans the whole list in chunks and
 * holds one page of positions, so the memory does not grow with the list. A million rows on SQLite
 * take about 2 s, or 5 s if a value is read from the JSON of each result, in slices of a few ms. An
 * index for each field would slow down the writing of every result.
 */
export async function findSortedResults(database: Database, o: SortedOptions): Promise<SortedPage> {
  const last = await lastPosition(database, o.jobId)
  const chunk = nextChunk(database)
  const first = new FirstRows(o.max + 1, comparePositions(o.order))
  let [total, offset] = [0, 0]
  for (let after = 0; after < last && !o.signal?.aborted; after += chunk) {
    const part = { ...o, after, to: after + chunk }
    for (const row of await runChunk(database, () => selectKeys(database.reader, part))) {
      if (!matches(row, o)) continue
      total += 1
      const at = { key: keyOf(o.order.field, row), position: Number(row.position) }
      if (o.after !== null && first.compare(at, o.after) <= 0) offset += 1
      else first.add(at)
    }
  }
  const shown = first.rows.slice(0, o.max)
  const positions = shown.map(({ position }) => position)
  const rows = await readRows(database, o.jobId, positions)
  return { rows, total, offset, last: first.rows.length > o.max ? (shown.at(-1) ?? null) : null }
}

/** The first of many rows, in order. */
class FirstRows {
  readonly rows: SortedPosition[] = []
  readonly compare: Compare
  readonly #max: number

  constructor(max: number, compare: Compare) {
    this.#max = max
    this.compare = compare
  }

  add(row: SortedPosition): void {
    const { rows, compare } = this
    const last = rows.at(-1)
    if (rows.length >= this.#max && last !== undefined && compare(row, last) > 0) return
    let at = rows.length
    // At most one page is moved, and in a list that is in order none of it.
    while (at > 0 && compare(row, rows[at - 1] as SortedPosition) < 0) at -= 1
    rows.splice(at, 0, row)
    if (rows.length > this.#max) rows.pop()
  }
}

type Compare = (a: SortedPosition, b: SortedPosition) => number

/** Rows with the same key are in the order of the list in both directions. */
const comparePositions =
  ({ field, isDescending }: RowOrder): Compare =>
  (a, b) => {
    if (field === 'row') return isDescending ? b.position - a.position : a.position - b.position
    if (a.key === b.key) return a.position - b.position
    if (a.key === null) return 1
    if (b.key === null) return -1
    return a.key < b.key === isDescending ? 1 : -1
  }

/**
 * `value` is the class, reason or operator; null if another field is sorted by. The result is read
 * only for a condition on the action.
 */
type KeyRow = Pick<ResultRow, 'position' | 'text' | 'class' | 'result'> & {
  readonly value: string | null
}

async function selectKeys(
  reader: Reader,
  o: RowConditions & { jobId: string; order: RowOrder; after: number; to: number },
): Promise<KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select item.position as position, item.text as text,
      ${valueIn(reader, o.order.field)} as value, ${CLASS} as class,
      ${o.decided === undefined ? sql`null` : RESULT} as result
    ${matchingRows(reader, o)}`.execute(reader)
  return rows
}

function valueIn(reader: Reader, field: SortField) {
  switch (field) {
    case 'row':
    case 'email':
      return sql`null`
    case 'class':
      return CLASS
    case 'reason':
      return reasonIn(reader, RESULT, CLASS)
    case 'operator':
      return textAt(reader, RESULT, ['evidence', 'operator', 'name'])
    default:
      return field satisfies never
  }
}

/** Longer texts are compared by their start, and then by their rows: a cursor has the key in it. */
const KEY_LENGTH_MAX = 100

function keyOf(field: SortField, { text, value }: KeyRow): string | null {
  switch (field) {
    case 'row':
      return null
    case 'email':
      return text.slice(0, KEY_LENGTH_MAX).toLowerCase()
    case 'class':
      return value === null ? null : CLASS_RANKS[value as Class]
    case 'reason':
      return value === null ? null : REASON_TEXTS[value as Reason].name.toLowerCase()
    case 'operator':
      return value === null ? null : value.slice(0, KEY_LENGTH_MAX).toLowerCase()
    default:
      return field satisfies never
  }
}

/** From the best class to the one that says the least. */
const CLASS_RANKS: Readonly<Record<Class, string>> = {
  deliverable: '0',
  risky: '1',
  undeliverable: '2',
  unknown: '3',
}
