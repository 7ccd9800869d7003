import { createHmac } from 'node:crypto'

export type Signing = {
  /** `evt_…`, the same at every attempt. */
  readonly eventId: string
  /** When it is sent, epoch ms. */
  readonly at: number
  /** `whsec_…`: the current one first, then the one before it while its grace lasts. */
  readonly secrets: readonly [string, ...string[]]
}

/** The headers by which a receiver knows that a body comes from us: the one of the spec, and those of Standard Webhooks. */
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

/** Spec 5.5: keyed with the secret as it is shown, its prefix included. */
const plainSignature = (body: string, secret: string) =>
  createHmac('sha256', secret).update(body).digest('hex')

/** Standard Webhooks keys with the bytes that the part after the prefix is the base64 of. */
const standardSignature = (signed: string, secret: string) =>
  // As bytes the key would cost five times the signature.
  createHmac('sha256', secret.slice(SECRET_PREFIX.length), { encoding: 'base64' })
    .update(signed)
    .digest('base64')

/** Before the base64 of every signing secret. */
export const SECRET_PREFIX = 'whsec_'
