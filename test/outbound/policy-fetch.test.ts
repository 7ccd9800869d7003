import { describe, expect, test } from 'vitest'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import {
  createPolicyFetch,
  FETCH_BYTES_MAX,
  FETCH_TIMEOUT_MS,
  type FetchRequest,
} from '../../src/outbound/policy-fetch.ts'
import { DAY } from '../../src/platform/clock.ts'
import { testAuthority } from '../support/certificate.ts'
import { fakeClock } from '../support/clock.ts'
import type { ReceiverOptions } from '../support/http-receiver.ts'
import { openReceiver } from '../support/https-post.ts'
import { waitUntil } from '../support/wait.ts'
import { zone } from '../support/zone.ts'

const GET: FetchRequest = { method: 'GET', headers: { accept: 'application/json' }, body: null }

const NAMES = zone({
  'hook.example': { A: ['127.0.0.1'] },
  'inside.example': { A: ['10.0.0.7'] },
  'mixed.example': { A: ['127.0.0.1', '10.0.0.7'] },
})

function createFetch(allowed: readonly string[] = ['127.0.0.1']) {
  const clock = fakeClock()
  const mayDial = createIpPolicy(allowed)
  const fetch = createPolicyFetch({ clock, resolver: NAMES, mayDial, ca: testAuthority().cert })
  return { clock, fetch }
}

async function serve(options: ReceiverOptions) {
  const receiver = await openReceiver(options)
  return { receiver, url: `https://hook.example:${receiver.port}/token?a=b` }
}

const faultOf = (response: Promise<Response>) =>
  response.then(
    () => null,
    error => error as { faultCode: string; message: string },
  )

describe('a request', () => {
  test('sends its form and returns the whole response', async () => {
    const headers = { 'content-type': 'application/json' }
    const { receiver, url } = await serve({ answer: () => ({ body: '{"ok":true}', headers }) })
    const body = new URLSearchParams({ code: 'a b' })
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const response = await createFetch().fetch(url, { method: 'POST', headers: type, body })
    expect([response.status, await response.json()]).toEqual([200, { ok: true }])
    const [received] = receiver.received
    expect(received).toMatchObject({ method: 'POST', path: '/token?a=b' })
    expect(String(received?.body)).toBe('code=a+b')
  })

  test('returns a redirect and does not follow it', async () => {
    const { receiver, url } = await serve({
      answer: () => ({ status: 302, headers: { location: 'https://inside.example/' } }),
    })
    expect((await createFetch().fetch(url, GET)).status).toBe(302)
    expect(receiver.received).toHaveLength(1)
  })

  test.each([
    ['https://inside.example/', 'address_not_public'],
    ['https://mixed.example/', 'address_not_public'],
    ['https://10.0.0.7/', 'address_not_public'],
    ['https://absent.example/', 'dns_error'],
    ['http://hook.example:8080/', 'invalid_url'],
    ['http://10.0.0.7:8080/', 'invalid_url'],
    ['https://hook.example:5432/', 'invalid_url'],
    ['file:///etc/passwd', 'invalid_url'],
  ])('to %s is refused', async (url, faultCode) => {
    expect(await faultOf(createFetch().fetch(url, GET))).toMatchObject({ faultCode })
  })

  test('to this machine is refused unless it is allowed', async () => {
    const { receiver, url } = await serve({})
    const refused = await faultOf(createFetch([]).fetch(url, GET))
    expect(refused).toMatchObject({ faultCode: 'address_not_public' })
    expect(receiver.received).toHaveLength(0)
  })

  test('fails if the response is too long', async () => {
    const { url } = await serve({ answer: () => ({ body: 'x'.repeat(FETCH_BYTES_MAX + 1) }) })
    expect(await faultOf(createFetch().fetch(url, GET))).toMatchObject({
      faultCode: 'invalid_response',
      message: 'The server answered with more than 256 KiB.',
    })
  })

  test('fails if the server does not answer in time', async () => {
    const { receiver, url } = await serve({ answer: () => ({ delayMs: DAY }), clock: fakeClock() })
    const { clock, fetch } = createFetch()
    const fault = faultOf(fetch(url, GET))
    await waitUntil(() => receiver.received.length === 1)
    await clock.advance(FETCH_TIMEOUT_MS)
    expect(await fault).toMatchObject({ faultCode: 'timeout' })
  })
})
