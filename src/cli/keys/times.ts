import { DAY, HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

const UNITS = { s: SECOND, m: MINUTE, h: HOUR, d: DAY } as const

/** Ten years are for ever. */
const LONGEST_MS = 3_650 * DAY

/** The time that `--expires` names, epoch ms: so long from now (`90d`), or a date. */
export function expiryOf(given: string | undefined, now: number): number | null {
  if (given === undefined) return null
  const at = DATE.test(given) ? dateOf(given) : now + (spanOf(given) ?? Number.NaN)
  if (at > now && at <= now + LONGEST_MS) return at
  throw new EvError(
    'usage',
    `--expires takes a time to come, such as 90d, 12h or 2030-01-31, and no more than ten years from now, not “${sanitizeText(given)}”. Leave it out for a key that does not expire.`,
  )
}

/** A length of time, in ms: `24h`, `30m`, `0`. */
export function graceOf(given: string, maxMs: number): number {
  const grace = given === '0' ? 0 : spanOf(given)
  if (grace !== null && grace <= maxMs) return grace
  throw new EvError(
    'usage',
    `--grace takes a length of time from 0 to ${maxMs / DAY}d, such as 24h or 30m, not “${sanitizeText(given)}”.`,
  )
}

/** The time that `--since` names, epoch ms: so long ago (`2d`), or a date. */
export function sinceOf(given: string, now: number): number {
  const at = DATE.test(given) ? dateOf(given) : now - (spanOf(given) ?? Number.NaN)
  if (at <= now) return at
  throw new EvError(
    'usage',
    `--since takes a time that is past, such as 2h, 3d or 2030-01-31, not “${sanitizeText(given)}”.`,
  )
}

/** ISO 8601; a date alone is its beginning, UTC. */
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/

/** NaN for a day that its month does not have, which the parser would take for one of the next. */
function dateOf(given: string): number {
  const day = given.slice(0, 10)
  const isReal = new Date(Date.parse(day) || 0).toISOString().startsWith(day)
  return isReal ? Date.parse(given) : Number.NaN
}

function spanOf(given: string): number | null {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(given) ?? []
  return unit === undefined ? null : Number(count) * UNITS[unit as keyof typeof UNITS]
}
