import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { isStorageError, openDatabase, write, writeAsyncCommit } from '../../src/db/database.ts'
import { runEach } from '../../src/db/sqlite.ts'
import { unusableFile } from '../../src/db/unusable.ts'
import { deleteJob } from '../../src/jobs/delete-job.ts'
import { createJob, readJob } from '../../src/jobs/job-store.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { addJob, onPostgres, tempDatabase, tempFolder } from '../support/database.ts'

const newJob = (id: string) => ({ id, sourceKey: id, source: '{}' })

describe.skipIf(onPostgres)('a database', () => {
  test('is created with its folder, readable only by its owner, and persists', async () => {
    const file = join(tempFolder(), 'deep/er/ev.sqlite')
    const first = await tempDatabase({ file })
    await createJob(first, newJob('job_a'))
    await first.close()
    expect(statSync(dirname(file)).mode & 0o077).toBe(0)
    const second = await tempDatabase({ file })
    expect(await readJob(second, 'job_a')).toMatchObject({ id: 'job_a' })
  })

  test('gives the event loop a turn while it writes many rows, in one transaction', async () => {
    const { now, after } = fakeClock()
    // Each reading of this clock is five milliseconds later.
    let ticks = 0
    const clock: Clock = { now, after, monotonicNow: () => (ticks += 5) }
    const database = await tempDatabase({ clock })
    let turns = 0
    const insert = "insert into answer (address_key, remembered, keep_until) values (?, '{}', ?)"
    const rows = Array.from({ length: 100 }, (_, n) => [`a${n}`, n])
    let isWritten = false
    const countTurns = () => {
      turns++
      if (!isWritten) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    await expect(
      write(database, async trx => {
        expect(await runEach(trx, insert, rows)).toEqual(rows.map(() => 1))
        throw new Error('rolled back')
      }),
    ).rejects.toThrow('rolled back')
    isWritten = true
    expect(turns).toBeGreaterThan(25)
    expect(await database.db.selectFrom('answer').select('address_key').execute()).toEqual([])
  })

  test.each([
    ['removed', (file: string) => rmSync(file)],
    ['moved', (file: string) => renameSync(file, `${file}.moved`)],
    [
      'replaced',
      (file: string) => {
        writeFileSync(`${file}.new`, '')
        renameSync(`${file}.new`, file)
      },
    ],
  ])('whose file was %s stores nothing until the file is back', async (_, lose) => {
    const file = join(tempFolder(), 'ev.sqlite')
    const database = await tempDatabase({ file })
    await createJob(database, newJob('job_a'))
    linkSync(file, `${file}.kept`)
    lose(file)
    const expectFailure = async (work: () => Promise<unknown>) => {
      const error = await work().catch((caught: unknown) => caught)
      expect(isStorageError(error), String(error)).toBe(true)
    }
    await expectFailure(() => createJob(database, newJob('job_b')))
    await expectFailure(() => deleteJob(database, 'job_a'))
    await expectFailure(() => readJob(database, 'job_a'))
    renameSync(`${file}.kept`, file)
    expect(await readJob(database, 'job_a')).toMatchObject({ id: 'job_a' })
    await createJob(database, newJob('job_b'))
  })

  test('refuses to write through its reader, and such code does not compile', async () => {
    const { reader } = await tempDatabase()
    // @ts-expect-error a reader has no statements that write
    await expect(reader.deleteFrom('job').execute()).rejects.toThrow(/readonly/)
  })

  test('loses nothing in a power cut: every commit is synced, except claims', async () => {
    const { db, ...database } = await tempDatabase()
    const level = async () => {
      const { rows } = await db.executeQuery<{ synchronous: number }>(pragma('synchronous'))
      return rows[0]?.synchronous
    }
    const FULL = 2
    expect(await level()).toBe(FULL)
    await writeAsyncCommit({ db, ...database }, async inner => {
      const { rows } = await inner.executeQuery<{ synchronous: number }>(pragma('synchronous'))
      expect(rows[0]?.synchronous).toBe(1)
    })
    expect(await level()).toBe(FULL)
    const failing = writeAsyncCommit({ db, ...database }, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    expect(await level()).toBe(FULL)
  })

  test('that is full says so, and works again when there is space', async () => {
    const database = await tempDatabase({ file: join(tempFolder(), 'ev.sqlite') })
    const limit = (pages: number) => database.db.executeQuery(pragma(`max_page_count = ${pages}`))
    await limit(1) // Existing pages are kept.
    const big = { ...newJob('job_a'), source: 'x'.repeat(1_000_000) }
    await expect(createJob(database, big)).rejects.toThrow('database or disk is full')
    await limit(1_000)
    await createJob(database, big)
    expect(await readJob(database, 'job_a')).toMatchObject({ id: 'job_a' })
  })
})

describe.skipIf(onPostgres)('two that write', () => {
  test('wait for each other', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const clock = fakeClock()
    const [one, other] = [await tempDatabase({ file, clock }), await tempDatabase({ file, clock })]
    const gate = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const first = write(one, async trx => {
      await trx.deleteFrom('job').execute()
      started.resolve()
      await gate.promise
    })
    await started.promise
    let done = false
    const second = createJob(other, newJob('job_a')).then(() => {
      done = true
    })
    await clock.advance(100)
    expect(done).toBe(false)
    gate.resolve()
    await first
    await clock.advance(100)
    await second
    expect(await readJob(one, 'job_a')).toMatchObject({ id: 'job_a' })
  })

  test('in one process poll for the lock one at a time, as each poll blocks the event loop', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const clock = fakeClock()
    const [one, other] = [await tempDatabase({ file, clock }), await tempDatabase({ file, clock })]
    await sql`begin immediate`.execute(one.db)
    const writes = Array.from({ length: 20 }, (_, n) => createJob(other, newJob(`job_${n}`)))
    for (let n = 0; n < 10; n++) {
      await clock.advance(20)
      // Every writer that polls would wait for its next poll.
      expect(clock.pending).toBe(1)
    }
    await sql`commit`.execute(one.db)
    await clock.advance(20)
    await Promise.all(writes)
    const ids = await one.db.selectFrom('job').select('id').execute()
    expect(ids).toHaveLength(20)
  })

  test('time out with the reason, and lose nothing', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const one = await tempDatabase({ file })
    // Each reading of this clock is ten seconds later.
    let ticks = 0
    const hurried: Clock = {
      now: () => 0,
      monotonicNow: () => (ticks += 10_000),
      after: (_, callback) => {
        setImmediate(callback)
        return () => {}
      },
    }
    const other = await tempDatabase({ file, clock: hurried })
    const gate = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const first = write(one, async trx => {
      await trx
        .insertInto('answer')
        .values({ address_key: 'a', remembered: '{}', keep_until: 1 })
        .execute()
      started.resolve()
      await gate.promise
    })
    await started.promise
    await expect(createJob(other, newJob('job_a'))).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
    gate.resolve()
    await first
    await createJob(other, newJob('job_a'))
    expect(await one.db.selectFrom('answer').select('address_key').execute()).toHaveLength(1)
  })
})

