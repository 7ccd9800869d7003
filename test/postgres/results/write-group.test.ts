import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { deregister } from '../../../src/cluster/members.ts'
import type { Database } from '../../../src/db/database.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { writeFailure } from '../../../src/jobs/results/commit-batch.ts'
import {
  claim,
  claimedList,
  createTwoServers,
  depsOf,
  join,
  losingAnswers,
  resultsOf,
  summarize,
  writeChanges,
} from '../../support/cluster-results.ts'

/** Returns how many deadlocks the server has resolved. */
async function countDeadlocks({ db }: Database): Promise<number> {
  await sql`select pg_stat_force_next_flush()`.execute(db)
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(db)
  return rows[0]?.deadlocks ?? -1
}

describe('result groups of several servers', () => {
  test('count each result of a shared list once and finish the list once', async () => {
    const { a, deps } = await createTwoServers()
    await join(a, 'mem_a')
    const jobId = await claimedList(a, { accountId: 'acc_a', rows: 400, holder: 'mem_a' })
    const groups = Array.from({ length: 40 }, (_, n) => {
      const at = n % 2 === 0 ? deps.a : deps.b
      return writeChanges(at, { [jobId]: [resultsOf('mem_a', 10 * n + 1, 10 * n + 10)] })
    })
    const written = await Promise.all(groups)
    const finished = written.flatMap(({ jobs }) => jobs).filter(job => job.finished_at !== null)
    expect(finished).toHaveLength(1)
    expect(await summarize(a)).toEqual({
      jobs: ['completed 400/400 held 0'],
      events: ['batch.completed'],
      credits: ['acc_a used 400 held 0'],
      verifications: 400,
      history: 400,
    })
    expect(await countDeadlocks(a)).toBe(0)
  })

  test('do not deadlock on many lists of many accounts in any order', async () => {
    const accounts = ['acc_a', 'acc_b', 'acc_c']
    const { a, b, deps } = await createTwoServers(accounts)
    await join(a, 'mem_a')
    const lists: string[] = []
    for (let n = 0; n < 6; n++) {
      const accountId = accounts[n % 3] ?? ''
      lists.push(await claimedList(a, { accountId, rows: 40, holder: 'mem_a' }))
    }
    const groups = Array.from({ length: 20 }, (_, n) => {
      const order = n % 2 === 0 ? lists : lists.toReversed()
      const rotated = [...order.slice(n % 6), ...order.slice(0, n % 6)]
      const rows = resultsOf('mem_a', 2 * n + 1, 2 * n + 2)
      return writeChanges(
        n % 3 === 0 ? deps.a : deps.b,
        Object.fromEntries(rotated.map(jobId => [jobId, [rows]])),
      )
    })
    await Promise.all(groups)
    expect(await summarize(b)).toEqual({
      jobs: Array(6).fill('completed 40/40 held 0'),
      events: Array(6).fill('batch.completed'),
      credits: accounts.map(id => `${id} used 80 held 0`),
      verifications: 240,
      history: 240,
    })
    expect(await countDeadlocks(a)).toBe(0)
  })

  test('count each result once, for the current holder, while their member is expired', async () => {
    const { a, b, deps } = await createTwoServers()
    for (const id of ['mem_a', 'mem_b']) await join(a, id)
    const jobId = await claimedList(a, { accountId: 'acc_a', rows: 200, holder: 'mem_a' })
    const late = Array.from({ length: 20 }, (_, n) =>
      writeChanges(deps.a, { [jobId]: [resultsOf('mem_a', 10 * n + 1, 10 * n + 10)] }),
    )
    await Promise.all([
      ...late.slice(0, 10),
      deregister(b, 'mem_a', releaseClaims),
      ...late.slice(10),
    ])
    await claim(b, jobId, 'mem_b')
    const [before] = await a.db.selectFrom('job').select('done').execute()
    await writeChanges(deps.b, { [jobId]: [resultsOf('mem_b', 1, 200)] })
    expect(before?.done).toBeLessThanOrEqual(200)
    expect(await summarize(a)).toEqual({
      jobs: ['completed 200/200 held 0'],
      events: ['batch.completed'],
      credits: ['acc_a used 200 held 0'],
      verifications: 200,
      history: 200,
    })
    expect(await countDeadlocks(a)).toBe(0)
  })
})

