import { describe, expect, test } from 'vitest'
import { REASONS } from '../../../src/engine/verdict/reason.ts'
import { toRecipients } from '../../support/engine.ts'
import { silentFrom } from '../../support/mx.ts'
import { isOfLists, RESULT_NAMES } from '../../support/result.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const PATH = '/v1/verify/single'

describe('POST /v1/verify/single', () => {
  test('returns the result of one address, with the fields of the interface, its class and its action', async () => {
    const { request, settled } = await createTestService()
    const response = await settled(request(PATH, { body: { email: 'ann@a.test' } }))
    expect(response.status).toBe(200)
    expect(response.headers.get('Content-Type')).toMatch(/^application\/json/)
    const text = await response.text()
    expect(Object.keys(JSON.parse(text))).toEqual(RESULT_NAMES)
    expect(JSON.parse(text)).toEqual({
      email: 'ann@a.test',
      valid: true,
      deliverable: true,
      risk_level: 'low',
      provider: 'a.test',
      response_time: 0,
      confidence: 95,
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
      reason: 'accepted_email',
      cached: false,
      class: 'deliverable',
      action: 'send',
      action_reason: 'The mail server accepts mail for this address, so send.',
    })
  })

  test.each([
    ['that does not exist', 'zoe@a.test', 'rejected_email'],
    ['of a domain that does not exist', 'ann@gone.test', 'invalid_domain'],
    ['at an address literal', 'ann@[192.0.2.1]', 'smtp_skipped'],
  ])('an address %s is a result, not an error', async (_, email, reason) => {
    const { request, settled } = await createTestService()
    const response = await settled(request(PATH, { body: { email } }))
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ email, reason })
  })

  test('has no other field, even if a retry is useful', async () => {
    const { json } = await createTestService({
      engine: { script: toRecipients(() => '450 4.2.0 Greylisted') },
    })
    const result = await json(PATH, { body: { email: 'ann@a.test' } })
    expect(result.reason).toBe('greylisted')
    expect(Object.keys(result)).toEqual(RESULT_NAMES)
  })

  test.each([' ann@a.test', 'ann@a.test\r\n', '\u00a0ann@a.test', '<ann@a.test>'])(
    'removes what a list removes around an address: %j',
    async email => {
      const { request } = await createTestService()
      const response = await request(PATH, { body: { email } })
      expect(await response.json()).toMatchObject({ email: 'ann@a.test', class: 'deliverable' })
    },
  )

  test.each([
    ['is malformed', 'nonsense', /^Invalid email format: .*@/],
    ['is empty', '', /^Invalid email format: The address is empty/],
    ['is too long', `${'x'.repeat(300)}@a.test`, /^Invalid email format: .*254 octets/],
    [
      'is two addresses',
      'two@a.test, three@b.test',
      /two addresses, two@a.test and three@b.test: /,
    ],
    ['is missing', undefined, /"email" is missing; it must be a string/],
    ['is null', null, /"email" is null/],
    ['is a number', 7, /"email" is 7/],
    ['is a list', ['ann@a.test'], /"email" is \["ann@a.test"\]/],
  ])('returns 400 invalid_email with an explanation if the email %s', async (_, email, error) => {
    const { request, mx } = await createTestService()
    const response = await request(PATH, { body: { email } })
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({
      success: false,
      error: expect.stringMatching(error),
      code: 'invalid_email',
      reason: 'address_not_valid',
      request_id: expect.stringMatching(/^req_/),
    })
    expect(mx.lines()).toEqual([])
  })

  test.each([['[]'], ['null'], ['"ann@a.test"'], ['']])(
    'a body that is not an object is refused: %s',
    async body => {
      const { request } = await createTestService()
      expect((await request(PATH, { body })).status).toBe(400)
    },
  )

  test('fields accept only their type', async () => {
    const { request } = await createTestService()
    const response = await request(PATH, { body: { email: 'ann@a.test', check_smtp: 'no' } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringContaining('"check_smtp"'),
    })
  })

  test('check_smtp: false probes no mail server', async () => {
    const { json, mx } = await createTestService()
    const result = await json(PATH, { body: { email: 'ann@a.test', check_smtp: false } })
    expect(result).toMatchObject({ reason: 'smtp_skipped', deliverable: false })
    expect(mx.lines()).toEqual([])
  })

  test('include does not cause another probe', async () => {
    const { json } = await createTestService()
    await json(PATH, { body: { email: 'ann@a.test' } })
    const more = await json(`${PATH}?include=flags,evidence`, { body: { email: 'ann@a.test' } })
    expect(more).toMatchObject({ cached: true, class: 'deliverable' })
  })

  test('a cached result is marked as cached; force_refresh probes again', async () => {
    const { json } = await createTestService()
    const ask = (more = {}) => json(PATH, { body: { email: 'ann@a.test', ...more } })
    expect(await ask()).toMatchObject({ cached: false })
    expect(await ask()).toMatchObject({ cached: true, reason: 'accepted_email' })
    expect(await ask({ force_refresh: true })).toMatchObject({ cached: false })
  })

  test('include adds flags, evidence, or both', async () => {
    const { json } = await createTestService()
    const ask = (include: string) =>
      json(`${PATH}?include=${include}`, { body: { email: 'info@a.test' } })
    expect(await ask('flags')).toMatchObject({
      flags: { is_role: true, is_disposable: false, is_catch_all: false, is_free: false },
      did_you_mean: null,
      mx_host: 'mx.a.test',
      checked_at: '2026-06-01T12:00:00.000Z',
    })
    const both = await ask('flags,evidence')
    expect(both).toMatchObject({ flags: {}, evidence: { operator: 'a.test', host: 'mx.a.test' } })
    expect(await ask('evidence')).not.toHaveProperty('flags')
    expect(Object.keys(await ask(''))).toEqual(RESULT_NAMES)
  })

  test('an unknown include is refused with the known ones', async () => {
    const { request } = await createTestService()
    const response = await request(`${PATH}?include=all`, { body: { email: 'ann@a.test' } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: 'include=all is unknown; it takes flags and evidence.',
    })
  })

  test('a disconnected client is dropped, and its probe serves the next request', async () => {
    const { app, key, mx, json, settled } = await createTestService({
      engine: { script: silentFrom('RCPT') },
    })
    const aborting = new AbortController()
    const asked = app.request(
      PATH,
      {
        method: 'POST',
        body: JSON.stringify({ email: 'ann@a.test' }),
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        signal: aborting.signal,
      },
      { incoming: { socket: { remoteAddress: '192.0.2.1' } } },
    )
    await drainEventLoop()
    aborting.abort()
    expect((await settled(Promise.resolve(asked))).status).toBe(408)
    // Sent while the first probe is still in flight.
    expect(await json(PATH, { body: { email: 'ann@a.test' } })).toMatchObject({ reason: 'timeout' })
    expect(mx.lines().filter(line => line === 'RCPT TO:<ann@a.test>')).toHaveLength(1)
  })
})

test('has all reasons of the interface, and six of lists', () => {
  const ofLists = REASONS.filter(isOfLists)
  expect([REASONS.length - ofLists.length, ofLists.length]).toEqual([25, 6])
})
