import { createHmac, webcrypto } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { verifyWebhook, type WebhookHeaders } from '../../src/client/client.ts'
import { failureOf } from '../support/scripted-client.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OTHER = 'whsec_AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH'
const BODY =
  '{"event":"quota.warning","event_id":"evt_abc126","timestamp":"2026-03-21T10:30:00.000Z","data":{"remaining":20,"note":"ä"}}'
const NOW_S = 1_780_315_200
const now = () => NOW_S * 1_000

// Computed independently of the code under test: the key is the whole text of the secret.
const own = (body = BODY, secret = SECRET) =>
  createHmac('sha256', secret).update(body).digest('hex')

// … and here its base64 stands for the key, and id and time are signed as well.
function standard(o: { body?: string; secret?: string; id?: string; at?: number | string } = {}) {
  const { body = BODY, secret = SECRET, id = 'evt_abc126', at = NOW_S } = o
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${mac}` }
}

const check = (headers: WebhookHeaders, options = {}, secret: string | string[] = SECRET) =>
  verifyWebhook(BODY, headers, secret, { now, ...options })

describe('a webhook is accepted', () => {
  test('the MACs of these tests match those of openssl dgst -sha256 -hmac', () => {
    expect(own('{}')).toBe('6cbbcdf2c8016ca85b50543b19e8e121ef16137967bdfa3ce660972922bafaeb')
  })

  test.each<[string, WebhookHeaders]>([
    ['with X-EV-Signature', { 'X-EV-Signature': own() }],
    ['with headers in lower case', { 'x-ev-signature': own() }],
    ['with Headers', new Headers({ 'X-EV-Signature': own() })],
    ['with a header in a list', { 'x-ev-signature': [own()] }],
    ['with the headers of Standard Webhooks', standard()],
    ['with both', { ...standard(), 'x-ev-signature': own() }],
    [
      'with one signature of several',
      {
        ...standard(),
        'webhook-signature': `v1a,x v1,AAAA v1,!! ${standard()['webhook-signature']}`,
      },
    ],
    ['five minutes ago', standard({ at: NOW_S - 300 })],
    ['with a clock that is five minutes ahead', standard({ at: NOW_S + 300 })],
  ])('%s', async (_, headers) => {
    expect(await check(headers)).toEqual(JSON.parse(BODY))
  })

  test.each([
    ['text', BODY],
    ['bytes', Buffer.from(BODY)],
    ['a part of more bytes', Buffer.from(`..${BODY}`).subarray(2)],
    ['a buffer', new TextEncoder().encode(BODY).buffer],
  ])('with its body as %s', async (_, body) => {
    expect(await verifyWebhook(body, { 'x-ev-signature': own() }, SECRET)).toEqual(JSON.parse(BODY))
  })

  test('with any of several secrets, during a rotation', async () => {
    expect(
      await check({ 'x-ev-signature': own(), ...standard() }, {}, [OTHER, SECRET]),
    ).toBeTruthy()
  })

  test('with an injected WebCrypto', async () => {
    expect(await check({ 'x-ev-signature': own() }, { crypto: webcrypto })).toBeTruthy()
  })
})

describe('a webhook is rejected', () => {
  test.each<[string, WebhookHeaders, RegExp]>([
    ['without a signature', {}, /no signature/],
    ['with a signature of another body', { 'x-ev-signature': own(`${BODY} `) }, /X-EV-Signature/],
    ['with one of another secret', { 'x-ev-signature': own(BODY, OTHER) }, /X-EV-Signature/],
    [
      'with one signed with the key of the other headers',
      { 'x-ev-signature': swapped() },
      /X-EV-Signature/,
    ],
    ['with one in capitals', { 'x-ev-signature': own().toUpperCase() }, /X-EV-Signature/],
    ['with a truncated one', { 'x-ev-signature': own().slice(0, 32) }, /X-EV-Signature/],
    ['with an empty one', { 'x-ev-signature': '' }, /X-EV-Signature/],
    ['with one that continues', { 'x-ev-signature': `${own()}0` }, /X-EV-Signature/],
    ['with two', { 'x-ev-signature': [own(), own()] }, /X-EV-Signature/],
    ['with a standard one of another secret', standard({ secret: OTHER }), /webhook-signature/],
    ['with a standard one of another body', standard({ body: '{}' }), /webhook-signature/],
    ['with the ID of another event', { ...standard(), 'webhook-id': 'evt_2' }, /webhook-signature/],
    [
      'with a signature without its version',
      { ...standard(), 'webhook-signature': 'abc' },
      /webhook-s/,
    ],
    [
      'with a signature of a version that is not known',
      { ...standard(), 'webhook-signature': standard()['webhook-signature'].replace('v1', 'v2') },
      /webhook-signature/,
    ],
    ['without a timestamp', { ...standard(), 'webhook-timestamp': undefined }, /webhook-timestamp/],
    [
      'with an invalid timestamp',
      { ...standard(), 'webhook-timestamp': '1e9' },
      /webhook-timestamp/,
    ],
    ['with a timestamp that has decimals', standard({ at: `${NOW_S}.0` }), /webhook-timestamp/],
    ['with a timestamp after a space', standard({ at: ` ${NOW_S}` }), /webhook-timestamp/],
    ['with an old timestamp', standard({ at: NOW_S - 301 }), /webhook-timestamp/],
    ['with a future timestamp', standard({ at: NOW_S + 301 }), /webhook-timestamp/],
    [
      'if one of two is invalid',
      { ...standard({ secret: OTHER }), 'x-ev-signature': own() },
      /webhook-signature/,
    ],
    [
      'with some of the standard headers, whatever the other one is',
      { 'webhook-id': 'evt_abc126', 'x-ev-signature': own() },
      /webhook-timestamp/,
    ],
    [
      'with only the time of the standard headers',
      { 'webhook-timestamp': String(NOW_S), 'x-ev-signature': own() },
      /webhook-signature/,
    ],
    [
      'with only the signature of the standard headers',
      { 'webhook-signature': standard()['webhook-signature'], 'x-ev-signature': own() },
      /webhook-timestamp/,
    ],
  ])('%s', async (_, headers, message) => {
    const error = await failureOf(check(headers))
    expect(error).toMatchObject({ name: 'EvWebhookError', message: expect.stringMatching(message) })
  })

  test('without a timestamp, if one is required: it could be a replay', async () => {
    const error = await failureOf(check({ 'x-ev-signature': own() }, { requireTimestamp: true }))
    expect(error).toMatchObject({ name: 'EvWebhookError', message: expect.stringMatching(/time/) })
    expect(await check(standard(), { requireTimestamp: true })).toBeTruthy()
  })

  test('with a valid X-EV-Signature, but an expired timestamp', async () => {
    const old = { ...standard({ at: NOW_S - 301 }), 'x-ev-signature': own() }
    expect(await failureOf(check(old))).toMatchObject({ name: 'EvWebhookError' })
  })

  test.each(['whsec_', 'whsec_!!'])('if the secret contains no key: %s', async secret => {
    const error = await failureOf(check(standard(), {}, secret))
    expect(error).toMatchObject({
      name: 'EvWebhookError',
      message: expect.stringMatching(/webhook-signature does not match/),
    })
  })

  test.each([
    '',
    'null',
    '[]',
    '{"event":1}',
    '{"event":1,"event_id":"evt_1"}',
    '{"event":"quota.warning"}',
    '{',
  ])('if it is not an event: %s', async body => {
    const error = await failureOf(verifyWebhook(body, { 'x-ev-signature': own(body) }, SECRET))
    expect(error).toMatchObject({
      name: 'EvWebhookError',
      message: expect.stringMatching(/the body is not an event/),
    })
  })
})

describe('a signature of the package standardwebhooks', () => {
  const at = new Date(NOW_S * 1_000)
  const sent = (...secrets: string[]) => ({
    'webhook-id': 'evt_abc126',
    'webhook-timestamp': String(NOW_S),
    'webhook-signature': secrets
      .map(secret => new Webhook(secret).sign('evt_abc126', at, BODY))
      .join(' '),
  })

  test('is accepted with its secret, and rejected with another', async () => {
    expect(await check(sent(SECRET))).toEqual(JSON.parse(BODY))
    expect(await failureOf(check(sent(OTHER)))).toMatchObject({ name: 'EvWebhookError' })
  })

  // Only the new secret signs X-EV-Signature, both sign webhook-signature.
  test.each([
    ['the new one', OTHER],
    ['the old one', SECRET],
    ['both', [OTHER, SECRET]],
  ])('is accepted during a rotation with %s', async (_, secret) => {
    const headers = { ...sent(OTHER, SECRET), 'X-EV-Signature': own(BODY, OTHER) }
    expect(await check(headers, {}, secret)).toEqual(JSON.parse(BODY))
  })

  test('is rejected with the old secret after the grace period', async () => {
    const headers = { ...sent(OTHER), 'X-EV-Signature': own(BODY, OTHER) }
    expect(await failureOf(check(headers))).toMatchObject({ name: 'EvWebhookError' })
  })
})

test.each([
  ['an empty secret', '', BODY, /needs the secret .* but got none\. Check that it is set/],
  ['no secrets', [], BODY, /but got none/],
  ['an undefined secret', undefined as unknown as string, BODY, /but got none/],
  ['one empty secret of two', [SECRET, ''], BODY, /but got none/],
  ['a parsed body', SECRET, JSON.parse(BODY), /needs the raw body/],
])('invalid arguments are a TypeError: %s', async (_, secret, body, expected) => {
  const headers = { 'x-ev-signature': own() }
  const failure = await failureOf(verifyWebhook(body, headers, secret))
  expect(failure).toBeInstanceOf(TypeError)
  expect(failure).toMatchObject({ message: expect.stringMatching(expected) })
})

test.each([
  ['in a browser without HTTPS', {} as typeof webcrypto],
  ['on Node 18', null as unknown as typeof webcrypto],
])('without WebCrypto the error has a remedy: %s', async (_, crypto) => {
  const error = await failureOf(check({ 'x-ev-signature': own() }, { crypto }))
  expect(String(error)).toMatch(/Node 18.*webcrypto/)
})

/** X-EV-Signature with the key of Standard Webhooks. */
function swapped(): string {
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  return createHmac('sha256', key).update(BODY).digest('hex')
}
