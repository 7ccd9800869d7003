import { readFileSync, writeFileSync } from 'node:fs'
import { sql } from 'kysely'
import { Migrator, NO_MIGRATIONS } from 'kysely/migration'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type Database,
  isStorageError,
  openDatabase,
  write,
  writeConcurrent,
} from '../../src/db/database.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'
import { createPostgresKysely, openPool } from '../../src/db/postgres/pool.ts'
import { TABLES } from '../../src/db/schema.ts'
import type { CachedAnswer } from '../../src/engine/result-cache.ts'
import { getCachedAnswers, putCachedAnswers } from '../../src/jobs/cached-answers.ts'
import { createJob, readJob } from '../../src/jobs/job-store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { latin1Database, onPostgres } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { ask, type PostgresServer, startPostgres } from '../support/postgres-server.ts'

const newJob = (id: string) => ({ id, sourceKey: id, source: '{}' })

describe.runIf(onPostgres)('a PostgreSQL database', () => {
  let server: PostgresServer
  let made = 0
  beforeAll(async () => {
    server = await startPostgres({ settings: { deadlock_timeout: '50ms' } })
  })
  afterAll(() => server.stop())

  const empty = () => server.create(`ev_${++made}`)

  async function opened(url: string, clock = systemClock): Promise<Database> {
    const database = await openDatabase(url, clock)
    onTestFinished(() => database.close())
    return database
  }

  test('loses nothing in a power cut: every commit waits for the disk, except asynchronous ones', async () => {
    const { db, reader, asyncDb } = await opened(await empty())
    const level = async (one: Database['reader']) =>
      (
        await sql<{ level: string }>`select current_setting('synchronous_commit') as level`.execute(
          one,
        )
      ).rows[0]?.level
    expect(await Promise.all([db, reader, asyncDb].map(level))).toEqual(['on', 'on', 'off'])
  })

  test('opened by several processes at once is migrated once', async () => {
    const url = await empty()
    await Promise.all(Array.from({ length: 4 }, () => opened(url)))
    const names = await ask<{ name: string }>(
      url,
      'select name from kysely_migration order by name',
    )
    expect(names.map(({ name }) => name)).toEqual(Object.keys(MIGRATIONS).sort())
  })

  test('a crash of the server empties the cache of answers, which is not logged, and no other table', async () => {
    const url = await empty()
    const database = await opened(url)
    await createJob(database, newJob('job_a'))
    const probed = { answer: { kind: 'accepted', why: 'accepted' }, catchAll: false }
    const answer = { probed, at: systemClock.now() } as unknown as CachedAnswer
    await write(database, trx => putCachedAnswers(trx, new Map([['ann@a.test', answer]])))
    expect((await getCachedAnswers(database, ['ann@a.test'])).size).toBe(1)
    const unlogged = await ask(
      url,
      `
      select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'u'`,
    )
    expect(unlogged).toEqual([{ relname: 'answer' }])
    await database.close()
    await server.restart('immediate')
    const after = await opened(url)
    expect((await getCachedAnswers(after, ['ann@a.test'])).size).toBe(0)
    expect(await readJob(after, 'job_a')).toMatchObject({ id: 'job_a' })
  })

  test('compares all texts by bytes, and is not altered if it already does', async () => {
    const url = await empty()
    await (await openDatabase(url, systemClock)).close()
    const columns = () =>
      ask<{ table: string; column: string; collation: string; xmin: string }>(
        url,
        `select relname as table, attname as column, collname as collation, a.xmin::text as xmin
         from pg_attribute a join pg_class c on c.oid = attrelid
           join pg_collation l on l.oid = attcollation
         where relname = any ($1) and attnum > 0 and relkind = 'r' order by 1, 2`,
        [[...TABLES]],
      )
    const first = await columns()
    expect(new Set(first.map(({ table }) => table)).size).toBeGreaterThan(TABLES.length / 2)
    expect(first.filter(({ collation }) => collation !== 'C')).toEqual([])
    // As a migration creates a column.
    await ask(url, 'alter table job alter column name type text collate "default"')
    await (await openDatabase(url, systemClock)).close()
    const isSame = (one: { table: string; column: string }) =>
      one.table !== 'job' || one.column !== 'name'
    expect((await columns()).filter(isSame)).toEqual(first.filter(isSame))
    expect((await columns()).find(one => !isSame(one))).toMatchObject({ collation: 'C' })
  })

  describe('with several schemas', () => {
    test('has its tables in the schema of the URL, whatever another program has in another', async () => {
      const url = await empty()
      await ask(url, 'create schema house')
      await ask(url, 'create table kysely_migration (name text, timestamp text)')
      await ask(url, "insert into kysely_migration values ('of another program', '')")
      await ask(url, 'create table job (songs text)')
      const within = `${url}?options=-c%20search_path%3Dhouse`
      const database = await opened(within)
      await createJob(database, newJob('job_a'))
      await write(database, trx => trx.deleteFrom('answer').execute())
      for (const db of [database.db, database.reader, database.asyncDb]) {
        expect(await db.selectFrom('job').select('id').execute()).toEqual([{ id: 'job_a' }])
      }
      expect(await ask(url, 'select * from public.job')).toEqual([])
      const ours = await ask(
        url,
        "select 1 from information_schema.tables where table_schema = 'house'",
      )
      // Two belong to the migrations.
      expect(ours).toHaveLength(TABLES.length + 2)
      expect(await readJob(await opened(within), 'job_a')).toMatchObject({ id: 'job_a' })
    })

    test('keeps using its schema when another one is created earlier in the search path', async () => {
      const url = await empty()
      await createJob(await opened(url), newJob('job_a'))
      await ask(url, 'create schema ev')
      expect(await readJob(await opened(url), 'job_a')).toMatchObject({ id: 'job_a' })
    })
  })

  describe('that is shared', () => {
    test('has one writer at a time, across all processes', async () => {
      const url = await empty()
      const [one, other] = [await opened(url), await opened(url)]
      const gate = Promise.withResolvers<void>()
      const started = Promise.withResolvers<void>()
      const order: string[] = []
      const first = write(one, async () => {
        started.resolve()
        await gate.promise
        order.push('first')
      })
      await started.promise
      const second = write(other, async () => void order.push('second'))
      await writeConcurrent(other, async () => void order.push('beside'))
      gate.resolve()
      await Promise.all([first, second])
      expect(order).toEqual(['beside', 'first', 'second'])
    })

    test('retries transactions after a conflict', async () => {
      const url = await empty()
      const [one, other] = [await opened(url), await opened(url)]
      await createJob(one, newJob('job_a'))
      await createJob(one, newJob('job_b'))
      const both = Promise.withResolvers<void>()
      let waiting = 0
      const locks = (database: Database, ids: readonly string[]) =>
        writeConcurrent(database, async trx => {
          for (const [n, id] of ids.entries()) {
            await trx.updateTable('job').set({ name: id }).where('id', '=', id).execute()
            if (n === 0 && ++waiting === 2) both.resolve()
            await both.promise
          }
        })
      await Promise.all([locks(one, ['job_a', 'job_b']), locks(other, ['job_b', 'job_a'])])
      // The server rolled one of them back, and it was retried, a second time if it was too early.
      expect(waiting).toBeGreaterThanOrEqual(3)
      expect(await readJob(one, 'job_a')).toMatchObject({ name: 'job_a' })
    })

    test('fails with a retryable error after a timeout in the write queue', async () => {
      const clock = fakeClock()
      const database = await opened(await empty(), clock)
      const gate = Promise.withResolvers<void>()
      const started = Promise.withResolvers<void>()
      const first = write(database, async () => {
        started.resolve()
        await gate.promise
      })
      await started.promise
      const late = write(database, async () => 'late')
      await clock.advance(10_001)
      const later = write(database, async () => 'later')
      gate.resolve()
      await first
      await expect(late).rejects.toSatisfy(isStorageError)
      expect(await later).toBe('later')
    })
  })

  describe('that cannot be used is refused with a remedy, without the password', () => {
    const refused = (url: string, about: RegExp) =>
      expect(openDatabase(url, systemClock)).rejects.toThrow(
        expect.objectContaining({ code: 'io', message: expect.stringMatching(about) }),
      )

    test('written by a newer ev: no migration is run', async () => {
      const url = await empty()
      const db = createPostgresKysely(openPool(url, systemClock, { max: 1 }))
      const provider = { getMigrations: async () => MIGRATIONS }
      const { error } = await new Migrator({ db, provider }).migrateTo(NO_MIGRATIONS)
      await db.destroy()
      expect(error).toBeUndefined()
      await ask(url, "insert into kysely_migration (name, timestamp) values ('9999_newer', '2030')")
      const tables = () =>
        ask(url, 'select oid, relname, xmin::text, relfilenode from pg_class order by oid')
      const before = await tables()
      await refused(
        url,
        /^The database postgres:\/\/…@127\.0\.0\.1:\d+\/ev_\d+ cannot be used: .*It was written by a newer version of ev: use that version\.$/,
      )
      expect(await tables()).toEqual(before)
    })

    test('created by an early development version', async () => {
      const url = await empty()
      await (await openDatabase(url, systemClock)).close()
      await ask(url, "delete from kysely_migration where name <> '0001_initial'")
      await ask(url, "update kysely_migration set name = '0001_lists'")
      await refused(
        url,
        /a development version of ev created it, .*\. Open it once with the last development version, or choose another one with --database\.$/,
      )
    })

    test('not in UTF-8: nothing is created in it', async () => {
      const url = await latin1Database()
      await refused(
        url,
        /cannot be used: its encoding is LATIN1, and ev needs UTF8\. Create another one with: create database NAME encoding 'UTF8' template template0; then set it with --database\.$/,
      )
      const [row] = await ask<{ tables: string }>(
        url,
        "select count(*) as tables from pg_tables where schemaname in ('public', 'ev_boss')",
      )
      expect(row?.tables).toBe('0')
    })

    test('with tables of another program', async () => {
      const url = await empty()
      await ask(url, 'create table job (songs text)')
      await refused(
        url,
        /relation "job" already exists\. Another program uses this database\. Choose a separate one/,
      )
    })

    test('that does not exist', async () => {
      await refused(
        server.url('none'),
        /database "none" does not exist\. Correct the user, password or database name in --database/,
      )
    })

    test('in which the user may not create tables', async () => {
      const url = await empty()
      await ask(url, 'create role guest login')
      await refused(
        url.replace('//ev@', '//guest@'),
        /permission denied for schema public\. .*As the owner of the database, run: grant create on/,
      )
    })

    test('with a wrong or missing password', async () => {
      const url = await empty()
      const socketsOpen = () =>
        process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap').length
      const before = socketsOpen()
      const [{ hba_file: file } = { hba_file: '' }] = await ask<{ hba_file: string }>(
        url,
        'show hba_file',
      )
      await ask(url, "create role locked login password 'right'")
      writeFileSync(
        file,
        `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(file, 'utf8')}`,
      )
      await ask(url, 'select pg_reload_conf()')
      const place = /^The database postgres:\/\/…@127\.0\.0\.1:\d+\/ev_\d+ cannot be used: /.source
      await refused(
        url.replace('//ev@', '//locked:wr%2Fong@'),
        new RegExp(
          `${place}password authentication failed for user "locked"\\. Correct the user, password`,
        ),
      )
      await refused(
        url.replace('//ev@', '//locked@'),
        new RegExp(
          `${place}.*password must be a string\\. The server requires a password\\. Set it in`,
        ),
      )
      // An open connection would keep the process alive.
      await vi.waitFor(() => expect(socketsOpen()).toBeLessThanOrEqual(before))
    })

    test('on a server that does not respond', async () => {
      const url = `postgres://ev:s3cret@127.0.0.1:${await freePort()}/ev`
      await refused(
        `${url}?application_name=x&password=s3cret`,
        /^The database postgres:\/\/…@127\.0\.0\.1:\d+\/ev cannot be used: connection refused [^?]*\. Check that the server is running, accepts connections/,
      )
      await refused(
        url.replace('127.0.0.1', 'localhost'),
        /localhost:\d+\/ev cannot be used: .*connection refused.*\. Check that the server is running/,
      )
    })
  })
})
