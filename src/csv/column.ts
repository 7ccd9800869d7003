import { type NameHint, nameHint } from './header-names.ts'

/** Whether a cell holds an address and nothing else, judged loosely: `a@b`, `Name <a@b>`, `mailto:a@b`. */
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

/** An address has at most 254 octets (RFC 5321 §4.5.3.1.3); a display name may stand before it. */
const CELL_LENGTH_MAX = 1_000
const APPROXIMATE_ADDRESS =
  /^(?:"[^"]*"|[^\s@＠<>,;:()"[\]\\]+)[@＠](?:\[[^\]\s]+\]|[^\s@＠<>,;:()"'[\]|\\/]+)$/

/** What the rows of a sample show in one column. */
export type ColumnFacts = {
  readonly column: number
  readonly name: string
  readonly hint: NameHint
  readonly rows: number
  readonly filled: number
  readonly addresses: number
  readonly distinct: number
  /** Cells that can be no address nor an attempt at one: yes, no, dates, numbers. */
  readonly denials: number
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
      denials: cells.filter(cell => cell.length < 40 && DENIAL.test(cell.trim())).length,
    }
  })
}

/**
 * The column of addresses, or null. Content decides whether a column can be it, name and content
 * together decide between several. Without any address a plain name ("Email") is enough, as long as
 * the content does not speak against it.
 */
export function chooseColumn(facts: readonly ColumnFacts[]): number | null {
  const held = facts.filter(fact => fact.addresses > 0)
  return (
    best(held.filter(fact => fact.addresses >= fact.filled * leastShare(fact.hint))) ??
    best(facts.filter(isNamedAndNotDenied)) ??
    best(held.filter(fact => fact.addresses >= fact.filled / 10))
  )
}

function best(candidates: readonly ColumnFacts[]): number | null {
  let chosen: ColumnFacts | null = null
  for (const fact of candidates) {
    if (!chosen || merit(fact) > merit(chosen)) chosen = fact
  }
  return chosen?.column ?? null
}

/** Where the name says so, half a column of bad addresses is still the column of addresses. */
const leastShare = (hint: NameHint) => (hint === 'exact' || hint === 'first' ? 0.1 : 0.5)

/** Weight of a name against the share of rows with an address (0 to 1) in the same column. */
const NAME_MERIT: Record<NameHint, number> = {
  exact: 1.2,
  first: 1.1,
  part: 0.9,
  other: 0.2,
  none: 0,
  login: -0.3,
  about: -0.6,
}

/** The same address in every row is that of a clerk or of the sender: distinct ones count more. */
const merit = (fact: ColumnFacts) =>
  fact.addresses / Math.max(fact.rows, 1) +
  NAME_MERIT[fact.hint] +
  (0.3 * fact.distinct) / Math.max(fact.addresses, 1)

/** Named as the column, and not full of yes and no, dates or numbers. */
const isNamedAndNotDenied = (fact: ColumnFacts) =>
  (fact.hint === 'exact' || fact.hint === 'first') && fact.denials * 2 <= fact.filled

const DENIAL = /^(?:[\d\s.,:/+()TZ-]+|yes|no|y|n|true|false|ja|nein|oui|non|s[ií]|да|нет)$/i
