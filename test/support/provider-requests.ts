import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { ProviderName } from '../../src/feedback/providers/providers.ts'
import { SnsCertificates } from '../../src/feedback/providers/sns-certificates.ts'
import { makeAuthority } from './certificate.ts'
import { countedRandom } from './random.ts'

/** When requests are signed: the start of `fakeClock`. */
export const SIGNED_AT = Date.UTC(2026, 5, 1, 12)
const AT = '2026-06-01T11:59:00.000Z'

export const TOPIC = 'arn:aws:sns:eu-central-1:123456789012:ses-feedback'
export const SNS_HOST = 'https://sns.eu-central-1.amazonaws.com'
export const CERTIFICATE_URL = `${SNS_HOST}/SimpleNotificationService-0123456789abcdef.pem`

let authority: { readonly cert: string; readonly key: string } | undefined
/** The certificate of SNS and its private key, one per process. */
export function snsCertificate() {
  authority ??= makeAuthority({
    name: 'sns.amazonaws.com',
    now: SIGNED_AT,
    days: 365,
    random: countedRandom(),
  })
  return authority
}

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Keys of feedback sources, by provider. */
export const SOURCE_KEYS = {
  ses: TOPIC,
  sendgrid: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
  mailgun: 'key-0123456789abcdef',
  postmark: 'a-password-of-tests',
  sparkpost: 'a-password-of-tests',
} as const satisfies Record<ProviderName, string>

export type SignedRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

type SnsOptions = {
  readonly type?: string
  readonly version?: '1' | '2'
  readonly at?: number
  readonly fields?: Readonly<Record<string, string>>
  /** Fields that are changed after the signature. */
  readonly forged?: Readonly<Record<string, unknown>>
}

/** A message of Amazon SNS, signed as documented. */
export function snsRequest(message: unknown, o: SnsOptions = {}): SignedRequest {
  const { type = 'Notification', version = '1', at = SIGNED_AT } = o
  const fields: Record<string, string> = {
    Type: type,
    MessageId: '19ba9823-d7f2-53c1-860e-cb10e0d13dfc',
    TopicArn: TOPIC,
    Message: typeof message === 'string' ? message : JSON.stringify(message),
    Timestamp: new Date(at).toISOString(),
    ...(type === 'Notification'
      ? { Subject: 'Amazon SES Email Event Notification' }
      : { Token: 'abc', SubscribeURL: SUBSCRIBE_URL }),
    ...o.fields,
  }
  const signed = Object.keys(fields)
    .sort()
    .map(name => `${name}\n${fields[name]}\n`)
    .join('')
  const hash = version === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
  const Signature = sign(hash, Buffer.from(signed), snsCertificate().key).toString('base64')
  const rest = { SignatureVersion: version, Signature, SigningCertURL: CERTIFICATE_URL }
  return {
    headers: { 'Content-Type': 'text/plain; charset=UTF-8' },
    text: JSON.stringify({ ...fields, ...rest, ...o.forged }),
  }
}

export const SUBSCRIBE_URL = `${SNS_HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=abc`

const jsonRequest = (body: unknown, headers: Record<string, string> = {}): SignedRequest => ({
  headers: { 'Content-Type': 'application/json', ...headers },
  text: JSON.stringify(body),
})

/** A batch of SendGrid, signed with ECDSA over time and body. */
export function sendgridRequest(events: unknown, at = SIGNED_AT): SignedRequest {
  const timestamp = String(Math.floor(at / 1_000))
  const text = JSON.stringify(events)
  const signature = sign('sha256', Buffer.from(`${timestamp}${text}`), privateKey)
  return jsonRequest(events, {
    'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
    'X-Twilio-Email-Event-Webhook-Signature': signature.toString('base64'),
  })
}

/** A request of Mailgun, signed with HMAC-SHA256 over time and token. */
export function mailgunRequest(
  event: unknown,
  { at = SIGNED_AT, token = '651869375b9df3c98fc15c4889b102119add1235c38fc92824' } = {},
): SignedRequest {
  const timestamp = String(Math.floor(at / 1_000))
  const hmac = createHmac('sha256', SOURCE_KEYS.mailgun).update(`${timestamp}${token}`)
  const signature = { timestamp, token, signature: hmac.digest('hex') }
  return jsonRequest({ signature, 'event-data': event })
}

