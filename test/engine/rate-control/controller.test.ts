import { describe, expect, test } from 'vitest'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import type {
  AcquireResult,
  ConnectionPermit,
} from '../../../src/engine/rate-control/permit-queue.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { REFUSAL, ROW } from '../../support/prober.ts'
import { startNow } from '../../support/start-now.ts'

const never = new AbortController().signal
function paced(row: Partial<RateLimits> = {}) {
  const clock = fakeClock()
  const pace = new RateController({ ...ROW, sessionsMax: 4, sessionsPerSecond: 2, ...row }, clock)
  return { clock, pace }
}

const permitOf = (start: AcquireResult): ConnectionPermit => {
  if (!('permit' in start)) throw new Error(`no permit: ${JSON.stringify(start)}`)
  return start.permit
}
const waitOf = (start: AcquireResult) => ('waitMs' in start ? start.waitMs : 0)
/** Opens and closes connections until the controller returns a wait; returns their number. */
function burst(pace: RateController): number {
  for (let count = 0; ; count++) {
    const start = startNow(pace)
    if (!('permit' in start)) return count
    start.permit.release()
  }
}
/** Holds connections until the controller returns a wait; returns their number. */
function held(pace: RateController): number {
  const permits: ConnectionPermit[] = []
  for (;;) {
    const start = startNow(pace)
    if (!('permit' in start)) break
    permits.push(start.permit)
  }
  for (const permit of permits) permit.release()
  return permits.length
}

describe('permits', () => {
  test('are limited to the allowed connections', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    expect(held(pace)).toBe(4)
    await clock.advance(SECOND)
    expect(held(pace)).toBe(4)
  })

  test('that are released make room for the next one', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    const permit = permitOf(startNow(pace))
    await clock.advance(MINUTE)
    expect(startNow(pace)).toMatchObject({ paused: false })
    permit.release()
    permitOf(startNow(pace))
  })

  test('that are released twice count once', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    const permit = permitOf(startNow(pace))
    permit.release()
    permit.release()
    await clock.advance(MINUTE)
    permitOf(startNow(pace))
    await clock.advance(MINUTE)
    expect(startNow(pace)).not.toHaveProperty('permit')
  })

  test('that are released wake the waiters', async () => {
    const { pace, clock } = paced({ sessionsMax: 1, sessionsPerSecond: 1 / 60 })
    const permit = permitOf(startNow(pace))
    await clock.advance(59 * SECOND)
    let got: AcquireResult | null = null
    void Promise.resolve(pace.start(0, never)).then(start => {
      got = start
    })
    await clock.advance(2 * SECOND)
    expect(got).toBeNull()
    permit.release()
    await clock.advance(0)
    permitOf(got ?? { waitMs: 0, paused: false })
    expect(clock.pending).toBe(0)
  })
})

describe('the rate', () => {
  test('allows a burst of the allowed connections, then one per interval', async () => {
    const { pace, clock } = paced()
    expect(burst(pace)).toBe(4)
    expect(startNow(pace)).toEqual({ waitMs: 500, paused: false })
    expect(pace.readyInMs).toBe(500)
    await clock.advance(499)
    expect(burst(pace)).toBe(0)
    await clock.advance(1)
    expect(burst(pace)).toBe(1)
    await clock.advance(1_000)
    expect(burst(pace)).toBe(2)
  })

  test('saves at most one burst, however long the idle time', async () => {
    const { pace, clock } = paced()
    burst(pace)
    await clock.advance(HOUR)
    expect(burst(pace)).toBe(4)
  })

  test('is awaited by start, whatever the timeout', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const start = pace.start(0, never)
    await clock.advance(500)
    permitOf(await start)
  })

  test('is not awaited after an abort', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const limit = new AbortController()
    const start = pace.start(0, limit.signal)
    limit.abort()
    expect(waitOf(await start)).toBe(500)
    expect(clock.pending).toBe(0)
  })

  test('is not awaited longer than the maximum wait', async () => {
    const { pace, clock } = paced()
    burst(pace)
    expect(waitOf(await pace.start(0, never, false, 499))).toBe(500)
    const start = pace.start(0, never, false, 500)
    await clock.advance(500)
    expect(permitOf(await start)).toBeDefined()
  })
})

