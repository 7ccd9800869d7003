import { describe, expect, test } from 'vitest'
import { type AcquireResult, type ConnectionPermit, RateController } from '../../../src/engine/rate-control/controller.ts'
import { type RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { REFUSAL, ROW } from '../../support/prober.ts'

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
/** Opens and closes connections until the pace says wait; gives how many. */
function burst(pace: RateController): number {
  for (let count = 0; ; count++) {
    const start = pace.tryStart()
    if (!('permit' in start)) return count
    start.permit.release()
  }
}
/** Holds connections until the pace says wait; gives how many. */
function held(pace: RateController): number {
  const permits: ConnectionPermit[] = []
  for (;;) {
    const start = pace.tryStart()
    if (!('permit' in start)) break
    permits.push(start.permit)
  }
  for (const permit of permits) permit.release()
  return permits.length
}

describe('permits', () => {
  test('are as many as connections are allowed, each time', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    expect(held(pace)).toBe(4)
    await clock.advance(SECOND)
    expect(held(pace)).toBe(4)
  })

  test('given back make room for the next one', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    const permit = permitOf(pace.tryStart())
    await clock.advance(MINUTE)
    expect(pace.tryStart()).toMatchObject({ paused: false })
    permit.release()
    permitOf(pace.tryStart())
  })

  test('given back twice count once', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    const permit = permitOf(pace.tryStart())
    permit.release()
    permit.release()
    await clock.advance(MINUTE)
    permitOf(pace.tryStart())
    await clock.advance(MINUTE)
    expect(pace.tryStart()).not.toHaveProperty('permit')
  })

  test('given back wake whoever waits', async () => {
    const { pace, clock } = paced({ sessionsMax: 1, sessionsPerSecond: 1 / 60 })
    const permit = permitOf(pace.tryStart())
    await clock.advance(59 * SECOND)
    let got: AcquireResult | null = null
    void pace.start(0, never).then(start => {
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
  test('lets a burst of as many as may be open start at once, and then keeps its time', async () => {
    const { pace, clock } = paced()
    expect(burst(pace)).toBe(4)
    expect(pace.tryStart()).toEqual({ waitMs: 500, paused: false })
    expect(pace.readyInMs).toBe(500)
    await clock.advance(499)
    expect(burst(pace)).toBe(0)
    await clock.advance(1)
    expect(burst(pace)).toBe(1)
    await clock.advance(1_000)
    expect(burst(pace)).toBe(2)
  })

  test('saves no more than a burst, however long the rest was', async () => {
    const { pace, clock } = paced()
    burst(pace)
    await clock.advance(HOUR)
    expect(burst(pace)).toBe(4)
  })

  test('is waited for by start, whatever the patience', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const start = pace.start(0, never)
    await clock.advance(500)
    permitOf(await start)
  })

  test('is not waited for by one who gives up', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const limit = new AbortController()
    const start = pace.start(0, limit.signal)
    limit.abort()
    expect(waitOf(await start)).toBe(500)
    expect(clock.pending).toBe(0)
  })

  test('is not waited for longer than whoever asks may wait', async () => {
    const { pace, clock } = paced()
    burst(pace)
    expect(waitOf(await pace.start(0, never, false, 499))).toBe(500)
    const start = pace.start(0, never, false, 500)
    await clock.advance(500)
    expect(permitOf(await start)).toBeDefined()
  })
})

describe('a server that wants us slower', () => {
  test('is left for five minutes, then ten, then twenty, at most 4,000 seconds', async () => {
    const { pace, clock } = paced()
    for (const seconds of [300, 600, 1_200, 2_400, 4_000, 4_000]) {
      pace.throttled(null)
      expect(pace.tryStart()).toEqual({ waitMs: seconds * SECOND, paused: true })
      expect(pace.readyInMs).toBe(seconds * SECOND)
      await clock.advance(seconds * SECOND)
      expect(pace.tryStart()).not.toMatchObject({ paused: true })
    }
  })

  test('is left as long as it says, never shorter than we mean, never for ever', () => {
    const longer = paced().pace
    longer.throttled(20 * MINUTE)
    expect(waitOf(longer.tryStart())).toBe(20 * MINUTE)
    const shorter = paced().pace
    shorter.throttled(MINUTE)
    expect(waitOf(shorter.tryStart())).toBe(5 * MINUTE)
    const endless = paced().pace
    endless.throttled(24 * HOUR)
    expect(waitOf(endless.tryStart())).toBe(4_000 * SECOND)
  })

  test('that says so in several conversations at once is one trouble', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    for (let i = 0; i < 3; i++) pace.throttled(null)
    expect(waitOf(pace.tryStart())).toBe(5 * MINUTE)
    await clock.advance(5 * MINUTE)
    expect(held(pace)).toBe(2)
    await clock.advance(MINUTE)
    pace.throttled(null)
    expect(waitOf(pace.tryStart())).toBe(10 * MINUTE)
  })

  test('may still lengthen the pause', () => {
    const { pace } = paced()
    pace.throttled(null)
    pace.throttled(15 * MINUTE)
    expect(waitOf(pace.tryStart())).toBe(15 * MINUTE)
    pace.throttled(6 * MINUTE)
    expect(waitOf(pace.tryStart())).toBe(15 * MINUTE)
  })

  test('gets half as many connections, half as often, each time', async () => {
    const { pace, clock } = paced({ sessionsMax: 8, sessionsPerSecond: 8 })
    for (const sessions of [4, 2, 1, 1]) {
      pace.throttled(null)
      await clock.advance(waitOf(pace.tryStart()))
      expect(held(pace)).toBe(sessions)
      await clock.advance(HOUR)
    }
    burst(pace)
    // 8 a second, halved four times.
    expect(waitOf(pace.tryStart())).toBe(2 * SECOND)
  })

  test('is never asked less than once in five minutes', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    for (let i = 0; i < 20; i++) {
      pace.throttled(null)
      await clock.advance(2 * HOUR)
    }
    permitOf(pace.tryStart()).release()
    expect(waitOf(pace.tryStart())).toBe(5 * MINUTE)
  })

  test('is trusted again by and by: one connection more for each clean cohort, a quarter faster each time', async () => {
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

  test('is asked no faster than at first, however well it goes', async () => {
    const { pace, clock } = paced({ sessionsMax: 1 })
    pace.throttled(null)
    await clock.advance(5 * MINUTE)
    const waits: number[] = []
    for (let i = 0; i < 5; i++) {
      await clock.advance(MINUTE)
      permitOf(pace.tryStart()).release()
      waits.push(Math.round(waitOf(pace.tryStart())))
      pace.succeeded()
    }
    expect(waits).toEqual([1_000, 800, 640, 512, 500])
  })

  test('that was content in between gets the first pause again', async () => {
    const { pace, clock } = paced()
    pace.throttled(null)
    await clock.advance(5 * MINUTE)
    pace.succeeded()
    pace.throttled(null)
    expect(waitOf(pace.tryStart())).toBe(5 * MINUTE)
  })

  test('is waited for by those with patience, and handed back by the others', async () => {
    const { pace, clock } = paced()
    pace.throttled(null)
    expect(await pace.start(5 * MINUTE - 1, never)).toEqual({ waitMs: 5 * MINUTE, paused: true })
    const start = pace.start(5 * MINUTE, never)
    await clock.advance(5 * MINUTE)
    permitOf(await start)
  })
})

