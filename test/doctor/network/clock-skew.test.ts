import { describe, expect, test } from 'vitest'
import { clockFinding } from '../../../src/doctor/network/clock-skew.ts'
import { DAY, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { greeted, visited } from './visits.ts'

const NOON = Date.UTC(2027, 1, 2, 12)
const GREETING = 'mx.test ESMTP Exim 4.98 Tue, 02 Feb 2027 13:00:00 +0100'
const find = (offsetMs: number, ...greetings: string[]) =>
  clockFinding(
    greetings.map(text => visited('mx.test', greeted('mx.test', text, NOON + offsetMs))),
    NOON + offsetMs,
  )

describe('the clock', () => {
  test.each([
    [0, 'ok', 'agrees'],
    [4 * MINUTE, 'ok', 'agrees'],
    [-4 * MINUTE, 'ok', 'agrees'],
    [6 * MINUTE, 'warn', '6 minutes fast'],
    [-6 * MINUTE, 'warn', '6 minutes slow'],
    [DAY + SECOND, 'fail', '24 hours fast'],
    [-3 * DAY, 'fail', '3 days slow'],
  ])('off by %i ms: %s', (offsetMs, state, text) => {
    const finding = find(offsetMs, GREETING)
    expect(finding).toMatchObject({ state, says: expect.stringContaining(text) })
    expect(finding.todo === null).toBe(state === 'ok')
  })

  test('is compared with most servers, as one may be wrong', () => {
    const wrong = 'mx.test at Fri, 1 Jan 2021 00:00:00 +0000'
    expect(find(0, GREETING, wrong, GREETING)).toMatchObject({ state: 'ok' })
  })

  test('passes without a reference, unless it is before the build', () => {
    expect(find(0, 'mx.test ESMTP 99 Foo 2027 99:99:99 +0000')).toMatchObject({
      state: 'ok',
      says: 'the clock shows 2027-02-02 12:00 UTC; no mail server sent its time',
    })
    expect(clockFinding([], Date.UTC(1970, 0, 1))).toMatchObject({ state: 'fail' })
  })
})
