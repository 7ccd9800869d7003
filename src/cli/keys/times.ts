import { DAY, HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

const UNITS = { s: SECOND, m: MINUTE, h: HOUR, d: DAY } as const

/** Ten years; a key that must live longer needs no expiry. */
const EXPIRY_MAX_MS = 3_650 * DAY

/** Parses `--expires`, a duration from now (`90d`) or a date. Returns epoch ms. Throws EvError. */
export function parseExpiry(value: string | undefined, now: number): number | null {
  if (value === undefined) return null
  const at = DATE.test(value) ? parseDate(value) : now + (parseDuration(value) ?? Number.NaN)
  if (at > now && at <= now + EXPIRY_MAX_MS) return at
  throw new EvError(
    'usage',
    `--expires is "${sanitizeText(value)}"; it takes a future time within ten years, such as 90d, 12h or 2030-01-31. Omit it for a key that does not expire.`,
  )
}

/** Parses `--grace`, a duration such as `24h`, `30m` or `0`. Returns ms. Throws EvError. */
export function parseGrace(value: string, maxMs: number): number {
  const grace = value === '0' ? 0 : parseDuration(value)
  if (grace !== null && grace <= maxMs) return grace
  throw new EvError(
    'usage',
    `--grace is "${sanitizeText(value)}"; it takes a duration from 0 to ${maxMs / DAY}d, such as 24h or 30m.`,
  )
}

/** Parses `--since`, a duration ago (`2d`) or a date. Returns epoch ms. Throws EvError. */
export function parseSince(value: string, now: number): number {
  const at = DATE.test(value) ? parseDate(value) : now - (parseDuration(value) ?? Number.NaN)
  if (at <= now) return at
  throw new EvError(
    'usage',
    `--since is "${sanitizeText(value)}"; it takes a past time, such as 2h, 3d or 2030-01-31.`,
  )
}

/** ISO 8601. A date without a time is its midnight in UTC. */
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/

/** Returns NaN for a day that does not exist, which Date.parse would move to the next month. */
function parseDate(value: string): number {
  const day = value.slice(0, 10)
  const isReal = new Date(Date.parse(day) || 0).toISOString().startsWith(day)
  return isReal ? Date.parse(value) : Number.NaN
}

function parseDuration(value: string): number | null {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(value) ?? []
  return unit === undefined ? null : Number(count) * UNITS[unit as keyof typeof UNITS]
}
