import { describe, expect, test } from 'vitest'
import { parseFeedback } from '../../../src/feedback/feedback.ts'
import { REQUEST_AGE_MAX_MS } from '../../../src/feedback/providers/checks.ts'
import {
  PROVIDER_NAMES,
  PROVIDERS,
  type ProviderName,
} from '../../../src/feedback/providers/providers.ts'
import { SnsCertificates } from '../../../src/feedback/providers/sns-certificates.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { isRefusal } from '../../../src/platform/operation-error.ts'
import {
  basicRequest,
  CERTIFICATE_URL,
  EVENTS,
  type EventName,
  eventRequest,
  MAILGUN_FORMS,
  mailgunForm,
  mailgunRequest,
  providerDeps,
  SIGNED_AT,
  type SignedRequest,
  SNS_HOST,
  SOURCE_KEYS,
  SUBSCRIBE_URL,
  sendgridRequest,
  snsCertificate,
  snsRequest,
} from '../../support/provider-requests.ts'

/** Receives a request, after its body was parsed. */
async function receive(
  provider: ProviderName,
  { headers, text }: SignedRequest,
  deps = providerDeps(),
  key: string = SOURCE_KEYS[provider],
) {
  const given = new Headers(headers)
  const request = {
    header: (name: string) => given.get(name) ?? undefined,
    bytes: Buffer.from(text),
    body: JSON.parse(text) as unknown,
    key,
  }
  return PROVIDERS[provider].receive(request, deps)
}

/** The reason why a request is rejected; null if it is accepted. */
async function rejection(provider: ProviderName, request: SignedRequest, deps = providerDeps()) {
  try {
    await receive(provider, request, deps)
    return null
  } catch (error) {
    if (!isRefusal(error, 'feedback_request_rejected')) throw error
    return error.facts
  }
}

const outcome = (provider: ProviderName, name: EventName) =>
  receive(provider, eventRequest(provider, name)).then(({ items }) =>
    items.map(item => parseFeedback(item, SIGNED_AT)),
  )

/** Returns copies of a value, each without one of the fields in it. */
function withoutEach(value: unknown): unknown[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, at) => withoutEach(item).map(one => value.with(at, one)))
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const { [name]: _, ...others } = value as Record<string, unknown>
    return [others, ...withoutEach(inner).map(one => ({ ...value, [name]: one }))]
  })
}

const OCCURRED_AT = SIGNED_AT - MINUTE

describe.each(PROVIDER_NAMES)('an event of %s', provider => {
  test('that reports a bounce is classified by the reply', async () => {
    const [bounce, ...others] = await outcome(provider, 'bounce')
    expect(others).toEqual([])
    expect(bounce).toMatchObject({
      addressKey: 'jane@example.com',
      kind: 'bounced',
      outcome: 'dead',
      code: 550,
      enhancedCode: '5.1.1',
    })
    const { occurredAt } = bounce as { occurredAt: number }
    expect(Math.abs(occurredAt - OCCURRED_AT)).toBeLessThan(SECOND)
  })

  test('that reports a delivery or a complaint has its address and its time', async () => {
    const all = [
      ...(await outcome(provider, 'delivery')),
      ...(await outcome(provider, 'complaint')),
    ]
    expect(all).toMatchObject([
      { addressKey: 'bob@example.com', kind: 'delivered', outcome: 'alive', code: null },
      { addressKey: 'carl@example.com', kind: 'complained', outcome: 'alive', code: null },
    ])
    for (const one of all) {
      const { occurredAt } = one as { occurredAt: number }
      expect(Math.abs(occurredAt - OCCURRED_AT)).toBeLessThan(SECOND)
    }
  })

  test('that is no outcome is left out', async () => {
    expect(await outcome(provider, 'other')).toEqual([])
  })

  test('has an ID, so that a repeated one counts once', async () => {
    for (const name of ['bounce', 'delivery', 'complaint'] as const) {
      const { items } = await receive(provider, eventRequest(provider, name))
      expect(items[0]?.id).toMatch(/^[\w-]{2,}$/)
    }
  })

  test('without one of its fields is read, left out or rejected', async () => {
    for (const name of ['bounce', 'delivery', 'complaint', 'other'] as const) {
      for (const event of withoutEach(EVENTS[provider][name])) {
        const facts = await rejection(provider, eventRequest(provider, name, event))
        expect(['body', undefined], JSON.stringify(event)).toContain(facts?.kind)
      }
    }
  })

  test('of another source is rejected', async () => {
    const other = { ...SOURCE_KEYS, ses: SOURCE_KEYS.ses.replace('ses-', 'x-') }
    const key = provider === 'sendgrid' ? 'MFkwEwYHKoZIzj0' : `${other[provider]}x`
    const received = receive(provider, eventRequest(provider, 'bounce'), providerDeps(), key)
    await expect(received).rejects.toMatchObject({ code: 'feedback_request_rejected' })
  })
})

