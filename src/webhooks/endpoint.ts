import { DAY } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { SECRET_PREFIX } from './signature.ts'

/** Webhooks of an account: each event is sent to all of them. */
export const WEBHOOKS_MAX = 50
/** Characters that a webhook's description may have. */
export const DESCRIPTION_LENGTH_MAX = 500
/** How long a secret may go on beside the one that took its place: it was replaced for a reason. */
export const SECRET_GRACE_MAX_MS = 7 * DAY
/** How long it does where nobody says: time to bring the new one to all that check signatures. */
export const SECRET_GRACE_MS = DAY

export const newWebhookId = (random: Random): string => `wh_${random.token(ID_LENGTH)}`

/** What signs the events of one webhook: its text is shown once, of which the hint are the last characters. */
export function newSigningSecret(random: Random): { readonly text: string; readonly hint: string } {
  const text = `${SECRET_PREFIX}${random.token(SECRET_LENGTH)}`
  return { text, hint: text.slice(-HINT_LENGTH) }
}

const ID_LENGTH = 16
/** 165 bits of chance, in letters that are base64 too: 24 bytes to whoever decodes it. */
const SECRET_LENGTH = 32
const HINT_LENGTH = 4

/** Why an attempt failed, for programs; the sentence beside it is for people. Each is explained in docs/webhooks.md. */
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

/** Why the service switched a webhook off: for programs, and the sentence for people. */
export const DISABLED_REASONS = {
  gone: 'It answered 410 Gone, which says that nothing is wanted there.',
  failing: 'All attempts failed for 5 days.',
} as const

export type DisabledCode = keyof typeof DISABLED_REASONS
