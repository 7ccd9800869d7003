import { describe, expect, test } from 'vitest'
import { mergePlans } from '../../src/accounts/plan.ts'
import {
  PROVIDER_NAMES,
  PROVIDERS,
  type ProviderName,
} from '../../src/feedback/providers/providers.ts'
import { HOUR } from '../../src/platform/clock.ts'
import { fc, runs } from '../support/property.ts'
import {
  basicRequest,
  CERTIFICATE_URL,
  EVENTS,
  type EventName,
  eventRequest,
  MAILGUN_FORMS,
  mailgunForm,
  mailgunRequest,
  SIGNED_AT,
  type SignedRequest,
  SOURCE_KEYS,
  SUBSCRIBE_URL,
  sendgridRequest,
  snsCertificate,
  snsRequest,
} from '../support/provider-requests.ts'
import { createTestService } from '../support/service.ts'

const hasKey = (provider: ProviderName) => provider !== 'postmark' && provider !== 'sparkpost'

type Created = {
  readonly url: string
  readonly basic_auth: { readonly password: string } | null
}

/** A service with a source, and a function that sends requests of its provider. */
async function createReceiver(
  provider: ProviderName,
  options: Parameters<typeof createTestService>[0] = {},
) {
  const service = await createTestService(options)
  const { json, request, post, clock, database } = service
  expect(clock.now()).toBe(SIGNED_AT)
  post.documents.set(CERTIFICATE_URL, snsCertificate().cert)
  post.documents.set(SUBSCRIBE_URL, '<ConfirmSubscriptionResponse/>')
  const body = hasKey(provider) ? { provider, key: SOURCE_KEYS[provider] } : { provider }
  const { data } = await json('/v1/feedback/sources', { body })
  const { url, basic_auth } = data as Created
  const path = new URL(url).pathname
  const send = ({ headers, text }: SignedRequest) =>
    request(path, { key: null, body: text, method: 'POST', headers: { ...headers } })
  return {
    ...service,
    path,
    send,
    password: basic_auth?.password,
    /** Sends an event with the password of the source, if it has one. */
    sendEvent: (name: EventName) =>
      send(
        basic_auth === null
          ? eventRequest(provider, name)
          : {
              ...eventRequest(provider, name),
              headers: basicRequest({}, basic_auth.password).headers,
            },
      ),
    stored: () => database.db.selectFrom('feedback').selectAll().orderBy('address_key').execute(),
  }
}

describe.each(PROVIDER_NAMES)('a request of %s', provider => {
  test.each([null, [], 'x', 1, true])('with the JSON body %j is refused', async body => {
    const { send, password } = await createReceiver(provider)
    const basic = password === undefined ? {} : basicRequest({}, password).headers
    const headers = { 'Content-Type': 'application/json', ...basic }
    const response = await send({ headers, text: JSON.stringify(body) })
    expect(response.status, await response.text()).toBe(400)
  })

  test('records feedback of the account of the source, once', async () => {
    const { sendEvent, stored, json } = await createReceiver(provider)
    for (const name of ['bounce', 'delivery', 'complaint'] as const) {
      const response = await sendEvent(name)
      // The token of Mailgun is bound to the first event.
      if (provider === 'mailgun' && name !== 'bounce') {
        expect(response.status).toBe(401)
        continue
      }
      expect(await response.json()).toEqual({
        success: true,
        data: { received: 1, recorded: 1, duplicates: 0, rejected: [] },
      })
    }
    expect(await (await sendEvent('bounce')).json()).toMatchObject({
      data: { recorded: 0, duplicates: 1 },
    })
    const rows = await stored()
    expect(rows.find(row => row.address_key === 'jane@example.com')).toMatchObject({
      account_id: 'acc_1',
      source: provider,
      outcome: 'dead',
      code: 550,
    })
    const { data } = await json('/v1/feedback/sources')
    expect(data).toMatchObject({
      sources: [{ provider, last_received_at: new Date(SIGNED_AT).toISOString() }],
    })
  })

  test('beyond the limit of stored feedback is to be repeated, and then recorded', async () => {
    const plans = mergePlans({ small: { requests: 100, storedFeedback: 1 } })
    const receiver = await createReceiver(provider, { plan: 'small', settings: { plans } })
    const { sendEvent, stored, json, database } = receiver
    const other = { email: 'other@example.com', kind: 'delivered' }
    await json('/v1/feedback', { body: { items: [other] } })
    const refused = await sendEvent('bounce')
    // The providers repeat a request after this status.
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '3600'])
    expect(await refused.json()).toMatchObject({ code: 'stored_rows_exceeded' })
    expect(await stored()).toHaveLength(1)
    const { data } = await json('/v1/feedback/sources')
    expect(data).toMatchObject({ sources: [{ last_received_at: expect.any(String) }] })
    await database.db.deleteFrom('feedback').execute()
    await database.db.updateTable('feedback_account').set({ pieces: 0 }).execute()
    expect(await (await sendEvent('bounce')).json()).toMatchObject({ data: { recorded: 1 } })
  })

  test('to a source that does not exist, or of another provider, is not found', async () => {
    const { request, path, sendEvent, json } = await createReceiver(provider)
    const other = PROVIDER_NAMES.find(name => name !== provider) ?? ''
    const options = { key: null, method: 'POST', body: '{}' } as const
    for (const wrong of [
      ...[path.replace(provider, other), path.slice(0, -1), `/v1/feedback/${provider}/fbs_x`],
    ]) {
      expect((await request(wrong, options)).status).toBe(404)
    }
    const id = path.split('/').at(-1)
    await request(`/v1/feedback/sources/${id}`, { method: 'DELETE' })
    expect((await sendEvent('delivery')).status).toBe(404)
    expect((await json('/v1/feedback/sources')).data).toEqual({ sources: [], total: 0 })
  })

  test('that is forged, truncated or too long is refused', async () => {
    const { send, stored } = await createReceiver(provider)
    const forged = eventRequest(provider, 'bounce')
    // The password of the source is another one, and other bodies have no valid signature.
    const signed = hasKey(provider)
    const truncated = { ...forged, text: forged.text.slice(0, -1) }
    const empty = { headers: { 'Content-Type': 'application/json' }, text: '' }
    const long = { ...forged, text: JSON.stringify('a'.repeat(4 * 1024 * 1024)) }
    expect((await send(truncated)).status).toBe(400)
    // An empty body is an empty object, which is not a list of events.
    expect((await send(empty)).status).toBe(PROVIDERS[provider].body === 'array' ? 400 : 401)
    expect((await send(long)).status).toBe(413)
    if (!signed) {
      const { status, headers } = await send(forged)
      expect([status, headers.get('WWW-Authenticate')]).toEqual([401, 'Basic realm="ev"'])
    }
    expect(await stored()).toEqual([])
  })
})