describe('a bounce', () => {
  const codes = async (provider: ProviderName, request: SignedRequest) => {
    const { items } = await receive(provider, request)
    return items.map(item => {
      const feedback = parseFeedback(item, SIGNED_AT)
      return typeof feedback === 'string' ? feedback : feedback.outcome
    })
  }
  const sesBounce = (recipient: object, bounce: object = {}) =>
    snsRequest({
      ...EVENTS.ses.bounce,
      bounce: {
        ...EVENTS.ses.bounce.bounce,
        ...bounce,
        bouncedRecipients: [{ emailAddress: 'jane@example.com', ...recipient }],
      },
    })

  const sparkpostBounce = (bounceClass: string) =>
    basicRequest([
      {
        msys: {
          message_event: {
            ...EVENTS.sparkpost.bounce.msys.message_event,
            bounce_class: bounceClass,
          },
        },
      },
    ])

  test.each<[string, ProviderName, SignedRequest, (string | null)[]]>([
    ['without a code counts if it is permanent', 'ses', sesBounce({}), ['dead']],
    [
      'without a code counts not if it is transient',
      'ses',
      sesBounce({}, { bounceType: 'Transient' }),
      [null],
    ],
    [
      'of a suppressed address was not sent',
      'ses',
      sesBounce({ status: '5.1.1' }, { bounceSubType: 'OnAccountSuppressionList' }),
      [],
    ],
    [
      'for a full mailbox says nothing',
      'sendgrid',
      sendgridRequest([{ ...EVENTS.sendgrid.bounce, status: '5.2.2', reason: '552 5.2.2 full' }]),
      [null],
    ],
    [
      'for a block says nothing',
      'sendgrid',
      sendgridRequest([
        {
          ...EVENTS.sendgrid.bounce,
          type: 'blocked',
          status: '5.7.1',
          reason: '550 5.7.1 blocked using spamhaus',
        },
      ]),
      [null],
    ],
    [
      'that is retried says nothing',
      'mailgun',
      mailgunRequest({ ...EVENTS.mailgun.bounce, severity: 'temporary' }),
      [],
    ],
    [
      'without an SMTP code of Mailgun says nothing',
      'mailgun',
      mailgunRequest({
        ...EVENTS.mailgun.bounce,
        reason: 'old',
        'delivery-status': { code: 602, message: 'Too old' },
      }),
      [null],
    ],
    [
      'that is soft says nothing',
      'postmark',
      basicRequest({ ...EVENTS.postmark.bounce, Type: 'SoftBounce', Details: 'try later' }),
      [null],
    ],
    [
      'that is not permanent says nothing, whatever its code',
      'ses',
      sesBounce({ status: '5.1.1', diagnosticCode: '550 no user' }, { bounceType: 'Transient' }),
      [null],
    ],
    [
      'of a kind that Amazon does not know is classified by the reply',
      'ses',
      sesBounce({ status: '5.1.1' }, { bounceType: 'Undetermined' }),
      ['dead'],
    ],
    [
      'that SendGrid calls a block says nothing',
      'sendgrid',
      sendgridRequest([{ ...EVENTS.sendgrid.bounce, type: 'blocked' }]),
      [null],
    ],
    [
      'of another class than an invalid address says nothing',
      'sendgrid',
      sendgridRequest([{ ...EVENTS.sendgrid.bounce, bounce_classification: 'Technical Failure' }]),
      [null],
    ],
    [
      'of an unclassified kind is classified by the reply',
      'sendgrid',
      sendgridRequest([{ ...EVENTS.sendgrid.bounce, bounce_classification: 'Unclassified' }]),
      ['dead'],
    ],
    ['of a soft class says nothing', 'sparkpost', sparkpostBounce('20'), [null]],
    [
      'of an undetermined class is classified by the reply',
      'sparkpost',
      sparkpostBounce('1'),
      ['dead'],
    ],
    [
      'after the acceptance counts',
      'sparkpost',
      basicRequest([
        {
          msys: {
            message_event: { ...EVENTS.sparkpost.bounce.msys.message_event, type: 'out_of_band' },
          },
        },
      ]),
      ['dead'],
    ],
    ['that SparkPost did not send is left out', 'sparkpost', sparkpostBounce('25'), []],
  ])('%s (%s)', async (_, provider, request, expected) => {
    expect(await codes(provider, request)).toEqual(expected)
  })
})

