import { describe, expect, test } from 'vitest'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { REFUSAL, ROW } from '../../support/prober.ts'
import { startNow } from '../../support/start-now.ts'

function paced(row: Partial<RateLimits> = {}) {
  const clock = fakeClock()
  const pace = new RateController({ ...ROW, sessionsMax: 4, sessionsPerSecond: 2, ...row }, clock)
  return { clock, pace, status: () => pace.status('mx.test') }
}

describe('the rate status', () => {
  test('of a new operator has the limits of the table', () => {
    expect(paced().status()).toEqual({
      operator: 'mx.test',
      unknownStreakMax: 20,
      recent: 0,
      pause: null,
      refusal: null,
      sessions: 0,
      sessionsAllowed: 4,
      sessionsMax: 4,
      sessionsPerSecond: 2,
      sessionsPerSecondMax: 2,
    })
  })

  test('counts the open connections and the probed recipients', () => {
    const { pace, status } = paced()
    const starts = [startNow(pace), startNow(pace)]
    pace.onReply(false)
    expect(status()).toMatchObject({ sessions: 2, recent: 1 })
    for (const start of starts) if ('permit' in start) start.permit.release()
    expect(status().sessions).toBe(0)
  })

  test('after throttling has half the rate and the times of the pause', async () => {
    const { clock, pace, status } = paced()
    const since = clock.now()
    pace.throttled(null)
    await clock.advance(MINUTE)
    const pause = { since, until: since + 5 * MINUTE, why: 'throttled' }
    expect(status()).toMatchObject({ sessionsAllowed: 2, sessionsPerSecond: 1, pause })
    await clock.advance(4 * MINUTE)
    expect(status()).toMatchObject({ sessionsAllowed: 2, pause: null })
  })

  test('keeps the start of an extended pause', async () => {
    const { clock, pace, status } = paced()
    const since = clock.now()
    pace.throttled(null)
    await clock.advance(MINUTE)
    pace.throttled(20 * MINUTE)
    expect(status().pause).toEqual({ since, until: since + 21 * MINUTE, why: 'throttled' })
  })

  test('distinguishes a pause after unknown users from throttling', async () => {
    const { clock, pace, status } = paced({ unknownStreakMax: 2 })
    const since = clock.now()
    pace.onUnknownRecipient()
    expect(status().pause).toBeNull()
    pace.onUnknownRecipient()
    const until = since + 10 * SECOND
    expect(status().pause).toEqual({ since, until, why: 'unknown-users' })
    pace.throttled(null)
    expect(status().pause).toEqual({ since, until: since + 5 * MINUTE, why: 'throttled' })
  })

  test('keeps a block from its start until a success', async () => {
    const { clock, pace, status } = paced()
    const since = clock.now()
    pace.refused(REFUSAL)
    pace.skipped(3)
    await clock.advance(40 * MINUTE)
    expect(pace.isRefused).toBe(false)
    expect(status().refusal).toMatchObject({ since, until: since + 30 * MINUTE, skipped: 3 })
    pace.refused(REFUSAL)
    pace.skipped(4)
    expect(status().refusal).toEqual({
      since,
      until: since + 70 * MINUTE,
      skipped: 7,
      answer: REFUSAL,
    })
    pace.succeeded()
    expect(status().refusal).toBeNull()
    pace.skipped(1)
    expect(status().refusal).toBeNull()
  })

  test('uses wall-clock times, also after the clock was set', () => {
    const { clock, pace, status } = paced()
    pace.refused(REFUSAL)
    clock.jump(HOUR)
    expect(status().refusal?.until).toBe(clock.now() + 30 * MINUTE)
  })
})