test('a new source has what authenticates its provider', async () => {
  const { json } = await createTestService()
  const create = (body: object) => json('/v1/feedback/sources', { body })
  expect((await create({ provider: 'postmark' })).data).toMatchObject({
    basic_auth: { username: 'ev', password: expect.stringMatching(/^\w{32}$/) },
  })
  expect((await create({ provider: 'ses', key: SOURCE_KEYS.ses })).data).toMatchObject({
    basic_auth: null,
    key_hint: SOURCE_KEYS.ses,
    last_received_at: null,
    url: expect.stringMatching(/^https:\/\/ev\.test\/v1\/feedback\/ses\/fbs_\w{20}$/),
  })
  const { data } = await create({ provider: 'mailgun', key: SOURCE_KEYS.mailgun })
  expect(data).toMatchObject({ basic_auth: null, key_hint: 'cdef' })
  expect(JSON.stringify(await json('/v1/feedback/sources'))).not.toContain(SOURCE_KEYS.mailgun)
})

test.each<[object, RegExp]>([
  [{ provider: 'ses' }, /must be the ARN of the SNS topic of Amazon SES, such as arn:/],
  [{ provider: 'ses', key: 'https://sns.us-east-1.amazonaws.com' }, /ARN/],
  [{ provider: 'sendgrid', key: 'MFkw' }, /verification key/],
  [{ provider: 'mailgun', key: 'short' }, /signing key/],
  [{ provider: 'postmark', key: 'a-password-of-tests' }, /not used for Postmark/],
  [{ provider: 'mailchimp', key: 'x' }, /provider/],
])('a source like %j is refused', async (body, message) => {
  const { request } = await createTestService()
  const response = await request('/v1/feedback/sources', { body })
  expect(response.status).toBe(400)
  expect((await response.json()) as object).toMatchObject({ error: expect.stringMatching(message) })
})

test('a source of another account is not found', async () => {
  const { request, path, addAccount, addKey, json } = await createReceiver('ses')
  await addAccount('acc_2')
  const key = await addKey({ accountId: 'acc_2' })
  const id = path.split('/').at(-1)
  const deleted = await request(`/v1/feedback/sources/${id}`, { method: 'DELETE', key })
  expect(deleted.status).toBe(404)
  expect((await json('/v1/feedback/sources', { key })).data).toMatchObject({ total: 0 })
  expect((await json('/v1/feedback/sources')).data).toMatchObject({ total: 1 })
})

