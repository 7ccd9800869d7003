import type { FeedbackInput, FeedbackKind } from '../feedback.ts'
import { parseDiagnostic } from '../formats/diagnostic.ts'
import { parseTime } from '../formats/fields.ts'
import { checkBasicAuth } from './basic-auth.ts'
import { textAt } from './json.ts'
import type { Provider } from './provider.ts'

/** Postmark: webhooks for bounces, deliveries and spam complaints, one event per request. */
export const postmark: Provider = {
  title: 'Postmark',
  body: 'object',
  key: null,
  receive(request) {
    checkBasicAuth(request)
    return { items: parseEvent(request.body) }
  },
}

function parseEvent(event: unknown): FeedbackInput[] {
  const kind = KINDS.get(textAt(event, 'RecordType') ?? '')
  const address = textAt(event, 'Email') ?? textAt(event, 'Recipient')
  const isPermanent = BOUNCES.get(textAt(event, 'Type') ?? '')
  if (kind === undefined || address === undefined) return []
  if (kind === 'bounced' && isPermanent === undefined) return []
  const at = textAt(event, 'BouncedAt') ?? textAt(event, 'DeliveredAt')
  const diagnostic = kind === 'bounced' ? parseDiagnostic(textAt(event, 'Details') ?? '') : {}
  return [
    {
      address,
      kind,
      ...diagnostic,
      occurredAt: parseTime(at),
      isPermanent,
      id: textAt(event, 'ID') ?? textAt(event, 'MessageID'),
    },
  ]
}

const KINDS: ReadonlyMap<string, FeedbackKind> = new Map([
  ['Bounce', 'bounced'],
  ['Delivery', 'delivered'],
  ['SpamComplaint', 'complained'],
])

/**
 * Types of bounces after a delivery attempt, and whether they are permanent. Others report no
 * attempt (such as a suppressed address) or an automatic reply.
 */
const BOUNCES: ReadonlyMap<string, boolean> = new Map([
  ['HardBounce', true],
  ...[
    'SoftBounce',
    'DnsError',
    'Blocked',
    'SpamNotification',
    'DMARCPolicy',
    'VirusNotification',
  ].map(type => [type, false] as const),
])