describe('a message of Amazon SNS', () => {
  test.each(['1', '2'] as const)('with SignatureVersion %s is accepted', async version => {
    const deps = providerDeps()
    for (const name of ['bounce', 'delivery'] as const) {
      const { items } = await receive('ses', snsRequest(EVENTS.ses[name], { version }), deps)
      expect(items).toHaveLength(1)
    }
    // The certificate is downloaded once.
    expect(deps.fetched).toEqual([CERTIFICATE_URL])
  })

  test('that confirms a subscription is answered at Amazon only', async () => {
    const deps = providerDeps()
    const type = 'SubscriptionConfirmation'
    expect((await receive('ses', snsRequest('', { type }), deps)).items).toEqual([])
    expect(deps.fetched).toEqual([CERTIFICATE_URL, SUBSCRIBE_URL])
    for (const url of [
      ...['https://evil.example/?Action=ConfirmSubscription', 'http://127.0.0.1/', 'x'],
      ...[`${SNS_HOST}@evil.example/`, `${SNS_HOST}:8443/`, `${SNS_HOST}.evil.example/`],
      'https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription',
    ]) {
      const fields = { SubscribeURL: url }
      const other = providerDeps()
      const facts = await rejection('ses', snsRequest('', { type, fields }), other)
      expect(facts).toMatchObject({
        kind: 'authentication',
        fault: expect.stringMatching(/^SubscribeURL is not at/),
      })
      expect(other.fetched).toEqual([CERTIFICATE_URL])
    }
  })

  test('that ends a subscription, or tests the topic, has no feedback', async () => {
    const ended = snsRequest('bye', { type: 'UnsubscribeConfirmation' })
    expect((await receive('ses', ended)).items).toEqual([])
    const tested = snsRequest('Successfully validated SNS topic for Amazon SES event publishing.')
    expect((await receive('ses', tested)).items).toEqual([])
  })

  test.each([
    'https://evil.example/SimpleNotificationService-0.pem',
    'http://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem',
    'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem',
    `${SNS_HOST}.evil.example/SimpleNotificationService-0.pem`,
    `${SNS_HOST}@evil.example/SimpleNotificationService-0.pem`,
    `${SNS_HOST}/?Action=x&Name=/SimpleNotificationService-0.pem`,
    `${SNS_HOST}/other.pem`,
    `${SNS_HOST}/a/../SimpleNotificationService-0.pem`,
    `${SNS_HOST}:444/SimpleNotificationService-0.pem`,
    'https://127.0.0.1/SimpleNotificationService-0.pem',
    '',
  ])('does not make ev fetch %s', async SigningCertURL => {
    const deps = providerDeps()
    const request = snsRequest(EVENTS.ses.bounce, { forged: { SigningCertURL } })
    expect(await rejection('ses', request, deps)).toMatchObject({ kind: 'authentication' })
    expect(deps.fetched).toEqual([])
  })

  test.each<[string, Parameters<typeof snsRequest>[1]]>([
    ['another topic', { fields: { TopicArn: `${SOURCE_KEYS.ses}2` } }],
    ['a changed text', { forged: { Message: '{}' } }],
    ['a changed time', { forged: { Timestamp: '2026-06-01T11:00:00.000Z' } }],
    ['a removed field', { forged: { MessageId: undefined } }],
    ['a removed subject', { forged: { Subject: undefined } }],
    ['an unknown type', { type: 'Notice' }],
    ['an unknown version', { forged: { SignatureVersion: '3' } }],
    ['no signature', { forged: { Signature: '' } }],
    ['a signature of another version', { forged: { SignatureVersion: '2' } }],
    [
      'a certificate that does not exist',
      { forged: { SigningCertURL: `${SNS_HOST}/SimpleNotificationService-0.pem` } },
    ],
    ['an old time', { at: SIGNED_AT - REQUEST_AGE_MAX_MS - 1 }],
    ['a time in the future', { at: SIGNED_AT + HOUR }],
  ])('with %s is rejected', async (_, o) => {
    const facts = await rejection('ses', snsRequest(EVENTS.ses.bounce, o))
    expect(facts).toMatchObject({ kind: 'authentication' })
  })

  test('is repeated later if the certificate cannot be downloaded', async () => {
    let fails = true
    const deps = {
      ...providerDeps(),
      getDocument: async () => {
        if (fails) throw new Error('refused the connection')
        return snsCertificate().cert
      },
    }
    const request = snsRequest(EVENTS.ses.bounce)
    expect(await rejection('ses', request, deps)).toMatchObject({ kind: 'unavailable' })
    fails = false
    expect(await rejection('ses', request, deps)).toBeNull()
  })

  test('with an expired certificate is rejected', async () => {
    const now = SIGNED_AT + 366 * 24 * HOUR
    const request = snsRequest(EVENTS.ses.bounce, { at: now })
    expect(await rejection('ses', request, providerDeps(now))).toMatchObject({
      kind: 'authentication',
      fault: expect.stringContaining('expired'),
    })
  })

  test('opens few downloads at a time', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const deps = { ...providerDeps(), certificates: new SnsCertificates() }
    const getDocument = () => promise
    const all = Array.from({ length: 8 }, (_, n) => {
      const SigningCertURL = `${SNS_HOST}/SimpleNotificationService-${n}.pem`
      const request = snsRequest(EVENTS.ses.bounce, { forged: { SigningCertURL } })
      return rejection('ses', request, { ...deps, getDocument })
    })
    resolve(snsCertificate().cert)
    const facts = await Promise.all(all)
    expect(facts.filter(one => one?.kind === 'unavailable')).toHaveLength(4)
  })
})

