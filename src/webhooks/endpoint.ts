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
  return { text, hint: text.slice(-HINT_LENGTH) }
}

const ID_LENGTH = 16
/** 165 bits of entropy, in characters that are also base64: 24 bytes when decoded. */
const SECRET_LENGTH = 32
const HINT_LENGTH = 4

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
