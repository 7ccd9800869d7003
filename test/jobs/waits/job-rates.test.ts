import { describe, expect, test } from 'vitest'
import { createJobRates } from '../../../src/jobs/waits/job-rates.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

describe('the rate of a job', () => {
  test('is measured over the last 30 seconds', () => {
    const { at, measure, predict } = testRates()
    expect(measure(0)).toBeNull()
    at(0.5)
    expect(measure(10)).toBeNull()
    at(1)
    expect(measure(10)).toBe(10)
    at(4)
    expect([measure(100), predict(100)]).toEqual([25, 25])
    at(30)
    expect(measure(120)).toBe(4)
    // The rows of the first four seconds no longer count.
    at(34)
    expect(measure(150)).toBe(50 / 30)
    at(64)
    expect(measure(150)).toBe(0)
  })

  test('is that since the previous sample for a client that polls rarely', () => {
    const { at, measure, predict } = testRates()
    measure(0)
    at(300)
    expect(measure(600)).toBe(2)
    expect(predict(600)).toBeNull()
    // The samples have expired.
    at(1_000)
    expect(measure(700)).toBeNull()
  })

  test('is measured again for a job that is resumed after its end', () => {
    const { at, measure, finish } = testRates()
    measure(0)
    at(2)
    expect(finish()).toBeNull()
    at(100)
    expect(measure(10)).toBeNull()
    at(101)
    expect(measure(30)).toBe(20)
  })

  test('is separate for each job, and not negative after a restart', () => {
    const { at, measure } = testRates()
    measure(100)
    at(2)
    expect(measure(900, 'job_b')).toBeNull()
    expect(measure(50)).toBe(0)
  })
})

function testRates() {
  let now = 0
  const rates = createJobRates({ ...fakeClock(), monotonicNow: () => now })
  return {
    at(seconds: number) {
      now = seconds * SECOND
    },
    measure: (done: number, id = 'job_a') => rates.measure({ id, done, finished_at: null }),
    predict: (done: number) => rates.predict({ id: 'job_a', done, finished_at: null }),
    finish: () => rates.measure({ id: 'job_a', done: 0, finished_at: now }),
  }
}
