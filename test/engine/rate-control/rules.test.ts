import { describe, expect, test } from 'vitest'
import {
  currentBlock,
  currentStop,
  dueAt,
  isBlocked,
  isFull,
  mayStart,
  newState,
  onBlocked,
  onDomainBlocked,
  onKnownRecipient,
  onOtherReply,
  onSkipped,
  onStarted,
  onSucceeded,
  onThrottled,
  onUnknownRecipient,
  onUnknownStreak,
  type RateState,
  rescale,
  unservedForMs,
} from '../../../src/engine/rate-control/rules.ts'
import type { RecipientOutcome } from '../../../src/engine/smtp/classify-reply.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { ROW } from '../../support/prober.ts'

const row = { ...ROW, sessionsMax: 4, sessionsPerSecond: 2 }
const NOW = Date.UTC(2026, 5, 1)
const REFUSAL: RecipientOutcome = {
  kind: 'blocked',
  why: 'blocklist',
  stage: 'greeting',
  reply: { code: 554, enhanced: null, text: 'listed \0' },
}

test('a state survives JSON', () => {
  const worn = onBlocked(onThrottled(onStarted(newState(row), row, NOW), NOW, null), NOW, REFUSAL)
  for (const state of [newState(row), worn]) {
    expect(JSON.parse(JSON.stringify(state))).toEqual(state)
  }
})

test('a change without effect returns the same state object', () => {
  const state = newState(row)
  expect(onKnownRecipient(state)).toBe(state)
  expect(onOtherReply(state)).toBe(state)
  expect(onSkipped(state, 3)).toBe(state)
})

test('no change mutates its input state', () => {
  const state = Object.freeze(onUnknownStreak(newState(row), NOW))
  const before = JSON.stringify(state)
  onUnknownRecipient(state)
  onKnownRecipient(state)
  onSucceeded(state, row, NOW)
  onThrottled(state, NOW, null)
  onBlocked(state, NOW, REFUSAL)
  expect(JSON.stringify(state)).toBe(before)
})

test('one more connection may be opened if no limit forbids it', () => {
  const state = newState(row)
  expect(mayStart(state, row, NOW, 3)).toBe(true)
  expect(mayStart(state, row, NOW, 4)).toBe(false)
  const throttled = onThrottled(state, NOW, null)
  expect(mayStart(throttled, row, NOW + 5 * MINUTE - 1, 0)).toBe(false)
  expect(mayStart(throttled, row, NOW + 5 * MINUTE, 0)).toBe(true)
  expect(mayStart(onBlocked(state, NOW, REFUSAL), row, NOW, 0)).toBe(false)
  const burst = [1, 2, 3, 4].reduce(state => onStarted(state, row, NOW), state)
  expect(mayStart(burst, row, NOW, 0)).toBe(false)
  expect(mayStart(burst, row, NOW + SECOND / 2, 0)).toBe(true)
})

describe('what stops new connections', () => {
  const state = newState(row)
  const paused = onUnknownStreak(state, NOW)
  const throttled = onThrottled(paused, NOW, null)

  test('is nothing at first', () => {
    expect(currentStop(state, NOW)).toBeNull()
  })

  test('is a pause after unknown users, until its end', () => {
    const stop = { why: 'unknown-users', until: NOW + 10 * SECOND }
    expect(currentStop(paused, NOW)).toEqual(stop)
    expect(currentStop(paused, NOW + 10 * SECOND - 1)).toEqual(stop)
    expect(currentStop(paused, NOW + 10 * SECOND)).toBeNull()
  })

  test('is throttling before a pause, while it lasts', () => {
    const stop = { why: 'throttled', until: NOW + 5 * MINUTE }
    expect(currentStop(throttled, NOW)).toEqual(stop)
    // A later pause outlasts the throttling.
    const later = onUnknownStreak(throttled, NOW + 5 * MINUTE - 1)
    expect(currentStop(later, NOW + 5 * MINUTE)?.why).toBe('unknown-users')
  })

  test('is a block before both, until its end', () => {
    const blocked = onBlocked(onThrottled(state, NOW, HOUR), NOW, REFUSAL)
    expect(currentStop(blocked, NOW)).toEqual({ why: 'refused', until: NOW + 30 * MINUTE })
    expect(currentStop(blocked, NOW + 30 * MINUTE)?.why).toBe('throttled')
  })
})

