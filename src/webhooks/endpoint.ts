import { DAY } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { SECRET_PREFIX } from './signature.ts'

/** Maximum webhooks of an account: each event may be sent to all of them. */
export const WEBHOOKS_MAX = 50
/** Maximum length of a description, in characters. */
export const DESCRIPTION_LENGTH_MAX = 500
/** Maximum grace period of a previous secret. */
export const SECRET_GRACE_MAX_MS = 7 * DAY
/** Default grace period: time to deploy the new secret to all receivers. */
export const SECRET_GRACE_MS = DAY

export const newWebhookId = (random: Random): string => `wh_${random.token(ID_LENGTH)}`

/** Creates the signing secret of a webhook. `text` is shown once; `hint` is its last characters. */
export function newSigningSecret(random: Random): { readonly text: string; readonly hint: string } {
  const text = `${SECRET_PREFIX}${random.token(SECRET_LENGTH)}`
  return { text, hint: text.slice(-SECRET_HINT_LENGTH) }
}

const ID_LENGTH = 16
/** 165 bits of entropy, in characters that are also base64: 24 bytes when decoded. */
const SECRET_LENGTH = 32
/** Number of last characters of a secret that identify it. */
export const SECRET_HINT_LENGTH = 4

/** Error codes of attempts. Each is explained in docs/webhooks.md. */
export const DELIVERY_ERRORS = [
  'http_status',
  'redirect',
  'timeout',
  'connection_failed',
  'tls_error',
  'dns_error',
  'address_not_public',
  'invalid_url',
  'invalid_response',
  'secret_unreadable',
  'interrupted',
  'request_failed',
] as const

export type DeliveryError = (typeof DELIVERY_ERRORS)[number]

/** Reasons for disabling a webhook: code and message. */
export const DISABLED_REASONS = {
  gone: 'It answered 410 Gone: it accepts no more events.',
  failing: 'All attempts failed for 5 days.',
} as const

export type DisabledCode = keyof typeof DISABLED_REASONS

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
