import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { addHistory } from '../../src/accounts/credits/history.ts'
import { addUsage, listUsage, type Usage } from '../../src/accounts/credits/usage.ts'
import { saveResponse } from '../../src/accounts/idempotency.ts'
import { type Database, openDatabase, writeConcurrent } from '../../src/db/database.ts'
import type { CachedAnswer } from '../../src/engine/result-cache.ts'
import { getCachedAnswers, putCachedAnswers } from '../../src/jobs/cached-answers.ts'
import { addItems, markCopies } from '../../src/jobs/import/item-import.ts'
import { cancelJob, countResults, startJob } from '../../src/jobs/job-state.ts'
import { getLockedJob, getLockedOpenJob, readJob } from '../../src/jobs/job-store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { verificationRow } from '../support/account-rows.ts'
import { addJob, fileAll, onPostgres, tempDatabase } from '../support/database.ts'
import { tempPostgres } from '../support/postgres-pool.ts'

const MANY = Array.from({ length: 12 }, (_, n) => n)

async function bothOf(): Promise<[Database, Database]> {
  const url = await tempPostgres()
  const both = await Promise.all([openDatabase(url, systemClock), openDatabase(url, systemClock)])
  onTestFinished(async () => {
    for (const database of both) await database.close()
  })
  return both as [Database, Database]
}

/** Number of transactions of this database rolled back because of a deadlock. */
async function deadlocks({ db }: Database): Promise<number> {
  await sql`select pg_stat_force_next_flush()`.execute(db)
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(db)
  return rows[0]?.deadlocks ?? 0
}

describe.runIf(onPostgres)('processes that write concurrently on PostgreSQL', () => {
  test.each([
    ['getLockedOpenJob', getLockedOpenJob],
    ['getLockedJob', getLockedJob],
  ])('serialize on a job: %s locks it until the transaction ends', async (_, take) => {
    const [one, other] = await bothOf()
    await addJob(one, ['a@x.test'], 'job_a')
    const gate = Promise.withResolvers<void>()
    const taken = Promise.withResolvers<void>()
    const recording = writeConcurrent(one, async trx => {
      await take(trx, 'job_a')
      taken.resolve()
      await gate.promise
      const counts = { deliverable: 1, risky: 0, undeliverable: 0, unknown: 0 }
      return countResults(trx, new Map([['job_a', counts]]), 5)
    })
    await taken.promise
    // Reads do not wait.
    expect(await readJob(other, 'job_a')).toMatchObject({ done: 0 })
    const cancelling = cancelJob(other, 'job_a')
    await untilWaiting(other)
    gate.resolve()
    expect(await recording).toMatchObject([{ state: 'completed', done: 1 }])
    expect(await cancelling).toBe(false)
  })

  test('count usage without deadlocks, in any order', async () => {
    const [one, other] = await bothOf()
    const rows = MANY.map(
      (n): Usage => ({
        account_id: 'acc_a',
        key_id: `key_${n % 4}`,
        day: n % 3,
        class: 'risky',
        verifications: 1,
        cached: 0,
        credits: 1,
      }),
    )
    const before = await deadlocks(one)
    const count = (database: Database, usage: readonly Usage[]) =>
      writeConcurrent(database, trx => addUsage(trx, usage))
    await Promise.all(MANY.flatMap(() => [count(one, rows), count(other, rows.toReversed())]))
    const used = await listUsage(one, { accountId: 'acc_a', from: 0, to: 9 })
    expect(used).toHaveLength(12)
    expect(new Set(used.map(({ verifications }) => verifications))).toEqual(new Set([24]))
    expect(await deadlocks(one)).toBe(before)
  })

  test('cache answers without deadlocks', async () => {
    const [one, other] = await bothOf()
    const probed = { answer: { kind: 'accepted', why: 'accepted' }, catchAll: false, host: 'mx' }
    const answer = { probed, at: systemClock.now() } as unknown as CachedAnswer
    const entries = Array.from({ length: 200 }, (_, n) => [`u${n}@x.test`, answer] as const)
    const before = await deadlocks(one)
    const keep = (database: Database, some: typeof entries) =>
      writeConcurrent(database, trx => putCachedAnswers(trx, new Map(some)))
    await Promise.all(MANY.flatMap(() => [keep(one, entries), keep(other, entries.toReversed())]))
    const kept = await getCachedAnswers(
      one,
      entries.map(([key]) => key),
    )
    expect(kept.size).toBe(200)
    expect(await deadlocks(one)).toBe(before)
  })

  test('insert the same verification once', async () => {
    const [one, other] = await bothOf()
    const rows = MANY.map(n => verificationRow({ id: `ver_${n}`, created_at: n }))
    await Promise.all(
      [one, other].map(database => writeConcurrent(database, trx => addHistory(trx, rows))),
    )
    const { rows: left } = await sql`select 1 from verification`.execute(one.db)
    expect(left).toHaveLength(MANY.length)
  })

  test('store rows of many lists concurrently', async () => {
    const [one, other] = await bothOf()
    await Promise.all(MANY.map(n => addJob(n % 2 === 0 ? one : other, ['a', 'b', 'a'], `job_${n}`)))
    const jobs = await one.db.selectFrom('job').select(['total', 'duplicates']).execute()
    expect(jobs).toEqual(MANY.map(() => ({ total: 3, duplicates: 1 })))
    await addItems(one, 'job_0', [{ position: 4, text: 'd', dedupeKey: 'd' }])
    await markCopies(other, 'job_0', [{ position: 4, copies: 7 }])
    const { rows } = await sql`
      select copies from item where job_id = 'job_0' and position = 4`.execute(one.db)
    expect(rows).toEqual([{ copies: 7 }])
  })
})

test('store only one of several concurrent responses for the same key', async () => {
  const database = await tempDatabase()
  const row = (answer: string) => ({
    key_id: 'key_a',
    idempotency_key: 'k',
    fingerprint: 'f',
    status: 200,
    answer,
    created_at: 100,
  })
  const keep = (answer: string) =>
    writeConcurrent(database, trx => saveResponse(trx, row(answer), 50))
  const kept = await Promise.all(MANY.map(n => keep(String(n))))
  expect(kept.filter(one => one)).toHaveLength(1)
  const rows = await database.db.selectFrom('replay').select('answer').execute()
  expect(rows).toEqual([{ answer: String(kept.indexOf(true)) }])
})

test.runIf(onPostgres)(
  'a resumed job releases orphaned claims, but not those of live members',
  async () => {
    const database = await tempDatabase()
    await addJob(database, ['a@x.test', 'b@x.test', 'c@x.test', 'd@x.test'], 'job_a')
    await fileAll(database, 'job_a')
    await sql`
      insert into member (id, role, name, version, egresses, joined_at, seen_at)
      values ('mem_alive', 'worker', 'w', '1', '[]', 0, 0)`.execute(database.db)
    await sql`
      update item set state = 'probing', holder = case position
        when 1 then 'mem_alive' when 2 then 'mem_gone' else 'mem_left' end
      where position < 4`.execute(database.db)
    await startJob(database, 'job_a')
    const items = await database.db
      .selectFrom('item')
      .select(['state', 'holder'])
      .orderBy('position')
      .execute()
    expect(items).toEqual([
      { state: 'probing', holder: 'mem_alive' },
      ...[2, 3, 4].map(() => ({ state: 'routed', holder: null })),
    ])
  },
)

/** Resolves when a session waits for a lock in the database. */
async function untilWaiting({ reader }: Database): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(reader)
    if (rows.length > 0) return
  }
}