describe('a server that throttles', () => {
  test('is paused for five minutes, then ten, then twenty, at most 4,000 seconds', async () => {
    const { pace, clock } = paced()
    for (const seconds of [300, 600, 1_200, 2_400, 4_000, 4_000]) {
      pace.throttled(null)
      expect(startNow(pace)).toEqual({ waitMs: seconds * SECOND, paused: true })
      expect(pace.readyInMs).toBe(seconds * SECOND)
      await clock.advance(seconds * SECOND)
      expect(startNow(pace)).not.toMatchObject({ paused: true })
    }
  })

  test('is paused as long as it requests, within the minimum and the maximum', () => {
    const longer = paced().pace
    longer.throttled(20 * MINUTE)
    expect(waitOf(startNow(longer))).toBe(20 * MINUTE)
    const shorter = paced().pace
    shorter.throttled(MINUTE)
    expect(waitOf(startNow(shorter))).toBe(5 * MINUTE)
    const endless = paced().pace
    endless.throttled(24 * HOUR)
    expect(waitOf(startNow(endless))).toBe(4_000 * SECOND)
  })

  test('in several concurrent sessions counts once', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    for (let i = 0; i < 3; i++) pace.throttled(null)
    expect(waitOf(startNow(pace))).toBe(5 * MINUTE)
    await clock.advance(5 * MINUTE)
    expect(held(pace)).toBe(2)
    await clock.advance(MINUTE)
    pace.throttled(null)
    expect(waitOf(startNow(pace))).toBe(10 * MINUTE)
  })

  test('may extend the pause', () => {
    const { pace } = paced()
    pace.throttled(null)
    pace.throttled(15 * MINUTE)
    expect(waitOf(startNow(pace))).toBe(15 * MINUTE)
    pace.throttled(6 * MINUTE)
    expect(waitOf(startNow(pace))).toBe(15 * MINUTE)
  })

  test('halves the connections and the rate each time', async () => {
    const { pace, clock } = paced({ sessionsMax: 8, sessionsPerSecond: 8 })
    for (const sessions of [4, 2, 1, 1]) {
      pace.throttled(null)
      await clock.advance(waitOf(startNow(pace)))
      expect(held(pace)).toBe(sessions)
      await clock.advance(HOUR)
    }
    burst(pace)
    // 8 per second, halved four times.
    expect(waitOf(startNow(pace))).toBe(2 * SECOND)
  })

  test('keeps a rate of at least one connection in five minutes', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    for (let i = 0; i < 20; i++) {
      pace.throttled(null)
      await clock.advance(2 * HOUR)
    }
    permitOf(startNow(pace)).release()
    expect(waitOf(startNow(pace))).toBe(5 * MINUTE)
  })

  test('recovers by one connection per successful cohort and by a quarter of the rate per success', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    pace.throttled(null)
    pace.throttled(null)
    await clock.advance(10 * MINUTE)
    pace.throttled(null)
    await clock.advance(10 * MINUTE)
    expect(held(pace)).toBe(1)
    const sessions: number[] = []
    for (let i = 0; i < 12; i++) {
      pace.succeeded()
      await clock.advance(MINUTE)
      sessions.push(held(pace))
    }
    expect(sessions[0]).toBe(2)
    expect(sessions.indexOf(3)).toBeGreaterThanOrEqual(2)
    expect(sessions.at(-1)).toBe(4)
    expect(sessions).toEqual([...sessions].sort())
  })

  test('recovers at most to the initial limits', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    pace.throttled(null)
    await clock.advance(5 * MINUTE)
    const waits: number[] = []
    for (let i = 0; i < 5; i++) {
      await clock.advance(MINUTE)
      permitOf(startNow(pace)).release()
      waits.push(Math.round(waitOf(startNow(pace))))
      pace.succeeded()
    }
    expect(waits).toEqual([1_000, 800, 640, 512, 500])
  })

  test('gets the first pause again after a success', async () => {
    const { pace, clock } = paced()
    pace.throttled(null)
    await clock.advance(5 * MINUTE)
    pace.succeeded()
    pace.throttled(null)
    expect(waitOf(startNow(pace))).toBe(5 * MINUTE)
  })

  test('is awaited within the timeout and otherwise returned', async () => {
    const { pace, clock } = paced()
    pace.throttled(null)
    expect(await pace.start(5 * MINUTE - 1, never)).toEqual({ waitMs: 5 * MINUTE, paused: true })
    const start = pace.start(5 * MINUTE, never)
    await clock.advance(5 * MINUTE)
    permitOf(await start)
  })
})

