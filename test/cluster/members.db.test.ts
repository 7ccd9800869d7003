import { describe, expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import {
  deregister,
  expireMembers,
  fixFutureHeartbeats,
  heartbeat,
  listMembers,
  register,
} from '../../src/cluster/members.ts'
import type { Database } from '../../src/db/database.ts'
import { serverNow } from '../../src/db/server-time.ts'
import { releaseClaims, releaseOrphanedClaims } from '../../src/jobs/member-claims.ts'
import { claimItems } from '../support/claims.ts'
import { addJob, fileAll, onPostgres, tempDatabase } from '../support/database.ts'
import { twoServers } from '../support/two-servers.ts'

const join = (database: Database, id: string, egresses: string[] = []) =>
  register(database, { id, role: 'worker', name: `host ${id}`, version: '1.2', egresses })

/** Sets the age of its last heartbeat. */
async function setHeartbeatAge(database: Database, id: string, ms: number): Promise<void> {
  const seen_at = (await serverNow(database)) - ms
  await database.db.updateTable('member').set({ seen_at }).where('id', '=', id).execute()
}

const expire = async (
  database: Database,
  by = 'mem_a',
  facts: { touchMs?: number; lastBeatMs?: number } = {},
) => {
  const now = await serverNow(database)
  const own = {
    by,
    since: now - (facts.touchMs ?? 60_000),
    lastBeatAt: now - (facts.lastBeatMs ?? 0),
  }
  return expireMembers(database, { ...own, expiryMs: 10_000, freshMs: 5_000 }, releaseClaims)
}

const listIds = async (database: Database) => (await listMembers(database)).map(({ id }) => id)

/** Claims all items of a job. */
async function claimAll(database: Database, jobId: string, holder: string): Promise<number> {
  return (await claimItems(database, { jobId, holder, max: 100 })).length
}

const listItems = async (database: Database) =>
  (
    await database.db.selectFrom('item').selectAll().orderBy('job_id').orderBy('position').execute()
  ).map(({ job_id, position, state, holder }) => `${job_id} ${position} ${state} ${holder}`)

describe('a member', () => {
  test('is listed with all its fields and the age of its last heartbeat', async () => {
    const database = await tempDatabase()
    await join(database, 'mem_a', ['oslo', 'paris'])
    await setHeartbeatAge(database, 'mem_a', 4_000)
    const [member] = await listMembers(database)
    expect(member).toMatchObject({
      id: 'mem_a',
      role: 'worker',
      name: 'host mem_a',
      version: '1.2',
      egresses: ['oslo', 'paris'],
    })
    expect(member?.quietMs).toBeGreaterThanOrEqual(4_000)
    expect(member?.quietMs).toBeLessThan(9_000)
  })

  test('resets that age with a heartbeat; a process that is no member gets null', async () => {
    const database = await tempDatabase()
    const at = await join(database, 'mem_a')
    await setHeartbeatAge(database, 'mem_a', 9_000)
    expect(await heartbeat(database, 'mem_a')).toBeGreaterThanOrEqual(at)
    expect((await listMembers(database))[0]?.quietMs).toBeLessThan(5_000)
    expect(await heartbeat(database, 'mem_b')).toBeNull()
  })

  test('is expired once by another one if its heartbeats stop', async () => {
    const database = await tempDatabase()
    for (const id of ['mem_a', 'mem_b', 'mem_c', 'mem_d']) await join(database, id)
    await setHeartbeatAge(database, 'mem_b', 10_500)
    await setHeartbeatAge(database, 'mem_c', 9_000)
    const expired = await Promise.all([
      expire(database),
      expire(database, 'mem_d'),
      expire(database),
    ])
    expect(expired.flat()).toEqual(['mem_b'])
    expect((await listIds(database)).toSorted()).toEqual(['mem_a', 'mem_c', 'mem_d'])
    expect(await heartbeat(database, 'mem_b')).toBeNull()
  })

  test('does not expire itself, nor others while its own heartbeats have gaps', async () => {
    const database = await tempDatabase()
    for (const id of ['mem_a', 'mem_b']) await join(database, id)
    await setHeartbeatAge(database, 'mem_b', 60_000)
    // Its heartbeats have been regular only since then.
    expect(await expire(database, 'mem_a', { touchMs: 9_000 })).toEqual([])
    // The database was down or received no heartbeats.
    await setHeartbeatAge(database, 'mem_a', 6_000)
    expect(await expire(database)).toEqual([])
    expect(await expire(database, 'mem_gone')).toEqual([])
    await heartbeat(database, 'mem_a')
    // A heartbeat that is written but not confirmed may be the first one after a gap.
    expect(await expire(database, 'mem_a', { lastBeatMs: 3_000 })).toEqual([])
    expect(await expire(database)).toEqual(['mem_b'])
  })

  test('whose heartbeat lies in the future after the clock was set back counts from now on', async () => {
    const database = await tempDatabase()
    await join(database, 'mem_a')
    await setHeartbeatAge(database, 'mem_a', -3_600_000)
    await fixFutureHeartbeats(database)
    const quietMs = (await listMembers(database))[0]?.quietMs ?? -1
    expect(quietMs).toBeGreaterThanOrEqual(0)
    expect(quietMs).toBeLessThan(5_000)
  })
})

describe('the claims of a member', () => {
  const ACCOUNT = { accountId: 'acc_a', period: 86_400_000 }

  /** Creates two members; each has the items of a job and, in a cluster, credits. */
  async function claimedItems() {
    const database = await tempDatabase()
    for (const id of ['mem_a', 'mem_b']) await join(database, id)
    for (const [jobId, holder] of [
      ['job_1', 'mem_b'],
      ['job_2', 'mem_a'],
      ['job_3', 'mem_b'],
    ] as const) {
      await addJob(database, ['1@x.test', '2@x.test'], jobId)
      await fileAll(database, jobId)
      expect(await claimAll(database, jobId, holder)).toBe(2)
    }
    if (onPostgres) {
      for (const [member, amount] of [
        ['mem_a', 2],
        ['mem_b', 3],
        ['mem_b', 4],
      ] as const) {
        const held = { ...ACCOUNT, amount, limit: 100, member }
        expect(await reserveCredits(database.db, held)).toBe(true)
      }
    }
    return {
      database,
      held: async () => (await readCredit(database, 'acc_a', ACCOUNT.period)).held,
    }
  }

  const AFTER_RELEASE = [
    ...['job_1 1 routed null', 'job_1 2 routed null'],
    ...['job_2 1 probing mem_a', 'job_2 2 probing mem_a'],
    ...['job_3 1 routed null', 'job_3 2 routed null'],
  ]

  test('are released when it expires', async () => {
    const { database, held } = await claimedItems()
    await setHeartbeatAge(database, 'mem_b', 11_000)
    expect(await held()).toBe(onPostgres ? 9 : 0)
    expect(await expire(database)).toEqual(['mem_b'])
    expect(await listItems(database)).toEqual(AFTER_RELEASE)
    expect(await held()).toBe(onPostgres ? 2 : 0)
  })

  test('are released when it deregisters; deregistering again takes nothing from others', async () => {
    const { database, held } = await claimedItems()
    for (let n = 0; n < 2; n++) await deregister(database, 'mem_b', releaseClaims)
    expect(await listItems(database)).toEqual(AFTER_RELEASE)
    expect(await held()).toBe(onPostgres ? 2 : 0)
    expect(await listIds(database)).toEqual(['mem_a'])
  })

  test('are released if they were written after the expiry', async () => {
    const { database, held } = await claimedItems()
    await database.db.deleteFrom('member').where('id', '=', 'mem_b').execute()
    expect(await releaseOrphanedClaims(database)).toEqual(['mem_b'])
    expect(await listItems(database)).toEqual(AFTER_RELEASE)
    expect(await held()).toBe(onPostgres ? 2 : 0)
    expect(await releaseOrphanedClaims(database)).toEqual([])
  })

  test.runIf(onPostgres)('are released if they were only credits', async () => {
    const database = await tempDatabase()
    await join(database, 'mem_a')
    for (const member of ['mem_a', 'mem_b']) {
      await reserveCredits(database.db, { ...ACCOUNT, amount: 2, limit: 100, member })
    }
    expect(await releaseOrphanedClaims(database)).toEqual(['mem_b'])
    expect((await readCredit(database, 'acc_a', ACCOUNT.period)).held).toBe(2)
  })

  test('cannot be made once it has expired', async () => {
    const database = await tempDatabase()
    await addJob(database, ['1@x.test'], 'job_a')
    await fileAll(database, 'job_a')
    expect(await claimAll(database, 'job_a', 'mem_b')).toBe(0)
    await join(database, 'mem_b')
    expect(await claimAll(database, 'job_a', 'mem_b')).toBe(1)
  })
})

test.runIf(onPostgres)(
  'servers that expire each other while they claim items end with one owner per item',
  async () => {
    const { a, b } = await twoServers()
    const databases = [a, b] as const
    const jobs = ['job_1', 'job_2', 'job_3', 'job_4']
    for (const jobId of jobs) {
      await addJob(
        a,
        Array.from({ length: 50 }, (_, n) => `${n}@x.test`),
        jobId,
      )
      await fileAll(a, jobId)
    }
    for (const id of ['mem_a', 'mem_b', 'mem_c']) await join(a, id)
    await Promise.all(jobs.map((jobId, n) => claimAll(databases[n % 2] ?? a, jobId, 'mem_c')))
    await setHeartbeatAge(a, 'mem_c', 11_000)
    const expired = await Promise.all([
      ...[expire(a), expire(b, 'mem_b'), expire(a), expire(b, 'mem_b')],
      ...jobs.map(jobId => claimAll(b, jobId, 'mem_c').then(() => [])),
    ])
    expect(expired.flat()).toEqual(['mem_c'])
    await releaseOrphanedClaims(b)
    const claimed = await Promise.all(jobs.map(jobId => claimAll(a, jobId, 'mem_a')))
    expect(claimed).toEqual([50, 50, 50, 50])
  },
)
