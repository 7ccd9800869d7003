import { type NameHint, nameHint } from './header-names.ts'

/**
 * Returns true if a cell holds only an address in a loose form: `a@b`, `Name <a@b>`, `mailto:a@b`.
 */
export function looksLikeAddress(cell: string): boolean {
  if (cell.length > CELL_LENGTH_MAX || !/[@＠]/.test(cell)) return false
  const text = cell.trim().replace(/[\s.,;]+$/, '')
  const inner = text.endsWith('>') ? text.slice(text.lastIndexOf('<') + 1, -1) : text
  return APPROXIMATE_ADDRESS.test(
    inner
      .trim()
      .replace(/^mailto:/i, '')
      .replace(/^(['"])(.*)\1$/, '$2'),
  )
}

/** An address has at most 254 octets (RFC 5321 §4.5.3.1.3); a display name may precede it. */
const CELL_LENGTH_MAX = 1_000
const APPROXIMATE_ADDRESS =
  /^(?:"[^"]*"|[^\s@＠<>,;:()"[\]\\]+)[@＠](?:\[[^\]\s]+\]|[^\s@＠<>,;:()"'[\]|\\/]+)$/

/** Statistics of one column over the sample rows. */
export type ColumnFacts = {
  readonly column: number
  readonly name: string
  readonly hint: NameHint
  readonly rows: number
  readonly filled: number
  readonly addresses: number
  readonly distinct: number
  /** Cells that are clearly not addresses: yes, no, dates, numbers. */
  readonly nonAddresses: number
}

export function columnFacts(
  rows: readonly (readonly string[])[],
  header: readonly string[] | null,
  width: number,
): ColumnFacts[] {
  return Array.from({ length: width }, (_, column) => {
    const cells = rows.map(row => row[column] ?? '').filter(cell => cell.trim() !== '')
    const addresses = cells.filter(looksLikeAddress)
    const name = header?.[column] ?? ''
    return {
      column,
      name,
      hint: nameHint(name),
      rows: rows.length,
      filled: cells.length,
      addresses: addresses.length,
      distinct: new Set(addresses).size,
      nonAddresses: cells.filter(cell => cell.length < 40 && NON_ADDRESS.test(cell.trim())).length,
    }
  })
}

/**
 * Returns the address column, or null. The content decides whether a column qualifies; name and
 * content together rank the columns that qualify. If no cell holds an address, a plain name
 * ("Email") is enough unless the content contradicts it.
 */
export function chooseColumn(facts: readonly ColumnFacts[]): number | null {
  const withAddresses = facts.filter(fact => fact.addresses > 0)
  return (
    best(withAddresses.filter(fact => fact.addresses >= fact.filled * minShare(fact.hint))) ??
    best(facts.filter(isNamedAndPlausible)) ??
    best(withAddresses.filter(fact => fact.addresses >= fact.filled / 10))
  )
}

function best(candidates: readonly ColumnFacts[]): number | null {
  let chosen: ColumnFacts | null = null
  for (const fact of candidates) {
    if (!chosen || score(fact) > score(chosen)) chosen = fact
  }
  return chosen?.column ?? null
}

/** With an address-like name, a column qualifies even if most of its addresses are malformed. */
const minShare = (hint: NameHint) => (hint === 'exact' || hint === 'first' ? 0.1 : 0.5)

/** Weight of a name, added to the share of rows with an address (0 to 1) in the same column. */
const NAME_SCORE: Record<NameHint, number> = {
  exact: 1.2,
  first: 1.1,
  part: 0.9,
  other: 0.2,
  none: 0,
  login: -0.3,
  about: -0.6,
}

/** Distinct addresses count more: one address repeated in every row is probably the sender's. */
const score = (fact: ColumnFacts) =>
  fact.addresses / Math.max(fact.rows, 1) +
  NAME_SCORE[fact.hint] +
  (0.3 * fact.distinct) / Math.max(fact.addresses, 1)

/** Has an address-like name, and yes/no, dates or numbers fill at most half of its cells. */
const isNamedAndPlausible = (fact: ColumnFacts) =>
  (fact.hint === 'exact' || fact.hint === 'first') && fact.nonAddresses * 2 <= fact.filled

const NON_ADDRESS = /^(?:[\d\s.,:/+()TZ-]+|yes|no|y|n|true|false|ja|nein|oui|non|s[ií]|да|нет)$/i
