import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { acquireLock, jobLock } from '../../src/db/file-lock.ts'
import { deleteJob, deleteJobsBefore } from '../../src/jobs/delete-job.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { queuedItems, recordResults } from '../../src/jobs/item-store.ts'
import { cancelJob, countResults, startJob } from '../../src/jobs/job-state.ts'
import { createJob, markWritten, readJob, unfinishedJob } from '../../src/jobs/job-store.ts'
import { reopenJob } from '../../src/jobs/prepare-resume.ts'
import { addJob, onPostgres, queuedJob, tempDatabase, tempFolder } from '../support/database.ts'
import { ofJob } from '../support/job-rows.ts'
import { queueJob } from '../support/queue-job.ts'

const NONE = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }

describe('a job that is loaded', () => {
  test('is loading until it is queued, which counts its rows', async () => {
    const database = await tempDatabase()
    await createJob(database, { id: 'j', sourceKey: 's', source: '{}' })
    expect(await readJob(database, 'j')).toMatchObject({ state: 'loading', total: 0 })
    await addItems(database, 'j', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await addItems(database, 'j', [{ position: 2, text: 'b', dedupeKey: 'b' }])
    expect(await queueJob(database, 'j')).toMatchObject({ state: 'queued', total: 2, done: 0 })
  })

  test('stores every one of thousands of rows, and any text unchanged', async () => {
    const odd = ['', ' ', '"', "o'neil@x.test", '\u0000', '😀@x.test', '$1', '{"a":1}']
    const texts = [...odd, ...Array.from({ length: 2_500 }, (_, n) => `user${n}@x.test`)]
    const { database, job } = await queuedJob(texts)
    expect(job.total).toBe(texts.length)
    const stored = await queuedItems(database, { jobId: job.id, after: 0, max: 10_000 })
    expect(stored.map(({ position }) => position)).toEqual(texts.map((_, n) => n + 1))
    expect(stored.map(({ text }) => text)).toEqual(texts)
  })

  test('without rows is completed at once', async () => {
    const { job, clock } = await queuedJob([])
    expect(job).toMatchObject({ state: 'completed', total: 0, finished_at: clock.now() })
  })
})

describe('the unfinished job of a source', () => {
  test('is the latest whose output is not written', async () => {
    const { database, clock } = await queuedJob(['a'], 'job_a')
    expect(await unfinishedJob(database, 'source of job_a')).toMatchObject({ id: 'job_a' })
    expect(await unfinishedJob(database, 'another')).toBeNull()
    await clock.advance(1)
    await createJob(database, { id: 'job_b', sourceKey: 'source of job_a', source: '{}' })
    expect(await unfinishedJob(database, 'source of job_a')).toMatchObject({ id: 'job_b' })
  })

  test('may be completed but not written; null once it is written', async () => {
    const { database, clock } = await queuedJob([], 'job_a')
    const found = await unfinishedJob(database, 'source of job_a')
    expect(found).toMatchObject({ state: 'completed' })
    await markWritten(database, 'job_a')
    expect(await readJob(database, 'job_a')).toMatchObject({ written_at: clock.now() })
    expect(await unfinishedJob(database, 'source of job_a')).toBeNull()
  })
})

describe('a job in progress', () => {
  test('requeues items in flight and keeps finished ones when started again', async () => {
    const { database, job } = await queuedJob(['a', 'b', 'c'])
    expect(await startJob(database, job.id)).toMatchObject({ state: 'processing' })
    const set = (position: number, state: 'probing' | 'done', result: string | null) =>
      database.db.updateTable('item').set({ state, result }).where('position', '=', position)
    await set(1, 'probing', null).set({ operator: 'op' }).execute()
    await set(2, 'done', '{}').execute()
    await startJob(database, job.id)
    const rows = await database.db.selectFrom('item').select('state').orderBy('position').execute()
    expect(rows.map(({ state }) => state)).toEqual(['routed', 'done', 'queued'])
  })

  test('is completed with its last row, exactly once', async () => {
    const { database, job, clock } = await queuedJob(['a', 'b', 'a'])
    await startJob(database, job.id)
    const count = (counts: Partial<typeof NONE>) =>
      write(database, trx =>
        countResults(trx, new Map([[job.id, { ...NONE, ...counts }]]), clock.now()),
      )
    expect(await count({ deliverable: 2 })).toMatchObject([{ state: 'processing', done: 2 }])
    expect(await count({})).toMatchObject([{ state: 'processing', done: 2, finished_at: null }])
    const finishedAt = clock.now()
    expect(await count({ unknown: 1 })).toMatchObject([
      {
        state: 'completed',
        done: 3,
        deliverable: 2,
        unknown: 1,
        risky: 0,
        undeliverable: 0,
        finished_at: finishedAt,
      },
    ])
    await expect(count({ risky: 1 })).rejects.toThrow(/constraint/i)
    expect(await readJob(database, job.id)).toMatchObject({ done: 3, finished_at: finishedAt })
  })

  test('counts nothing of a transaction that fails', async () => {
    const { database, job, clock } = await queuedJob(['a', 'b'])
    const failing = write(database, async trx => {
      await recordResults(trx, ofJob(job.id, [{ position: 1, result: '{}', class: 'risky' }]))
      await countResults(trx, new Map([[job.id, { ...NONE, risky: 1 }]]), clock.now())
      throw new Error('power failure')
    })
    await expect(failing).rejects.toThrow('power failure')
    expect(await readJob(database, job.id)).toMatchObject({ done: 0, risky: 0 })
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toHaveLength(2)
  })
})

describe('a job that is cancelled', () => {
  test('is finished: its source starts a new job', async () => {
    const { database, job, clock } = await queuedJob(['a'], 'job_a')
    expect(await cancelJob(database, job.id)).toBe(true)
    expect(await readJob(database, job.id)).toMatchObject({
      state: 'cancelled',
      finished_at: clock.now(),
      written_at: null,
    })
    expect(await unfinishedJob(database, 'source of job_a')).toBeNull()
  })

  test('accepts no more results: their transaction is rolled back', async () => {
    const { database, job, clock } = await queuedJob(['a', 'b'])
    await startJob(database, job.id)
    await cancelJob(database, job.id)
    const recording = write(database, async trx => {
      await recordResults(trx, ofJob(job.id, [{ position: 1, result: '{}', class: 'risky' }]))
      await countResults(trx, new Map([[job.id, { ...NONE, risky: 1 }]]), clock.now())
    })
    await expect(recording).rejects.toMatchObject({
      code: 'interrupted',
      message: expect.stringMatching(/cancelled with "ev jobs cancel job_a" after 0 of 2 rows/),
    })
    expect(await readJob(database, job.id)).toMatchObject({ state: 'cancelled', done: 0, risky: 0 })
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toHaveLength(2)
  })

  test('is neither queued after loading nor started', async () => {
    const database = await tempDatabase()
    await createJob(database, { id: 'j', sourceKey: 's', source: '{}' })
    await addItems(database, 'j', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await cancelJob(database, 'j')
    await expect(queueJob(database, 'j')).rejects.toMatchObject({ code: 'interrupted' })
    await expect(startJob(database, 'j')).rejects.toMatchObject({ code: 'interrupted' })
    expect(await readJob(database, 'j')).toMatchObject({ state: 'cancelled' })
  })

  test('keeps its state if it was already finished', async () => {
    const { database, job, clock } = await queuedJob([])
    const finishedAt = clock.now()
    await clock.advance(1_000)
    expect(await cancelJob(database, job.id)).toBe(false)
    expect(await readJob(database, job.id)).toMatchObject({
      state: 'completed',
      finished_at: finishedAt,
    })
  })
})

describe('deleted jobs', () => {
  test('lose their items; those of other jobs stay', async () => {
    const { database } = await queuedJob(['a', 'b'], 'job_a')
    await addJob(database, ['a'], 'job_b')
    await deleteJob(database, 'job_a')
    const items = await database.db.selectFrom('item').select('job_id').execute()
    expect(items).toEqual([{ job_id: 'job_b' }])
    await expect(readJob(database, 'job_a')).rejects.toThrow()
  })

  test('are those finished before a time; unfinished jobs stay', async () => {
    const { database, clock } = await queuedJob([], 'old')
    await clock.advance(1_000)
    await addJob(database, [], 'new')
    await addJob(database, ['a'], 'open')
    await deleteJobsBefore(database, tempFolder(), clock.now())
    const left = await database.db.selectFrom('job').select('id').orderBy('id').execute()
    expect(left.map(({ id }) => id)).toEqual(['new', 'open'])
  })

  test('do not include jobs that were resumed meanwhile', async () => {
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
    'do not include locked jobs, of which the output may be about to be written',
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
})