describe.skipIf(onPostgres)(
  'a file that is not a database of this ev is refused with a remedy, and not changed',
  () => {
    const refusal = (about: RegExp) =>
      expect.objectContaining({ code: 'io', message: expect.stringMatching(about) })

    async function made(): Promise<string> {
      const file = join(tempFolder(), 'ev.sqlite')
      const database = await openDatabase(`sqlite:${file}`, fakeClock())
      await addJob(
        database,
        Array.from({ length: 2_000 }, (_, n) => `user${n}@x.test`),
        'job_a',
      )
      await database.close()
      return file
    }

    async function expectRefused(file: string, about: RegExp): Promise<void> {
      const before = readFileSync(file)
      await expect(openDatabase(`sqlite:${file}`, fakeClock())).rejects.toThrow(refusal(about))
      expect(readFileSync(file).equals(before)).toBe(true)
    }

    test('text', async () => {
      const file = join(tempFolder(), 'ev.sqlite')
      writeFileSync(file, 'name,email\nAnn,ann@x.test\n')
      await expectRefused(
        file,
        /^The database .*ev\.sqlite cannot be used: file is not a database\. Choose another directory/,
      )
    })

    test('a damaged header', async () => {
      const file = await made()
      const handle = openSync(file, 'r+')
      writeSync(handle, Buffer.alloc(64, 0xff), 0, 64, 0)
      closeSync(handle)
      await expectRefused(
        file,
        /cannot be used: .* --data-dir, or move the file away if it is damaged/,
      )
    })

    test('a truncated file', async () => {
      const file = await made()
      truncateSync(file, 5_000)
      await expectRefused(file, /cannot be used: .*malformed.* --data-dir, or move the file away/)
    })

    test('the database of another program', async () => {
      const file = join(tempFolder(), 'ev.sqlite')
      const foreign = new SqliteDatabase(file)
      foreign.exec('create table songs (title text)')
      foreign.close()
      await expectRefused(
        file,
        /cannot be used: it belongs to another program\. Choose another directory/,
      )
    })

    test('the database of a newer ev', async () => {
      const file = await made()
      const newer = new SqliteDatabase(file)
      newer
        .prepare("insert into kysely_migration (name, timestamp) values ('9999_newer', '2030')")
        .run()
      newer.close()
      await expectRefused(file, /It was written by a newer version of ev: use that version\.$/)
    })

    test('the database of an early development version', async () => {
      const file = await made()
      const early = new SqliteDatabase(file)
      early.exec(`delete from kysely_migration where name <> '0001_initial';
        update kysely_migration set name = '0001_lists'`)
      early.close()
      await expectRefused(
        file,
        /a development version of ev created it, .*\. Open it once with the last development version, or choose another directory with --data-dir\.$/,
      )
    })

    test('a folder, and a path that cannot be created', async () => {
      const folder = tempFolder()
      await expect(openDatabase(`sqlite:${folder}`, fakeClock())).rejects.toThrow(
        refusal(/^The database .* cannot be used: .* --data-dir/),
      )
      expect(readdirSync(folder)).toEqual([])
      const file = join(folder, 'file')
      writeFileSync(file, '')
      await expect(openDatabase(`sqlite:${file}/ev.sqlite`, fakeClock())).rejects.toThrow(
        refusal(/^The database .*file\/ev\.sqlite cannot be used: /),
      )
    })

    test('one on a failing disk, without the advice to move it away', async () => {
      const file = await made()
      // A folder at the path of its journal.
      mkdirSync(`${file}-wal`)
      await expectRefused(
        file,
        /Check its permissions, run "ev doctor" .* the disk is full.* or choose another directory/,
      )
    })

    test('one in a directory without permission, without the advice to move it away', () => {
      const error = new Error("EACCES: permission denied, mkdir '/root/ev'")
      expect(unusableFile('/root/ev/ev.sqlite', Object.assign(error, { code: 'EACCES' }))).toEqual(
        refusal(
          /cannot be used: permission denied\. Check its permissions, run "ev doctor" .* another directory with --data-dir\.$/,
        ),
      )
    })

    test('damage found later is an error, not a wrong result', async () => {
      const file = await made()
      const handle = openSync(file, 'r+')
      for (const page of rootPages(file, ['item', 'job'])) {
        writeSync(handle, Buffer.alloc(PAGE_SIZE, 0xa5), 0, PAGE_SIZE, (page - 1) * PAGE_SIZE)
      }
      closeSync(handle)
      const damaged = await tempDatabase({ file })
      await expect(deleteJob(damaged, 'job_a')).rejects.toMatchObject({
        code: expect.stringMatching(/^SQLITE_CORRUPT/),
      })
    })
  },
)

const PAGE_SIZE = 4_096

/** Root pages of the tables, from 1. */
function rootPages(file: string, tables: readonly string[]): number[] {
  const sqlite = new SqliteDatabase(file, { readonly: true })
  const page = sqlite.prepare('select rootpage from sqlite_master where name = ?').pluck()
  const pages = tables.map(name => page.get(name) as number)
  sqlite.close()
  return pages
}

const pragma = (name: string) =>
  ({
    sql: `pragma ${name}`,
    parameters: [],
    query: { kind: 'RawNode' },
    queryId: { queryId: name },
  }) as never