describe('a caller learns', () => {
  test('why no connection may be opened, and until when on the wall clock', async () => {
    const { clock, pace } = paced({ unknownStreakMax: 1 })
    const since = clock.now()
    expect(pace.stop).toBeNull()
    pace.onUnknownRecipient()
    expect(pace.stop).toEqual({ why: 'unknown-users', until: since + 10 * SECOND })
    pace.throttled(null)
    expect(pace.stop).toEqual({ why: 'throttled', until: since + 5 * MINUTE })
    pace.refused(REFUSAL)
    expect(pace.stop).toEqual({ why: 'refused', until: since + 30 * MINUTE })
    await clock.advance(30 * MINUTE)
    expect(pace.stop).toBeNull()
  })

  test('whether the operator is paused, and how long to wait', async () => {
    const { clock, pace } = paced()
    expect([pace.isPaused, pace.waitMs, pace.readyInMs]).toEqual([false, 0, 0])
    pace.throttled(null)
    expect([pace.isPaused, pace.waitMs, pace.readyInMs]).toEqual([true, 5 * MINUTE, 5 * MINUTE])
    await clock.advance(5 * MINUTE)
    expect([pace.isPaused, pace.waitMs, pace.readyInMs]).toEqual([false, 0, 0])
  })

  test('that nothing needs to wait during a block, because its reply is known', () => {
    const { pace } = paced()
    pace.throttled(null)
    pace.refused(REFUSAL)
    expect([pace.waitMs, pace.readyInMs]).toEqual([0, 0])
    expect(startNow(pace)).toEqual({ refusal: REFUSAL })
  })

  test('while all connections are in use, to ask again after one interval, at least a second', () => {
    for (const [sessionsPerSecond, waitMs] of [
      [1 / 60, MINUTE],
      [10, SECOND],
    ] as const) {
      const { pace } = paced({ sessionsMax: 1, sessionsPerSecond })
      startNow(pace)
      expect(pace.waitMs).toBe(waitMs)
    }
  })

  test('the share of refused recipients: estimated high at first, and as it is from twenty on', () => {
    const { pace } = paced()
    expect([pace.refusedShare, pace.expectedRefusedShare]).toEqual([1, null])
    for (let n = 0; n < 19; n++) pace.onReply(n < 5)
    expect([pace.refusedShare, pace.expectedRefusedShare]).toEqual([0.3, null])
    pace.onReply(false)
    expect(pace.expectedRefusedShare).toBe(0.25)
  })

  test('that three domains that block in a row are a block by the operator', () => {
    const { pace } = paced()
    for (const domain of ['a.test', 'b.test', 'b.test']) pace.refusedByDomain(domain, REFUSAL)
    expect(pace.isRefused).toBe(false)
    pace.refusedByDomain('c.test', REFUSAL)
    expect(pace.isRefused).toBe(true)
  })
})

test('a block at RCPT by the third domain wakes those that wait for a permit', async () => {
  const { pace } = paced({ sessionsMax: 1, sessionsPerSecond: 1 / 60 })
  startNow(pace)
  const waiting = pace.start(0, new AbortController().signal)
  for (const domain of ['a.test', 'b.test', 'c.test']) pace.refusedByDomain(domain, REFUSAL)
  expect(await waiting).toEqual({ refusal: REFUSAL })
})

test('operators are sorted by blocks with the most skipped addresses, pauses, then activity', () => {
  const urgencies = [
    () => {},
    (pace: RateController) => pace.onReply(false),
    (pace: RateController) => {
      for (let n = 0; n < 150; n++) pace.onReply(false)
    },
    (pace: RateController) => startNow(pace),
    (pace: RateController) => pace.throttled(null),
    (pace: RateController) => pace.refused(REFUSAL),
    (pace: RateController) => {
      pace.refused(REFUSAL)
      pace.skipped(2)
    },
  ].map(happens => {
    const { pace } = paced()
    happens(pace)
    return pace.urgency
  })
  expect(urgencies.toSorted((a, b) => a - b)).toEqual(urgencies)
  expect(new Set(urgencies).size).toBe(urgencies.length)
})
