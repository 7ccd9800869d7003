import { describe, expect, test } from 'vitest'
import { estimatedTime, inWords } from '../../../src/http/verify/estimate.ts'
import { SCORES } from '../../../src/http/verify/score.ts'
import { OPINIONS, REASONS } from '../../../src/verdict/reason.ts'
import { createTestEngine } from '../../support/engine.ts'

describe('the estimated time', () => {
  const { engine } = createTestEngine({ engine: { sessionsPerSecond: 1 } })
  const estimate = (addresses: number, sandbox = false, checkSmtp = true) =>
    estimatedTime(engine, { addresses, sandbox, checkSmtp })

  // Half of a list at one operator: 20 addresses a second, and 5 seconds to begin.
  test.each([
    [0, '10 seconds'],
    [2, '10 seconds'],
    [400, '20 seconds'],
    [2_000, '1 minute'],
    [10_000, '5 minutes'],
    [50_000, '21 minutes'],
    [1_000_000, '7 hours'],
  ])('of %d addresses is %s', (addresses, words) => {
    expect(estimate(addresses)).toBe(words)
  })

  test('follows the pace of the settings', () => {
    const quick = createTestEngine({ engine: { sessionsPerSecond: 10 } }).engine
    expect(estimatedTime(quick, { addresses: 10_000, sandbox: false, checkSmtp: true })).toBe(
      '30 seconds',
    )
  })

  test('is short where no mail server is asked', () => {
    expect(estimate(10_000, false, false)).toBe('20 seconds')
  })

  test('of what is simulated is short', () => {
    expect(estimate(1, true)).toBe('1 second')
    expect(estimate(5_000, true)).toBe('1 second')
    expect(estimate(50_000, true)).toBe('10 seconds')
  })
})

test.each([
  [0, '1 second'],
  [1_000, '1 second'],
  [1_001, '10 seconds'],
  [49_999, '50 seconds'],
  [50_001, '1 minute'],
  [60_000, '1 minute'],
  [60_001, '2 minutes'],
  [7_199_000, '120 minutes'],
  [7_200_000, '2 hours'],
  [7_200_001, '2.5 hours'],
])('%d ms in words: %s', (ms, words) => {
  expect(inWords(ms)).toBe(words)
})

describe('the score', () => {
  test('of what takes no mail is 0, and of what is fine the highest', () => {
    for (const reason of REASONS) {
      const { valid, risk } = OPINIONS[reason]
      if (!valid && risk !== 'unknown') expect(SCORES[reason]).toBe(0)
      else expect(SCORES[reason]).toBeGreaterThan(0)
      expect(SCORES[reason]).toBeLessThanOrEqual(SCORES.accepted_email)
    }
  })

  test('goes down as the risk goes up', () => {
    const of = (risk: string) =>
      REASONS.filter(reason => OPINIONS[reason].risk === risk && OPINIONS[reason].valid).map(
        reason => SCORES[reason],
      )
    expect(Math.max(...of('high'))).toBeLessThan(Math.min(...of('medium')))
    expect(Math.max(...of('medium'))).toBeLessThan(Math.min(...of('low')))
  })
})
