import { expect, test, vi } from 'vitest'
import {
  createProgress,
  progressLine,
  progressLines,
  watchWaits,
} from '../../../src/cli/bulk/progress.ts'
import { LiveText } from '../../../src/cli/live-text.ts'
import { write } from '../../../src/db/database.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { startJob } from '../../../src/jobs/job-state.ts'
import type { Job } from '../../../src/jobs/job-store.ts'
import { NO_WAITS } from '../../../src/jobs/waits/wait-report.ts'
import { HOUR } from '../../../src/platform/clock.ts'
import { memoryContext } from '../../support/cli.ts'
import { fakeClock } from '../../support/clock.ts'
import { queuedJob } from '../../support/database.ts'

const JOB: Job = {
  id: 'job_a',
  state: 'processing',
  source_key: 'k',
  source: '{}',
  total: 200,
  done: 50,
  duplicates: 0,
  deliverable: 30,
  risky: 4,
  undeliverable: 10,
  unknown: 6,
  created_at: 0,
  finished_at: null,
  written_at: null,
  started_at: null,
  error: null,
  account_id: null,
  key_id: null,
  type: 'list',
  name: null,
  sandbox: 0,
  malformed: 0,
  no_address: 0,
  failed: 0,
  held: 0,
  credit_period: null,
  mail_due_at: null,
  finish_requested_at: null,
  number: null,
}

test('prints one plain line every five seconds if stderr is not a terminal', async () => {
  const { context } = memoryContext({ home: '/' })
  const clock = fakeClock()
  const progress = createProgress({ clock }, new LiveText(context))
  for (let done = 0; done <= 110; done++) {
    progress.show({ ...JOB, done })
    await clock.advance(100)
  }
  progress.setWait('12 rows at slow.test, next try at 21:32', NO_WAITS)
  progress.end()
  const counts = 'deliverable 30, risky 4, undeliverable 10, unknown 6'
  expect(context.stderr.text.split('\n')).toEqual([
    `25%  50/200  10/s, 20 seconds left  ${counts}`,
    `50%  100/200  10/s, 10 seconds left  ${counts}`,
    `55%  110/200  10/s, 10 seconds left  ${counts}  waiting: 12 rows at slow.test, next try at 21:32`,
    '',
  ])
})

test('shows a bar, figures, counts and waits on a terminal, and removes them at the end', async () => {
  const clock = fakeClock()
  const shown: (readonly string[])[] = []
  let isEnded = false
  const progress = createProgress(
    { clock },
    {
      width: 80,
      show: render => void shown.push(render(80)),
      print: () => {},
      end: () => {
        isEnded = true
      },
    },
  )
  await clock.advance(1_000)
  progress.show(JOB)
  const report = { ...NO_WAITS, waitingRows: 12, waitingMs: HOUR / 2 }
  progress.setWait('12 rows at slow.test, next try at 21:32', report)
  const figures = `${'█'.repeat(7)}${'░'.repeat(23)}  25%  50/200  0/s`
  const counts = 'deliverable 30, risky 4, undeliverable 10, unknown 6'
  expect(shown).toEqual([
    ['Reading the list'],
    [figures, counts],
    [`${figures}, 30 minutes left`, counts, 'waiting: 12 rows at slow.test, next try at 21:32'],
  ])
  progress.end()
  expect(isEnded).toBe(true)
})

test.each([30, 60, 80, 120])('progress fits a terminal of %i columns', width => {
  const huge = { ...JOB, total: 1_000_000, done: 999_999, deliverable: 900_000, unknown: 99_999 }
  const wait = `${'a'.repeat(60)}.test paused`
  for (const job of [JOB, huge]) {
    for (const line of progressLines(job, { rate: 1_234, leftMs: HOUR }, wait, width)) {
      expect(line.length).toBeLessThan(width)
    }
  }
})

test('a poll reports what rows wait for while nothing else is done', async () => {
  const { database, clock, job } = await queuedJob(['a@slow.test', 'b@slow.test'])
  const routed = [1, 2].map(position => ({
    position,
    operator: 'slow.test',
    domain: 'slow.test',
    route: '{}',
  }))
  const dueAt = clock.now() + HOUR
  await write(database, trx => storeRoutes(trx, { jobId: job.id, routed, now: dueAt }))
  const waits: (string | null)[] = []
  await startJob(database, job.id)
  const stop = watchWaits({ database, engine: null }, job.id, wait => waits.push(wait))
  await clock.advance(2_000)
  await vi.waitUntil(() => waits.length > 0)
  stop()
  expect(waits).toEqual([
    expect.stringMatching(
      /^2 addresses at slow\.test: the next attempt is due at \d{4}-\d\d-\d\d \d\d:\d\d UTC\S*\.$/,
    ),
  ])
})

test.each([
  ['a job without rows is done', { total: 0, done: 0 }, 0, /^100% {2}0\/0 {2}0\/s {2}d/],
  ['100% is printed only for a complete job', { total: 1_000, done: 999 }, 10, /^99% /],
  ['without a rate no remaining time is printed', {}, 0, /\/s {2}deliverable/],
])('%s', (_, counts, rate, line) => {
  expect(progressLine({ ...JOB, ...counts }, { rate, leftMs: null }, null)).toMatch(line)
})
