import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { limitOf } from '../../support/guarded-route.ts'
import { createUploadService, form } from '../../support/list-form.ts'

const ADDRESSES = Array.from({ length: 11 }, (_, n) => `valid${n}@a.test`)
const PREVIEW = form([
  ['dry_run', 'true'],
  ['file', { file: 'a@a.test\n' }],
])

/** Lower than the defaults, and than the ten requests a minute of the free plan. */
const IP_LIMITS = { singlePerMinute: 3, bulkPerHour: 2, formPerMinute: 1 }
/** More requests than each of these limits allows. */
const REQUESTS = 5

type Options = Parameters<typeof createUploadService>[0]

async function limited({ settings, ...o }: NonNullable<Options> = {}) {
  const h = await createUploadService({ ...o, settings: { ipLimits: IP_LIMITS, ...settings } })
  const { request } = h
  type Sent = Parameters<typeof request>[1]
  const single = (o: Sent) =>
    request('/v1/verify/single', { body: { email: 'a@a.test', check_smtp: false }, ...o })
  const bulk = (emails: readonly string[], o: Sent) =>
    request('/v1/verify/bulk', { body: { emails, check_smtp: false }, ...o })
  const sends = {
    single,
    list: (o: Sent) => bulk(ADDRESSES, o),
    preview: (o: Sent) => h.send(PREVIEW, o),
    'instant list': (o: Sent) => bulk(['a@a.test'], o),
    'sandbox list': (o: Sent) =>
      bulk(ADDRESSES, { ...o, headers: { ...o?.headers, 'X-EV-Sandbox': 'true' } }),
  }
  /** How many of several requests in a row are admitted. */
  const admitted = async (kind: keyof typeof sends, o: Sent) => {
    const answers = []
    for (let n = 0; n < REQUESTS; n++) answers.push(await h.settled(sends[kind](o)))
    return answers.filter(({ status }) => status === 200).length
  }
  const refusal = async (kind: keyof typeof sends, o: Sent) => {
    await admitted(kind, o)
    const response = await sends[kind](o)
    expect(response.status).toBe(429)
    return ((await response.json()) as { error: string }).error
  }
  return { ...h, bulk, sends, admitted, refusal }
}

const ADMIN = { isAdmin: true }
const FREE = { plan: 'free' }
const ADMIN_ON_FREE = { isAdmin: true, plan: 'free' }
const LOOPBACK = { ip: '127.0.0.1' }
const FOREIGN = { ip: '192.0.2.1' }
const FORWARDED = { ip: '127.0.0.1', headers: { 'X-Forwarded-For': '192.0.2.1' } }
const TRUSTED = { trustProxy: ['127.0.0.1'] }
const PUBLIC = { trustLoopback: false }

