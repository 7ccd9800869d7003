import { describe, expect, test } from 'vitest'
import { silentFrom } from '../../support/mx.ts'
import { users } from '../../support/recipients.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'
import { bareApi } from '../contract/document.ts'
import { schemaChecks } from '../contract/schemas.ts'

const PATH = '/v1/verify/single'
const EVENTS = { Accept: 'text/event-stream' }

type StepEvent = { readonly event: string; readonly data: Record<string, unknown> }

const { answer } = schemaChecks(bareApi().document)
const component = (name: string) => answer({ $ref: `#/components/schemas/${name}` })
const FITS = {
  step: component('VerifyStep'),
  result: component('SingleResult'),
  error: component('Error'),
}

/** The events of a stream, each validated against the document. */
function eventsIn(text: string): StepEvent[] {
  const [begin, ...blocks] = text.split('\n\n')
  expect(begin).toBe('retry: 3000')
  return blocks
    .filter(block => block !== '' && block !== ':')
    .map(block => {
      const [, event = '', json = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      const data = JSON.parse(json)
      expect(FITS[event as keyof typeof FITS](data), block).toBeNull()
      return { event, data }
    })
}

async function services(options: Parameters<typeof createTestService>[0] = {}) {
  const fixture = await createTestService(options)
  const ask = (body: object, { headers, ...more }: RequestOptions = {}) =>
    fixture.request(PATH, { body, headers: { ...EVENTS, ...headers }, ...more })
  return {
    ...fixture,
    ask,
    follow: async (body: object, o: RequestOptions = {}) => {
      const response = await ask(body, o)
      expect(response.status).toBe(200)
      return eventsIn(await fixture.settled(response.text()))
    },
    history: () => fixture.database.db.selectFrom('verification').selectAll().execute(),
  }
}

const last = (events: readonly StepEvent[]) => events.at(-1)
const steps = (events: readonly StepEvent[]) =>
  events
    .map(({ event, data }) => data.step ?? event)
    .filter((name, at, all) => name !== all[at - 1])

describe('POST /v1/verify/single with Accept: text/event-stream', () => {
  test('streams each step and then the result with its evidence', async () => {
    const { ask, settled } = await services()
    const response = await ask({ email: 'ann@a.test' })
    expect(response.status).toBe(200)
    expect(response.headers.get('Content-Type')).toBe('text/event-stream')
    expect(response.headers.get('Cache-Control')).toContain('no-store')
    const events = eventsIn(await settled(response.text()))
    expect(steps(events)).toEqual(['syntax', 'domain', 'server', 'line', 'result'])
    expect(events.slice(0, 3).map(({ data }) => data)).toEqual([
      {
        step: 'syntax',
        ok: true,
        address: { local: 'ann', domain: 'a.test' },
        did_you_mean: null,
        text: 'The syntax is fine.',
      },
      {
        step: 'domain',
        ok: true,
        kind: 'mx',
        hosts: [{ preference: 10, host: 'mx.a.test' }],
        operator: 'a.test',
        text: 'a.test has one mail server, mx.a.test.',
      },
      {
        step: 'server',
        host: 'mx.a.test',
        ip: '192.0.2.1',
        ok: true,
        text: 'mx.a.test answers on port 25, at 192.0.2.1.',
      },
    ])
    expect(last(events)).toMatchObject({
      event: 'result',
      data: {
        email: 'ann@a.test',
        reason: 'accepted_email',
        class: 'deliverable',
        flags: { is_role: false },
        evidence: { host: 'mx.a.test' },
      },
    })
  })

  test('ends with the result of include=flags,evidence', async () => {
    const { follow, json } = await services()
    const streamed = last(await follow({ email: 'info@a.test' }))?.data
    const body = { email: 'info@a.test', force_refresh: true }
    expect(streamed).toEqual(await json(`${PATH}?include=flags,evidence`, { body }))
  })

  test('sends a step as soon as it has happened', async () => {
    const silent = { script: silentFrom('RCPT') }
    const { ask, clock, settled } = await services({ engine: silent })
    const startedAt = clock.monotonicNow()
    const response = await ask({ email: 'ann@a.test' })
    const pieces = response.body?.pipeThrough(new TextDecoderStream()).values()
    const nextPiece = async () => (await pieces?.next())?.value ?? ''
    let text = ''
    while (!text.includes('RCPT TO')) text += await nextPiece()
    while (!text.includes('event: result')) text += await settled(nextPiece())
    expect(text.indexOf('RCPT TO')).toBeLessThan(text.indexOf('event: result'))
    expect(clock.monotonicNow() - startedAt).toBeGreaterThan(5_000)
  })

  test('returns a malformed address as a result, with a suggestion', async () => {
    const { follow, history, ledger, mx } = await services({ plan: 'free' })
    const events = await follow({ email: 'ann@gmail' })
    expect(steps(events)).toEqual(['syntax', 'result'])
    expect(events[0]?.data).toMatchObject({ ok: false, did_you_mean: 'ann@gmail.com' })
    expect(last(events)?.data).toMatchObject({
      reason: 'invalid_email',
      did_you_mean: 'ann@gmail.com',
    })
    expect(mx.lines()).toEqual([])
    await ledger.flushed()
    expect(await history()).toHaveLength(1)
  })

  test('marks a cached answer; force_refresh probes again, check_smtp: false probes nothing', async () => {
    const { follow } = await services()
    await follow({ email: 'ann@a.test' })
    const known = await follow({ email: 'ann@a.test' })
    expect(steps(known)).toEqual(['syntax', 'domain', 'cached', 'result'])
    expect(known[2]?.data).toMatchObject({ checked_at: '2026-06-01T12:00:00.000Z' })
    expect(last(known)?.data).toMatchObject({ cached: true })
    const refreshed = await follow({ email: 'ann@a.test', force_refresh: true })
    expect(steps(refreshed)).toEqual(['syntax', 'domain', 'server', 'line', 'result'])
    const offline = await follow({ email: 'bob@a.test', check_smtp: false })
    expect(steps(offline)).toEqual(['syntax', 'domain', 'result'])
  })

  test('is only sent to clients that accept it', async () => {
    const { request, settled } = await services()
    for (const Accept of ['*/*', 'application/json', 'text/html']) {
      const response = await settled(
        request(PATH, { body: { email: 'ann@a.test' }, headers: { Accept } }),
      )
      expect(response.headers.get('Content-Type')).toMatch(/^application\/json/)
    }
  })
})

describe('a refused request gets an error, not an event', () => {
  test.each<[string, object, RequestOptions, number, string, RegExp]>([
    ['without a key', { email: 'a@a.test' }, { key: null }, 401, 'authentication_error', /key/],
    ['without an address', {}, {}, 400, 'invalid_email', /"email" is missing/],
    ['with a number', { email: 7 }, {}, 400, 'invalid_email', /"email" is 7/],
    [
      'with async',
      { email: 'a@a.test', async: true },
      {},
      400,
      'invalid_request',
      /has no steps to stream/,
    ],
    [
      'with an Idempotency-Key',
      { email: 'a@a.test' },
      { headers: { 'Idempotency-Key': 'one' } },
      400,
      'invalid_request',
      /Idempotency-Key is not supported .*Omit it/,
    ],
  ])('%s', async (_, body, options, status, code, error) => {
    const { ask, mx } = await services()
    const response = await ask(body, options)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ code, error: expect.stringMatching(error) })
    expect(mx.lines()).toEqual([])
  })

  test('if its key is limited', async () => {
    const { ask, addKey, settled } = await services()
    const key = await addKey({ rateLimitPerMinute: 1 })
    await settled((await ask({ email: 'ann@a.test' }, { key })).text())
    const refused = await ask({ email: 'ann@a.test' }, { key })
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ code: 'rate_limit' })
  })

  test('if the last credit is reserved for another', async () => {
    const { ask, submit, settled } = await services({ plan: 'free' })
    await submit(users(99))
    const asked = ['ann', 'bob'].map(local => ask({ email: `${local}@a.test` }))
    const [first, second] = await settled(Promise.all(asked))
    expect([first?.status, second?.status]).toEqual([200, 429])
    expect(await second?.json()).toMatchObject({ code: 'quota_exceeded' })
    eventsIn(await settled(first?.text() ?? Promise.resolve('')))
  })
})