test('a message of Amazon SNS without one of its fields is rejected', async () => {
  for (const type of ['Notification', 'SubscriptionConfirmation']) {
    const { headers, text } = snsRequest(EVENTS.ses.bounce, { type })
    const message = JSON.parse(text) as object
    for (const name of Object.keys(message)) {
      const without = JSON.stringify({ ...message, [name]: undefined })
      const facts = await rejection('ses', { headers, text: without })
      expect([name, facts?.kind]).toEqual([name, 'authentication'])
    }
  }
})

describe('a request of SendGrid', () => {
  test.each<[string, SignedRequest]>([
    [
      'an old time',
      sendgridRequest([EVENTS.sendgrid.bounce], SIGNED_AT - REQUEST_AGE_MAX_MS - SECOND),
    ],
    ['a time in the future', sendgridRequest([EVENTS.sendgrid.bounce], SIGNED_AT + HOUR)],
    [
      'a changed body',
      {
        ...sendgridRequest([EVENTS.sendgrid.bounce]),
        text: JSON.stringify([EVENTS.sendgrid.delivery]),
      },
    ],
    ['no signature', { headers: {}, text: '[]' }],
  ])('with %s is rejected', async (_, request) => {
    expect(await rejection('sendgrid', request)).toMatchObject({ kind: 'authentication' })
  })

  test('must be an array', async () => {
    expect(await rejection('sendgrid', sendgridRequest({}))).toMatchObject({ kind: 'body' })
  })
})

