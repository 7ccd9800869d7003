import { DAY, HOUR, MINUTE, SECOND } from './clock.ts'

// Numbers, counts, sizes and durations in texts for people.

/** `1,234,567` */
export function formatNumber(value: number): string {
  // The first use of `toLocaleString` takes 5 to 15 ms.
  if (!Number.isSafeInteger(value)) return value.toLocaleString('en')
  let digits = `${Math.abs(value)}`
  for (let at = digits.length - 3; at > 0; at -= 3)
    digits = `${digits.slice(0, at)},${digits.slice(at)}`
  return value < 0 ? `-${digits}` : digits
}

/** `1 row`, `2 deliveries`, `12,345 addresses`; `many` is an irregular plural. */
export const pluralize = (count: number, one: string, many = toPlural(one)): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`

const toPlural = (noun: string) =>
  `${noun.replace(/([^aeiou])y$/, '$1ie').replace(/(ss|x|ch|sh)$/, '$1e')}s`

/**
 * Joins words as in a sentence: `a`, `a and b`, `a, b and c`. Intl.ListFormat does the same, but its
 * first use takes 15 ms.
 */
export const joinWords = (words: readonly string[], conjunction: 'and' | 'or'): string =>
  words.length < 2
    ? words.join('')
    : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`

/**
 * `12.3%`, `12.0%`; `0%` if the total is 0; `< 0.1%` for a share that rounds to zero, and `100%` only
 * for the whole. `formatShare` of `browser/live.js` does the same.
 */
export function formatPercent(part: number, total: number): string {
  const share = total === 0 ? 0 : (100 * part) / total
  if (share === 0 || share === 100) return `${share}%`
  if (share < 0.05) return '< 0.1%'
  const tenths = Math.round(10 * (share < 100 ? Math.min(share, 99.9) : share))
  return `${formatNumber(Math.floor(tenths / 10))}.${tenths % 10}%`
}

/** `98%`, rounded down: `100%` only when all is done. */
export const formatProgress = (done: number, total: number): string =>
  `${total === 0 ? 100 : Math.floor((100 * done) / total)}%`

/** `512 B`, `12 KB`, `1.5 MB`, `2.4 GB`: powers of 1,000, as disk sizes are given. */
export function formatBytes(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1_000 ** unit
  const maximumFractionDigits = unit < 2 || value >= 100 ? 0 : 1
  return `${value.toLocaleString('en', { maximumFractionDigits })} ${UNITS[unit]}`
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

/** `100 MiB`: for limits, which are multiples of a MiB. */
export const formatMebibytes = (bytes: number): string => `${formatNumber(bytes / 1024 ** 2)} MiB`

/** `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 days`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / SECOND)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
  return `${Math.round(hours / 24)} days`
}

/**
 * `12 seconds`, `3 minutes`, `2 hours`, `4 days`: one unit, for sentences. `round` is `Math.ceil`
 * for a wait and `Math.floor` for an age.
 */
export function formatDurationInWords(ms: number, round: (value: number) => number): string {
  for (const [unit, unitMs, countMax] of WORDS) {
    const count = round(ms / unitMs)
    if (count < countMax) return pluralize(count, unit)
  }
  return pluralize(round(ms / DAY), 'day')
}

const WORDS = [
  ['second', SECOND, 60],
  ['minute', MINUTE, 60],
  ['hour', HOUR, 48],
] as const

/** `10 seconds`, `2 minutes`, `2.5 hours`: rounded up to the precision of an estimate. */
export function formatEstimate(ms: number): string {
  if (ms <= SECOND) return '1 second'
  if (ms <= 50 * SECOND) return pluralize(Math.ceil(ms / (10 * SECOND)) * 10, 'second')
  if (ms < 2 * HOUR) return pluralize(Math.ceil(ms / MINUTE), 'minute')
  return pluralize(Math.ceil(ms / (HOUR / 2)) / 2, 'hour')
}

/** Formats a time as ISO 8601 in UTC. */
export const isoTime = (epochMs: number) => new Date(epochMs).toISOString()
