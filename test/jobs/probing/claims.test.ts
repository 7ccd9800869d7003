import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import type { ProbeTask } from '../../../src/engine/probing/prepare.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { Claims } from '../../../src/jobs/probing/claims.ts'
import { type ActiveJob, ActiveJobs, PositionSet } from '../../../src/jobs/worker/active-jobs.ts'
import { queuedJob } from '../../support/database.ts'
import { seedJob } from '../../support/job-rows.ts'

const LIMITS = { sessionsMax: 2, recipientsPerSession: 3 }
const SLOT = { operator: 'op', egress: 'default' }

async function createClaims(rows = 40, { inMemory = true } = {}) {
  const texts = Array.from({ length: rows }, (_, n) => `u${n}@a.test`)
  const { database, job } = await queuedJob(texts)
  const { clock } = database
  const egressPool = { row: () => LIMITS, sharesLists: () => false }
  const engine = { egressPool } as unknown as ActiveJob['engine']
  const lists = new ActiveJobs({ clock, engineFor: () => engine, wait: () => true, find: null })
  const list = lists.add(job)
  const claims = new Claims(database, lists, { inMemory })
  const keep = (
    position: number,
    o: { operator?: string; backup?: string; host?: string } = {},
  ) => {
    const operators = [o.operator ?? 'op', ...(o.backup === undefined ? [] : [o.backup])]
    const route = { kind: 'implicit', host: o.host ?? 'mx.a.test' }
    const exchangers = operators.map(name => ({ operator: { name }, route }))
    const task = { text: `u${position}@a.test`, exchangers, ...exchangers[0] } as object
    const item = { position, copies: 1, task: task as ProbeTask, readyAt: clock.now() }
    return claims.keep(list, item)
  }
  const store = async (position: number) => {
    const routed = [{ position, operator: 'op', domain: 'a.test', route: '{}' }]
    await write(database, trx => storeRoutes(trx, { jobId: job.id, routed, now: clock.now() }))
    claims.noteStored('op')
  }
  const claim = async (
    max: number,
    o: { backedUpOnly?: boolean; fullOnly?: boolean; pinnedOnly?: boolean } = {},
  ) => {
    const found = await claims.waitingFor('op')
    const claimed = await claims.claim(found, { ...SLOT, ...o, max, now: clock.now() })
    return claimed.map(({ position }) => position)
  }
  return { claims, lists, list, keep, store, claim, job, database }
}

