import { readdirSync, readFileSync } from 'node:fs'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type Database,
  isStorageError,
  openDatabase,
  write,
  writeAsyncCommit,
  writeConcurrent,
} from '../../../src/db/database.ts'
import { createPostgresKysely, openPool } from '../../../src/db/postgres/pool.ts'
import { createJob, findJob } from '../../../src/jobs/job-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { onPostgres } from '../../support/database.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts'

const newJob = (id: string) => ({ id, sourceKey: id, source: '{}' })
const MANY = Array.from({ length: 20 }, (_, n) => n)

/** Connections available to users; the server reserves three more for superusers. */
const CONNECTIONS_MAX = 20

describe.runIf(onPostgres)('an unavailable server', () => {
  let server: PostgresServer
  let url: string
  beforeAll(async () => {
    server = await startPostgres({ settings: { max_connections: String(CONNECTIONS_MAX + 3) } })
    url = await server.create('ev')
  })
  afterAll(() => server.stop())

  async function opened(): Promise<Database> {
    const database = await openDatabase(url, systemClock)
    onTestFinished(() => database.close())
    return database
  }

  test.each(['fast', 'immediate'] as const)(
    'that restarts (%s) is used again by open pools',
    async mode => {
      const database = await opened()
      await createJob(database, newJob(`before ${mode}`))
      // Both active and idle connections are cut.
      await Promise.all(MANY.map(() => sql`select 1`.execute(database.reader)))
      const writing = writeConcurrent(database, async trx => {
        await trx.deleteFrom('job').execute()
        await server.restart(mode)
        await trx.deleteFrom('item').execute()
      })
      await expect(writing).rejects.toSatisfy(isStorageError)
      expect(await findJob(database, `before ${mode}`)).not.toBeNull()
      await createJob(database, newJob(`after ${mode}`))
      expect(
        await findJob({ db: database.reader as Database['db'] }, `after ${mode}`),
      ).not.toBeNull()
      await writeAsyncCommit(database, db => db.deleteFrom('answer').execute())
    },
  )

  test('during a statement is a transient error, and the connection is discarded', async () => {
    const database = await opened()
    const pids = Promise.all(MANY.map(() => pidOf(database)))
    const slow = sql`select pg_sleep(60)`.execute(database.db)
    const ended = expect(slow).rejects.toSatisfy(isStorageError)
    const before = await pids
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'ev' and pid <> pg_backend_pid()`.execute(database.reader)
    await ended
    const after = await Promise.all(MANY.map(() => inTheEnd(() => pidOf(database))))
    expect(after.filter(pid => before.includes(pid))).toEqual([])
  })

  test('without free connections is used again when there are some', async () => {
    const database = await opened()
    // Open connections are kept.
    const others: pg.Client[] = []
    const end = () => Promise.all(others.map(client => client.end()))
    onTestFinished(() => end().then(() => {}))
    for (;;) {
      const client = new pg.Client(url)
      try {
        await client.connect()
      } catch (error) {
        expect(error).toSatisfy(isStorageError)
        break
      }
      others.push(client)
    }
    const asked = await Promise.allSettled(MANY.map(() => sql`select 1`.execute(database.asyncDb)))
    const faults = asked.flatMap(one => (one.status === 'rejected' ? [one.reason] : []))
    expect(faults.length).toBeGreaterThan(0)
    expect(faults.filter(fault => !isStorageError(fault))).toEqual([])
    await expect(openDatabase(url, systemClock)).rejects.toThrow(
      /^The database postgres:\/\/…@127\.0\.0\.1:\d+\/ev cannot be used: .*too many clients already\. Check that the server is running/,
    )
    await Promise.all(others.splice(0).map(client => client.end()))
    await inTheEnd(() => sql`select 1`.execute(database.asyncDb))
    await Promise.all(MANY.map(() => sql`select 1`.execute(database.asyncDb)))
  })

  test('that hangs fails queries by timeout, and their transaction with them', async () => {
    const pool = openPool(url, systemClock, { max: 1, statementMs: 50, silenceMs: 50 })
    const db = createPostgresKysely(pool)
    onTestFinished(() => db.destroy())
    // On a busy machine the server may take longer than the timeout.
    const select = () => sql`select 1`.execute(db)
    await inTheEnd(select)
    const thaw = freeze(server)
    onTestFinished(thaw)
    const failing = db.transaction().execute(async trx => {
      await sql`select 1`.execute(trx)
    })
    await expect(failing).rejects.toSatisfy(isStorageError)
    thaw()
    await inTheEnd(select)
  })

  test('a statement that times out is cancelled, and its connection is reused', async () => {
    const db = createPostgresKysely(openPool(url, systemClock, { max: 1, statementMs: 50 }))
    onTestFinished(() => db.destroy())
    const pid = await pidOf({ db })
    await expect(sql`select pg_sleep(60)`.execute(db)).rejects.toSatisfy(isStorageError)
    expect(await pidOf({ db })).toBe(pid)
  })

  test('migrations have no statement timeout', async () => {
    const db = createPostgresKysely(openPool(url, systemClock, { max: 1, statementMs: null }))
    onTestFinished(() => db.destroy())
    const { rows } = await sql`
      select name, setting from pg_settings where name = 'statement_timeout'`.execute(db)
    expect(rows).toEqual([{ name: 'statement_timeout', setting: '0' }])
  })

  test('queued writers use one connection and leave the others to readers and concurrent writers', async () => {
    const database = await opened()
    const gate = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const first = write(database, async () => {
      started.resolve()
      await gate.promise
    })
    await started.promise
    const writes = MANY.map(n => write(database, async () => n))
    expect(await Promise.all(MANY.map(n => writeConcurrent(database, async () => n)))).toEqual(MANY)
    gate.resolve()
    await first
    expect(await Promise.all(writes)).toEqual(MANY)
  })
})

/** A connection lost while idle may be noticed by its next user. */
async function inTheEnd<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isStorageError(error)) throw error
    }
  }
}

async function pidOf({ db }: Pick<Database, 'db'>): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)
  return rows[0]?.pid ?? 0
}

/** Suspends the server and its children; returns a function that resumes them. */
function freeze({ pid }: PostgresServer): () => void {
  const all = [pid, ...childrenOf(pid)]
  for (const one of all) process.kill(one, 'SIGSTOP')
  return () => {
    for (const one of all.splice(0)) resume(one)
  }
}

/** A disconnected backend exits when it resumes, so it may be gone at the second call. */
function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function childrenOf(parent: number): number[] {
  const numbers = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return numbers.map(Number).filter(pid => parentOf(pid) === parent)
}

function parentOf(pid: number): number {
  try {
    // The process name before it may contain spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}
