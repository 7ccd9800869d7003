import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE, SECOND } from '../../../src/base/clock.ts'
import {
  dueAt,
  fitted,
  found,
  isFull,
  isRefused,
  mayStart,
  newState,
  notUnknown,
  type PaceState,
  refused,
  refusedByDomain,
  started,
  strayed,
  succeeded,
  throttled,
  turnedAway,
  unknown,
} from '../../../src/probe/pace/rules.ts'
import type { Answer } from '../../../src/smtp/answer.ts'
import { ROW } from '../../support/prober.ts'

const row = { ...ROW, sessionsMax: 4, sessionsPerSecond: 2 }
const NOW = Date.UTC(2026, 5, 1)
const REFUSAL: Answer = {
  ...{ kind: 'refused-us', why: 'blocklist', stage: 'greeting' },
  reply: { code: 554, enhanced: null, text: 'listed \0' },
}

test('a state is what JSON makes of it', () => {
  const worn = refused(throttled(started(newState(row), row, NOW), NOW, null), NOW, REFUSAL)
  for (const state of [newState(row), worn]) {
    expect(JSON.parse(JSON.stringify(state))).toEqual(state)
  }
})

test('what changes nothing gives the very same state', () => {
  const state = newState(row)
  expect(found(state)).toBe(state)
  expect(notUnknown(state)).toBe(state)
  expect(turnedAway(state, 3)).toBe(state)
})

test('no change touches the state that it is made from', () => {
  const state = Object.freeze(strayed(newState(row), NOW))
  const before = JSON.stringify(state)
  unknown(state)
  found(state)
  succeeded(state, row)
  throttled(state, NOW, null)
  refused(state, NOW, REFUSAL)
  expect(JSON.stringify(state)).toBe(before)
})

test('one more connection may be opened where nothing speaks against it', () => {
  const state = newState(row)
  expect(mayStart(state, row, NOW, 3)).toBe(true)
  expect(mayStart(state, row, NOW, 4)).toBe(false)
  expect(mayStart(throttled(state, NOW, null), row, NOW, 0)).toBe(false)
  expect(mayStart(refused(state, NOW, REFUSAL), row, NOW, 0)).toBe(false)
  const burst = [1, 2, 3, 4].reduce(state => started(state, row, NOW), state)
  expect(mayStart(burst, row, NOW, 0)).toBe(false)
  expect(mayStart(burst, row, NOW + SECOND / 2, 0)).toBe(true)
})

describe('a state that others kept', () => {
  test('is no faster than these settings allow', () => {
    const fast = newState({ ...row, sessionsMax: 50, sessionsPerSecond: 100 })
    const state = fitted(fast, row, NOW)
    expect([isFull(state, 3), isFull(state, 4)]).toEqual([false, true])
    expect(state.ratePerMs).toBe(2 / SECOND)
  })

  test('and slower ones stay as they are, until they grow', () => {
    const slow = throttled(newState(row), NOW, null)
    expect(fitted(slow, row, NOW)).toEqual(slow)
    const more = { ...row, sessionsMax: 9 }
    expect(succeeded(fitted(slow, more, NOW), more).sessionsAllowed).toBe(2.5)
  })

  test('by a clock that was set back since holds up nobody longer than its rules do', () => {
    const once = started(throttled(newState(row), NOW, HOUR), row, NOW)
    const later = refused(strayed(once, NOW), NOW, REFUSAL)
    const state = fitted(later, row, NOW - 24 * HOUR)
    const now = NOW - 24 * HOUR
    expect(dueAt(state, row, now) - now).toBe(5 * MINUTE)
    expect(state.pausedUntil - now).toBe(4_000 * SECOND)
    expect(state.throttledUntil - now).toBe(4_000 * SECOND)
    expect(isRefused(state, now + 30 * MINUTE - 1)).toBe(true)
    expect(isRefused(state, now + 30 * MINUTE)).toBe(false)
  })

  test('by an ev that did not know all of it yet has the rest as it begins', () => {
    const { streak: _, streakPauseMs: __, ...older } = newState(row)
    expect(fitted(older as never, row, NOW)).toEqual(newState(row))
  })
})

describe('domains that refuse us', () => {
  const refuse = (state: PaceState, domain: string, now = NOW) =>
    refusedByDomain(state, now, { domain, answer: REFUSAL })
  const two = ['a.test', 'b.test'].reduce((state, domain) => refuse(state, domain), newState(row))

  test('are the operator once there are three of them', () => {
    expect(isRefused(two, NOW)).toBe(false)
    expect(isRefused(refuse(two, 'b.test'), NOW)).toBe(false)
    const three = refuse(two, 'c.test')
    expect(isRefused(three, NOW)).toBe(true)
    expect(three).toEqual({ ...refused(two, NOW, REFUSAL), refusingDomains: [] })
  })

  test('count anew when the operator answers for a recipient, be it an unknown one', () => {
    for (const note of [found, unknown])
      expect(isRefused(refuse(note(two), 'c.test'), NOW)).toBe(false)
    expect(isRefused(refuse(notUnknown(two), 'c.test'), NOW)).toBe(true)
  })

  test('count for half an hour', () => {
    expect(isRefused(refuse(two, 'c.test', NOW + 30 * MINUTE - 1), NOW + 30 * MINUTE)).toBe(true)
    expect(isRefused(refuse(two, 'c.test', NOW + 30 * MINUTE), NOW + 30 * MINUTE)).toBe(false)
  })
})