test('a pause that begins when the one before ends has its own start', () => {
  const again = onThrottled(onThrottled(newState(row), NOW, null), NOW + 5 * MINUTE, null)
  expect(again.pausedAt).toBe(NOW + 5 * MINUTE)
})

describe('the number of connections', () => {
  const succeeded = (state: RateState, times: number, now: number) =>
    Array.from({ length: times }).reduce<RateState>(one => onSucceeded(one, row, now), state)
  const ends = NOW + 5 * MINUTE + HOUR

  test('halves when the operator asks to slow down, and recovers', () => {
    const throttled = onThrottled(newState(row), NOW, null)
    expect([isFull(throttled, 1), isFull(throttled, 2)]).toEqual([false, true])
    expect(succeeded(throttled, 100, NOW).sessionsAllowed).toBe(4)
  })

  test('stays at that of the open ones for an hour after a further one was refused', () => {
    const throttled = onThrottled(newState(row), NOW, null, 3)
    const grown = succeeded(throttled, 100, ends - 1)
    expect([isFull(grown, 2), isFull(grown, 3)]).toEqual([false, true])
    const later = succeeded(grown, 4, ends)
    expect([isFull(later, 3), isFull(later, 4)]).toEqual([false, true])
  })

  test('is no higher than that of the open ones at once', () => {
    const throttled = onThrottled(newState(row), NOW, null, 1)
    expect([isFull(throttled, 0), isFull(throttled, 1)]).toEqual([false, true])
  })

  test('stays at the least of several refusals, which halve it once', () => {
    const throttled = onThrottled(newState({ ...row, sessionsMax: 8 }), NOW, null, 7)
    const again = onThrottled(throttled, NOW + MINUTE, null, 6)
    expect(again.sessionsAllowed).toBe(3)
    expect(onThrottled(again, NOW + MINUTE, null, 7).sessionsCeiling).toBe(6)
    const fewer = onThrottled(again, NOW + MINUTE, null, 2)
    expect(succeeded(fewer, 100, ends - 1).sessionsAllowed).toBe(2)
    expect(succeeded(fewer, 100, ends).sessionsAllowed).toBe(4)
  })
})

describe('an operator that serves nobody', () => {
  const answer = { ...REFUSAL, kind: 'deferred', why: 'rate', retryAfterMs: null } as const
  const throttle = (state: RateState, now: number) => onThrottled(state, now, null, 0, answer)
  /** Throttled every 50 minutes, from NOW. */
  const throttledFor = (ms: number) => {
    let state = throttle(newState(row), NOW)
    for (let now = NOW + 50 * MINUTE; now <= NOW + ms; now += 50 * MINUTE)
      state = throttle(state, now)
    return state
  }

  test('counts as blocking during a pause once four hours have passed', () => {
    const before = throttledFor(200 * MINUTE)
    expect(unservedForMs(before, NOW + 200 * MINUTE)).toBe(200 * MINUTE)
    expect(isBlocked(before, NOW + 200 * MINUTE)).toBe(false)
    const after = throttledFor(250 * MINUTE)
    expect(currentBlock(after, NOW + 250 * MINUTE)).toMatchObject({ answer, skipped: 0 })
    expect(isBlocked(after, after.throttledUntil)).toBe(false)
  })

  test('counts as one block until a session succeeds', () => {
    const given = onSkipped(throttledFor(250 * MINUTE), 7)
    const again = throttle(given, NOW + 300 * MINUTE)
    expect(again.refusal).toMatchObject({ at: NOW + 250 * MINUTE, skipped: 7 })
    expect(isBlocked(again, NOW + 300 * MINUTE)).toBe(true)
  })

  test('counts the time of blocks too', () => {
    const blocked = onBlocked(throttledFor(200 * MINUTE), NOW + 250 * MINUTE, REFUSAL)
    expect(unservedForMs(blocked, NOW + 260 * MINUTE)).toBe(260 * MINUTE)
  })

  test.each([
    ['serves a recipient', onKnownRecipient],
    ['names an unknown one', onUnknownRecipient],
    ['ends a session', (state: RateState) => onSucceeded(state, row, NOW)],
  ])('starts anew once it %s', (_, serve) => {
    const state = throttle(serve(throttledFor(200 * MINUTE)), NOW + 250 * MINUTE)
    expect(isBlocked(state, NOW + 250 * MINUTE)).toBe(false)
    expect(unservedForMs(state, NOW + 260 * MINUTE)).toBe(10 * MINUTE)
  })

  test('starts anew after an hour without a connection', () => {
    const state = throttledFor(200 * MINUTE)
    const at = state.throttledUntil + HOUR
    expect(unservedForMs(state, at)).toBe(at - NOW)
    expect(unservedForMs(state, at + 1)).toBe(0)
    expect(isBlocked(throttle(state, at + 1), at + 1)).toBe(false)
  })
})

