import { describe, expect, test } from 'vitest'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { HANG_UP } from '../../support/mx.ts'
import { createTestService } from '../../support/service.ts'
import { checkFault } from './schema.ts'

const PATHS = ['/v0/check_email', '/v1/check_email']

type Output = {
  readonly is_reachable: string
  readonly misc: Record<string, unknown>
  readonly mx: Record<string, unknown>
  readonly smtp: Record<string, unknown>
  readonly syntax: Record<string, unknown>
}

type ServiceOptions = NonNullable<Parameters<typeof createTestService>[0]>

const createService = (options: ServiceOptions = {}) =>
  createTestService({ ...options, settings: { reacherApi: true, ...options.settings } })

/** Checks an address at a mail server with this reply, and that the response has Reacher's form. */
async function check(to_email: string, engine: ServiceOptions['engine'] = {}): Promise<Output> {
  const { json } = await createService({ engine })
  const output = await json('/v0/check_email', { body: { to_email } })
  expect(checkFault(output)).toBeNull()
  return output as unknown as Output
}

/** A mail server that answers to all recipients but random ones with this reply. */
const says = (reply: string | typeof HANG_UP, toRandom = '550 5.1.1 No such user') => ({
  script: toRecipients(recipient => (isRandomRecipient(recipient) ? toRandom : reply)),
})

describe.each(PATHS)('POST %s', path => {
  test('returns a result with all fields of Reacher', async () => {
    const { json } = await createService()
    const output = await json(path, { body: { to_email: 'ann@a.test' } })
    expect(output).toEqual({
      input: 'ann@a.test',
      is_reachable: 'safe',
      misc: {
        is_disposable: false,
        is_role_account: false,
        is_b2c: false,
        gravatar_url: null,
        haveibeenpwned: null,
      },
      mx: { accepts_mail: true, records: ['mx.a.test.'] },
      smtp: {
        can_connect_smtp: true,
        has_full_inbox: false,
        is_catch_all: false,
        is_deliverable: true,
        is_disabled: false,
      },
      syntax: {
        address: 'ann@a.test',
        domain: 'a.test',
        is_valid_syntax: true,
        username: 'ann',
        normalized_email: 'ann@a.test',
        suggestion: null,
      },
      debug: {
        backend_name: 'ev',
        start_time: '2026-06-01T12:00:00.000Z',
        end_time: '2026-06-01T12:00:00.000Z',
        duration: { secs: 0, nanos: 0 },
        smtp: { verif_method: { type: 'Smtp', host: 'mx.a.test' } },
      },
    })
    expect(checkFault(output)).toBeNull()
  })
})

const REACHED = { can_connect_smtp: true, has_full_inbox: false, is_disabled: false }

describe('is_reachable and smtp are those of the mail server', () => {
  test.each<[string, string, ServiceOptions['engine'], string, object]>([
    [
      'no such user',
      'ann@a.test',
      says('550 5.1.1 No such user'),
      'invalid',
      { ...REACHED, is_deliverable: false, is_catch_all: false },
    ],
    [
      'a catch-all',
      'ann@a.test',
      says('250 Ok', '250 Ok'),
      'risky',
      { ...REACHED, is_deliverable: true, is_catch_all: true },
    ],
    [
      'a full mailbox',
      'ann@a.test',
      says('552 5.2.2 Mailbox full'),
      'risky',
      { ...REACHED, has_full_inbox: true, is_deliverable: false, is_catch_all: false },
    ],
    [
      'a disabled mailbox',
      'ann@a.test',
      says('550 5.2.1 The email account that you tried to reach is disabled'),
      'invalid',
      { ...REACHED, is_disabled: true, is_deliverable: false, is_catch_all: false },
    ],
    [
      'a role',
      'info@a.test',
      says('250 Ok'),
      'risky',
      { ...REACHED, is_deliverable: true, is_catch_all: false },
    ],
    [
      'a blocklist',
      'ann@a.test',
      says('550 5.7.1 Service unavailable, client host blocked using Spamhaus'),
      'unknown',
      {
        error: {
          type: 'AsyncSmtpError',
          message: 'permanent: 5.7.1 Service unavailable, client host blocked using Spamhaus',
        },
        description: 'IpBlacklisted',
      },
    ],
    [
      'missing reverse DNS',
      'ann@a.test',
      says('550 5.7.25 Client host rejected: cannot find your reverse hostname'),
      'unknown',
      {
        error: {
          type: 'AsyncSmtpError',
          message: 'permanent: 5.7.25 Client host rejected: cannot find your reverse hostname',
        },
        description: 'NeedsRDNS',
      },
    ],
    [
      'greylisting',
      'ann@a.test',
      says('450 4.2.0 Greylisted'),
      'unknown',
      { error: { type: 'AsyncSmtpError', message: 'transient: 4.2.0 Greylisted' } },
    ],
    [
      'a closed connection',
      'ann@a.test',
      says(HANG_UP),
      'unknown',
      { error: { type: 'IOError', message: expect.any(String) } },
    ],
  ])('%s', async (_, address, engine, reachable, smtp) => {
    const output = await check(address, engine)
    expect(output.is_reachable).toBe(reachable)
    expect(output.smtp).toEqual(smtp)
  })

  test('an address that is not probed is unknown, with an error and not with fields that are false', async () => {
    const output = await check('ann@[192.0.2.1]')
    expect(output).toMatchObject({
      is_reachable: 'unknown',
      smtp: { error: { type: 'AnyhowError', message: 'The mail server was not contacted.' } },
    })
  })
})