describe('a request of Mailgun', () => {
  const event = EVENTS.mailgun.bounce
  const altered = (change: (signature: Record<string, string>) => object): SignedRequest => {
    const { headers, text } = mailgunRequest(event)
    const body = JSON.parse(text) as { signature: Record<string, string> }
    return { headers, text: JSON.stringify({ ...body, signature: change(body.signature) }) }
  }

  test('returns its token, because the signature does not cover the event', async () => {
    const token = 'a'.repeat(50)
    expect(await receive('mailgun', mailgunRequest(event, { token }))).toMatchObject({ token })
  })

  test.each([
    ['repeated after eight hours, as Mailgun does', -8 * HOUR],
    ['twelve hours old', -12 * HOUR],
    ['ten minutes in the future', 10 * MINUTE],
  ])('%s is accepted', async (_, offset) => {
    expect(await rejection('mailgun', mailgunRequest(event, { at: SIGNED_AT + offset }))).toBeNull()
  })

  test.each<[keyof typeof MAILGUN_FORMS, object[]]>([
    [
      'bounced',
      [{ address: 'jane@example.com', kind: 'bounced', code: 550, enhancedCode: '5.1.1' }],
    ],
    [
      'dropped',
      [{ address: 'jane@example.com', kind: 'bounced', code: 550, enhancedCode: '5.1.1' }],
    ],
    ['suppressed', []],
    ['delivered', [{ address: 'bob@example.com', kind: 'delivered', occurredAt: SIGNED_AT }]],
    ['complained', [{ address: 'carl@example.com', kind: 'complained' }]],
    ['opened', []],
  ])('of a legacy webhook with the event %s is read', async (name, items) => {
    const text = JSON.stringify(mailgunForm(MAILGUN_FORMS[name]))
    expect(await receive('mailgun', { headers: {}, text })).toMatchObject({ items })
    const forged = JSON.stringify({ ...JSON.parse(text), token: 'b'.repeat(50) })
    expect(await rejection('mailgun', { headers: {}, text: forged })).toMatchObject({
      kind: 'authentication',
    })
  })

  test.each<[string, SignedRequest]>([
    ['an old time', mailgunRequest(event, { at: SIGNED_AT - 12 * HOUR - SECOND })],
    ['a time in the near future', mailgunRequest(event, { at: SIGNED_AT + 10 * MINUTE + SECOND })],
    ['a time in the future', mailgunRequest(event, { at: SIGNED_AT + HOUR })],
    ['another token', altered(one => ({ ...one, token: 'b'.repeat(50) }))],
    [
      'a digit moved from the token to the time',
      altered(({ timestamp = '', token = '', signature = '' }) => ({
        timestamp: `${timestamp}${token[0]}`,
        token: token.slice(1),
        signature,
      })),
    ],
    ['no signature', altered(({ timestamp, token }) => ({ timestamp, token }))],
    ['a short signature', altered(one => ({ ...one, signature: one.signature?.slice(1) }))],
  ])('with %s is rejected', async (_, request) => {
    expect(await rejection('mailgun', request)).toMatchObject({ kind: 'authentication' })
  })
})

describe('HTTP Basic authentication', () => {
  test.each<[string, Record<string, string>]>([
    ['is missing', {}],
    ['has another password', basicRequest({}, 'x').headers],
    ['has another scheme', { Authorization: `Bearer ${SOURCE_KEYS.postmark}` }],
    ['has another username', { Authorization: `Basic ${btoa(`x:${SOURCE_KEYS.postmark}`)}` }],
  ])('that %s is rejected', async (_, headers) => {
    const request = { headers, text: JSON.stringify(EVENTS.postmark.bounce) }
    expect(await rejection('postmark', request)).toMatchObject({ kind: 'authentication' })
  })
})
