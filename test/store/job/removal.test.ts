import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { accountJob, openJobs } from '../../../src/store/job/account-jobs.ts'
import { createJob, findJob, openJobIn } from '../../../src/store/job/jobs.ts'
import { addItems, deleteLoadingJobs, queueJob } from '../../../src/store/job/loading.ts'
import { deleteJob } from '../../../src/store/job/removal.ts'
import { tempDatabase } from '../temp-database.ts'

const ROWS = 9_000

describe('a long list that is deleted', () => {
  test('is gone for its account while its rows still go, and others are not kept waiting', async () => {
    const database = await loaded()
    const deleting = deleteJob(database, 'j')
    const seen: number[] = []
    let isOver = false
    void deleting.then(() => {
      isOver = true
    })
    while (!isOver) {
      seen.push(await rowsLeft(database))
      if ((seen.at(-1) ?? 0) < ROWS) {
        expect(await accountJob(database, 'acc_a', 'j')).toBeNull()
        expect(await openJobs(database)).toEqual([])
        expect(await openJobIn(database.db, 'j')).toBeNull()
      }
      await new Promise<void>(resolve => void setImmediate(resolve))
    }
    await deleting
    // Somebody who asked meanwhile was answered between two pages.
    expect(seen.some(rows => rows > 0 && rows < ROWS)).toBe(true)
    expect(await findJob(database, 'j')).toBeNull()
    expect(await rowsLeft(database)).toBe(0)
  })

  test('goes at the next start when a crash left some of it', async () => {
    const database = await loaded()
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
    await deleteLoadingJobs(database)
    expect(await findJob(database, 'j')).toBeNull()
    expect(await rowsLeft(database)).toBe(0)
  })
})

async function loaded(): Promise<Database> {
  const database = await tempDatabase()
  const owner = { accountId: 'acc_a', keyId: 'key_a', type: 'batch' as const, name: null }
  await createJob(database, {
    ...{ id: 'j', sourceKey: 'j', source: '{}' },
    owner: { ...owner, sandbox: false },
  })
  const items = Array.from({ length: ROWS }, (_, n) => {
    const text = `person${n}@a.test`
    return { position: n + 1, text, dedupeKey: text }
  })
  await addItems(database, 'j', items)
  await queueJob(database, 'j')
  return database
}

async function rowsLeft({ db }: Database): Promise<number> {
  const { count } = await db
    .selectFrom('item')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}
