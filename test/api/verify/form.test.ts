import { describe, expect, test } from 'vitest'
import { IP_LIMITS } from '../../../src/accounts/plan.ts'
import { FORM_DEADLINE_MS } from '../../../src/api/verify/form.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { toRecipients } from '../../support/engine.ts'
import { codeOf, limitOf } from '../../support/guarded-route.ts'
import { silentFrom } from '../../support/mx.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'

const PATH = '/v1/verify/form'
type Paths = Record<string, Record<string, { readonly security?: readonly object[] }>>

const SITE = 'https://shop.example.com'

/** A service with a publishable key, and requests of a form on its site. */
async function formService(o: Parameters<typeof createTestService>[0] = {}) {
  const fixture = await createTestService(o)
  const created = (await fixture.json('/v1/keys', {
    body: { name: 'Form', publishable: true, allowed_domains: ['example.com'] },
  })) as { data: { id: string; key: string } }
  const { key, id } = created.data
  const request = (path: string, given: RequestOptions = {}) =>
    fixture.request(path, { key, ...given, headers: { Origin: SITE, ...given.headers } })
  const send = (email: unknown, given: RequestOptions = {}) =>
    fixture.settled(request(PATH, { body: { email }, ...given }))
  const verify = async (email: string, given: RequestOptions = {}) =>
    (await (await send(email, given)).json()) as Record<string, unknown>
  return { ...fixture, formKey: key, keyId: id, bare: fixture.request, request, send, verify }
}

const allowedOrigin = ({ headers }: Response) => headers.get('Access-Control-Allow-Origin')

/** Of the addresses below; the risky one is a role address. */
const ACTION_BY_CLASS: Readonly<Record<string, string>> = {
  deliverable: 'send',
  risky: 'send_with_care',
  undeliverable: 'suppress',
  unknown: 'retry_later',
}

describe('POST /v1/verify/form', () => {
  test.each([
    ['ann@a.test', 'deliverable', true, null, 'This address can receive mail.'],
    ['zoe@a.test', 'undeliverable', false, null, /cannot receive mail/],
    ['info@a.test', 'risky', true, null, 'Mail to this address may not arrive.'],
    ['nonsense', 'undeliverable', false, null, /not a complete email address/],
    ['ann@gmial.com', 'undeliverable', false, 'ann@gmail.com', 'Did you mean ann@gmail.com?'],
    ['ann@gmail,com', 'undeliverable', false, 'ann@gmail.com', 'Did you mean ann@gmail.com?'],
    ['ann@[192.0.2.1]', 'unknown', true, null, 'This address could not be checked.'],
  ])('%s is %s', async (email, resultClass, allow, suggestion, message) => {
    const { verify } = await formService()
    expect(await verify(email)).toEqual({
      email,
      class: resultClass,
      allow,
      action: ACTION_BY_CLASS[resultClass],
      did_you_mean: suggestion,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    })
  })

  test('an unknown result never blocks a form', async () => {
    const { verify } = await formService({
      engine: { script: toRecipients(() => '450 4.2.0 Greylisted') },
    })
    expect(await verify('ann@a.test')).toMatchObject({ class: 'unknown', allow: true })
  })

  test('a slow mail server makes the result unknown after the deadline, at no cost', async () => {
    const fixture = await formService({ plan: 'free', engine: { script: silentFrom('RCPT') } })
    const startedAt = fixture.clock.now()
    expect(await fixture.verify('ann@a.test')).toMatchObject({ class: 'unknown', allow: true })
    expect(fixture.clock.now() - startedAt).toBe(FORM_DEADLINE_MS)
    const credits = (await fixture.json('/v1/credits')) as { data: object }
    expect(credits.data).toMatchObject({ credits_consumed: 0, credits_held: 0 })
  })

  test('costs a credit and is in the history as a single verification', async () => {
    const { json, verify, keyId } = await formService({ plan: 'free' })
    await verify('ann@a.test')
    const credits = (await json('/v1/credits')) as { data: object }
    expect(credits.data).toMatchObject({ credits_consumed: 1, credits_held: 0 })
    const history = (await json('/v1/history')) as { data: { items: object[] } }
    expect(history.data.items).toMatchObject([
      { email: 'ann@a.test', source: 'single', reason: 'accepted_email' },
    ])
    const stats = (await json('/v1/stats')) as { data: { keys: object[] } }
    expect(stats.data.keys).toMatchObject([{ key_id: keyId, verifications: 1, credits: 1 }])
  })

  test('the sandbox simulates results and errors, and suggests addresses', async () => {
    const { verify, send, mx, zone } = await formService()
    const headers = { 'X-EV-Sandbox': 'true' }
    expect(await verify('invalid@example.com', { headers })).toMatchObject({
      class: 'undeliverable',
      allow: false,
      sandbox: true,
    })
    expect(await verify('disposable@example.com', { headers })).toMatchObject({
      class: 'risky',
      allow: true,
      message: 'This is a disposable address. Use a permanent one.',
    })
    expect(await verify('typo@gmial.com', { headers })).toMatchObject({
      class: 'risky',
      did_you_mean: 'typo@gmail.com',
    })
    expect((await send('error-server@example.com', { headers })).status).toBe(500)
    expect([mx.lines(), zone.asked]).toEqual([[], []])
  })

  test.each([
    ['without an address', {}, 'invalid_email'],
    ['with an address that is no text', { email: 7 }, 'invalid_email'],
    [
      'with the options of other endpoints',
      { email: 'a@a.test', force_refresh: true },
      'invalid_request',
    ],
  ])('a request %s is refused', async (_, body, code) => {
    const { request } = await formService()
    const response = await request(PATH, { body })
    expect([response.status, await codeOf(response)]).toEqual([400, code])
  })
})

