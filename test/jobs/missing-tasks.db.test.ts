import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { queuedItems, storeRoutes } from '../../src/jobs/item-store.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { createJob } from '../../src/jobs/job-store.ts'
import {
  claimReconciliation,
  jobsWithoutTask,
  operatorsWithoutTask,
  overduePinnedItems,
} from '../../src/jobs/missing-tasks.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'

const FIRST_PAGE = { operator: '', jobId: '' }

/** Adds a queued job of an account, or of the command line. */
async function addJob(database: Database, id: string, texts: readonly string[], isOurs = true) {
  const owner = { accountId: 'acc_1', keyId: 'key_1', name: null, sandbox: false }
  const jobOwner = isOurs ? { owner: { ...owner, type: 'batch' as const } } : {}
  await createJob(database, { id, sourceKey: id, source: '{}', ...jobOwner })
  const items = texts.map((text, n) => ({ position: n + 1, text, dedupeKey: text }))
  await addItems(database, id, items)
  await queueJob(database, id)
}

/** Routes all items of a job; each text is `name@operator`. */
async function routeAll(database: Database, jobId: string) {
  const items = await queuedItems(database, { jobId, after: 0, max: 1_000 })
  const routed = items.map(({ position, text }) => {
    const operator = text.split('@')[1] ?? ''
    return { position, operator, domain: operator, route: '{}' }
  })
  await write(database, trx => storeRoutes(trx, { jobId, routed, now: database.clock.now() }))
  await database.db
    .updateTable('job')
    .set({ state: 'processing' })
    .where('id', '=', jobId)
    .where('state', '=', 'queued')
    .execute()
}

const setItem = (database: Database, jobId: string, position: number, values: object) =>
  database.db
    .updateTable('item')
    .set(values)
    .where('job_id', '=', jobId)
    .where('position', '=', position)
    .execute()

describe('jobs that need a routing task', () => {
  test('are open jobs of accounts that have unrouted items', async () => {
    const database = await tempDatabase()
    for (const id of ['job_new', 'job_filed', 'job_part', 'job_over']) {
      await addJob(database, id, ['ann@a', 'bob@b'])
    }
    await addJob(database, 'job_alone', ['ann@a'], false)
    await routeAll(database, 'job_filed')
    await routeAll(database, 'job_part')
    await setItem(database, 'job_part', 2, { state: 'queued' })
    await cancelJob(database, 'job_over')
    expect((await jobsWithoutTask(database)).toSorted()).toEqual(['job_new', 'job_part'])
  })

  test('include jobs that were not started', async () => {
    const database = await tempDatabase()
    await addJob(database, 'job_1', ['ann@a'])
    await routeAll(database, 'job_1')
    expect(await jobsWithoutTask(database)).toEqual([])
    await database.db.updateTable('job').set({ state: 'queued' }).execute()
    expect(await jobsWithoutTask(database)).toEqual(['job_1'])
  })
})

describe('operators that need a probe task', () => {
  test('have unpinned items of open jobs of accounts that have been due for a while', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    await addJob(database, 'job_1', ['ann@a', 'bob@b', 'cat@c', 'dan@d', 'eve@e', 'fay@e'])
    await addJob(database, 'job_2', ['ann@a', 'gus@g'])
    await addJob(database, 'job_over', ['ann@h'])
    await addJob(database, 'job_alone', ['ann@i'], false)
    for (const id of ['job_1', 'job_2', 'job_over', 'job_alone']) await routeAll(database, id)
    await cancelJob(database, 'job_over')
    const dueBefore = clock.now()
    await setItem(database, 'job_1', 2, { due_at: dueBefore + 1 })
    await setItem(database, 'job_1', 3, { egress: 'x' })
    await setItem(database, 'job_1', 4, { state: 'probing' })
    await setItem(database, 'job_1', 5, { due_at: dueBefore + 1 })
    const page = { after: FIRST_PAGE, max: 100, dueBefore }
    expect(await operatorsWithoutTask(database, page)).toEqual({
      operators: ['a', 'e', 'g'],
      next: null,
    })
  })

  test('are listed in pages that continue each other', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    const texts = Array.from({ length: 7 }, (_, n) => `ann@op${n}`)
    await addJob(database, 'job_1', [...texts, 'bob@op3'])
    await addJob(database, 'job_2', ['ann@op3'])
    for (const id of ['job_1', 'job_2']) await routeAll(database, id)
    const found: string[][] = []
    for (let after: typeof FIRST_PAGE | null = FIRST_PAGE; after !== null; ) {
      const page = { after, max: 3, dueBefore: clock.now() }
      const { operators, next } = await operatorsWithoutTask(database, page)
      found.push([...operators])
      after = next
    }
    // Operator 3 has items of two jobs.
    expect(found).toEqual([
      ['op0', 'op1', 'op2'],
      ['op3', 'op4'],
      ['op5', 'op6'],
    ])
  })
})

test('overdue pinned items are listed by job, operator and egress', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addJob(database, 'job_1', ['ann@a', 'bob@a', 'cat@b', 'dan@b'])
  await addJob(database, 'job_over', ['ann@a'])
  for (const id of ['job_1', 'job_over']) await routeAll(database, id)
  for (const position of [1, 2]) await setItem(database, 'job_1', position, { egress: 'x' })
  await setItem(database, 'job_1', 3, { egress: 'y', due_at: clock.now() + 1 })
  await setItem(database, 'job_over', 1, { egress: 'x' })
  await cancelJob(database, 'job_over')
  expect(await overduePinnedItems(database, clock.now())).toEqual([
    { jobId: 'job_1', operator: 'a', egress: 'x' },
  ])
  expect(await overduePinnedItems(database, clock.now() + 1)).toHaveLength(2)
})

test('one of several concurrent processes reconciles, and the next one only after the interval', async () => {
  const database = await tempDatabase()
  const claims = await Promise.all([0, 1, 2].map(() => claimReconciliation(database, 60_000)))
  expect(claims.filter(isOurs => isOurs)).toHaveLength(1)
  expect(await claimReconciliation(database, 60_000)).toBe(false)
  expect(await claimReconciliation(database, 0)).toBe(true)
})
