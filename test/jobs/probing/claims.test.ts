import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { Claims } from '../../../src/jobs/probing/claims.ts'
import { type ActiveJob, ActiveJobs } from '../../../src/jobs/worker/active-jobs.ts'
import { queuedJob } from '../../support/database.ts'
import { seedJob } from '../../support/job-rows.ts'

const SLOT = { operator: 'op', egress: 'default' }

async function createClaims(rows = 40) {
  const texts = Array.from({ length: rows }, (_, n) => `u${n}@a.test`)
  const { database, job } = await queuedJob(texts)
  const { clock } = database
  const engine = {} as ActiveJob['engine']
  const lists = new ActiveJobs({ clock, engineFor: () => engine, wait: true, find: null })
  lists.add(job)
  const claims = new Claims(database, lists)
  const store = async (position: number) => {
    const routed = [{ position, operator: 'op', domain: 'a.test', route: '{}' }]
    await write(database, trx => storeRoutes(trx, { jobId: job.id, routed, now: clock.now() }))
  }
  const claim = async (max: number) => {
    const found = await claims.waitingFor('op')
    const claimed = await claims.claim(found, { ...SLOT, max, now: clock.now() })
    return claimed.map(({ position }) => position)
  }
  return { claims, lists, store, claim, database }
}

describe('stored items', () => {
  test('are found by each of several slots that look at the same moment', async () => {
    const { claims, store } = await createClaims()
    await store(1)
    const found = await Promise.all([claims.waitingFor('op'), claims.waitingFor('op')])
    expect(found.map(({ length }) => length)).toEqual([1, 1])
  })

  test('are found if they are stored while a slot looks', async () => {
    const { claims, store, claim } = await createClaims()
    const looking = claims.waitingFor('op')
    await store(1)
    await looking
    expect(await claim(5)).toEqual([1])
  })
})

describe('a claim that fails', () => {
  /** Claims of two lists, the second of which cannot be written. */
  async function createFailing() {
    const fixture = await createClaims(3)
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