describe('a publishable key', () => {
  test('is refused by every other operation', async () => {
    const { request, app } = await formService()
    const { paths } = (await (await app.request('/openapi.json')).json()) as { paths: Paths }
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { security = [] }]) => security.length > 0)
        .map(([method]) => ({ method: method.toUpperCase(), path })),
    )
    expect(operations.length).toBeGreaterThan(30)
    for (const { method, path } of operations.filter(one => one.path !== PATH)) {
      const response = await request(path.replace(/\{\w+\}/g, 'id_1'), {
        method,
        ...(method === 'GET' ? {} : { body: {} }),
      })
      expect([method, path, response.status, await codeOf(response)]).toEqual([
        ...[method, path, 403, 'insufficient_scope'],
      ])
    }
  })

  test.each([
    ['its domain', { Origin: 'https://example.com' }, 200],
    ['a subdomain', { Origin: 'http://www.shop.example.com:8080' }, 200],
    ['a page without an Origin header', { Referer: `${SITE}/sign-up?a=1` }, 200],
    ['another site', { Origin: 'https://evil.test' }, 403],
    ['another site with a similar name', { Origin: 'https://evilexample.com' }, 403],
    ['another site with a forged referrer', { Origin: 'https://evil.test', Referer: SITE }, 403],
    ['a page with an opaque origin', { Origin: 'null' }, 403],
    ['a program', {}, 403],
  ])('used by %s', async (_, headers, status) => {
    const { formKey: key, bare } = await formService()
    const response = await bare(PATH, { key, headers, body: { email: 'nonsense' } })
    expect(response.status).toBe(status)
    if (status === 403) expect(await codeOf(response)).toBe('domain_restricted')
  })

  test('lets only scripts of its sites read responses', async () => {
    const { send, request } = await formService()
    expect(allowedOrigin(await send('nonsense'))).toBe(SITE)
    expect(allowedOrigin(await send(7))).toBe(SITE)
    const evil = { headers: { Origin: 'https://evil.test' } }
    expect(allowedOrigin(await send('nonsense', evil))).toBe('https://ev.test')
    expect(allowedOrigin(await send('nonsense', { key: null }))).toBe('https://ev.test')
    const preflight = await request(PATH, { method: 'OPTIONS', key: null })
    expect([preflight.status, allowedOrigin(preflight)]).toEqual([204, '*'])
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('Authorization')
  })

  test('is refused once it is revoked', async () => {
    const { request, key, send, keyId } = await formService()
    await request(`/v1/keys/${keyId}`, { method: 'DELETE', key })
    expect(await codeOf(await send('nonsense'))).toBe('key_revoked')
  })
})

describe('the limits of forms', () => {
  test('exactly the requests of the visitor limit pass in a burst', async () => {
    const { send, clock } = await formService()
    const burst = async (ip: string) => {
      const answers = await Promise.all(
        Array.from({ length: IP_LIMITS.formPerMinute + 40 }, (_, n) => send(`x${n}`, { ip })),
      )
      return Map.groupBy(answers, ({ status }) => status)
    }
    const [one, other] = await Promise.all([burst('198.51.100.1'), burst('198.51.100.2')])
    for (const byStatus of [one, other]) {
      expect(byStatus.get(200)).toHaveLength(IP_LIMITS.formPerMinute)
      expect(byStatus.get(429)).toHaveLength(40)
    }
    const refused = one.get(429)?.[0] as Response
    expect(await refused.json()).toMatchObject({
      code: 'rate_limit',
      error: expect.stringContaining('30 verifications for forms a minute from one IP address'),
    })
    expect([allowedOrigin(refused), refused.headers.get('Retry-After')]).toEqual([SITE, '60'])
    await clock.advance(MINUTE)
    expect((await send('x', { ip: '198.51.100.1' })).status).toBe(200)
  })

  test('exactly the requests of the key limit pass in a burst of many visitors', async () => {
    const { json, send, keyId } = await formService()
    await json(`/v1/keys/${keyId}`, { method: 'PATCH', body: { rate_limit_per_minute: 50 } })
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, n) => send('x', { ip: `198.51.100.${n}` })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(50)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(70)
  })

  test('do not count against single verifications, and the other way round', async () => {
    const { send, json } = await formService()
    expect(limitOf(await send('x'))).toMatchObject({ limit: 30, remaining: 29 })
    const { data } = (await json('/v1/limits')) as {
      data: { limits: { name: string; remaining: number }[] }
    }
    const left = Object.fromEntries(data.limits.map(({ name, remaining }) => [name, remaining]))
    expect(left).toMatchObject({ 'ip:single': 100, 'ip:form': 29 })
  })
})

test('a secret key with verify:single can verify addresses of forms, one without cannot', async () => {
  const { request, addKey } = await formService()
  const status = async (scopes: readonly ('verify:single' | 'jobs:read')[]) =>
    (await request(PATH, { key: await addKey({ scopes }), body: { email: 'x' } })).status
  expect([await status(['verify:single']), await status(['jobs:read'])]).toEqual([200, 403])
})