describe('routed items in memory', () => {
  test('are claimed once, in the order in which they were routed', async () => {
    const { keep, claim } = await createClaims()
    expect([3, 1, 2].map(position => keep(position))).toEqual([0, 0, 1])
    expect(await claim(2)).toEqual([3, 1])
    expect(await claim(2)).toEqual([2])
    expect(await claim(2)).toEqual([])
  })

  test('share a connection only with items that have the same MX hosts', async () => {
    const { keep, claim } = await createClaims()
    for (const position of [1, 3, 5]) keep(position, { host: `mx${position}` })
    expect(keep(2, { host: 'mx1' })).toBe(0)
    expect(await claim(3)).toEqual([1, 2])
    expect(await claim(3)).toEqual([3])
    expect(await claim(3)).toEqual([5])
  })

  test('fill a connection first, and are left while they gather if they do not', async () => {
    const { claims, keep, store, claim } = await createClaims()
    keep(1, { host: 'mx1' })
    for (const position of [2, 3, 4]) keep(position, { host: 'mx2' })
    await store(7)
    expect(await claim(3, { fullOnly: true })).toEqual([2, 3, 4])
    expect(await claim(3, { fullOnly: true })).toEqual([])
    expect(claims.hasKept('op')).toBe(true)
    expect(await claim(3)).toEqual([1, 7])
    expect(claims.hasKept('op')).toBe(false)
  })

  test('are at most as many per operator as its connections take', async () => {
    const { keep, claim } = await createClaims()
    const kept = Array.from({ length: 8 }, (_, n) => keep(n + 1))
    expect(kept).toEqual([0, 0, 1, 1, 1, 2, null, null])
    expect(keep(9, { operator: 'other' })).toBe(0)
    await claim(3)
    expect([10, 11, 12, 13].map(position => keep(position))).toEqual([1, 1, 2, null])
  })

  test('are at most 4,000', async () => {
    const { claims, keep } = await createClaims(1)
    for (let n = 0; n < 4_000; n++) expect(keep(1, { operator: `op${n}` })).toBe(0)
    expect(claims.hasRoomFor(1)).toBe(false)
    expect(keep(1, { operator: 'last' })).toBeNull()
  })

  test('are claimed together with stored ones', async () => {
    const { keep, store, claim } = await createClaims()
    keep(1)
    await store(7)
    await store(8)
    expect(await claim(2)).toEqual([1, 7])
    expect(await claim(2)).toEqual([8])
  })

  test('are not claimed by an egress that takes only pinned items', async () => {
    const { claims, list, keep, claim } = await createClaims()
    keep(1)
    expect(await claim(2, { pinnedOnly: true })).toEqual([])
    expect(await claims.nextDueAt(list, SLOT, true)).toBeNull()
    expect(await claims.nextDueAt(list, SLOT, false)).not.toBeNull()
    expect(await claim(2)).toEqual([1])
  })

  test('are claimed for a paused operator only if they have a backup', async () => {
    const { keep, claim } = await createClaims()
    keep(1)
    keep(2, { backup: 'backup' })
    expect(await claim(5, { backedUpOnly: true })).toEqual([2])
    expect(await claim(5)).toEqual([1])
  })

  test('are dropped when their list ends', async () => {
    const { claims, lists, keep, claim, job } = await createClaims()
    for (let n = 1; n <= 6; n++) keep(n)
    lists.drop(job.id)
    expect(await claims.waitingFor('op')).toEqual([])
    expect(await claim(5)).toEqual([])
    const again = lists.add(job)
    expect(again.kept.has(1)).toBe(false)
  })

  test('are marked in their list, so that a second pass of routing skips them', async () => {
    const { list, keep } = await createClaims()
    keep(5)
    expect([4, 5, 6].map(position => list.kept.has(position))).toEqual([false, true, false])
  })

  test('are counted by list and operator until they are claimed', async () => {
    const { claims, keep, claim, job } = await createClaims()
    for (const position of [1, 2, 3]) keep(position)
    keep(4, { operator: 'other' })
    await claim(1)
    expect(claims.waitingInMemory(job.id)).toEqual(
      new Map([
        ['op', 2],
        ['other', 1],
      ]),
    )
    expect(claims.waitingInMemory('job_b').size).toBe(0)
  })

  test('are not used in a cluster or a service', async () => {
    const { claims, keep, claim, store, job } = await createClaims(40, { inMemory: false })
    expect(keep(1)).toBeNull()
    expect(claims.hasRoomFor(1)).toBe(true)
    expect(claims.waitingInMemory(job.id).size).toBe(0)
    await store(2)
    expect(await claim(5)).toEqual([2])
  })
})

describe('stored items', () => {
  test('are found by each of several slots that look at the same moment', async () => {
    const { claims, store } = await createClaims()
    await store(1)
    const found = await Promise.all([claims.waitingFor('op'), claims.waitingFor('op')])
    expect(found.map(({ length }) => length)).toEqual([1, 1])
  })

  test('are found if they are stored while a slot looks', async () => {
    const { claims, store, claim } = await createClaims()
    claims.noteStored('op')
    const looking = claims.waitingFor('op')
    await store(1)
    await looking
    expect(await claim(5)).toEqual([1])
  })
})

test('a set of positions has those that were added', () => {
  const positions = new PositionSet(20)
  for (const position of [1, 8, 20]) positions.add(position)
  const all = Array.from({ length: 22 }, (_, n) => n)
  expect(all.filter(position => positions.has(position))).toEqual([1, 8, 20])
})

describe('a claim that fails', () => {
  /** Claims of two lists, the second of which cannot be written. */
  async function createFailing() {
    const fixture = await createClaims(3, { inMemory: false })
    const { claims, lists, store, database } = fixture
    await store(1)
    const job = await seedJob(database, { id: 'job_b', texts: ['u1@a.test'], done: 0 })
    const routed = [{ position: 1, operator: 'op', domain: 'a.test', route: '{}' }]
    await write(database, trx =>
      storeRoutes(trx, { jobId: job.id, routed, now: database.clock.now() }),
    )
    lists.add(job)
    await sql`create trigger full before update on item when new.job_id = 'job_b'
      begin select raise(abort, 'disk full'); end`.execute(database.db)
    let failures = 0
    const onFailure = () => {
      failures++
    }
    const claim = async (max: number) =>
      claims.claim(await claims.waitingFor('op'), {
        ...SLOT,
        max,
        now: database.clock.now(),
        onFailure,
      })
    return { claim, failures: () => failures }
  }

  test('returns the items of other lists, as no other slot would probe them', async () => {
    const { claim, failures } = await createFailing()
    expect(await claim(4)).toMatchObject([
      { position: 1, list: { id: expect.not.stringMatching('job_b') } },
    ])
    expect(failures()).toBe(1)
    await expect(claim(4)).rejects.toThrow('disk full')
  })
})
