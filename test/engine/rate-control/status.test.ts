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