describe('mx and syntax', () => {
  const NOT_REACHED = { ...REACHED, can_connect_smtp: false }

  test('a domain that does not exist accepts no mail', async () => {
    expect(await check('ann@gone.test')).toMatchObject({
      is_reachable: 'invalid',
      mx: { accepts_mail: false, records: [] },
      smtp: NOT_REACHED,
    })
  })

  test('a failed lookup is an error, and the address unknown', async () => {
    expect(await check('ann@down.test', { zone: { 'down.test': 'server' } })).toMatchObject({
      is_reachable: 'unknown',
      mx: { error: { type: 'ResolveError' } },
      smtp: NOT_REACHED,
    })
  })

  test('a domain without MX is its own mail server', async () => {
    const zone = { 'own.test': { A: ['192.0.2.7'] } }
    expect((await check('ann@own.test', { zone })).mx).toEqual({
      accepts_mail: true,
      records: ['own.test.'],
    })
  })

  test('text that is not an address is a result', async () => {
    expect(await check('nonsense')).toMatchObject({
      is_reachable: 'invalid',
      mx: { accepts_mail: false, records: [] },
      syntax: { address: null, domain: '', is_valid_syntax: false, username: '' },
    })
  })

  test('a misspelled domain has a suggestion', async () => {
    expect((await check('ann@gmial.com')).syntax).toMatchObject({ suggestion: 'ann@gmail.com' })
  })
})

