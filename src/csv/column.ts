import {
  cleanAddress,
  withoutFormula,
  withoutJson,
  withoutLabel,
  withoutListMarker,
} from '../engine/address/address.ts'
import { isPlaceholder } from '../engine/address/placeholder.ts'
import { findAddresses } from '../engine/address/several.ts'
import { type NameHint, nameHint } from './header-names.ts'

/** Returns true if a cell holds only addresses, each in a loose form. */
export const holdsAddress = (cell: string): boolean =>
  looksLikeAddress(cell) || splitAddresses(cell).length > 1

/**
 * Returns true if a cell holds only an address in a loose form: `a@b`, `Name <a@b>`, `mailto:a@b`,
 * `SMTP:a@b`, or as an item of JSON.
 */
function looksLikeAddress(cell: string): boolean {
  if (cell.length > CELL_LENGTH_MAX || !AT.test(cell)) return false
  const text = withoutLabel(withoutListMarker(unwrapItem(cell))).replace(
    /(?<![\s.,;])[\s.,;]+$/,
    '',
  )
  const inner = text.endsWith('>') ? text.slice(text.lastIndexOf('<') + 1, -1) : text
  const bare = inner
    .trim()
    .replace(/^(?:mailto|smtp):/i, '')
    .replace(/^(['"])(.*)\1$/, '$2')
  return APPROXIMATE_ADDRESS.test(bare) || isLink(cell)
}

/** Whether a cell is a link to an address, of HTML or Markdown. */
const isLink = (cell: string): boolean =>
  /mailto:/i.test(cell) && cleanAddress(cell).address !== null

/** An address has at most 254 octets (RFC 5321 §4.5.3.1.3); a display name may precede it. */
const CELL_LENGTH_MAX = 1_000
const AT = /[@＠﹫]/
const APPROXIMATE_ADDRESS =
  /^(?:"[^"]*"|[^\s@＠﹫<>,;:()"[\]\\]+)[@＠﹫](?:\[[^\]\s]+\]|[^\s@＠﹫<>,;:()"'[\]|\\/]+)$/

/** Returns the addresses of a cell that holds several; else the cell. */
export function splitAddresses(cell: string): readonly string[] {
  if (!SEVERAL_ATS.test(cell)) return [cell]
  // One address may have two @: `"a@b"@c.test`, `a@b.test <a@b.test>`.
  if (cleanAddress(cell).address !== null) return [cell]
  const found = findAddresses(cell).map(({ text }) => text)
  return found.length > 1 ? found : [cell]
}

const SEVERAL_ATS = /[@＠﹫].*[@＠﹫]/s

/** Whether a cell contains an address, however malformed. */
export const hasAt = (cell: string): boolean => AT.test(cell)

/** Returns true for a cell without content, or with nothing but a key and brackets of JSON. */
export const isBlank = (cell: string): boolean =>
  /^[\s[\]{}]*(?:"[^"]*"\s*:\s*[[{]\s*)?$/.test(cell)

/** Returns a cell without surrounding space, quotes, and marks of JSON or of a formula. */
export const unwrapItem = (cell: string): string =>
  withoutFormula(withoutJson(cell.trim())).replace(/^(["'])([^"'\s]*)\1$/, '$2')

/** Statistics of one column over the sample rows. */
export type ColumnFacts = {
  readonly column: number
  readonly name: string
  readonly hint: NameHint
  readonly rows: number
  /** Cells with content, which `n/a` is not. */
  readonly filled: number
  /** Cells with an address. */
  readonly addresses: number
  /** Those that hold several addresses. */
  readonly several: number
  readonly distinct: number
  /** Cells without an address that may be a malformed one: `ann@`, `ann.example.com`. */
  readonly malformed: number
  /** Cells with an @. */
  readonly withAt: number
  /** Cells that are clearly not addresses: yes, no, dates, numbers. */
  readonly nonAddresses: number
}

export function columnFacts(
  rows: readonly (readonly string[])[],
  header: readonly string[] | null,
  width: number,
): ColumnFacts[] {
  return Array.from({ length: width }, (_, column) => {
    const cells = rows.map(row => row[column] ?? '').filter(cell => !isPlaceholder(cell))
    const addresses = cells.filter(holdsAddress)
    const name = header?.[column] ?? ''
    return {
      column,
      name,
      hint: nameHint(name),
      rows: rows.length,
      filled: cells.length,
      addresses: addresses.length,
      several: addresses.filter(cell => !looksLikeAddress(cell)).length,
      distinct: new Set(addresses).size,
      malformed: cells.filter(isMalformed).length,
      withAt: cells.filter(hasAt).length,
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
  const own = withAddresses.filter(fact => isExporters(fact, withAddresses))
  const others = withAddresses.filter(fact => !own.includes(fact))
  return (
    best(others.filter(qualifies)) ??
    best(facts.filter(fact => isNamedAndPlausible(fact) && !own.includes(fact))) ??
    best(others.filter(fact => fact.addresses >= fact.filled / 10)) ??
    best(own)
  )
}

/**
 * Returns the columns that hold addresses, including `column`, in order. Omits logins, data about
 * mail, results of an earlier run, and the address of the exporter in every row.
 */
export function findAddressColumns(facts: readonly ColumnFacts[], column: number): number[] {
  const found = facts.filter(
    fact =>
      fact.column === column ||
      (fact.addresses > 0 &&
        qualifies(fact) &&
        !['login', 'about'].includes(fact.hint) &&
        !/^ev_/i.test(fact.name) &&
        !hasOneAddress(fact)),
  )
  return found.map(fact => fact.column)
}

function best(candidates: readonly ColumnFacts[]): number | null {
  const varietyMax = Math.max(...candidates.map(variety))
  let chosen: { readonly column: number; readonly score: number } | null = null
  for (const fact of candidates) {
    const score =
      fact.addresses / Math.max(fact.rows, 1) +
      NAME_SCORE[fact.hint] * trustInName(fact) +
      (varietyMax === 0 ? 0 : variety(fact) / varietyMax)
    if (!chosen || score > chosen.score) chosen = { column: fact.column, score }
  }
  return chosen?.column ?? null
}

/** With an address-like name, a column qualifies even if most of its addresses are malformed. */
const qualifies = ({ hint, addresses, filled }: ColumnFacts) =>
  addresses >= filled * (hint === 'exact' || hint === 'first' ? 0.1 : 0.5)

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

/**
 * Returns how much the name of a column counts, 0 to 1: less where other text fills most of it, as
 * in the rows below the first table of a report.
 */
function trustInName({ addresses, malformed, filled }: ColumnFacts): number {
  const share = (addresses + malformed) / Math.max(filled, 1)
  return share < 0.5 ? share : 1
}

/** Share of the addresses of a column that are distinct, 0 to 1. */
const variety = ({ distinct, addresses }: ColumnFacts) => distinct / Math.max(addresses, 1)

/**
 * Returns true if a column repeats few addresses while another one has many, as in payments,
 * bookings and invoices with the address of the shop in each row.
 */
function isExporters(fact: ColumnFacts, others: readonly ColumnFacts[]): boolean {
  const isRepeated = fact.addresses >= fact.distinct * REPEATED_MIN
  const more = fact.distinct === 1 && isRepeated ? 2 : fact.distinct * MORE_MIN
  return (isRepeated || hasOneAddress(fact)) && others.some(({ distinct }) => distinct >= more)
}

/** The average customer has fewer orders. */
const REPEATED_MIN = 10
/** How many times as many distinct addresses the other column has. */
const MORE_MIN = 3

/** Whether a column has the same address in each of several rows. */
const hasOneAddress = ({ distinct, addresses }: ColumnFacts) => distinct === 1 && addresses >= 3

/** Has an address-like name, and yes/no, dates or numbers fill at most half of its cells. */
const isNamedAndPlausible = (fact: ColumnFacts) =>
  (fact.hint === 'exact' || fact.hint === 'first') && fact.nonAddresses * 2 <= fact.filled

const NON_ADDRESS = /^(?:[\d\s.,:/+()TZ-]+|yes|no|y|n|true|false|ja|nein|oui|non|s[ií]|да|нет)$/i

const isMalformed = (cell: string) =>
  cell.length <= CELL_LENGTH_MAX && MALFORMED.test(cell.trim()) && !holdsAddress(cell)

/** With an @, or a single word that ends like a domain. */
const MALFORMED = /[@＠﹫]|[([]at[)\]]|^\S+\.[a-z]{2,}$/i
