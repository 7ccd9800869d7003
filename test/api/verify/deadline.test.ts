import { describe, expect, test } from 'vitest'
import { FORM_DEADLINE_MS } from '../../../src/api/verify/form.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'

/** The deadline of a single verification, and of a list within the request. */
const DEADLINE_MS = 10_000

/** A verification ends slightly before, so that its result has the evidence. */
const MARGIN_MS = 50

const REQUESTS: readonly [
  way: string,
  deadlineMs: number,
  requestFor: (email: string) => readonly [path: string, options: RequestOptions],
][] = [
  ['a single verification', DEADLINE_MS, email => ['/v1/verify/single', { body: { email } }]],
  [
    'a single verification with its steps',
    DEADLINE_MS,
    email => ['/v1/verify/single', { body: { email }, headers: { Accept: 'text/event-stream' } }],
  ],
  ['a form', FORM_DEADLINE_MS, email => ['/v1/verify/form', { body: { email } }]],
  [
    'a list within the request',
    DEADLINE_MS,
    email => {
      const body = JSON.stringify({ emails: [email] })
      const headers = { 'Content-Type': 'application/json', 'Content-Length': `${body.length}` }
      return ['/v1/verify/bulk', { body, headers }]
    },
  ],
]

/** Requests at the same time, each over a new connection: one verification starts every 10 ms. */
const CROWD = 150

describe.each(REQUESTS)('%s', (_, deadlineMs, requestFor) => {
  /** Sends requests at once, and returns their results and how long the longest took, in ms. */
  async function verifyAll(swallowed: string, count: number) {
    const { request, clock, settled } = await createTestService({
      settings: { limits: false },
      engine: { script: line => (line.startsWith(swallowed) ? null : undefined) },
    })
    const startedAt = clock.monotonicNow()
    let tookMs = 0
    const answers = Array.from({ length: count }, async (_, n) => {
      const response = await request(...requestFor(`user${n}@a.test`))
      const text = await response.text()
      tookMs = Math.max(tookMs, clock.monotonicNow() - startedAt)
      return /"(?:risk_level|class)":"(\w+)"/.exec(text)?.[1]
    })
    return { results: new Set(await settled(Promise.all(answers))), tookMs }
  }

  test.each(['EHLO', 'MAIL', 'RCPT'])('ends at its deadline without a reply to %s', async verb => {
    const { results, tookMs } = await verifyAll(verb, 1)
    expect(tookMs).toBeLessThanOrEqual(deadlineMs)
    expect(tookMs).toBeGreaterThan(deadlineMs - MARGIN_MS)
    expect([...results]).toEqual(['unknown'])
  })

  test('ends at its deadline although it waits for its turn in a crowd', async () => {
    const { results, tookMs } = await verifyAll('RCPT', CROWD)
    expect(tookMs).toBeLessThanOrEqual(deadlineMs)
    expect(tookMs).toBeGreaterThan(deadlineMs - MARGIN_MS)
    expect([...results]).toEqual(['unknown'])
  })
})