describe('an expired member', () => {
  test('writes no result, credit, history or event', async () => {
    const { a, deps } = await createTwoServers()
    await join(a, 'mem_a')
    const jobId = await claimedList(a, { accountId: 'acc_a', rows: 2, holder: 'mem_a' })
    await deregister(a, 'mem_a', releaseClaims)
    const before = await summarize(a)
    const { jobs } = await writeChanges(deps.a, { [jobId]: [resultsOf('mem_a', 1, 2)] })
    expect(jobs).toMatchObject([{ id: jobId, done: 0, finished_at: null }])
    expect(await summarize(a)).toEqual(before)
    expect(before).toMatchObject({ events: [], history: 0, credits: ['acc_a used 0 held 2'] })
  })

  test('writes nothing after another member claimed the item, in any order of the writes', async () => {
    const { a, deps } = await createTwoServers()
    for (const id of ['mem_a', 'mem_b']) await join(a, id)
    const jobId = await claimedList(a, { accountId: 'acc_a', rows: 3, holder: 'mem_a' })
    await deregister(a, 'mem_a', releaseClaims)
    expect(await claim(a, jobId, 'mem_b')).toBe(3)
    await writeChanges(deps.a, { [jobId]: [resultsOf('mem_a', 1, 2)] })
    await writeChanges(deps.b, { [jobId]: [resultsOf('mem_b', 1, 3)] })
    await writeChanges(deps.a, { [jobId]: [resultsOf('mem_a', 3, 3)] })
    expect(await summarize(a)).toMatchObject({
      jobs: ['completed 3/3 held 0'],
      credits: ['acc_a used 3 held 0'],
      events: ['batch.completed'],
      history: 3,
    })
  })
})

test('an expired member cannot postpone an item that another member holds', async () => {
  const { a, deps } = await createTwoServers()
  for (const id of ['mem_a', 'mem_b']) await join(a, id)
  const jobId = await claimedList(a, { accountId: 'acc_a', rows: 1, holder: 'mem_a' })
  const put = { position: 1, dueAt: 9_000_000_000_000, tries: 2, egress: 'e', refusedBy: ['f'] }
  const item = () => a.db.selectFrom('item').select(['state', 'holder', 'tries']).execute()
  await deregister(a, 'mem_a', releaseClaims)
  expect(await claim(a, jobId, 'mem_b')).toBe(1)
  await writeChanges(deps.a, { [jobId]: [{ holder: 'mem_a', postponed: [put] }] })
  expect(await item()).toEqual([{ state: 'probing', holder: 'mem_b', tries: 0 }])
  await writeChanges(deps.b, { [jobId]: [{ holder: 'mem_b', postponed: [put] }] })
  expect(await item()).toEqual([{ state: 'routed', holder: null, tries: 2 }])
})

test('a result from routing is ignored after another process has routed the item', async () => {
  const { a, deps } = await createTwoServers()
  await join(a, 'mem_a')
  const jobId = await claimedList(a, { accountId: 'acc_a', rows: 1, holder: 'mem_a' })
  const { holder: _, ...routed } = resultsOf('', 1, 1)
  await deregister(a, 'mem_a', releaseClaims)
  const { jobs } = await writeChanges(deps.b, { [jobId]: [routed] })
  expect(jobs).toMatchObject([{ done: 0, finished_at: null }])
  expect(await summarize(a)).toMatchObject({
    events: [],
    history: 0,
    credits: ['acc_a used 0 held 1'],
  })
})

test('a list that two servers fail at once fails once and emits one event', async () => {
  const { a, deps } = await createTwoServers()
  await join(a, 'mem_a')
  const jobId = await claimedList(a, { accountId: 'acc_a', rows: 3, holder: 'mem_a' })
  const both = [writeFailure(deps.a, jobId), writeFailure(deps.b, jobId)]
  const failed = (await Promise.all(both)).filter(job => job !== null)
  expect(failed).toMatchObject([{ state: 'failed', error: 'server_error' }])
  expect(await writeFailure(deps.a, jobId)).toBeNull()
  expect(await summarize(a)).toMatchObject({
    jobs: ['failed 0/3 held 0'],
    credits: ['acc_a used 0 held 0'],
    events: ['batch.failed'],
  })
})

describe('a group whose commit succeeded but whose answer was lost', () => {
  test('counts nothing on retry', async () => {
    const { a, b, deps } = await createTwoServers()
    await join(a, 'mem_a')
    const jobId = await claimedList(a, { accountId: 'acc_a', rows: 4, holder: 'mem_a' })
    const group = { [jobId]: [resultsOf('mem_a', 1, 2)] }
    const lossy = depsOf(losingAnswers(a))
    await expect(writeChanges(lossy, group)).rejects.toThrow('Connection terminated')
    const retry = await writeChanges(lossy, group)
    expect(retry).toMatchObject({ jobs: [{ done: 2 }], lost: [] })
    const last = { [jobId]: [resultsOf('mem_a', 3, 4)] }
    await expect(writeChanges(depsOf(losingAnswers(b)), last)).rejects.toThrow('terminated')
    // The list is finished after its last group and accepts no more results.
    expect(await writeChanges(deps.b, last)).toEqual({ jobs: [], lost: [jobId] })
    expect(await summarize(a)).toEqual({
      jobs: ['completed 4/4 held 0'],
      events: ['batch.completed'],
      credits: ['acc_a used 4 held 0'],
      verifications: 4,
      history: 4,
    })
  })
})
