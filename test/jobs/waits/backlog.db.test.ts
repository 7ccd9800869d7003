import { describe, expect, test } from 'vitest'
import { countWaitingAt, unroutedRows, waitingRows } from '../../../src/jobs/waits/backlog.ts'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { seedFiledJob } from '../../support/job-rows.ts'

describe('waiting rows of a job', () => {
  test('are counted by operator and cause, the most rows first, with their due times', async () => {
    const database = await tempDatabase()
    const now = database.clock.now()
    await seedFiledJob(database, 'job_a', ['slow', 'quick', 'slow', 'slow', 'slow', 'slow', null])
    await seedFiledJob(database, 'job_b', ['slow'])
    const change = (position: number, set: { due_at: number; egress?: string }) =>
      database.db
        .updateTable('item')
        .set(set)
        .where('job_id', '=', 'job_a')
        .where('position', '=', position)
        .execute()
    await change(1, { due_at: now + HOUR })
    await change(3, { due_at: now + MINUTE, egress: 'a' })
    await change(5, { due_at: now + 2 * MINUTE, egress: 'a' })
    expect(await waitingRows(database, 'job_a')).toEqual([
      ...[
        { operator: 'slow', cause: 'due', count: 2, firstDueAt: now, lastDueAt: now },
        {
          operator: 'slow',
          cause: 'retry',
          count: 2,
          firstDueAt: now + MINUTE,
          lastDueAt: now + 2 * MINUTE,
        },
      ],
      { operator: 'quick', cause: 'due', count: 1, firstDueAt: now, lastDueAt: now },
      {
        operator: 'slow',
        cause: 'postponed',
        count: 1,
        firstDueAt: now + HOUR,
        lastDueAt: now + HOUR,
      },
    ])
  })

  test('are estimated from a sample if very many rows wait', async () => {
    const database = await tempDatabase()
    const operators = Array.from({ length: 2_000 }, (_, n) =>
      n % 100 < 70 ? 'large' : `small${n}`,
    )
    await seedFiledJob(database, 'job_a', operators)
    const [large] = await waitingRows(database, 'job_a', 100)
    expect(large?.operator).toBe('large')
    expect(large?.count).toBeGreaterThan(1_300)
    expect(large?.count).toBeLessThan(1_500)
  })
})

describe('waiting rows of other jobs', () => {
  test('are counted at an operator', async () => {
    const database = await tempDatabase()
    await seedFiledJob(database, 'job_a', ['slow', 'slow'])
    await seedFiledJob(database, 'job_b', ['slow', 'quick', null])
    await seedFiledJob(database, 'job_c', ['slow'])
    expect(await countWaitingAt(database, 'slow', 'job_a')).toEqual({ rows: 2, jobs: 2 })
    expect(await countWaitingAt(database, 'slow', null)).toEqual({ rows: 4, jobs: 3 })
    expect(await countWaitingAt(database, 'quick', 'job_b')).toEqual({ rows: 0, jobs: 0 })
  })

  test('are counted before they are routed', async () => {
    const database = await tempDatabase()
    await seedFiledJob(database, 'job_a', [null, 'slow'])
    await seedFiledJob(database, 'job_b', [null, null])
    expect(await unroutedRows(database, 'job_a')).toBe(2)
    expect(await unroutedRows(database, null)).toBe(3)
  })
})
