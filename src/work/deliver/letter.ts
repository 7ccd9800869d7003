import type { Seal } from '../../base/seal.ts'
import { signedHeaders } from '../../hook/signature.ts'
import type { Webhook } from '../../store/event/webhooks.ts'
import type { Letter, Receipt } from '../post/post.ts'

export type Content = {
  readonly webhook: Pick<Webhook, 'url' | 'secret' | 'previousSecret'>
  readonly eventId: string
  /** The JSON of the event, sent as it is. */
  readonly body: string
}

export type Sender = {
  readonly seal: Seal
  /** When it is sent, epoch ms. */
  readonly at: number
  /** Of ev, for receivers to see. */
  readonly version: string
}

/** A request for an event as it goes out now, signed with the secrets that hold now; or why it cannot be signed. */
export function letterOf(
  { webhook, eventId, body }: Content,
  { seal, at, version }: Sender,
): Letter | Pick<Receipt, 'fault' | 'faultCode'> {
  const secret = opened(seal, webhook.secret)
  if (secret === null) return { fault: LOST_SECRET, faultCode: 'secret_unreadable' }
  const before = webhook.previousSecret
  const previous = before !== null && before.until > at ? opened(seal, before.secret) : null
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

function opened(seal: Seal, sealed: string): string | null {
  try {
    return seal.open(sealed)
  } catch {
    return null
  }
}
