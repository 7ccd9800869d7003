import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NamedStatements } from '../../../src/db/postgres/client.ts'
import { createPostgresKysely, openPool } from '../../../src/db/postgres/pool.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { type FakeClock, fakeClock } from '../../support/clock.ts'
import { onPostgres } from '../../support/database.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'

const times = (count: number) => Array.from({ length: count }, (_, n) => n)

describe('the name of a statement', () => {
  const names = () => new NamedStatements(fakeClock())

  test('is assigned after five executions, and does not change', () => {
    const statements = names()
    const given = times(6).map(() => statements.nameOf('select 1'))
    expect(given).toEqual([null, null, null, null, 'ev0', 'ev0'])
    expect(times(5).map(() => statements.nameOf('select 2'))[4]).toBe('ev1')
  })

  test.each([
    ['begin'],
    ['set local x = 1'],
    ['discard plans'],
    ['selected'],
    ['select 1; select 2'],
    [`select ${'1, '.repeat(2_000)} 1`],
  ])('is not assigned to %s', text => {
    const statements = names()
    expect(times(9).map(() => statements.nameOf(text))).toEqual(times(9).map(() => null))
  })

  test('is assigned to two hundred statements at most', () => {
    const statements = names()
    const given = times(250).map(n => times(5).map(() => statements.nameOf(`select ${n}`))[4])
    expect(given.filter(name => name !== null)).toHaveLength(200)
    expect(statements.nameOf('select 0')).toBe('ev0')
  })
})

test('plans of a connection are discarded after five seconds, not before', async () => {
  const clock = fakeClock()
  const statements = new NamedStatements(clock)
  const connection = {}
  const shouldForget = async (afterMs: number) => {
    await clock.advance(afterMs)
    return statements.shouldForgetPlans(connection)
  }
  expect([await shouldForget(0), await shouldForget(4_999)]).toEqual([false, false])
  expect([await shouldForget(1), await shouldForget(4_999)]).toEqual([true, false])
})

describe.runIf(onPostgres)('a frequent statement', () => {
  async function services(clock: FakeClock = fakeClock()) {
    const db = createPostgresKysely(openPool(await tempPostgres(), clock, { max: 1 }))
    onTestFinished(() => db.destroy())
    await sql`create temporary table row (n integer primary key, text text)`.execute(db)
    return { clock, db }
  }

  test('is kept by the connection with its plan', async () => {
    const { db } = await services()
    for (const n of times(12)) await sql`select text from row where n = ${n}`.execute(db)
    const kept = await sql`
      select name, generic_plans::int as plans from pg_prepared_statements
      where statement like '%from row where%'`.execute(db)
    expect(kept.rows).toEqual([{ name: 'ev0', plans: 3 }])
  })

  test('is replanned after some seconds, as its table may have grown', async () => {
    const { db, clock } = await services()
    await sql`insert into row values (0, '')`.execute(db)
    await sql`analyze row`.execute(db)
    const find = async (count: number) => {
      for (const n of times(count)) await sql`select text from row where n = ${n}`.execute(db)
    }
    const scans = async () => {
      await sql`select pg_stat_force_next_flush()`.execute(db)
      const { rows } = await sql<{ seq: number; index: number }>`
        select seq_scan as seq, idx_scan as index from pg_stat_user_tables
        where relname = 'row'`.execute(db)
      return rows[0] ?? { seq: 0, index: 0 }
    }
    await find(12)
    await sql`insert into row select n, '' from generate_series(1, 100000) as n`.execute(db)
    // Without the wait PostgreSQL scans the table, unless changes in other databases of the same
    // server fill its queue of invalidations: then it replans every statement.
    const before = await scans()
    await clock.advance(5_000)
    await find(3)
    const afterwards = await scans()
    expect([afterwards.seq - before.seq, afterwards.index - before.index]).toEqual([0, 3])
  })

  test('has the same name on each new connection', async () => {
    const pool = openPool(await tempPostgres(), systemClock, { max: 2 })
    const db = createPostgresKysely(pool)
    onTestFinished(() => db.destroy())
    const ask = () => sql<{ n: number }>`select 7 as n, pg_sleep(0.01)`.execute(db)
    for (const _ of times(6)) await ask()
    const both = await Promise.all([ask(), ask(), ask(), ask()])
    expect(both.map(({ rows }) => rows[0]?.n)).toEqual([7, 7, 7, 7])
    expect(pool.totalCount).toBe(2)
  })
})