/** A form of a legacy webhook of Mailgun, which has the signature and the event. */
export function mailgunForm(
  fields: Readonly<Record<string, string>>,
  { at = SIGNED_AT, token = '1e1aeb5cd35dca1ae0eb8a8bc3c85a5d0b8bbb2ee7ef3cb5d4' } = {},
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000))
  const hmac = createHmac('sha256', SOURCE_KEYS.mailgun).update(`${timestamp}${token}`)
  return { ...fields, timestamp, token, signature: hmac.digest('hex') }
}

/** Events of legacy webhooks of Mailgun. */
export const MAILGUN_FORMS = {
  bounced: {
    event: 'bounced',
    recipient: 'jane@example.com',
    domain: 'news.example.net',
    code: '550',
    notification: '',
    'message-headers': '[["Received", "by …"]]',
    error: '5.1.1 The email account that you tried to reach does not exist.',
  },
  dropped: {
    event: 'dropped',
    recipient: 'jane@example.com',
    domain: 'news.example.net',
    reason: 'hardfail',
    code: '550',
    description: '5.1.1 No such user',
  },
  suppressed: {
    event: 'dropped',
    recipient: 'jane@example.com',
    reason: 'hardfail',
    code: '605',
    description: 'Not delivering to previously bounced address',
  },
  delivered: { event: 'delivered', recipient: 'bob@example.com', 'Message-Id': '<1@example.net>' },
  complained: { event: 'complained', recipient: 'carl@example.com' },
  opened: { event: 'opened', recipient: 'bob@example.com' },
} as const

/** A request with HTTP Basic authentication, as of Postmark and SparkPost. */
export function basicRequest(body: unknown, password: string = SOURCE_KEYS.postmark) {
  const credentials = Buffer.from(`ev:${password}`).toString('base64')
  return jsonRequest(body, { Authorization: `Basic ${credentials}` })
}

/** Dependencies of `receive` that return the certificate of SNS. */
export function providerDeps(now = SIGNED_AT) {
  const fetched: string[] = []
  const getDocument = async (url: string) => {
    fetched.push(url)
    if (url === CERTIFICATE_URL) return snsCertificate().cert
    return url === SUBSCRIBE_URL ? '<ConfirmSubscriptionResponse/>' : null
  }
  return { now, certificates: new SnsCertificates(), getDocument, fetched }
}

