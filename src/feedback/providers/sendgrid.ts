import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { SECOND } from '../../platform/clock.ts'
import type { FeedbackInput, FeedbackKind } from '../feedback.ts'
import { parseDiagnostic } from '../formats/diagnostic.ts'
import { parseTime } from '../formats/fields.ts'
import { checkAge, reject } from './checks.ts'
import { textAt } from './json.ts'
import type { Provider, ProviderRequest } from './provider.ts'

/** SendGrid: batches of events, signed with ECDSA on the curve P-256. */
export const sendgrid: Provider = {
  title: 'SendGrid',
  body: 'array',
  key: {
    name: 'verification key',
    expected: 'the public key on the page of the Event Webhook, in base64 or PEM',
    parse: parseVerificationKey,
    isPublic: false,
  },
  receive(request, { now }) {
    checkSignature(request, now)
    if (!Array.isArray(request.body)) reject('body', 'The body is not an array of events.')
    return { items: request.body.flatMap(parseEvent) }
  },
}

/** Returns the base64 of a P-256 key. */
function parseVerificationKey(text: string): string | null {
  const base64 = text.replace(/-----(?:BEGIN|END) PUBLIC KEY-----|\s/g, '')
  const details = toPublicKey(base64)?.asymmetricKeyDetails
  return details?.namedCurve === 'prime256v1' ? base64 : null
}

function toPublicKey(base64: string): KeyObject | null {
  try {
    const key = Buffer.from(base64, 'base64')
    return createPublicKey({ key, format: 'der', type: 'spki' })
  } catch {
    return null
  }
}

/** The signature covers the time and the body. */
function checkSignature({ header, bytes, key }: ProviderRequest, now: number): void {
  const timestamp = header('X-Twilio-Email-Event-Webhook-Timestamp') ?? ''
  const signature = header('X-Twilio-Email-Event-Webhook-Signature') ?? ''
  if (signature === '' || !/^\d{10}$/.test(timestamp)) {
    reject(
      'authentication',
      'The signature is missing. Turn on "Signed Event Webhook" in the settings of SendGrid.',
    )
  }
  const publicKey = toPublicKey(key)
  const signed = Buffer.concat([Buffer.from(timestamp), bytes])
  if (publicKey === null || !verify('sha256', signed, publicKey, Buffer.from(signature, 'base64')))
    reject('authentication', 'The signature is wrong. Check the verification key of the source.')
  checkAge(Number(timestamp) * SECOND, now)
}

/** Other events are not outcomes: `dropped` was not sent, `deferred` is retried. */
function parseEvent(event: unknown): FeedbackInput[] {
  const kind = KINDS.get(textAt(event, 'event') ?? '')
  const address = textAt(event, 'email')
  if (kind === undefined || address === undefined) return []
  const occurredAt = parseTime(textAt(event, 'timestamp'))
  const id = textAt(event, 'sg_event_id')
  if (kind !== 'bounced') return [{ address, kind, occurredAt, id }]
  const diagnostic = parseDiagnostic(textAt(event, 'reason') ?? '', textAt(event, 'status') ?? null)
  return [{ address, kind, ...diagnostic, occurredAt, id, isPermanent: readPermanence(event) }]
}

/** Returns whether a bounce is permanent; null if its reply must show it. */
function readPermanence(event: unknown): boolean | null {
  // The type `blocked` is a bounce for another reason than the recipient.
  if (textAt(event, 'type') === 'blocked') return false
  const classification = textAt(event, 'bounce_classification')
  if (classification === undefined || classification === 'Invalid Address') return true
  return OPEN_CLASSES.has(classification) ? null : false
}

/** Classes that a missing mailbox may have. The others are about the message or the sender. */
const OPEN_CLASSES: ReadonlySet<string> = new Set(['Mailbox Unavailable', 'Unclassified'])

const KINDS: ReadonlyMap<string, FeedbackKind> = new Map([
  ['bounce', 'bounced'],
  ['delivered', 'delivered'],
  ['spamreport', 'complained'],
])
