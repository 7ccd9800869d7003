/** Attempts of a webhook on one UTC day. */
export type DailyAttempts = {
  /** The day, as in `2026-03-21`. */
  readonly date: string
  readonly delivered: number
  readonly failed: number
}

/** Days that are kept, the latest ones with attempts: as long as the delivery log. */
const DAYS_MAX = 7

/** Parses the stored form; null is none. */
export const parseDailyAttempts = (stored: string | null): readonly DailyAttempts[] =>
  stored === null ? [] : (JSON.parse(stored) as DailyAttempts[])

type AttemptTime = {
  /** Start of the request, epoch ms. */
  readonly startedAt: number
  readonly isDelivered: boolean
}

/** Adds attempts to the days, oldest first. */
export function countAttempts(
  days: readonly DailyAttempts[],
  attempts: readonly AttemptTime[],
): readonly DailyAttempts[] {
  const byDate = new Map(days.map(day => [day.date, day]))
  for (const { startedAt, isDelivered } of attempts) {
    const date = new Date(startedAt).toISOString().slice(0, DATE_LENGTH)
    const { delivered, failed } = byDate.get(date) ?? { delivered: 0, failed: 0 }
    byDate.set(date, {
      date,
      delivered: delivered + (isDelivered ? 1 : 0),
      failed: failed + (isDelivered ? 0 : 1),
    })
  }
  return [...byDate.values()].sort((a, b) => (a.date < b.date ? -1 : 1)).slice(-DAYS_MAX)
}

const DATE_LENGTH = '2026-03-21'.length

/** Returns the share of successful attempts, from 0 to 1; null if there were none. */
export function successRate(days: readonly DailyAttempts[]): number | null {
  const delivered = days.reduce((sum, day) => sum + day.delivered, 0)
  const total = days.reduce((sum, day) => sum + day.failed, delivered)
  return total === 0 ? null : Math.round((delivered / total) * PRECISION) / PRECISION
}

const PRECISION = 10_000
