import { describe, expect, test } from 'vitest'
import { DELAYS_ACCOUNT_MAX } from '../../../src/api/capacity.ts'
import { toRecipients } from '../../support/engine.ts'
import { codeOf } from '../../support/guarded-route.ts'
import { RESULT_NAMES } from '../../support/result.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

/** A service that detects any use of its engine, and requests to its sandbox. */
async function services(given: Parameters<typeof createTestService>[0] = {}) {
  const fixture = await createTestService(given)
  const request = (path: string, o: RequestOptions = {}) =>
    fixture.request(path, { ...o, headers: { 'X-EV-Sandbox': 'true', ...o.headers } })
  const verify = async (email: string, path = '/v1/verify') =>
    (await (await request(path, { body: { email } })).json()) as Record<string, unknown>
  const isUntouched = () => fixture.mx.lines().length === 0 && fixture.zone.asked.length === 0
  return { ...fixture, request, verify, isUntouched }
}

describe('the sandbox of POST /v1/verify', () => {
  test.each([
    ['valid', 'deliverable', 95, 'accepted_email', true, true, 'low'],
    ['invalid', 'undeliverable', 0, 'rejected_email', false, false, 'high'],
    ['risky', 'risky', 50, 'low_deliverability', true, false, 'medium'],
    ['catchall', 'risky', 50, 'catch_all', true, false, 'medium'],
    ['disposable', 'risky', 30, 'disposable_email', true, false, 'high'],
    ['role', 'risky', 60, 'role_account', true, true, 'medium'],
  ])(
    '%s@… is %s with a score of %d',
    async (prefix, status, score, reason, valid, deliverable, risk) => {
      const { verify, isUntouched } = await services()
      for (const local of [prefix, `${prefix}-test`, prefix.toUpperCase()]) {
        expect(await verify(`${local}@example.com`)).toMatchObject({
          status,
          score,
          reason,
          valid,
          deliverable,
          risk_level: risk,
          sandbox: true,
        })
      }
      expect(isUntouched()).toBe(true)
    },
  )

  test('returns the union of the single result and the fields of the sandbox', async () => {
    const { verify } = await services()
    const email = 'disposable-test@example.com'
    expect(await verify(email)).toEqual({
      email,
      status: 'risky',
      score: 30,
      is_disposable: true,
      is_role: false,
      is_catch_all: null,
      is_free: false,
      valid: true,
      deliverable: false,
      risk_level: 'high',
      provider: 'example.com',
      response_time: expect.any(Number),
      confidence: 90,
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
      reason: 'disposable_email',
      cached: false,
      class: 'risky',
      action: 'suppress',
      action_reason: 'The address belongs to a disposable email service, so do not send.',
      sandbox: true,
    })
    expect(await verify('role@example.com')).toMatchObject({ is_role: true, is_disposable: false })
    expect(await verify('catchall@example.com')).toMatchObject({ is_catch_all: true })
  })

  test('any other address gets a realistic result, the same each time', async () => {
    const { verify } = await services()
    const statuses = new Set<unknown>()
    for (let n = 0; n < 40; n++) {
      const result = await verify(`person${n}@example.com`)
      expect(await verify(`person${n}@example.com`)).toEqual(result)
      statuses.add(result.status)
    }
    expect([...statuses].toSorted()).toEqual(['deliverable', 'risky', 'undeliverable'])
  })

  test.each([
    ['timeout', 'timeout'],
    ['greylisted', 'greylisted'],
  ])('has no fourth status: %s@… is risky, and its class is unknown', async (prefix, reason) => {
    const { verify } = await services()
    expect(await verify(`${prefix}@example.com`)).toMatchObject({
      status: 'risky',
      score: 40,
      class: 'unknown',
      risk_level: 'unknown',
      reason,
    })
  })

  test.each(['', '?include=flags', '?include=evidence', '?include=flags,evidence'])(
    'has the same fields live: %j',
    async query => {
      const { verify, json } = await services()
      for (const email of ['ann@a.test', 'zoe@a.test', 'valid@a.test', 'timeout@gone.test']) {
        const simulated = await verify(email, `/v1/verify${query}`)
        const live = await json(`/v1/verify${query}`, { body: { email } })
        expect(Object.keys(live)).toEqual(Object.keys(simulated))
        expect([live.sandbox, simulated.sandbox]).toEqual([false, true])
      }
    },
  )

  test('a malformed address is refused as outside the sandbox', async () => {
    const { request } = await services()
    const response = await request('/v1/verify', { body: { email: 'valid' } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_email' })
  })
})

describe('POST /v1/verify outside the sandbox', () => {
  test('returns the single result with a status and a score', async () => {
    const { json } = await createTestService()
    expect(await json('/v1/verify', { body: { email: 'info@a.test' } })).toEqual({
      email: 'info@a.test',
      status: 'risky',
      score: 60,
      is_disposable: false,
      is_role: true,
      is_catch_all: false,
      is_free: false,
      valid: true,
      deliverable: true,
      risk_level: 'medium',
      provider: 'a.test',
      response_time: 0,
      confidence: 80,
      reason: 'role_account',
      cached: false,
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
      class: 'risky',
      action: 'send_with_care',
      action_reason:
        'The address belongs to a function, not to a person, so send only what it asked for.',
      sandbox: false,
    })
    expect(await json('/v1/verify', { body: { email: 'zoe@a.test' } })).toMatchObject({
      status: 'undeliverable',
      score: 0,
    })
  })

  test('has a status for an unknown result', async () => {
    const { json } = await createTestService({
      engine: { script: toRecipients(() => '451 4.3.0 Busy') },
    })
    expect(await json('/v1/verify', { body: { email: 'ann@a.test' } })).toMatchObject({
      status: 'unknown',
      class: 'unknown',
      is_catch_all: null,
    })
  })

  test('include adds flags, evidence, or both', async () => {
    const { json, request } = await createTestService()
    const ask = (include: string) =>
      json(`/v1/verify?include=${include}`, { body: { email: 'info@a.test' } })
    expect(await ask('flags')).toMatchObject({
      status: 'risky',
      flags: { is_role: true, is_relay: false },
      mx_host: 'mx.a.test',
    })
    expect(await ask('flags,evidence')).toMatchObject({
      flags: {},
      evidence: { host: 'mx.a.test' },
    })
    expect(await ask('evidence')).not.toHaveProperty('flags')
    const refused = await request('/v1/verify?include=all', { body: { email: 'ann@a.test' } })
    expect(refused.status).toBe(400)
  })
})

describe('the sandbox of POST /v1/verify/single', () => {
  test('returns the single result, marked as sandbox', async () => {
    const { verify } = await services()
    const result = await verify('valid@example.com', '/v1/verify/single')
    expect(result).toMatchObject({ reason: 'accepted_email', sandbox: true })
    expect(Object.keys(result)).toEqual([...RESULT_NAMES, 'sandbox'])
  })

  test('needs a key', async () => {
    const { request } = await services()
    const response = await request('/v1/verify/single', {
      key: null,
      body: { email: 'valid@a.test' },
    })
    expect(response.status).toBe(401)
  })

  test('is stored in the history of the sandbox, and counts nowhere', async () => {
    const { verify, settled, ledger, database } = await services()
    await verify('valid@example.com', '/v1/verify/single')
    await settled(ledger.flushed())
    const rows = await database.db.selectFrom('verification').selectAll().execute()
    expect(rows).toEqual([
      expect.objectContaining({ email: 'valid@example.com', sandbox: 1, source: 'single' }),
    ])
    expect(await database.db.selectFrom('usage').selectAll().execute()).toEqual([])
  })
})

describe.each(['/v1/verify', '/v1/verify/single'])('errors that %s simulates', path => {
  test.each([
    ['error-auth', 401, { error: 'authentication_error', message: expect.any(String) }],
    ['error-ratelimit', 429, { error: 'rate_limit', retry_after: 60 }],
    ['error-timeout', 504, { error: 'timeout', message: 'Simulated timeout' }],
    ['error-server', 500, { error: 'server_error', message: expect.any(String) }],
  ])('%s@… is %d with its own body and the headers of limits', async (prefix, status, body) => {
    const { request, isUntouched, lines } = await services()
    const response = await request(path, { body: { email: `${prefix}@example.com` } })
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual(body)
    expect(response.headers.get('Retry-After')).toBe(status === 429 ? '60' : null)
    expect(response.headers.get('X-RateLimit-Limit')).toMatch(/^\d+$/)
    expect(response.headers.get('X-RateLimit-Remaining')).toMatch(/^\d+$/)
    expect(response.headers.get('X-RateLimit-Reset')).toMatch(/^\d{10}$/)
    expect(isUntouched()).toBe(true)
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('without the header its prefixes have no meaning', async () => {
    const { json } = await createTestService()
    expect(await json(path, { body: { email: 'error-auth@a.test' } })).toMatchObject({
      reason: 'rejected_email',
    })
  })
})

describe('X-EV-Sandbox-Delay', () => {
  const body = { email: 'valid@example.com' }

  test('delays the response as long as it says', async () => {
    const { request, clock } = await services()
    let isThere = false
    const asked = request('/v1/verify', { body, headers: { 'X-EV-Sandbox-Delay': '3000' } })
    void asked.then(() => {
      isThere = true
    })
    await drainEventLoop()
    await clock.advance(2_999)
    await drainEventLoop()
    expect(isThere).toBe(false)
    await clock.advance(1)
    expect((await asked).status).toBe(200)
  })

  test('takes no place of a verification while it waits, and has a share per account', async () => {
    const h = await services({ settings: { limits: false } })
    await h.addAccount('acc_2')
    const other = await h.addKey({ id: 'key_2', accountId: 'acc_2' })
    const delayed = (key?: string) =>
      h.request('/v1/verify', {
        body,
        headers: { 'X-EV-Sandbox-Delay': '30000' },
        ...(key === undefined ? {} : { key }),
      })
    const waiting = Array.from({ length: DELAYS_ACCOUNT_MAX }, () => delayed())
    await drainEventLoop()
    expect(h.service.capacity.verifying).toBe(0)
    const refused = await delayed()
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limit'])
    waiting.push(delayed(other))
    await drainEventLoop()
    await h.clock.advance(30_000)
    const statuses = (await Promise.all(waiting)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  test.each(['30001', '-1', '1.5', 'long', ''])('of %j is refused', async delay => {
    const { request } = await services()
    const response = await request('/v1/verify', { body, headers: { 'X-EV-Sandbox-Delay': delay } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: expect.stringContaining('from 0 to 30000'),
    })
  })

  test('is ignored outside the sandbox', async () => {
    const { json } = await createTestService()
    const headers = { 'X-EV-Sandbox-Delay': 'long' }
    expect(await json('/v1/verify', { body: { email: 'ann@a.test' }, headers })).toMatchObject({
      reason: 'accepted_email',
    })
  })
})

describe('lists in the sandbox', () => {
  test('a short one is answered at once, row by row, its errors as results', async () => {
    const { request, isUntouched } = await services()
    const emails = ['valid@a.test', 'invalid@a.test', 'error-server@a.test', 'error-auth@a.test']
    const response = await request('/v1/verify/bulk', { body: { emails } })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { job_id: string; results: { reason: string }[] }
    expect(body.job_id).toMatch(/^job_sbx_/)
    expect(body.results.map(({ reason }) => reason)).toEqual([
      ...['accepted_email', 'rejected_email', 'unexpected_error', 'probe_blocked'],
    ])
    expect(isUntouched()).toBe(true)
  })

  test('a longer one, a batch and an asynchronous single verification become jobs of the sandbox', async () => {
    const { request, database, worker } = await services()
    const emails = Array.from({ length: 11 }, (_, n) => `valid${n}@a.test`)
    const asked: [string, object][] = [
      ['/v1/verify/bulk', { emails }],
      ['/v1/verify/batch', { emails: ['valid@a.test'] }],
      ['/v1/verify/single', { email: 'valid@a.test', async: true }],
    ]
    for (const [path, body] of asked) expect((await request(path, { body })).status).toBe(200)
    const jobs = await database.db.selectFrom('job').selectAll().orderBy('created_at').execute()
    expect(jobs.map(({ type }) => type).toSorted()).toEqual(['batch', 'bulk', 'single'])
    expect(
      jobs.every(
        ({ id, sandbox, held }) => /^(job|ver)_sbx_/.test(id) && sandbox === 1 && held === 0,
      ),
    ).toBe(true)
    expect(worker.status().jobs).toBe(3)
  })
})
