import { parseJsonText } from '../../platform/json-reader.ts'
import type { FeedbackInput } from '../feedback.ts'
import { parseDiagnostic } from '../formats/diagnostic.ts'
import { parseTime } from '../formats/fields.ts'
import { listAt, textAt, valueAt } from './json.ts'
import type { Provider } from './provider.ts'
import { parseTopic, readSnsMessage } from './sns-message.ts'

/**
 * Amazon SES: notifications by Amazon SNS, of an identity (`notificationType`) or of a
 * configuration set (`eventType`).
 */
export const ses: Provider = {
  title: 'Amazon SES',
  body: 'object',
  key: {
    name: 'ARN of the SNS topic',
    expected: 'such as arn:aws:sns:us-east-1:123456789012:ses-feedback',
    parse: text => parseTopic(text.trim())?.arn ?? null,
    isPublic: true,
  },
  async receive(request, deps) {
    const message = await readSnsMessage(request, deps)
    return { items: message === null ? [] : parseNotification(message) }
  },
}

/** Text that is no JSON is the message with which SES tests a topic. */
function parseNotification(message: string): FeedbackInput[] {
  const event = parseJson(message)
  const facts = { mailId: textAt(event, 'mail', 'messageId') }
  switch (textAt(event, 'eventType') ?? textAt(event, 'notificationType')) {
    case 'Bounce':
      return parseBounce(valueAt(event, 'bounce'), facts)
    case 'Complaint':
      return parseComplaint(valueAt(event, 'complaint'), facts)
    case 'Delivery':
      return parseDelivery(valueAt(event, 'delivery'), facts)
    default:
      return []
  }
}

type MailFacts = { readonly mailId: string | undefined }

function parseBounce(bounce: unknown, { mailId }: MailFacts): FeedbackInput[] {
  if (UNSENT.has(textAt(bounce, 'bounceSubType') ?? '')) return []
  const isPermanent = IS_PERMANENT.get(textAt(bounce, 'bounceType') ?? '') ?? null
  const occurredAt = parseTime(textAt(bounce, 'timestamp'))
  const id = textAt(bounce, 'feedbackId') ?? mailId
  return listAt(bounce, 'bouncedRecipients').flatMap(recipient => {
    const address = textAt(recipient, 'emailAddress')
    if (address === undefined) return []
    const status = textAt(recipient, 'status') ?? null
    const diagnostic = parseDiagnostic(textAt(recipient, 'diagnosticCode') ?? '', status)
    return [{ address, kind: 'bounced' as const, ...diagnostic, occurredAt, id, isPermanent }]
  })
}

function parseComplaint(complaint: unknown, { mailId }: MailFacts): FeedbackInput[] {
  if (UNSENT.has(textAt(complaint, 'complaintSubType') ?? '')) return []
  const occurredAt = parseTime(textAt(complaint, 'timestamp'))
  const id = textAt(complaint, 'feedbackId') ?? mailId
  return listAt(complaint, 'complainedRecipients').flatMap(recipient => {
    const address = textAt(recipient, 'emailAddress')
    return address === undefined ? [] : [{ address, kind: 'complained' as const, occurredAt, id }]
  })
}

function parseDelivery(delivery: unknown, { mailId: id }: MailFacts): FeedbackInput[] {
  const occurredAt = parseTime(textAt(delivery, 'timestamp'))
  return listAt(delivery, 'recipients').flatMap(address =>
    typeof address === 'string' ? [{ address, kind: 'delivered' as const, occurredAt, id }] : [],
  )
}

/** The type `Undetermined` leaves it open. */
const IS_PERMANENT: ReadonlyMap<string, boolean> = new Map([
  ['Permanent', true],
  ['Transient', false],
])

/** Messages to a suppressed address, which SES does not send. */
const UNSENT = new Set(['Suppressed', 'OnAccountSuppressionList', 'UnsubscribedRecipient'])

/** A message has at most 256 KB, and names its recipients and headers. */
const MESSAGE_LIMITS = {
  depthMax: 16,
  fieldsMax: 1_000,
  valuesMax: 50_000,
  tokenBytesMax: 256 * 1024,
} as const

function parseJson(text: string): unknown {
  try {
    return parseJsonText(text, MESSAGE_LIMITS)
  } catch {
    return null
  }
}
