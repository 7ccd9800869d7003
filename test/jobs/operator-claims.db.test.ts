import { describe, expect, test } from 'vitest'
import { register } from '../../src/cluster/members.ts'
import type { Database } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import {
  claimOperators,
  nextDueByOperator,
  type OperatorClaim,
} from '../../src/jobs/item-claims.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { createJob } from '../../src/jobs/job-store.ts'
import { addJob, fileAll, onPostgres, tempDatabase } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'
import { twoServers } from '../support/two-servers.ts'

const owner = {
  accountId: 'acc_1',
  keyId: 'key_1',
  type: 'batch' as const,
  name: null,
  sandbox: false,
}
const REQUEST = { operator: 'op', egress: 'a', max: 9, after: '', holder: 'mem_a' }

/** Adds a job of an account with these addresses, routed to `op` or the operator of each. */
async function addRouted(
  database: Database,
  id: string,
  texts: readonly string[],
  operatorFor: (text: string) => string = () => 'op',
): Promise<void> {
  await createJob(database, { id, sourceKey: id, source: '{}', owner })
  const rows = texts.map((text, n) => ({ position: n + 1, text, dedupeKey: text }))
  await addItems(database, id, rows)
  await queueJob(database, id)
  await fileAll(database, id, text => ({
    operator: operatorFor(text),
    domain: text.slice(text.indexOf('@') + 1),
  }))
}

const join = (database: Database, id: string) =>
  register(database, { id, role: 'worker', name: id, version: '1', egresses: [] })

/** Claims for requests and returns the claimed items as `job position`, sorted. */
async function claim(database: Database, ...requests: Partial<OperatorClaim>[]): Promise<string[]> {
  const claims = requests.map(request => ({ ...REQUEST, ...request }))
  const rows = await claimOperators(database, { claims, now: database.clock.now() })
  for (const row of rows) {
    const claim = claims.find(({ operator }) => operator === row.operator)
    expect(row.holder).toBe(claim?.holder)
  }
  return rows.map(({ job_id, position }) => `${job_id} ${position}`).toSorted()
}

const names = (count: number, domain = 'x.test') =>
  Array.from({ length: count }, (_, n) => `u${n}@${domain}`)

describe.runIf(onPostgres)('a claim from all jobs', () => {
  async function open(): Promise<Database> {
    const database = await tempDatabase()
    await join(database, 'mem_a')
    return database
  }

  test('takes from each waiting job in turn, from the one after a given job on', async () => {
    const database = await open()
    for (const [id, count] of [
      ['job_1', 9],
      ['job_2', 1],
      ['job_3', 9],
    ] as const) {
      await addRouted(database, id, names(count))
    }
    expect(await claim(database, { max: 2, after: 'job_1' })).toEqual(['job_2 1', 'job_3 1'])
    expect(await claim(database, { max: 3, after: 'job_1' })).toEqual([
      ...['job_1 1', 'job_3 2', 'job_3 3'],
    ])
    expect(await claim(database, { max: 6 })).toEqual([
      ...['job_1 2', 'job_1 3', 'job_1 4', 'job_3 4', 'job_3 5', 'job_3 6'],
    ])
    expect(await claim(database, { max: 99 })).toHaveLength(8)
    expect(await claim(database, { max: 99 })).toEqual([])
  })

  test('takes for many operators at once, of each as many as requested and whole domains first', async () => {
    const database = await open()
    const texts = ['1@b.test', '2@a.test', '3@b.test', '4@a.test', '5@c.test', '6@c.test']
    const operatorFor = (text: string) => (text.endsWith('c.test') ? 'other' : 'op')
    await addRouted(database, 'job_1', texts, operatorFor)
    const requests = [{ max: 3 }, { operator: 'other', max: 1 }, { operator: 'none' }]
    expect(await claim(database, ...requests)).toEqual([
      ...['job_1 1', 'job_1 2', 'job_1 4', 'job_1 5'],
    ])
    expect(await claim(database, ...requests)).toEqual(['job_1 3', 'job_1 6'])
  })

  test('takes only due items that are pinned to its egress or to none', async () => {
    const database = await open()
    await addRouted(database, 'job_1', names(4))
    const change = (position: number, set: { egress?: string; due_at?: number }) =>
      database.db.updateTable('item').set(set).where('position', '=', position).execute()
    await change(1, { egress: 'b' })
    await change(2, { egress: 'a' })
    const dueAt = database.clock.now() + 5
    await change(3, { due_at: dueAt })
    expect(await claim(database, {})).toEqual(['job_1 2', 'job_1 4'])
    expect(
      await nextDueByOperator(database, [
        { operator: 'op', egress: 'a' },
        { operator: 'none', egress: 'a' },
        { operator: 'op', egress: 'b' },
      ]),
    ).toEqual([dueAt, null, database.clock.now()])
  })

  test('takes nothing of jobs that have ended or belong to no account, nor for an expired member', async () => {
    const database = await open()
    for (const id of ['job_1', 'job_2']) await addRouted(database, id, names(1))
    await addJob(database, names(1), 'job_3')
    await fileAll(database, 'job_3')
    await cancelJob(database, 'job_1')
    expect(await claim(database, { holder: 'mem_gone' })).toEqual([])
    expect(await claim(database, {})).toEqual(['job_2 1'])
    expect(await nextDueByOperator(database, [{ operator: 'op', egress: 'a' }])).toEqual([null])
  })

  test('takes no item twice and leaves none, with eight members on two servers', async () => {
    const { a, b } = await twoServers()
    const jobs = ['job_1', 'job_2', 'job_3']
    for (const id of jobs) await addRouted(a, id, names(150), text => `op_${text.charAt(1)}`)
    const run = async (n: number) => {
      const holder = `mem_${n}`
      await join(a, holder)
      const operators = Array.from({ length: 10 }, (_, at) => `op_${(at + n) % 10}`)
      const requests = operators.map(operator => ({ operator, max: 4, holder }))
      const claimed: string[] = []
      for (;;) {
        const some = await claim(n % 2 === 0 ? a : b, ...requests)
        if (some.length === 0) return claimed
        claimed.push(...some)
      }
    }
    const all = (await Promise.all(Array.from({ length: 8 }, (_, n) => run(n)))).flat()
    const expected = jobs.flatMap(id => names(150).map((_, n) => `${id} ${n + 1}`))
    expect(all.toSorted()).toEqual(expected.toSorted())
  })
})
