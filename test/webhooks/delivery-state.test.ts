import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import {
  disabledCode,
  isDelivered,
  nextState,
  RETRY_DELAYS_MS,
  retryAfterMs,
} from '../../src/webhooks/delivery-state.ts'

const NOW = Date.UTC(2026, 5, 1, 12)

describe('after an attempt', () => {
  test.each([200, 201, 202, 204, 299])('with status %i an event is delivered', status => {
    expect(nextOf({ status })).toEqual({ state: 'delivered', expiresAt: NOW + 7 * DAY })
    expect(isDelivered(status)).toBe(true)
  })

  test('a delivered sandbox event is kept for a day, and a failed one for seven', () => {
    const sandbox = true
    expect(nextOf({ status: 200, sandbox })).toMatchObject({ expiresAt: NOW + DAY })
    expect(nextOf({ status: 410, sandbox })).toMatchObject({ expiresAt: NOW + 7 * DAY })
  })

  test.each([
    null, // no response
    100,
    199,
    300,
    301, // a redirect is not followed
    304,
    400,
    404,
    409,
    429,
    500,
    503,
    600,
  ])('with status %s it is retried', status => {
    expect(nextOf({ status })).toEqual({ state: 'retry_scheduled', dueAt: NOW + MINUTE })
    expect(isDelivered(status)).toBe(false)
  })

  test('retries follow 1 min, 5 min, 30 min, 2 h and 24 h later, each after the one before', () => {
    const waits = [0, 1, 2, 3, 4].map(attempt => waitMs({ status: 500, attempt }))
    expect(waits).toEqual([MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR])
    expect(waits).toEqual([...RETRY_DELAYS_MS])
  })

  test('of a sandbox event, retries follow within seconds if the service is set up so', () => {
    const waitsOf = (more: Partial<Given>) =>
      [0, 1, 2, 3, 4].map(attempt => waitMs({ status: 500, attempt, ...more }))
    const fast = { sandbox: true, fastSandboxRetries: true }
    expect(waitsOf(fast)).toEqual([1, 2, 4, 8, 16].map(seconds => seconds * SECOND))
    expect(nextOf({ status: 500, attempt: 5, ...fast }).state).toBe('failed')
    expect(waitMs({ status: 503, retryAfterMs: MINUTE, ...fast })).toBe(MINUTE)
    expect(waitsOf({ sandbox: true })).toEqual([...RETRY_DELAYS_MS])
    expect(waitsOf({ fastSandboxRetries: true })).toEqual([...RETRY_DELAYS_MS])
  })

  test('the sixth of a cycle is the last, and a failed delivery is kept for 7 days', () => {
    const failed = { state: 'failed', expiresAt: NOW + 7 * DAY }
    expect(nextOf({ status: 500, attempt: 5 })).toEqual(failed)
    expect(nextOf({ status: 500, attempt: 5, trigger: 'manual' })).toEqual(failed)
    expect(nextOf({ status: 200, attempt: 5 }).state).toBe('delivered')
  })

  test('that was started manually, the cycle has the same length', () => {
    expect(waitMs({ status: 500, attempt: 0, trigger: 'manual' })).toBe(MINUTE)
  })

  test('with status 410 nothing is retried', () => {
    expect(nextOf({ status: 410 })).toEqual({ state: 'failed', expiresAt: NOW + 7 * DAY })
    expect(nextOf({ status: 410, retryAfterMs: HOUR }).state).toBe('failed')
  })

  test('of a test nothing is retried', () => {
    expect(nextOf({ status: 500, trigger: 'test' }).state).toBe('failed')
    expect(nextOf({ status: null, trigger: 'test' }).state).toBe('failed')
    expect(nextOf({ status: 204, trigger: 'test' }).state).toBe('delivered')
  })

  test.each<[asked: number, attempt: number, waited: number]>([
    [10 * MINUTE, 0, 10 * MINUTE], // longer than our minute
    [10 * SECOND, 0, MINUTE], // never sooner than the schedule
    [0, 1, 5 * MINUTE],
    [10 * MINUTE, 2, 30 * MINUTE],
    [24 * HOUR, 0, 24 * HOUR],
    [25 * HOUR, 0, 24 * HOUR], // the maximum delay is a day
    [1e300, 3, 24 * HOUR],
  ])('a Retry-After of %i ms before attempt %i waits %i ms', (asked, attempt, waited) => {
    expect(waitMs({ status: 503, attempt, retryAfterMs: asked })).toBe(waited)
    expect(waitMs({ status: 500, attempt, retryAfterMs: asked })).toBe(waited)
  })
})

