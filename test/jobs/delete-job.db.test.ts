import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Database, openDatabase, write } from '../../src/db/database.ts'
import { acquireLock, jobLock } from '../../src/db/file-lock.ts'
import { deleteJob, deleteJobsBefore } from '../../src/jobs/delete-job.ts'
import { addItems, deleteLoadingJobs } from '../../src/jobs/import/item-import.ts'
import { queuedItems } from '../../src/jobs/item-store.ts'
import { accountJob, openJobs } from '../../src/jobs/job-list.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { createJob, findJob, getLockedOpenJob, readJob } from '../../src/jobs/job-store.ts'
import { reopenJob } from '../../src/jobs/prepare-resume.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { addJob, onPostgres, queuedJob, tempDatabase, tempFolder } from '../support/database.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { queueJob } from '../support/queue-job.ts'

const ROWS = 9_000

describe('deleting a long list', () => {
  test('hides it from its account while its rows are deleted, without blocking others', async () => {
    const database = await createDatabaseWithJob()
    const deleting = deleteJob(database, 'j')
    const seen: number[] = []
    let isDone = false
    void deleting.then(() => {
      isDone = true
    })
    while (!isDone) {
      seen.push(await rowsLeft(database))
      if ((seen.at(-1) ?? 0) < ROWS) {
        expect(await accountJob(database, 'acc_a', 'j')).toBeNull()
        expect(await openJobs(database)).toEqual([])
        expect(await getLockedOpenJob(database.db, 'j')).toBeNull()
      }
      await setImmediate()
    }
    await deleting
    // A concurrent request was answered between two pages.
    expect(seen.some(rows => rows > 0 && rows < ROWS)).toBe(true)
    expect(await findJob(database, 'j')).toBeNull()
    expect(await rowsLeft(database)).toBe(0)
  })

  test('continues after a crash', async () => {
    const database = await createDatabaseWithJob()
    const crash = new Error('power cut')
    let writes = 0
    const failing: Database = {
      ...database,
      db: new Proxy(database.db, {
        get(db, name) {
          if (name === 'transaction' && ++writes > 2) throw crash
          const value = Reflect.get(db, name)
          return typeof value === 'function' ? value.bind(db) : value
        },
      }),
    }
    await expect(deleteJob(failing, 'j')).rejects.toBe(crash)
    expect(await rowsLeft(database)).toBeGreaterThan(0)
    expect(await accountJob(database, 'acc_a', 'j')).toBeNull()
    await deleteLoadingJobs(database, database.clock.now() + 1)
    expect(await findJob(database, 'j')).toBeNull()
    expect(await rowsLeft(database)).toBe(0)
  })
})

describe('a job that several processes delete', () => {
  test('at the same time is deleted when each of them returns', async () => {
    const [one, other] = await openTwo(await createSharedDatabase())
    await Promise.all([deleteJob(one, 'j'), deleteJob(other, 'j')])
    expect(await findJob(one, 'j')).toBeNull()
    expect(await rowsLeft(one)).toBe(0)
  })

  test('because it is old is returned by only one of them', async () => {
    const [one, other] = await openTwo(await createSharedDatabase())
    await cancelJob(one, 'j')
    const folder = tempFolder()
    const before = one.clock.now() + 1
    const removed = await Promise.all(
      [one, other].map(database => deleteJobsBefore(database, folder, before)),
    )
    expect(removed.flat().map(({ id }) => id)).toEqual(['j'])
    expect(await rowsLeft(one)).toBe(0)
  })

  test('stays if it is no longer selected', async () => {
    const database = await createDatabaseWithJob()
    expect(await deleteJob(database, 'j', ({ state }) => state === 'loading')).toBe(false)
    expect(await deleteJob(database, 'no such job')).toBe(false)
    expect(await rowsLeft(database)).toBe(ROWS)
  })
})

test('old jobs that are deleted do not include those that were resumed meanwhile', async () => {
  const { database, clock } = await queuedJob(
    Array.from({ length: 20_000 }, (_, n) => `u${n}@x.test`),
    'long',
  )
  await clock.advance(1)
  await addJob(database, ['a'], 'resumed')
  for (const id of ['long', 'resumed']) await cancelJob(database, id)
  const cancelled = await readJob(database, 'resumed')
  await clock.advance(1_000)
  const deleting = deleteJobsBefore(database, tempFolder(), clock.now())
  // Ten transactions delete the rows; the first is read long before the last.
  const first = () => queuedItems(database, { jobId: 'long', after: 0, max: 1 })
  while ((await first())[0]?.position === 1) await setImmediate()
  const o = { now: clock.now(), reservation: null }
  await write(database, trx => reopenJob(trx, cancelled, o))
  expect((await deleting).map(({ id }) => id)).toEqual(['long'])
  expect(await readJob(database, 'resumed')).toMatchObject({ state: 'queued' })
})

test.skipIf(onPostgres)(
  'old jobs that are deleted do not include locked ones, of which the output may be about to be written',
  async () => {
    const { database, clock, job } = await queuedJob([], 'held')
    await addJob(database, [], 'free')
    await clock.advance(1_000)
    const folder = tempFolder()
    const lock = acquireLock(...jobLock(database.file, folder, job.source_key))
    const deleted = await deleteJobsBefore(database, folder, clock.now())
    expect(deleted.map(({ id }) => id)).toEqual(['free'])
    lock?.release()
    expect(await deleteJobsBefore(database, folder, clock.now())).toMatchObject([{ id: 'held' }])
  },
)

/** Creates a database with a list that several processes can open, and returns its URL. */
const createSharedDatabase = async () => {
  const url = onPostgres ? await tempPostgres() : `sqlite:${join(tempFolder(), 'ev.sqlite')}`
  const database = await open(url)
  await addLongJob(database)
  return url
}

const openTwo = async (url: string) => [await open(url), await open(url)] as const

async function open(url: string): Promise<Database> {
  const database = await openDatabase(url, systemClock)
  onTestFinished(() => database.close())
  return database
}

async function createDatabaseWithJob(): Promise<Database> {
  const database = await tempDatabase()
  await addLongJob(database)
  return database
}

async function addLongJob(database: Database): Promise<void> {
  const owner = { accountId: 'acc_a', keyId: 'key_a', type: 'batch' as const, name: null }
  await createJob(database, {
    id: 'j',
    sourceKey: 'j',
    source: '{}',
    owner: { ...owner, sandbox: false },
  })
  const items = Array.from({ length: ROWS }, (_, n) => {
    const text = `person${n}@a.test`
    return { position: n + 1, text, dedupeKey: text }
  })
  await addItems(database, 'j', items)
  await queueJob(database, 'j')
}

async function rowsLeft({ db }: Database): Promise<number> {
  const { count } = await db
    .selectFrom('item')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}