describe('a stored state', () => {
  test('is limited by the current settings', () => {
    const fast = newState({ ...row, sessionsMax: 50, sessionsPerSecond: 100 })
    const state = rescale(fast, row, NOW)
    expect([isFull(state, 3), isFull(state, 4)]).toEqual([false, true])
    expect(state.ratePerMs).toBe(2 / SECOND)
  })

  test('keeps lower limits until they grow', () => {
    const slow = onThrottled(newState(row), NOW, null)
    expect(rescale(slow, row, NOW)).toEqual(slow)
    const more = { ...row, sessionsMax: 9 }
    expect(onSucceeded(rescale(slow, more, NOW), more, NOW).sessionsAllowed).toBe(2.5)
  })

  test('from a clock that was set back delays no longer than the rules allow', () => {
    const once = onStarted(onThrottled(newState(row), NOW, HOUR, 2), row, NOW)
    const later = onBlocked(onUnknownStreak(once, NOW), NOW, REFUSAL)
    const state = rescale(later, row, NOW - 24 * HOUR)
    const now = NOW - 24 * HOUR
    expect(dueAt(state, row, now) - now).toBe(5 * MINUTE)
    const slow = { ...row, sessionsPerSecond: 0.001 }
    expect(dueAt(rescale(later, slow, now), slow, now) - now).toBe(1_000 * SECOND)
    expect(state.pausedUntil - now).toBe(4_000 * SECOND)
    expect(state.throttledUntil - now).toBe(4_000 * SECOND)
    expect(state.ceilingUntil - now).toBe(4_000 * SECOND + HOUR)
    expect(isBlocked(state, now + 30 * MINUTE - 1)).toBe(true)
    expect(isBlocked(state, now + 30 * MINUTE)).toBe(false)
  })

  test('from an older version gets initial values for missing fields', () => {
    const { streak: _, streakPauseMs: __, ...older } = newState(row)
    expect(rescale(older as never, row, NOW)).toEqual(newState(row))
  })
})

describe('blocking domains', () => {
  const refuse = (state: RateState, domain: string, now = NOW) =>
    onDomainBlocked(state, now, { domain, answer: REFUSAL })
  const two = ['a.test', 'b.test'].reduce((state, domain) => refuse(state, domain), newState(row))

  test('block the operator once there are three', () => {
    expect(isBlocked(two, NOW)).toBe(false)
    expect(isBlocked(refuse(two, 'b.test'), NOW)).toBe(false)
    const three = refuse(two, 'c.test')
    expect(isBlocked(three, NOW)).toBe(true)
    expect(three).toEqual({ ...onBlocked(two, NOW, REFUSAL), refusingDomains: [] })
  })

  test('are counted from zero after the operator answers for a recipient, even an unknown one', () => {
    for (const note of [onKnownRecipient, onUnknownRecipient])
      expect(isBlocked(refuse(note(two), 'c.test'), NOW)).toBe(false)
    expect(isBlocked(refuse(onOtherReply(two), 'c.test'), NOW)).toBe(true)
  })

  test('count for half an hour', () => {
    expect(isBlocked(refuse(two, 'c.test', NOW + 30 * MINUTE - 1), NOW + 30 * MINUTE)).toBe(true)
    expect(isBlocked(refuse(two, 'c.test', NOW + 30 * MINUTE), NOW + 30 * MINUTE)).toBe(false)
    // After a clock was set back, they seem to be later.
    expect(isBlocked(refuse(two, 'c.test', NOW - 1), NOW)).toBe(false)
  })
})
