import type { SecretBox } from '../../platform/secret-box.ts'
import type { Webhook } from '../endpoint-store.ts'
import { signedHeaders } from '../signature.ts'
import type { TransportResult, WebhookRequest } from '../transport/transport.ts'

export type EventToSend = {
  readonly webhook: Pick<Webhook, 'url' | 'secret' | 'previousSecret'>
  readonly eventId: string
  /** The JSON of the event, sent as it is. */
  readonly body: string
}

export type SigningContext = {
  readonly secretBox: SecretBox
  /** When it is sent, epoch ms. */
  readonly at: number
  /** Of ev, for receivers to see. */
  readonly version: string
}

/** A request for an event as it goes out now, signed with the secrets that hold now; or why it cannot be signed. */
export function buildRequest(
  { webhook, eventId, body }: EventToSend,
  { secretBox, at, version }: SigningContext,
): WebhookRequest | Pick<TransportResult, 'fault' | 'faultCode'> {
  const secret = opened(secretBox, webhook.secret)
  if (secret === null) return { fault: LOST_SECRET, faultCode: 'secret_unreadable' }
  const before = webhook.previousSecret
  const previous = before !== null && before.until > at ? opened(secretBox, before.secret) : null
  const secrets = previous === null ? ([secret] as const) : ([secret, previous] as const)
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `ev/${version}`,
    ...signedHeaders(body, { eventId, at, secrets }),
  }
  return { url: webhook.url, headers, body }
}

const LOST_SECRET =
  'The signing secret cannot be read: it was sealed with another EV_SECRET. Put that one back, or rotate the secret of this webhook.'

function opened(secretBox: SecretBox, encrypted: string): string | null {
  try {
    return secretBox.decrypt(encrypted)
  } catch {
    return null
  }
}