describe('the request', () => {
  test.each([
    ['the address', {}, 'to_email field is required.'],
    ['an empty address', { to_email: '' }, 'to_email field is required.'],
    ['a number', { to_email: 7 }, '"to_email" is 7; it must be a string'],
    [
      'a proxy',
      { to_email: 'ann@a.test', proxy: { host: '10.0.0.1', port: 1080 } },
      '"proxy" is not accepted. A request cannot choose a proxy',
    ],
    ['a sender', { to_email: 'ann@a.test', from_email: 'me@b.test' }, 'sets it with --mail-from'],
    ['an EHLO name', { to_email: 'ann@a.test', hello_name: 'b.test' }, 'sets it with --helo'],
    ['another port', { to_email: 'ann@a.test', smtp_port: 587 }, '"smtp_port" is not accepted'],
    ['a list', ['ann@a.test'], 'The body must be a JSON object'],
  ])('is refused for %s, and costs nothing', async (_, body, error) => {
    const { request, mx, json } = await createService({ plan: 'free' })
    const before = await json('/v1/credits')
    const response = await request('/v1/check_email', { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: expect.stringContaining(error) })
    expect(mx.dialled).toEqual([])
    expect(await json('/v1/credits')).toEqual(before)
  })

  test('may have the other options of Reacher, options that are null, and unknown ones', async () => {
    const { json } = await createService()
    const options = { proxy: null, from_email: null, smtp_port: 25, smtp_timeout: { secs: 1 } }
    const methods = { yahoo_verif_method: 'Headless', check_gravatar: true, other: [1] }
    const body = { to_email: 'ann@a.test', ...options, ...methods }
    expect(await json('/v0/check_email', { body })).toMatchObject({ is_reachable: 'safe' })
  })

  test.each<[string, (key: string) => Record<string, string>]>([
    ['x-reacher-secret', key => ({ 'x-reacher-secret': key })],
    ['Authorization without a scheme', key => ({ Authorization: key })],
    ['Authorization with the scheme Bearer', key => ({ Authorization: `Bearer ${key}` })],
  ])('can have the key in %s', async (_, headers) => {
    const { key, request, settled } = await createService()
    const o = { key: null, headers: headers(key), body: { to_email: 'ann@a.test' } }
    expect((await settled(request('/v1/check_email', o))).status).toBe(200)
  })

  test('has the same answer from the cache', async () => {
    const { json, mx } = await createService()
    const body = { to_email: 'ann@a.test' }
    const first = await json('/v1/check_email', { body })
    expect(await json('/v1/check_email', { body })).toEqual(first)
    expect(mx.sessions).toHaveLength(1)
  })

  test('needs a key, which our own routes do not take from x-reacher-secret', async () => {
    const { key, request } = await createService()
    const body = { to_email: 'ann@a.test' }
    const missing = await request('/v1/check_email', { key: null, body })
    expect(missing.status).toBe(401)
    expect(await missing.json()).toMatchObject({
      error: 'Missing or invalid API key. Send the header x-reacher-secret: <API_KEY>.',
    })
    const headers = { 'x-reacher-secret': key }
    expect((await request('/v1/account', { key: null, headers })).status).toBe(401)
  })

  test('needs the scope of single verifications', async () => {
    const { addKey, request } = await createService()
    const key = await addKey({ scopes: ['jobs:read'] })
    const response = await request('/v1/check_email', { key, body: { to_email: 'ann@a.test' } })
    expect(response.status).toBe(403)
  })

  test('is counted, charged and kept in the history as one verification', async () => {
    const { json, request, settled } = await createService({ plan: 'free' })
    const response = await settled(request('/v0/check_email', { body: { to_email: 'bob@a.test' } }))
    expect(response.headers.get('X-RateLimit-Remaining')).toBe('9')
    expect(await json('/v1/credits')).toMatchObject({ data: { credits_consumed: 1 } })
    expect(await json('/v1/history')).toMatchObject({ data: { items: [{ email: 'bob@a.test' }] } })
  })

  test('is repeated with its Idempotency-Key without a second verification', async () => {
    const { request, settled, mx } = await createService()
    const o = { body: { to_email: 'ann@a.test' }, headers: { 'Idempotency-Key': 'once' } }
    const first = await (await settled(request('/v1/check_email', o))).text()
    const second = await request('/v1/check_email', o)
    expect(second.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await second.text()).toBe(first)
    expect(mx.sessions).toHaveLength(1)
  })

  test('of a test key is simulated', async () => {
    const { addKey, json, mx } = await createService()
    const key = await addKey({ kind: 'test' })
    const simulated = (to_email: string) => json('/v1/check_email', { key, body: { to_email } })
    expect(await simulated('invalid@a.test')).toMatchObject({ is_reachable: 'invalid' })
    expect(await simulated('valid@a.test')).toMatchObject({
      is_reachable: 'safe',
      mx: { accepts_mail: true },
      smtp: { can_connect_smtp: true, is_deliverable: true },
    })
    expect(mx.dialled).toEqual([])
  })
})

test('GET /version needs no key', async () => {
  const { request } = await createService({ settings: { version: '1.2.3' } })
  const response = await request('/version', { key: null })
  expect(await response.json()).toEqual({ version: '1.2.3' })
})

test('nothing of it is served unless --reacher-api is set', async () => {
  const { request } = await createTestService()
  const body = { to_email: 'ann@a.test' }
  for (const path of PATHS) expect((await request(path, { body })).status).toBe(404)
  expect((await request('/v1/bulk', { body: { input: ['ann@a.test'] } })).status).toBe(404)
  expect((await request('/version')).status).toBe(404)
})