describe('the limits per IP address', () => {
  test.each([
    ['behind a proxy that sends no X-Forwarded-For', { Via: '1.1 proxy' }, 2],
    ['on this machine', {}, 0],
  ])('hold for the tools of an agent %s', async (_, proxied, refused) => {
    const { request, settled } = await limited(FREE)
    const answers = []
    for (let n = 0; n < REQUESTS; n++) {
      const call = request('/mcp', {
        ...LOOPBACK,
        headers: { Accept: 'application/json, text/event-stream', ...proxied },
        body: {
          jsonrpc: '2.0',
          id: n,
          method: 'tools/call',
          params: { name: 'verify', arguments: { email: 'a@a.test' } },
        },
      })
      answers.push(await (await settled(call)).text())
    }
    expect(answers.filter(text => text.includes('Rate limit exceeded'))).toHaveLength(refused)
  })

  const none = { single: 5, list: 5, preview: 5, 'instant list': 5, 'sandbox list': 5 }
  const all = { single: 3, list: 2, preview: 5, 'instant list': 3, 'sandbox list': 5 }

  test.each([
    ['the admin on this machine', ADMIN, LOOPBACK, {}, none],
    ['the admin elsewhere', ADMIN, FOREIGN, {}, none],
    ['the admin behind a proxy', ADMIN, FORWARDED, {}, none],
    ['the admin behind a trusted proxy', ADMIN, FORWARDED, TRUSTED, none],
    ['a free account on this machine', FREE, LOOPBACK, {}, none],
    ['a free account on this machine, over IPv6', FREE, { ip: '::1' }, {}, none],
    ['a free account on this machine, beside a trusted proxy', FREE, LOOPBACK, TRUSTED, none],
    ['a free account elsewhere', FREE, FOREIGN, {}, all],
    ['a free account behind a proxy', FREE, FORWARDED, {}, all],
    ['a free account behind a trusted proxy', FREE, FORWARDED, TRUSTED, all],
    ['a free account behind a proxy without headers', FREE, LOOPBACK, PUBLIC, all],
    ['another account elsewhere', { plan: 'enterprise' }, FOREIGN, {}, all],
    ['an admin on the free plan, elsewhere', ADMIN_ON_FREE, FOREIGN, {}, all],
  ])('of %s', async (_, account, origin, settings, expected) => {
    const found: Record<string, number> = {}
    for (const kind of ['single', 'list', 'preview', 'instant list', 'sandbox list'] as const) {
      const { admitted } = await limited({ ...account, settings })
      found[kind] = await admitted(kind, origin)
    }
    expect(found).toEqual(expected)
  })

  test.each([
    ...['Forwarded', 'Via', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto'],
    ...['X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP'],
  ])('hold for a request with the header %s of a proxy', async name => {
    const { admitted } = await limited(FREE)
    expect(await admitted('list', { ip: '127.0.0.1', headers: { [name]: '127.0.0.1' } })).toBe(2)
  })

  test('cannot be left by a client that forges the address of this machine', async () => {
    const { admitted } = await limited({ ...FREE, settings: TRUSTED })
    const forged = { ip: '127.0.0.1', headers: { 'X-Forwarded-For': '127.0.0.1, 192.0.2.1' } }
    expect(await admitted('list', forged)).toBe(2)
    expect(await admitted('list', { ip: '192.0.2.1' })).toBe(0)
  })

  test('count each client of a trusted proxy', async () => {
    const { admitted } = await limited({ ...FREE, settings: TRUSTED })
    const from = (ip: string) => ({ ip: '127.0.0.1', headers: { 'X-Forwarded-For': ip } })
    expect(await admitted('list', from('192.0.2.1'))).toBe(2)
    expect(await admitted('list', from('192.0.2.2'))).toBe(2)
  })

  test('hold for the visitors of a website of the admin, whose key is public', async () => {
    const { request, settled, addKey } = await limited(ADMIN)
    const key = await addKey({ scopes: ['verify:form'], allowedDomains: ['shop.test'] })
    const headers = { Origin: 'https://shop.test' }
    const body = { email: 'nonsense' }
    const send = async () =>
      (await settled(request('/v1/verify/form', { key, headers, body }))).status
    expect([await send(), await send()]).toEqual([200, 429])
  })

  test('are listed only for a caller that has them', async () => {
    const names = async (o: Options, origin: typeof FOREIGN) => {
      const { data } = (await (await limited(o)).json('/v1/limits', origin)) as {
        data: { limits: { name: string }[] }
      }
      return data.limits.map(({ name }) => name).filter(name => name.startsWith('ip:'))
    }
    expect(await names(FREE, FOREIGN)).toEqual(['ip:single', 'ip:bulk', 'ip:form'])
    expect(await names(FREE, LOOPBACK)).toEqual([])
    expect(await names(ADMIN, FOREIGN)).toEqual(['ip:form'])
  })
})

test('the limits of a plan and of a key hold on this machine too', async () => {
  const { sends, addKey } = await limited(FREE)
  const key = await addKey({ rateLimitPerMinute: 2 })
  const statuses = async (times: number, o: object) => {
    const found = []
    for (let n = 0; n < times; n++)
      found.push((await sends['sandbox list']({ ...LOOPBACK, ...o })).status)
    return found
  }
  expect(await statuses(3, { key })).toEqual([200, 200, 429])
  expect((await statuses(9, {})).filter(status => status === 200)).toHaveLength(8)
})

describe('a list that is answered at once', () => {
  test('counts as one single verification for each address', async () => {
    const { bulk, settled, admitted } = await limited()
    const pair = ['a@a.test', 'b@a.test', 'a@a.test', 'nonsense']
    expect((await settled(bulk(pair, FOREIGN))).status).toBe(200)
    expect((await settled(bulk(pair, FOREIGN))).status).toBe(429)
    expect(await admitted('single', FOREIGN)).toBe(1)
    expect(await admitted('list', FOREIGN)).toBe(2)
  })

  test('is admitted although the limit is shorter than the list', async () => {
    const { bulk, settled, clock } = await limited()
    const send = async () => (await settled(bulk(ADDRESSES.slice(1), FOREIGN))).status
    expect([await send(), await send()]).toEqual([200, 429])
    await clock.advance(MINUTE)
    expect(await send()).toBe(200)
  })

  test('is counted in no limit if it is refused', async () => {
    const { bulk, settled, admitted, json } = await limited(FREE)
    const planLeft = async () => {
      const { data } = (await json('/v1/limits', FOREIGN)) as {
        data: { limits: { name: string; remaining: number }[] }
      }
      return data.limits.find(({ name }) => name === 'account:plan')?.remaining ?? 0
    }
    expect((await settled(bulk(['a@a.test', 'b@a.test'], FOREIGN))).status).toBe(200)
    const before = await planLeft()
    expect((await settled(bulk(['a@a.test', 'b@a.test'], FOREIGN))).status).toBe(429)
    expect(await planLeft()).toBe(before - 1)
    expect(await admitted('single', FOREIGN)).toBe(1)
  })
})

describe('a refusal names the limit, the time to wait and the setting', () => {
  test.each([
    [
      ...(['list', FOREIGN, {}] as const),
      'Rate limit exceeded: 2 lists an hour from one IP address (192.0.2.1). Try again in 1 hour. The admin of this service can change "bulk-per-hour" of "ip-limits" in the config file.',
    ],
    [
      ...(['single', { ip: '2001:db8::7' }, {}] as const),
      'Rate limit exceeded: 3 single verifications a minute from one IP address (2001:db8:0:0::/64). Try again in 1 minute. The admin of this service can change "single-per-minute" of "ip-limits" in the config file.',
    ],
    [
      ...(['list', FORWARDED, {}] as const),
      'Rate limit exceeded: 2 lists an hour from one IP address (127.0.0.1). Try again in 1 hour. All clients of a reverse proxy share this limit until the admin of this service sets --trust-proxy to the address of the proxy.',
    ],
  ])('%s', async (kind, origin, settings, expected) => {
    const { refusal } = await limited({ settings })
    expect(await refusal(kind, origin)).toBe(expected)
  })

  test('of a key', async () => {
    const { sends, addKey } = await limited()
    const key = await addKey({ rateLimitPerMinute: 1 })
    await sends.preview({ key })
    expect(await (await sends.preview({ key })).json()).toMatchObject({
      error:
        'Rate limit exceeded: 1 request a minute with this key. Try again in 1 minute. To change it, set "rate_limit_per_minute" with PATCH /v1/keys/{id}.',
    })
  })

  test('and a wait of less than an hour in minutes', async () => {
    const { refusal, sends, clock } = await limited()
    await refusal('list', FOREIGN)
    await clock.advance(5 * MINUTE + 8_000)
    const response = await sends.list(FOREIGN)
    expect(response.headers.get('Retry-After')).toBe('3292')
    expect(limitOf(response)).toMatchObject({ limit: 2, remaining: 0 })
    expect(await response.json()).toMatchObject({
      error: expect.stringContaining('Try again in 55 minutes.'),
    })
  })
})