describe('a block', () => {
  test('is returned to all for half an hour', async () => {
    const { pace, clock } = paced()
    expect(pace.isRefused).toBe(false)
    pace.refused(REFUSAL)
    expect(pace.isRefused).toBe(true)
    expect(startNow(pace)).toEqual({ refusal: REFUSAL })
    // The block is returned without a wait.
    expect(pace.readyInMs).toBe(0)
    await clock.advance(30 * MINUTE - 1)
    expect(await pace.start(0, never)).toEqual({ refusal: REFUSAL })
    await clock.advance(1)
    permitOf(startNow(pace))
  })

  test('wakes those that wait for a permit', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const start = pace.start(0, never)
    pace.refused(REFUSAL)
    expect(await start).toEqual({ refusal: REFUSAL })
    expect(clock.pending).toBe(0)
  })

  test('is cleared by a successful session', () => {
    const { pace } = paced()
    pace.refused(REFUSAL)
    pace.succeeded()
    permitOf(startNow(pace))
  })

  test('halves the rate once for concurrent blocks', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    pace.refused(REFUSAL)
    pace.refused({ ...REFUSAL, why: 'policy' })
    expect(startNow(pace)).toMatchObject({ refusal: { why: 'policy' } })
    await clock.advance(30 * MINUTE)
    expect(held(pace)).toBe(2)
    pace.refused(REFUSAL)
    await clock.advance(30 * MINUTE)
    expect(held(pace)).toBe(1)
  })
})

describe('a streak of unknown users', () => {
  test('causes a pause of ten seconds, doubled each time, at most two minutes', async () => {
    const { pace, clock } = paced()
    for (const seconds of [10, 20, 40, 80, 120, 120]) {
      pace.onUnknownStreak()
      expect(startNow(pace)).toEqual({ waitMs: seconds * SECOND, paused: true })
      await clock.advance(seconds * SECOND)
    }
  })

  test('is counted over all connections, and from zero after each pause', () => {
    const { pace } = paced({ unknownStreakMax: 3 })
    expect([pace.onUnknownRecipient(), pace.onUnknownRecipient(), pace.unknownsLeft]).toEqual([
      false,
      false,
      1,
    ])
    expect(pace.onUnknownRecipient()).toBe(true)
    expect(waitOf(startNow(pace))).toBe(10 * SECOND)
    expect([
      pace.onUnknownRecipient(),
      pace.onUnknownRecipient(),
      pace.onUnknownRecipient(),
    ]).toEqual([false, false, true])
  })

  test('is interrupted by any other reply', () => {
    const { pace } = paced({ unknownStreakMax: 2 })
    pace.onUnknownRecipient()
    pace.onOtherReply()
    expect(pace.onUnknownRecipient()).toBe(false)
    pace.onKnownRecipient()
    expect(pace.onUnknownRecipient()).toBe(false)
  })

  test('is reset by a known recipient', async () => {
    const { pace, clock } = paced()
    pace.onUnknownStreak()
    await clock.advance(10 * SECOND)
    pace.onKnownRecipient()
    pace.onUnknownStreak()
    expect(waitOf(startNow(pace))).toBe(10 * SECOND)
  })

  test('never shortens a pause that the server requested', () => {
    const { pace } = paced()
    pace.throttled(null)
    pace.onUnknownStreak()
    expect(waitOf(startNow(pace))).toBe(5 * MINUTE)
  })

  test('neither halves the rate nor counts as throttling', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    pace.onUnknownStreak()
    pace.throttled(null)
    expect(waitOf(startNow(pace))).toBe(5 * MINUTE)
    await clock.advance(5 * MINUTE)
    expect(held(pace)).toBe(2)
  })
})
