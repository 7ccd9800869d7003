import { expect, test } from 'vitest'
import { DEADLINE_MS } from '../../../src/webhooks/https-transport.ts'
import { BODY_READ_MAX } from '../../../src/webhooks/response.ts'
import { fakeClock } from '../../support/clock.ts'
import type { How } from '../../support/http-receiver.ts'
import { openReceiver, openTransport } from '../../support/https-post.ts'
import { waitUntil } from '../../support/wait.ts'

/** Gets the document of a receiver. */
async function get(answer: How) {
  const receiver = await openReceiver({ answer })
  return { receiver, document: openTransport().get(`${receiver.url}?a=b`) }
}

test('a document arrives unchanged', async () => {
  const { receiver, document } = await get({ body: '-----BEGIN\r\nü\n' })
  expect(await document).toBe('-----BEGIN\r\nü\n')
  expect(receiver.received).toMatchObject([{ method: 'GET', path: '/hook?a=b' }])
  expect(receiver.received[0]?.body).toHaveLength(0)
})

test.each([400, 403, 404, 410])('status %i is no document', async status => {
  expect(await (await get(status)).document).toBeNull()
})

test.each<[How, RegExp]>([
  [500, /answered with 500/],
  [{ status: 302, headers: { location: 'https://hook.example/' } }, /answered with 302/],
  [{ body: 'a'.repeat(BODY_READ_MAX) }, /too long/],
  [{ body: 'a', end: 'reset' }, /too long or incomplete/],
])('%j is an error', async (answer, message) => {
  const { document } = await get(answer)
  await expect(document).rejects.toThrow(message)
})

test.each([
  ['http://hook.example/', /must begin with https/],
  ['https://user:password@hook.example/', /username or a password/],
  ['https://10.0.0.1/', /not public/],
  ['https://169.254.169.254/latest', /not public/],
])('%s is not fetched', async (url, message) => {
  await expect(openTransport().get(url)).rejects.toThrow(message)
})

test('a document that does not arrive in time is an error', async () => {
  const clock = fakeClock()
  const receiver = await openReceiver({ clock, answer: { delayMs: DEADLINE_MS + 1 } })
  const document = openTransport({ clock }).get(receiver.url)
  const failed = expect(document).rejects.toThrow('No response within 30 s')
  await waitUntil(() => receiver.received.length === 1)
  await clock.advance(DEADLINE_MS)
  await failed
})
