import { expect, test } from 'vitest'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import type { AcquireResult } from '../../../src/engine/rate-control/permit-queue.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { REFUSAL, ROW } from '../../support/prober.ts'
import { fakeSharedRates } from '../../support/shared-rate-state.ts'

const never = new AbortController().signal
const KEY = { operator: 'mx.test', egress: 'a' }
/** Two processes with one shared rate state. */
function two(row: Partial<RateLimits> = {}) {
  const clock = fakeClock()
  const share = fakeSharedRates(clock)
  const whole = { ...ROW, sessionsMax: 1, ...row }
  const paces = [1, 2].map(() => new RateController(whole, clock, share.open(KEY, whole)))
  const [one, other] = paces as [RateController, RateController]
  return { clock, share, one, other }
}

/** The result of a start, once it resolves. */
function seen(start: AcquireResult | Promise<AcquireResult>) {
  const told: { start: AcquireResult | null; fault: unknown } = { start: null, fault: null }
  Promise.resolve(start).then(
    start => {
      told.start = start
    },
    fault => {
      told.fault = fault
    },
  )
  return told
}

const release = (start: AcquireResult | null) => {
  if (start === null || !('permit' in start)) throw new Error(`no permit: ${JSON.stringify(start)}`)
  start.permit.release()
}

test('a connection of one process prevents one of the other until it is released', async () => {
  const { clock, one, other } = two({ sessionsPerSecond: 1_000 })
  const first = await one.start(0, never)
  expect(other.status('mx.test').sessions).toBe(1)
  const second = seen(other.start(0, never))
  await clock.advance(SECOND)
  expect(second.start).toBeNull()
  release(first)
  await clock.advance(1)
  release(second.start)
  expect(clock.pending).toBe(0)
})

test('two processes share the rate and its burst', async () => {
  const { clock, one, other } = two({ sessionsMax: 2, sessionsPerSecond: 2 })
  release(await one.start(0, never))
  release(await other.start(0, never))
  const third = seen(one.start(0, never))
  await clock.advance(499)
  expect(third.start).toBeNull()
  await clock.advance(1)
  release(third.start)
})

test('throttling, pauses and blocks of one process apply to the other', async () => {
  const { one, other } = two({ sessionsMax: 4 })
  one.throttled(null)
  expect(await other.start(0, never)).toEqual({ waitMs: 5 * MINUTE, paused: true })
  expect(other.readyInMs).toBe(5 * MINUTE)
  expect(other.status('mx.test')).toMatchObject({ sessionsAllowed: 2, pause: { why: 'throttled' } })
  other.refused(REFUSAL)
  expect(await one.start(0, never)).toEqual({ refusal: REFUSAL })
  expect(one.isRefused).toBe(true)
})

test('unknown users of two processes form one streak', () => {
  const { one, other } = two({ unknownStreakMax: 3 })
  expect([one.onUnknownRecipient(), other.onUnknownRecipient(), one.unknownsLeft]).toEqual([
    false,
    false,
    1,
  ])
  expect(other.onUnknownRecipient()).toBe(true)
  expect(one.readyInMs).toBe(10 * SECOND)
})

test('a list waits and retries every second while the shared state is unreachable', async () => {
  const { clock, share, one } = two()
  share.fault = new Error('the database is away')
  const list = seen(one.start(0, never))
  await clock.advance(10 * SECOND)
  expect(list).toEqual({ start: null, fault: null })
  expect(share.started).toBe(11)
  share.fault = null
  await clock.advance(SECOND)
  release(list.start)
})

test('a list that is aborted meanwhile gets no permit', async () => {
  const { clock, share, one } = two()
  share.fault = new Error('the database is away')
  const giveUp = new AbortController()
  const list = seen(one.start(0, giveUp.signal))
  await clock.advance(SECOND / 2)
  giveUp.abort()
  await clock.advance(0)
  expect(list.start).toMatchObject({ paused: false })
  expect(list.start).not.toHaveProperty('permit')
  expect(clock.pending).toBe(0)
})

test('a single verification fails at once while the shared state is unreachable', async () => {
  const { clock, share, one } = two()
  share.fault = new Error('the database is away')
  const single = seen(one.start(0, never, true))
  await clock.advance(0)
  expect(single.fault).toBe(share.fault)
  expect(clock.pending).toBe(0)
})