/** Documented events of each provider: a bounce, a delivery, a complaint, and an event that is left out. */
export const EVENTS = {
  ses: {
    bounce: {
      notificationType: 'Bounce',
      bounce: {
        bounceType: 'Permanent',
        bounceSubType: 'General',
        timestamp: AT,
        feedbackId: '00000138111222aa-44455566',
        reportingMTA: 'dns; email.example.com',
        bouncedRecipients: [
          {
            emailAddress: 'jane@example.com',
            status: '5.1.1',
            action: 'failed',
            diagnosticCode: 'smtp; 550 5.1.1 <jane@example.com>... User unknown',
          },
        ],
      },
      mail: { messageId: '00000138111222aa-33322211', destination: ['jane@example.com'] },
    },
    delivery: {
      eventType: 'Delivery',
      delivery: { timestamp: AT, recipients: ['bob@example.com'], smtpResponse: '250 ok' },
      mail: { messageId: '0000014644fe5ef6-9a483358', destination: ['bob@example.com'] },
    },
    complaint: {
      notificationType: 'Complaint',
      complaint: {
        complainedRecipients: [{ emailAddress: 'carl@example.com' }],
        timestamp: AT,
        feedbackId: '000001378603177f-18c07c78',
        complaintFeedbackType: 'abuse',
      },
      mail: { messageId: '000001378603177f-7a5433e7', destination: ['carl@example.com'] },
    },
    other: { eventType: 'Open', open: { timestamp: AT }, mail: { messageId: 'a' } },
  },
  sendgrid: {
    bounce: {
      email: 'jane@example.com',
      timestamp: 1_780_315_140,
      event: 'bounce',
      type: 'bounce',
      status: '5.1.1',
      reason: '550 5.1.1 <jane@example.com>: User unknown',
      sg_event_id: 'Ym91bmNl',
    },
    delivery: {
      email: 'bob@example.com',
      timestamp: 1_780_315_140,
      event: 'delivered',
      response: '250 OK',
      sg_event_id: 'ZGVsaXZlcmVk',
    },
    complaint: {
      email: 'carl@example.com',
      timestamp: 1_780_315_140,
      event: 'spamreport',
      sg_event_id: 'c3BhbXJlcG9ydA',
    },
    other: {
      email: 'dora@example.com',
      timestamp: 1_780_315_140,
      event: 'dropped',
      reason: 'Bounced Address',
      status: '5.0.0',
      sg_event_id: 'ZHJvcHBlZA',
    },
  },
  mailgun: {
    bounce: {
      event: 'failed',
      severity: 'permanent',
      reason: 'bounce',
      id: 'Ase7i2zsRYeDXztHGENqRA',
      recipient: 'jane@example.com',
      timestamp: 1_780_315_140.153125,
      'delivery-status': {
        code: 550,
        message: '5.1.1 The email account that you tried to reach does not exist.',
        'mx-host': 'mx.example.com',
        description: '',
      },
    },
    delivery: {
      event: 'delivered',
      id: 'hTWCTD81RtiDN',
      recipient: 'bob@example.com',
      timestamp: 1_780_315_140.153125,
      'delivery-status': { code: 250, message: 'OK' },
    },
    complaint: {
      event: 'complained',
      id: 'ncV2XwymRUKbPek',
      recipient: 'carl@example.com',
      timestamp: 1_780_315_140.153125,
    },
    other: {
      event: 'failed',
      severity: 'permanent',
      reason: 'suppress-bounce',
      id: 'x',
      recipient: 'dora@example.com',
      timestamp: 1_780_315_140.1,
      'delivery-status': { code: 605, message: 'Not delivering to previously bounced address' },
    },
  },
  postmark: {
    bounce: {
      RecordType: 'Bounce',
      ID: 901_542_550,
      Type: 'HardBounce',
      TypeCode: 1,
      Email: 'jane@example.com',
      BouncedAt: '2026-06-01T07:59:00.3963933-04:00',
      Details: 'smtp;550 5.1.1 The email account that you tried to reach does not exist.',
      MessageID: '2706ee8a-737c-4285-b032-ccd317af53ed',
    },
    delivery: {
      RecordType: 'Delivery',
      Recipient: 'bob@example.com',
      Details: '250 OK',
      DeliveredAt: '2026-06-01T07:59:00.2735393-04:00',
      MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
    },
    complaint: {
      RecordType: 'SpamComplaint',
      ID: 42,
      Type: 'SpamComplaint',
      TypeCode: 512,
      Email: 'carl@example.com',
      BouncedAt: '2026-06-01T11:59:00.9070259Z',
    },
    other: {
      RecordType: 'Bounce',
      ID: 43,
      Type: 'ManuallyDeactivated',
      Email: 'dora@example.com',
      BouncedAt: AT,
    },
  },
  sparkpost: {
    bounce: {
      msys: {
        message_event: {
          type: 'bounce',
          bounce_class: '10',
          error_code: '550',
          timestamp: '1780315140',
          event_id: '84345317653491230',
          rcpt_to: 'jane@example.com',
          raw_rcpt_to: 'jane@example.com',
          raw_reason: '550 5.1.1 <jane@example.com>: Recipient address rejected: User unknown',
        },
      },
    },
    delivery: {
      msys: {
        message_event: {
          type: 'delivery',
          event_id: '92356927693813856',
          timestamp: '1780315140',
          rcpt_to: 'bob@example.com',
          raw_rcpt_to: 'bob@example.com',
        },
      },
    },
    complaint: {
      msys: {
        message_event: {
          type: 'spam_complaint',
          event_id: '92356927693813857',
          timestamp: '1780315140',
          rcpt_to: 'carl@example.com',
          fbtype: 'abuse',
        },
      },
    },
    other: { msys: {} },
  },
} as const satisfies Record<
  ProviderName,
  Record<'bounce' | 'delivery' | 'complaint' | 'other', object>
>

export type EventName = keyof (typeof EVENTS)['ses']

/** A signed request of a provider with one of its events. */
export function eventRequest(
  provider: ProviderName,
  name: EventName,
  event: unknown = EVENTS[provider][name],
): SignedRequest {
  switch (provider) {
    case 'ses':
      return snsRequest(event)
    case 'sendgrid':
      return sendgridRequest([event])
    case 'mailgun':
      return mailgunRequest(event)
    case 'postmark':
      return basicRequest(event)
    case 'sparkpost':
      return basicRequest([event])
    default:
      return provider satisfies never
  }
}
