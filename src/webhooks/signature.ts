import { createHmac } from 'node:crypto'

type Signing = {
  /** `evt_…`, the same for every attempt. */
  readonly eventId: string
  /** Time of sending, epoch ms. */
  readonly at: number
  /** `whsec_…`: the current secret, then the previous one during its grace period. */
  readonly secrets: readonly [string, ...string[]]
}

/** Returns the signature headers: the one of the spec and those of Standard Webhooks. */
export function signedHeaders(
  body: string,
  { eventId, at, secrets }: Signing,
): Record<string, string> {
  const timestamp = Math.floor(at / 1_000)
  const signed = `${eventId}.${timestamp}.${body}`
  return {
    'X-EV-Signature': plainSignature(body, secrets[0]),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map(secret => `v1,${standardSignature(signed, secret)}`).join(' '),
  }
}

/** Spec 5.5: the key is the secret as shown, including its prefix. */
const plainSignature = (body: string, secret: string) =>
  createHmac('sha256', secret).update(body).digest('hex')

/** Standard Webhooks: the key is the base64-decoded part after the prefix. */
const standardSignature = (signed: string, secret: string) =>
  // Decoding the key to bytes first would cost five times the signature.
  createHmac('sha256', secret.slice(SECRET_PREFIX.length), { encoding: 'base64' })
    .update(signed)
    .digest('base64')

/** Prefix of every signing secret, before the base64. */
export const SECRET_PREFIX = 'whsec_'