test('a source needs the scope feedback:write, and its changes are in the audit log', async () => {
  const { request, path, addKey, json } = await createReceiver('ses')
  const key = await addKey({ scopes: ['account:read', 'webhooks:write'] })
  const id = path.split('/').at(-1) ?? ''
  const body = { provider: 'postmark' }
  expect((await request('/v1/feedback/sources', { key, body })).status).toBe(403)
  expect((await request('/v1/feedback/sources', { key })).status).toBe(403)
  await request(`/v1/feedback/sources/${id}`, { method: 'DELETE' })
  const { data } = (await json('/v1/audit')) as { data: { items: { action: string }[] } }
  expect(data.items.map(({ action }) => action)).toEqual([
    ...['feedback_source.deleted', 'request.refused', 'request.refused', 'feedback_source.created'],
  ])
})

test('the subscription of a topic is confirmed, and again later if that failed', async () => {
  const { send, post } = await createReceiver('ses')
  const confirmation = snsRequest('', { type: 'SubscriptionConfirmation' })
  post.documents.set(SUBSCRIBE_URL, 'outage')
  const failed = await send(confirmation)
  expect(failed.status).toBe(503)
  expect(failed.headers.get('Retry-After')).toBe('60')
  post.documents.set(SUBSCRIBE_URL, '<ConfirmSubscriptionResponse/>')
  expect((await send(confirmation)).status).toBe(200)
  expect(post.fetched).toEqual([CERTIFICATE_URL, SUBSCRIBE_URL, SUBSCRIBE_URL])
})

test('a token of Mailgun authenticates one body only, until its time is too old', async () => {
  const { send, clock, stored } = await createReceiver('mailgun')
  const request = mailgunRequest(EVENTS.mailgun.delivery)
  const { signature } = JSON.parse(request.text) as { signature: object }
  const other = { signature, 'event-data': EVENTS.mailgun.bounce }
  expect((await send(request)).status).toBe(200)
  const replayed = await send({ ...request, text: JSON.stringify(other) })
  expect(replayed.status).toBe(401)
  expect(await replayed.json()).toMatchObject({ code: 'authentication_error' })
  expect(await stored()).toHaveLength(1)
  await clock.advance(11 * HOUR)
  expect((await send({ ...request, text: JSON.stringify(other) })).status).toBe(401)
  expect((await send(request)).status).toBe(200)
  await clock.advance(2 * HOUR)
  expect((await send(request)).status).toBe(401)
})

test('events with an invalid address are listed, and the others are recorded', async () => {
  const { send } = await createReceiver('sendgrid')
  const events = [{ ...EVENTS.sendgrid.delivery, email: 'broken' }, EVENTS.sendgrid.bounce]
  expect(await (await send(sendgridRequest(events))).json()).toMatchObject({
    data: { received: 2, recorded: 1, rejected: [{ index: 0 }] },
  })
})

test('later verifications use what a provider reported', async () => {
  const { json, send } = await createReceiver('sendgrid')
  const event = { ...EVENTS.sendgrid.bounce, email: 'ann@a.test', timestamp: SIGNED_AT / 1_000 }
  await send(sendgridRequest([event]))
  const body = { email: 'ann@a.test' }
  expect((await json('/v1/verify/single', { body })).reason).toBe('rejected_email')
})

/** Changes of a text: characters, slices, and values of its JSON. */
const mutation = fc.oneof(
  fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), by: fc.string() }),
  fc.record({ kind: fc.constant('delete' as const), at: fc.nat(), length: fc.nat(40) }),
  fc.record({ kind: fc.constant('repeat' as const), at: fc.nat(), length: fc.nat(40) }),
  fc.record({ kind: fc.constant('truncate' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('value' as const), at: fc.nat(), value: fc.jsonValue() }),
)
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never

function mutate(text: string, change: Mutation): string {
  const at = change.at % (text.length + 1)
  const end = at + ('length' in change ? change.length : 0)
  switch (change.kind) {
    case 'replace':
      return text.slice(0, at) + change.by + text.slice(at + 1)
    case 'delete':
      return text.slice(0, at) + text.slice(end)
    case 'repeat':
      return text.slice(0, end) + text.slice(at)
    case 'truncate':
      return text.slice(0, at)
    case 'value':
      return replaceValue(text, change.at, change.value)
    default:
      return change satisfies never
  }
}

/** Replaces one value of a JSON text. */
function replaceValue(text: string, nth: number, value: unknown): string {
  let count = 0
  JSON.parse(text, (_, old) => {
    count++
    return old as unknown
  })
  let index = 0
  const changed: unknown = JSON.parse(text, (_, old) =>
    index++ === nth % count ? value : (old as unknown),
  )
  return JSON.stringify(changed) ?? ''
}

/** Addresses of the original events: those of signed bodies cannot change. */
const SIGNED_BODY: readonly ProviderName[] = ['ses', 'sendgrid']
const MUTATIONS = 10_000

