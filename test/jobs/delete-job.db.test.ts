import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { deleteJob, deleteJobsBefore } from '../../src/jobs/delete-job.ts'
import { addItems, deleteLoadingJobs } from '../../src/jobs/import/item-import.ts'
import { accountJob, openJobs } from '../../src/jobs/job-list.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { createJob, findJob, getLockedOpenJob } from '../../src/jobs/job-store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { onPostgres, tempDatabase, tempFolder, tempPostgres } from '../support/database.ts'
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
      await new Promise<void>(resolve => void setImmediate(resolve))
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
