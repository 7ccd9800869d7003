import { expect, test } from 'vitest'
import type { Api } from '../../../src/dashboard/deps.ts'
import { changesBody } from '../../../src/dashboard/verify/verify.ts'
import {
  EMPTY_FORM,
  type VerifyEvents,
  verifyWithEvents,
} from '../../../src/dashboard/verify/verify-events.ts'

async function eventsOf(answer: () => Promise<Response>): Promise<VerifyEvents[]> {
  const api: Api = { fetch: answer, ask: () => Promise.reject(new Error('is not asked')) }
  const received: VerifyEvents[] = []
  for await (const one of verifyWithEvents(api, EMPTY_FORM)) received.push(one)
  return received
}

const STEP = 'event: step\ndata: {"step":"syntax","ok":true,"text":"Fine."}\n\n'
const events = (text: string) => async () => new Response(text)
const BROKEN_OFF = { event: 'error', status: 503 }

test('a stream that ends without a result yields an interruption after its events', async () => {
  const received = await eventsOf(events(`retry: 3000\n\n${STEP}:\n\n`))
  expect(received).toMatchObject([{ event: 'step', data: { text: 'Fine.' } }, BROKEN_OFF])
})

test('a stream that fails yields an interruption', async () => {
  const received = await eventsOf(async () => {
    const encoder = new TextEncoder()
    const pieces = (async function* () {
      yield encoder.encode(STEP)
      throw new Error('the connection is gone')
    })()
    return new Response(ReadableStream.from(pieces))
  })
  expect(received.map(({ event }) => event)).toEqual(['step', 'error'])
})

test('a response that is not a stream yields an interruption', async () => {
  expect(await eventsOf(() => Promise.reject(new Error('no way')))).toMatchObject([BROKEN_OFF])
  expect(await eventsOf(async () => new Response('<html>', { status: 502 }))).toMatchObject([
    BROKEN_OFF,
  ])
})

test('an error response yields its status', async () => {
  const body = { success: false, error: 'Too many.', code: 'rate_limit', request_id: 'req_1' }
  expect(await eventsOf(async () => Response.json(body, { status: 429 }))).toEqual([
    { event: 'error', status: 429, data: body },
  ])
})

test('nothing is yielded after the result', async () => {
  const received = await eventsOf(events(`event: result\ndata: {"email":"a@b.test"}\n\n${STEP}`))
  expect(received.map(({ event }) => event)).toEqual(['result'])
})

test('a client that disconnects cancels the API request at once', async () => {
  const disconnecting = new AbortController()
  let isEnded = false
  const source = new ReadableStream({
    start: controller => controller.enqueue(new TextEncoder().encode(STEP)),
    // No further events.
    pull: () => new Promise<void>(() => {}),
    cancel: () => {
      isEnded = true
    },
  })
  const api: Api = {
    fetch: async () => new Response(source),
    ask: () => Promise.reject(new Error('is not asked')),
  }
  const reading = verifyWithEvents(api, EMPTY_FORM, disconnecting.signal)
  expect((await reading.next()).value).toMatchObject({ event: 'step' })
  const next = reading.next()
  disconnecting.abort()
  expect((await next).value).toMatchObject(BROKEN_OFF)
  expect(isEnded).toBe(true)
})

test('a body that is cancelled signals its producer while it is waiting', async () => {
  let signal: AbortSignal | null = null
  const body = changesBody(disconnecting => {
    signal = disconnecting
    return { next: () => new Promise(() => {}) }
  })
  const reader = body.getReader()
  void reader.read()
  expect(signal).toMatchObject({ aborted: false })
  await reader.cancel()
  expect(signal).toMatchObject({ aborted: true })
})