describe('the ledger of a streamed verification', () => {
  const used = async ({ json }: Awaited<ReturnType<typeof services>>) =>
    (await json('/v1/credits')).data as { credits_consumed: number; credits_held: number }

  test('has its result and its credit once', async () => {
    const fixture = await services({ plan: 'free' })
    await fixture.follow({ email: 'ann@a.test' })
    await fixture.ledger.flushed()
    expect(await fixture.history()).toMatchObject([{ source: 'single', sandbox: 0 }])
    expect(await used(fixture)).toMatchObject({ credits_consumed: 1, credits_held: 0 })
  })

  test('returns the reservation when its client disconnects, while the probe continues', async () => {
    const fixture = await services({ plan: 'free', engine: { script: silentFrom('RCPT') } })
    const response = await fixture.ask({ email: 'ann@a.test' })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await drainEventLoop()
    expect(fixture.service.capacity.verifying).toBe(1)
    await reader.cancel()
    await drainEventLoop()
    expect(fixture.service.capacity.verifying).toBe(0)
    await fixture.ledger.flushed()
    expect(await fixture.history()).toEqual([])
    expect(await used(fixture)).toMatchObject({ credits_consumed: 0, credits_held: 0 })
    expect(fixture.mx.lines()).toContain('RCPT TO:<ann@a.test>')
    // Sent while the first probe is still in flight.
    expect(await fixture.json(PATH, { body: { email: 'ann@a.test' } })).toMatchObject({
      reason: 'timeout',
    })
    expect(fixture.mx.sessions).toHaveLength(1)
  })

  test('returns the reservation on an internal error, which the client gets as an event', async () => {
    const fixture = await services({ plan: 'free' })
    fixture.service.engine.verify = () => Promise.reject(new Error('a bug'))
    const events = await fixture.follow({ email: 'ann@a.test' })
    expect(events).toEqual([
      {
        event: 'error',
        data: {
          success: false,
          error: 'An internal error occurred. Try again later.',
          code: 'server_error',
          reason: 'internal_error',
          request_id: expect.stringMatching(/^req_/),
        },
      },
    ])
    expect(fixture.lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: 'a request failed',
        fields: expect.objectContaining({ code: 'server_error', stack: expect.any(String) }),
      }),
    )
    await fixture.ledger.flushed()
    expect(await used(fixture)).toMatchObject({ credits_consumed: 0, credits_held: 0 })
    expect(fixture.service.capacity.verifying).toBe(0)
  })
})

describe('in the sandbox', () => {
  const headers = { 'X-EV-Sandbox': 'true' }

  test('the steps are those of the simulated result, and nothing is probed', async () => {
    const { follow, zone, mx, history, ledger } = await services()
    const events = await follow({ email: 'catchall@example.com' }, { headers })
    expect(steps(events)).toEqual(['syntax', 'domain', 'server', 'line', 'result'])
    expect(events[1]?.data.text).toBe('Simulated: example.com has one mail server, mx.example.com.')
    expect(last(events)?.data).toMatchObject({ reason: 'catch_all', sandbox: true })
    expect([zone.asked, mx.dialled]).toEqual([[], []])
    await ledger.flushed()
    expect(await history()).toMatchObject([{ sandbox: 1 }])
  })

  test('a simulated error is returned as that error', async () => {
    const { ask } = await services()
    const response = await ask({ email: 'error-timeout@example.com' }, { headers })
    expect(response.status).toBe(504)
    expect(await response.json()).toEqual({ error: 'timeout', message: 'Simulated timeout' })
  })
})