describe('a Retry-After', () => {
  const at = Date.UTC(2026, 5, 1, 12, 10)
  test.each([
    ['120', 120 * SECOND],
    ['0', 0],
    [' 7 ', 7 * SECOND],
    [new Date(at).toUTCString(), 10 * MINUTE], // RFC 9110 §5.6.7: IMF-fixdate
    ['Monday, 01-Jun-26 12:10:00 GMT', 10 * MINUTE], // RFC 850
    ['Mon, 01 Jun 2026 11:00:00 GMT', 0], // past
  ])('of “%s” means %i ms', (header, ms) => {
    expect(retryAfterMs(header, NOW)).toBe(ms)
  })

  test.each([
    undefined,
    '',
    'soon',
    '-5', // delay-seconds has no sign
    '1.5',
    '1e3',
    '0x10',
    '120, 60',
    'tomorrow',
    '2026-06-01T12:10:00Z', // not an HTTP date
    'Mon, 99 Jun 2026 12:10:00 GMT',
    'Mon Jun  1 12:10:00 2026', // asctime: without a zone
  ])('of “%s” is ignored', header => {
    expect(retryAfterMs(header, NOW)).toBeNull()
  })

  test('with more digits than a number has is still a number', () => {
    const next = { status: 503, retryAfterMs: retryAfterMs('9'.repeat(400), NOW) }
    expect(waitMs(next)).toBe(24 * HOUR)
  })
})

describe('a webhook is disabled', () => {
  const failing = { status: 500, failingSince: NOW - 5 * DAY, seenMs: HOUR, now: NOW }
  test('after failing for 5 days, with the next attempt', () => {
    expect(disabledCode(failing)).toBe('failing')
    expect(disabledCode({ ...failing, status: null })).toBe('failing')
    expect(disabledCode({ ...failing, failingSince: NOW - 5 * DAY + 1 })).toBeNull()
    expect(disabledCode({ ...failing, failingSince: null })).toBeNull()
  })

  test('not if nothing was attempted during most of the 5 days', () => {
    expect(disabledCode({ ...failing, seenMs: HOUR - 1 })).toBeNull()
  })

  test('at once after a 410', () => {
    const gone = { status: 410, failingSince: null, seenMs: 0, now: NOW }
    expect(disabledCode(gone)).toBe('gone')
  })
})

type Given = {
  readonly status: number | null
  readonly attempt?: number
  readonly trigger?: 'scheduled' | 'manual' | 'test'
  readonly retryAfterMs?: number | null
  readonly sandbox?: boolean
  readonly fastSandboxRetries?: boolean
}

const nextOf = ({ status, attempt = 0, trigger = 'scheduled', ...more }: Given) => {
  const { retryAfterMs = null, sandbox = false, fastSandboxRetries } = more
  const outcome = { status, retryAfterMs }
  return nextState({
    attempt,
    trigger,
    outcome,
    sandbox,
    fastSandboxRetries,
    now: NOW,
    steadyNow: NOW,
  })
}

function waitMs(given: Given): number {
  const next = nextOf(given)
  if (next.state !== 'retry_scheduled') throw new Error(`it is ${next.state}`)
  return next.dueAt - NOW
}