describe.each(PROVIDER_NAMES)('a changed request of %s', provider => {
  test('is refused or has the same events, and fails nothing', async () => {
    const { send, stored, sendEvent, lines } = await createReceiver(provider)
    const { headers, text } = eventRequest(provider, 'bounce')
    await sendEvent('bounce')
    const before = await stored()
    expect(before).toHaveLength(1)
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async changes => {
        let changed = text
        for (const change of changes) changed = mutate(isJson(changed) ? changed : text, change)
        const response = await send({ headers, text: changed })
        const isAccepted = response.status === 200
        if (!isAccepted) expect(String(response.status)).toMatch(/^4\d\d$/)
        if (!isAccepted || SIGNED_BODY.includes(provider)) return
        expect(changed).toBe(text)
      }),
      { numRuns: runs(MUTATIONS / PROVIDER_NAMES.length, 80) },
    )
    expect(await stored()).toEqual(before)
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe.each(PROVIDER_NAMES)('a changed event, authenticated by %s', provider => {
  test('is recorded, listed, left out or refused, and fails nothing', async () => {
    const { send, password, lines } = await createReceiver(provider)
    const names = ['bounce', 'delivery', 'complaint', 'other'] as const
    let requests = 0
    const sign = (event: unknown): SignedRequest => {
      requests++
      if (provider === 'ses') return snsRequest(event)
      if (provider === 'sendgrid') return sendgridRequest([event])
      if (provider === 'mailgun') {
        return mailgunRequest(event, { token: String(requests).padStart(50, '0') })
      }
      return basicRequest(provider === 'postmark' ? event : [event], password)
    }
    await fc.assert(
      fc.asyncProperty(
        ...[fc.constantFrom(...names), fc.nat(), fc.jsonValue()],
        async (name, nth, value) => {
          const text = JSON.stringify(EVENTS[provider][name])
          const { status } = await send(sign(JSON.parse(replaceValue(text, nth, value))))
          expect([200, 400]).toContain(status)
        },
      ),
      { numRuns: runs(MUTATIONS / PROVIDER_NAMES.length, 20) },
    )
    expect(requests).toBeGreaterThanOrEqual(runs(MUTATIONS / PROVIDER_NAMES.length, 20))
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })
})

describe('the body of a request of Mailgun', () => {
  const fields = mailgunForm(MAILGUN_FORMS.bounced)
  const URLENCODED = 'application/x-www-form-urlencoded'
  const multipart = (boundary: string) => {
    const parts = Object.entries(fields).map(
      ([name, value]) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}`,
    )
    const file = `--${boundary}\r\nContent-Disposition: form-data; name="attachment-1"; filename="a.eml"\r\nContent-Type: message/rfc822\r\n\r\nSubject: x`
    return {
      headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
      text: `${[...parts, file, `--${boundary}--`].join('\r\n')}\r\n`,
    }
  }
  const form = {
    headers: { 'Content-Type': `${URLENCODED}; charset=utf-8` },
    text: new URLSearchParams(fields).toString(),
  }

  test('may be a form, which counts once in any encoding', async () => {
    const { send, stored } = await createReceiver('mailgun')
    expect(await (await send(form)).json()).toMatchObject({ data: { recorded: 1 } })
    for (const repeated of [form, multipart('one'), multipart('two')]) {
      expect(await (await send(repeated)).json()).toMatchObject({ data: { duplicates: 1 } })
    }
    expect(await stored()).toMatchObject([
      { address_key: 'jane@example.com', kind: 'bounced', outcome: 'dead', code: 550 },
    ])
  })

  test('may be a multipart form with a file', async () => {
    const { send } = await createReceiver('mailgun')
    expect(await (await send(multipart('one'))).json()).toMatchObject({ data: { recorded: 1 } })
  })

  test('of a form whose token was used for another event is refused', async () => {
    const { send } = await createReceiver('mailgun')
    await send(form)
    const text = new URLSearchParams({ ...fields, recipient: 'ann@example.com' }).toString()
    expect((await send({ ...form, text })).status).toBe(401)
  })

  test.each([
    ['text/plain', 415],
    ['application/xml', 415],
    ['application/x-www-form-urlencoded-x', 415],
    ['multipart/mixed; boundary=one', 415],
    ['', 415],
    // Without the boundary of its parts.
    ['multipart/form-data', 400],
    ['multipart/form-data; boundary=other', 400],
  ])('of the type %j is answered with %i', async (type, status) => {
    const { send, stored } = await createReceiver('mailgun')
    const headers = { 'Content-Type': type }
    expect((await send({ headers, text: multipart('one').text })).status).toBe(status)
    expect(await stored()).toEqual([])
  })

  test('has at most 4 MiB', async () => {
    const { send } = await createReceiver('mailgun')
    const text = new URLSearchParams({ ...fields, notification: 'a'.repeat(4 * 1024 * 1024) })
    expect((await send({ ...form, text: text.toString() })).status).toBe(413)
  })
})
