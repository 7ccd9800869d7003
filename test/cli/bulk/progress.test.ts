import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { progressLine, stderrProgress } from '../../../src/cli/bulk/work.ts'
import type { Job } from '../../../src/jobs/job-store.ts'
import { fakeClock } from '../../support/clock.ts'

const JOB: Job = {
  ...{ id: 'job_a', state: 'processing', source_key: 'k', source: '{}', total: 200, done: 50 },
  ...{ duplicates: 0, deliverable: 30, risky: 4, undeliverable: 10, unknown: 6 },
  ...{ created_at: 0, finished_at: null, written_at: null, started_at: null, error: null },
  ...{ account_id: null, key_id: null, type: 'list', name: null, sandbox: 0, malformed: 0 },
  ...{ failed: 0, held: 0, credit_period: null },
}

test('prints one plain line every five seconds if stderr is not a terminal', async () => {
  const lines: string[] = []
  const stderr = new Writable({
    write(text, _, done) {
      lines.push(String(text))
      done()
    },
  })
  const clock = fakeClock()
  const progress = stderrProgress({ stderr, clock }, 'reading the list')
  for (let done = 0; done <= 110; done++) {
    progress.show({ ...JOB, done })
    await clock.advance(100)
  }
  progress.end()
  expect(lines).toEqual([
    '25 %  50/200  10/s, 20 seconds left  deliverable 30, risky 4, undeliverable 10, unknown 6\n',
    '50 %  100/200  10/s, 10 seconds left  deliverable 30, risky 4, undeliverable 10, unknown 6\n',
  ])
})

test.each([
  ['a job without rows is done', { total: 0, done: 0 }, 0, /^100 % {2}0\/0 {2}0\/s {2}d/],
  ['100 % is printed only for a complete job', { total: 1_000, done: 999 }, 10, /^99 % /],
  ['without a rate no remaining time is printed', {}, 0, /\/s {2}deliverable/],
])('%s', (_, counts, rate, line) => {
  expect(progressLine({ ...JOB, ...counts }, rate)).toMatch(line)
})
