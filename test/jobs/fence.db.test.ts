import { describe, expect, test } from 'vitest'
import { deregister, register } from '../../src/cluster/members.ts'
import { write } from '../../src/db/database.ts'
import {
  type Fence,
  type Postponed,
  postponeItems,
  recordResults,
} from '../../src/jobs/item-store.ts'
import { releaseClaims } from '../../src/jobs/member-claims.ts'
import { claimItems } from '../support/claims.ts'
import { addJob, type Bench, fileAll, onPostgres, queuedJob } from '../support/database.ts'
import { ofJob } from '../support/job-rows.ts'
import { twoServers } from '../support/two-servers.ts'

const postpone = ({ database, job, clock }: Bench, item: Partial<Postponed>) => {
  const defaults = { position: 1, dueAt: clock.now(), tries: 1, egress: null, refusedBy: [] }
  return write(database, trx => postponeItems(trx, job.id, [{ ...defaults, ...item }]))
}

describe('an item that a member of the cluster claimed', () => {
  /** Creates a job of two items, claimed by `mem_a`; `mem_b` is a member too. */
  async function createClaimedJob() {
    const bench = await queuedJob(['1@x.test', '2@x.test'])
    await fileAll(bench.database, bench.job.id)
    for (const id of ['mem_a', 'mem_b']) {
      const member = { id, role: 'worker', name: id, version: '1', egresses: [] } as const
      await register(bench.database, member)
    }
    expect(await claimAs(bench, 'mem_a')).toEqual([1, 2])
    return bench
  }

  const claimAs = ({ database, job }: Bench, holder: string) => {
    return claimItems(database, { jobId: job.id, holder, max: 9 })
  }

  const recordAs = ({ database, job }: Bench, position: number, fence: Fence, result = '{}') =>
    write(database, trx =>
      recordResults(trx, ofJob(job.id, [{ position, result, class: 'risky', fence }])),
    )

  const heldBy = (holder: string) => ({ state: 'probing', holder }) as const

  const rowsOf = async ({ database }: Bench) =>
    (await database.db.selectFrom('item').selectAll().orderBy('position').execute()).map(
      ({ state, holder, result }) => [state, holder, result],
    )

  test('accepts its result from that member and has no holder afterwards', async () => {
    const bench = await createClaimedJob()
    expect(await recordAs(bench, 1, heldBy('mem_b'), '"of b"')).toEqual([false])
    expect(await recordAs(bench, 1, heldBy('mem_a'), '"of a"')).toEqual([true])
    expect(await recordAs(bench, 1, heldBy('mem_a'), '"again"')).toEqual([false])
    expect(await rowsOf(bench)).toEqual([
      ['done', null, '"of a"'],
      ['probing', 'mem_a', null],
    ])
  })

  test('rejects the result of an expired member, before and after another claims it', async () => {
    const bench = await createClaimedJob()
    await deregister(bench.database, 'mem_a', releaseClaims)
    expect(await recordAs(bench, 1, heldBy('mem_a'), '"late"')).toEqual([false])
    expect(await claimAs(bench, 'mem_b')).toEqual([1, 2])
    expect(await recordAs(bench, 1, heldBy('mem_a'), '"late"')).toEqual([false])
    expect(await recordAs(bench, 1, heldBy('mem_b'), '"of b"')).toEqual([true])
    expect(await recordAs(bench, 1, heldBy('mem_a'), '"late"')).toEqual([false])
    expect((await rowsOf(bench))[0]).toEqual(['done', null, '"of b"'])
  })

  test('is not postponed by an expired member', async () => {
    const bench = await createClaimedJob()
    await deregister(bench.database, 'mem_a', releaseClaims)
    await claimAs(bench, 'mem_b')
    await postpone(bench, { position: 1, tries: 7, fence: heldBy('mem_a') })
    expect((await rowsOf(bench))[0]).toEqual(['probing', 'mem_b', null])
    await postpone(bench, { position: 1, tries: 7, egress: 'e', fence: heldBy('mem_b') })
    expect((await rowsOf(bench))[0]).toEqual(['routed', null, null])
    const put = bench.database.db.selectFrom('item').selectAll().where('position', '=', 1)
    expect(await put.execute()).toMatchObject([{ tries: 7, egress: 'e' }])
  })

  test('rejects the result of a process that was only routing it', async () => {
    const bench = await createClaimedJob()
    expect(await recordAs(bench, 1, { state: 'queued' })).toEqual([false])
    await postpone(bench, { position: 1, fence: heldBy('mem_a') })
    expect(await recordAs(bench, 1, { state: 'queued' })).toEqual([false])
    const other = await queuedJob(['a'], 'job_b')
    expect(await recordAs(other, 1, { state: 'queued' })).toEqual([true])
  })

  test('accepts the first of several results that is in time, and reports which', async () => {
    const bench = await createClaimedJob()
    const results = [
      { position: 1, result: '"late"', fence: heldBy('mem_b') },
      { position: 2, result: '"first"', fence: heldBy('mem_a') },
      { position: 1, result: '"in time"', fence: heldBy('mem_a') },
      { position: 2, result: '"second"', fence: heldBy('mem_a') },
    ].map(row => ({ ...row, class: 'risky' }))
    const accepted = await write(bench.database, trx =>
      recordResults(trx, ofJob(bench.job.id, results)),
    )
    expect(accepted).toEqual([false, true, true, false])
    expect(await rowsOf(bench)).toEqual([
      ['done', null, '"in time"'],
      ['done', null, '"first"'],
    ])
  })

  test('preserves any characters in its result, route and egress', async () => {
    const bench = await createClaimedJob()
    const odd = JSON.stringify({ text: 'a\u0000b \ud800 “ü” \u{10fffe}' })
    expect(await recordAs(bench, 1, heldBy('mem_a'), odd)).toEqual([true])
    expect((await rowsOf(bench))[0]?.[2]).toBe(odd)
  })
})

test.runIf(onPostgres)(
  'eight concurrent claims on two servers never get the same item, and get all items',
  async () => {
    const { a, b } = await twoServers()
    const texts = Array.from({ length: 400 }, (_, n) => `u${n}@d${n % 7}.test`)
    await addJob(a, texts, 'job_a')
    await fileAll(a, 'job_a')
    const holders = Array.from({ length: 8 }, (_, n) => `mem_${n}`)
    for (const id of holders) {
      await register(a, { id, role: 'worker', name: id, version: '1', egresses: [] })
    }
    const run = async (holder: string, n: number) => {
      const got: string[] = []
      for (;;) {
        const items = await claimItems(n % 2 === 0 ? a : b, { jobId: 'job_a', holder, max: 9 })
        got.push(...items.map(position => `${position} ${holder}`))
        expect(items.length).toBeLessThanOrEqual(9)
        if (items.length === 0) return got
      }
    }
    const got = (await Promise.all(holders.map(run))).flat()
    expect(got).toHaveLength(400)
    const held = await a.db.selectFrom('item').select(['position', 'holder']).execute()
    expect(held.map(({ position, holder }) => `${position} ${holder}`).toSorted()).toEqual(
      got.toSorted(),
    )
  },
)
