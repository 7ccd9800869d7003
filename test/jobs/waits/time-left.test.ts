import { expect, test } from 'vitest'
import { estimateTimeLeft } from '../../../src/jobs/waits/time-left.ts'
import { NO_WAITS } from '../../../src/jobs/waits/wait-report.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'

const JOB = { total: 320, done: 0, sandbox: 0, finished_at: null }
const RETRY = { ...NO_WAITS, waitingRows: 8, waitingMs: 29 * MINUTE }

test.each([
  ['typical rates before any is measured', {}, null, { movingMs: MINUTE }, MINUTE],
  ['the measured rate', { done: 120 }, 10, { movingMs: MINUTE }, 20 * SECOND],
  [
    'the known end of a wait, from the moment that it is known',
    { done: 100 },
    10,
    RETRY,
    29 * MINUTE,
  ],
  [
    'the known end of a wait, if only rows that wait are left',
    { done: 312 },
    0,
    RETRY,
    29 * MINUTE,
  ],
  ['the rate of rows that do not wait', { done: 112 }, 0.1, RETRY, 2_000 * SECOND],
  ['the known end of a wait, if other rows give no result', { done: 311 }, 0, RETRY, 29 * MINUTE],
  ['no figure, if no row gives a result', { done: 312 }, 0, { movingMs: 10 * SECOND }, null],
  ['no figure without a rate or typical rates', {}, null, {}, null],
  ['no figure while no end is known', { done: 312 }, 1, { isOpenEnded: true }, null],
  ['no figure after the end', { done: 320, finished_at: 1 }, 1, {}, null],
  ['the rate of the sandbox', { sandbox: 1, total: 10_000 }, null, {}, 2 * SECOND],
])('the remaining time of a job is %s', (_, job, rate, report, leftMs) => {
  expect(estimateTimeLeft({ ...JOB, ...job }, rate, { ...NO_WAITS, ...report })).toBe(leftMs)
})
