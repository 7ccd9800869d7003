import { DAY, SECOND } from '../platform/clock.ts'

/** Replaces the escapes of characters that XML cannot contain, `_x000D_` (ECMA-376 §22.9.2.19). */
export const decodeEscapes = (text: string): string =>
  text.includes('_x')
    ? text.replace(ESCAPE, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text

const ESCAPE = /_x([0-9A-Fa-f]{4})_/g

/** Built-in formats of dates and times (ECMA-376 §18.8.30), including those of East Asia. */
const BUILT_IN_DATES: readonly [first: number, last: number][] = [
  [14, 22],
  [27, 36],
  [45, 45],
  [47, 47],
  [50, 58],
]

/**
 * Returns true if a number format shows a date or a time of day. `code` is null for built-in
 * formats. A duration, `[h]:mm`, stays a number of days.
 */
export function isDateFormat(id: number, code: string | null): boolean {
  if (code === null) return BUILT_IN_DATES.some(([first, last]) => id >= first && id <= last)
  if (/\[(?:h+|m+|s+)\]/i.test(code)) return false
  // Quoted and escaped text, colors, conditions and locales are not part of the pattern.
  return /[ymdhs]/i.test(code.replace(/"[^"]*"?|\\.|_.|\*.|\[[^\]]*\]?/g, ''))
}

/** Excel counts days from the day before 1900-01-01, and counts 1900-02-29, which did not exist. */
const EPOCH_1900 = Date.UTC(1899, 11, 30)
const EPOCH_1904 = Date.UTC(1904, 0, 1)
const LEAP_DAY_1900 = 60
/** 10000-01-01, the first day that has no date. */
const DAYS_MAX = 2_958_466

/** Returns a date as `2026-03-01`, `2026-03-01 14:30:00` or, without a day, `14:30:00`. */
export function formatDate(days: number, { is1904 }: { is1904: boolean }): string | null {
  if (!(days >= 0 && days < DAYS_MAX)) return null
  const missing = !is1904 && days >= 1 && days < LEAP_DAY_1900 ? 1 : 0
  const ms = Math.round(((days + missing) * DAY) / SECOND) * SECOND
  const [date, time = ''] = new Date((is1904 ? EPOCH_1904 : EPOCH_1900) + ms)
    .toISOString()
    .split('T')
  const clock = time.slice(0, 8)
  if (days < 1) return clock
  return clock === '00:00:00' ? `${date}` : `${date} ${clock}`
}

/** Returns a number as a spreadsheet shows it, with at most 15 digits: `0.1`, not `0.1000…0001`. */
export function formatCellNumber(text: string): string {
  const value = Number(text)
  return text.trim() === '' || !Number.isFinite(value)
    ? text
    : String(Number(value.toPrecision(15)))
}

/** Returns the name of a column: A, B, …, Z, AA, … */
export function columnName(column: number): string {
  const last = String.fromCharCode(0x41 + (column % 26))
  return column < 26 ? last : columnName(Math.floor(column / 26) - 1) + last
}
