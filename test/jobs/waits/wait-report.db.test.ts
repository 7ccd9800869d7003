import { describe, expect, test } from 'vitest'
import { register } from '../../../src/cluster/members.ts'
import { readProbeStops } from '../../../src/cluster/rate-control/rows.ts'
import type { Database } from '../../../src/db/database.ts'
import { serverNow } from '../../../src/db/server-time.ts'
import {
  newState,
  onBlocked,
  onThrottled,
  onUnknownStreak,
  type RateState,
} from '../../../src/engine/rate-control/rules.ts'
import { startJob } from '../../../src/jobs/job-state.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { buildWaitReport, describeWait, type Wait } from '../../../src/jobs/waits/wait-report.ts'
import { type Clock, DAY, HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { onPostgres, tempDatabase } from '../../support/database.ts'
import { createTestEngine } from '../../support/engine.ts'
import { seedFiledJob } from '../../support/job-rows.ts'
import { REFUSAL } from '../../support/prober.ts'

const OPERATORS = ['slow', 'slow', 'slow', 'grey', 'grey', 'quick']

/** A started job with its items at `OPERATORS`, and a member that processes it. */
async function startedJob({
  egresses = ['a'],
  clock,
}: {
  egresses?: string[]
  clock?: Clock
} = {}) {
  const database = await tempDatabase(clock === undefined ? {} : { clock })
  await seedFiledJob(database, 'job_a', OPERATORS)
  await startJob(database, 'job_a')
  await register(database, {
    id: 'mem_a',
    role: 'worker',
    name: 'a',
    version: '1',
    egresses,
  })
  const report = async (deps: Partial<Parameters<typeof buildWaitReport>[0]> = {}) =>
    buildWaitReport({ database, engine: null, ...deps }, await readJob(database, 'job_a'))
  return { database, report }
}

const brief = (waits: readonly Wait[]) =>
  waits.map(({ operator, rows, reason }) => [operator, rows, reason])

describe('what a job waits for', () => {
  test('is known from the database alone: retries, and items that were not asked yet', async () => {
    const { database, report } = await startedJob()
    const dueAt = database.clock.now() + 10 * MINUTE
    const set = (operator: string, change: { due_at: number; egress?: string }) =>
      database.db.updateTable('item').set(change).where('operator', '=', operator).execute()
    await set('grey', { due_at: dueAt, egress: 'a' })
    await set('quick', { due_at: dueAt - MINUTE })
    const { waits, waitingRows, waitingMs, movingMs } = await report()
    expect(brief(waits)).toEqual([
      ['slow', 3, 'rate_limited'],
      ['grey', 2, 'retrying'],
      ['quick', 1, 'postponed'],
    ])
    expect(waits[1]?.until).toBe(dueAt)
    expect([waitingRows, movingMs]).toEqual([3, null])
    // Both clocks run on PostgreSQL.
    expect(waitingMs).toBeGreaterThan(9 * MINUTE)
    expect(waitingMs).toBeLessThanOrEqual(10 * MINUTE)
  })

  test.skipIf(onPostgres).each([
    ['back by twelve years', -12 * 365 * DAY],
    ['ahead by a day', DAY],
  ])('keeps its remaining time when the clock is set %s', async (_, jumpMs) => {
    const clock = fakeClock()
    const { database, report } = await startedJob({ clock })
    const dueAt = database.steadyClock.now() + 10 * MINUTE
    await database.db.updateTable('item').set({ due_at: dueAt }).execute()
    await clock.advance(MINUTE)
    clock.jump(jumpMs)
    const { waits, waitingMs } = await report()
    expect(waits[0]).toMatchObject({ rows: 3, until: clock.now() + 9 * MINUTE })
    expect(waitingMs).toBe(9 * MINUTE)
  })

  test('includes other lists at the same operator', async () => {
    const { database, report } = await startedJob()
    await seedFiledJob(database, 'job_b', ['slow'])
    const { waits } = await report()
    expect(waits.map(wait => describeWait(wait))).toEqual([
      '3 addresses at slow: they are probed at the rate that the provider accepts, in turn with 1 other list.',
      '2 addresses at grey: they are probed at the rate that the provider accepts.',
      '1 address at quick: they are probed at the rate that the provider accepts.',
    ])
  })

  test('includes rows in memory', async () => {
    const { report } = await startedJob()
    const counts = new Map([
      ['slow', 5],
      ['new', 4],
    ])
    const inMemory = (jobId: string) => ({
      counts: jobId === 'job_a' ? counts : new Map(),
      failedLookups: null,
    })
    expect(brief((await report({ inMemory })).waits)).toEqual([
      ['slow', 8, 'rate_limited'],
      ['new', 4, 'rate_limited'],
      ['grey', 2, 'rate_limited'],
      ['quick', 1, 'rate_limited'],
    ])
  })

  test('includes rows whose lookup failed, until they are looked up again', async () => {
    const { report } = await startedJob({ clock: fakeClock() })
    const failedLookups = { rows: 2, firstInMs: MINUTE, lastInMs: 2 * MINUTE }
    const found = await report({ inMemory: () => ({ counts: new Map(), failedLookups }) })
    expect(found).toMatchObject({ waitingRows: 2, waitingMs: 2 * MINUTE, isOpenEnded: false })
    expect(found.waits[0]).toMatchObject({ operator: null, rows: 2, reason: 'dns_retry' })
    const text = describeWait(found.waits[0] as Wait, () => '10:00')
    expect(text).toBe('2 addresses: the lookup of their domains failed. Next attempt at 10:00.')
  })

  test('is a free worker before it has started', async () => {
    const { database } = await startedJob()
    await seedFiledJob(database, 'job_new', [null, null])
    const { waits } = await buildWaitReport(
      { database, engine: null },
      await readJob(database, 'job_new'),
    )
    expect(brief(waits)).toEqual([[null, 2, 'queued']])
    expect(describeWait(waits[0] as Wait)).toBe('The list starts when a worker is free.')
  })

  test.runIf(onPostgres)('is a worker if no member has an egress', async () => {
    const { report } = await startedJob({ egresses: [] })
    const [first] = (await report()).waits
    expect(first).toMatchObject({ operator: null, rows: 6, reason: 'no_worker', until: null })
  })

  test.runIf(onPostgres)('is a pause that another process stored', async () => {
    const { database, report } = await startedJob()
    const now = await serverNow(database)
    await storeRate(database, 'slow', 'a', onUnknownStreak(newState(ROW), now))
    await storeRate(database, 'grey', 'a', onBlocked(newState(ROW), now, REFUSAL))
    const { waits } = await report()
    expect(brief(waits)).toEqual([
      ['slow', 3, 'unknown_users'],
      ['grey', 2, 'refused'],
      ['quick', 1, 'rate_limited'],
    ])
    expect(waits[0]?.until).toBe(now + 10_000)
  })

  test.runIf(!onPostgres)(
    'is a pause once for each operator, whenever its rows are due',
    async () => {
      const { database, report } = await startedJob()
      const dueAt = database.steadyClock.now() + MINUTE
      await database.db
        .updateTable('item')
        .set({ due_at: dueAt })
        .where('position', '=', 1)
        .execute()
      const { engine } = createTestEngine()
      const until = dueAt + HOUR
      const probeStop = (name: string) =>
        name === 'slow' ? { why: 'refused' as const, until } : null
      Object.defineProperty(engine, 'probeStop', { value: probeStop })
      const { waits } = await report({ engine })
      expect(brief(waits)).toEqual([
        ['slow', 3, 'refused'],
        ['grey', 2, 'rate_limited'],
        ['quick', 1, 'rate_limited'],
      ])
      expect(waits[0]?.until).toBe(until)
    },
  )

  test.runIf(!onPostgres)('is the DNS check while it fails', async () => {
    const { report } = await startedJob()
    const { engine } = createTestEngine()
    const failure = { kind: 'invented' as const, detail: 'the DNS server lies' }
    Object.defineProperty(engine, 'resolverCheck', { value: { failure, dueInMs: 30_000 } })
    const { waits, isOpenEnded } = await report({ engine })
    expect(waits[0]).toMatchObject({ operator: null, rows: 6, reason: 'dns_check' })
    expect(describeWait(waits[0] as Wait, () => 'noon')).toBe(
      'The DNS server lies. Next check at noon.',
    )
    expect(isOpenEnded).toBe(true)
  })
})

const ROW = {
  sessionsMax: 2,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 1,
  unknownStreakMax: 20,
}

/** Stores a rate state as a member does. */
async function storeRate(database: Database, operator: string, egress: string, state: RateState) {
  const stored = JSON.stringify({ state, held: {}, waiting: {} })
  const changed_at = await serverNow(database)
  await database.db
    .insertInto('pace')
    .values({ operator, egress, state: stored, changed_at })
    .execute()
}

describe.runIf(onPostgres)('a stop that all processes share', () => {
  test('ends with the first egress that may probe', async () => {
    const database = await tempDatabase()
    const now = await serverNow(database)
    await storeRate(database, 'one', 'a', onThrottled(newState(ROW), now, 20 * MINUTE))
    await storeRate(database, 'one', 'b', onThrottled(newState(ROW), now, 10 * MINUTE))
    await storeRate(database, 'two', 'a', onThrottled(newState(ROW), now, 10 * MINUTE))
    await storeRate(database, 'two', 'b', newState(ROW))
    await storeRate(database, 'all', 'a', newState(ROW))
    await storeRate(database, 'all', '*', onThrottled(newState(ROW), now, 10 * MINUTE))
    expect(await readProbeStops(database, ['one', 'two', 'all', 'unknown'])).toEqual(
      new Map([
        ['all', { why: 'throttled', until: now + 10 * MINUTE }],
        ['one', { why: 'throttled', until: now + 10 * MINUTE }],
      ]),
    )
  })
})