describe('a refusal of us', () => {
  test('is told to all for half an hour', async () => {
    const { pace, clock } = paced()
    expect(pace.isRefused).toBe(false)
    pace.refused(REFUSAL)
    expect(pace.isRefused).toBe(true)
    expect(pace.tryStart()).toEqual({ refusal: REFUSAL })
    // There is nothing to wait for: the answer is there.
    expect(pace.readyInMs).toBe(0)
    await clock.advance(30 * MINUTE - 1)
    expect(await pace.start(0, never)).toEqual({ refusal: REFUSAL })
    await clock.advance(1)
    permitOf(pace.tryStart())
  })

  test('reaches those who wait for a permit', async () => {
    const { pace, clock } = paced()
    burst(pace)
    const start = pace.start(0, never)
    pace.refused(REFUSAL)
    expect(await start).toEqual({ refusal: REFUSAL })
    expect(clock.pending).toBe(0)
  })

  test('is forgotten when a conversation ends well', () => {
    const { pace } = paced()
    pace.refused(REFUSAL)
    pace.succeeded()
    permitOf(pace.tryStart())
  })

  test('slows us down, once for all who were refused at the same time', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    pace.refused(REFUSAL)
    pace.refused({ ...REFUSAL, why: 'policy' })
    expect(pace.tryStart()).toMatchObject({ refusal: { why: 'policy' } })
    await clock.advance(30 * MINUTE)
    expect(held(pace)).toBe(2)
    pace.refused(REFUSAL)
    await clock.advance(30 * MINUTE)
    expect(held(pace)).toBe(1)
  })
})

describe('too many unknown users in a row', () => {
  test('bring ten seconds of pause, doubled each time, at most two minutes', async () => {
    const { pace, clock } = paced()
    for (const seconds of [10, 20, 40, 80, 120, 120]) {
      pace.streakExceeded()
      expect(pace.tryStart()).toEqual({ waitMs: seconds * SECOND, paused: true })
      await clock.advance(seconds * SECOND)
    }
  })

  test('are counted over all connections, and anew after each pause', () => {
    const { pace } = paced({ unknownStreakMax: 3 })
    expect([pace.unknown(), pace.unknown(), pace.unknownsLeft]).toEqual([false, false, 1])
    expect(pace.unknown()).toBe(true)
    expect(waitOf(pace.tryStart())).toBe(10 * SECOND)
    expect([pace.unknown(), pace.unknown(), pace.unknown()]).toEqual([false, false, true])
  })

  test('are no row when something else was said between', () => {
    const { pace } = paced({ unknownStreakMax: 2 })
    pace.unknown()
    pace.notUnknown()
    expect(pace.unknown()).toBe(false)
    pace.found()
    expect(pace.unknown()).toBe(false)
  })

  test('are forgiven when a real one was found', async () => {
    const { pace, clock } = paced()
    pace.streakExceeded()
    await clock.advance(10 * SECOND)
    pace.found()
    pace.streakExceeded()
    expect(waitOf(pace.tryStart())).toBe(10 * SECOND)
  })

  test('never shorten a pause that the server asked for', () => {
    const { pace } = paced()
    pace.throttled(null)
    pace.streakExceeded()
    expect(waitOf(pace.tryStart())).toBe(5 * MINUTE)
  })

  test('neither halve the rate nor count as trouble that was told', async () => {
    const { pace, clock } = paced({ sessionsPerSecond: 1_000 })
    pace.streakExceeded()
    pace.throttled(null)
    expect(waitOf(pace.tryStart())).toBe(5 * MINUTE)
    await clock.advance(5 * MINUTE)
    expect(held(pace)).toBe(2)
  })
})
