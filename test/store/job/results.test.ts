import { expect, test } from 'vitest'
import { write } from '../../../src/store/database.ts'
import { recordResults } from '../../../src/store/job/items.ts'
import { createJob } from '../../../src/store/job/jobs.ts'
import { addItems, queueJob } from '../../../src/store/job/loading.ts'
import { resultPage } from '../../../src/store/job/results.ts'
import { queuedJob, tempDatabase } from '../temp-database.ts'

test('a row comes back with its text, what came with it, and the class of its result', async () => {
  const database = await tempDatabase()
  await createJob(database, { id: 'j', sourceKey: 's', source: '{}' })
  await addItems(database, 'j', [
    { position: 1, text: 'Ann@x.test', dedupeKey: 'a', cells: '["7","Ann"]' },
    { position: 2, text: 'ann@x.test', dedupeKey: 'a', cells: null },
    { position: 3, text: 'bob@x.test', dedupeKey: 'b' },
  ])
  await queueJob(database, 'j')
  await write(database, trx =>
    recordResults(trx, 'j', [{ position: 1, result: '"of a"', class: 'risky' }]),
  )
  expect(await resultPage(database, { jobId: 'j', after: 0, max: 9 })).toEqual([
    { position: 1, text: 'Ann@x.test', cells: '["7","Ann"]', class: 'risky', result: '"of a"' },
    { position: 2, text: 'ann@x.test', cells: null, class: 'risky', result: '"of a"' },
    { position: 3, text: 'bob@x.test', cells: null, class: null, result: null },
  ])
})

test('rows of some classes come page by page, however far apart they are', async () => {
  const total = 6_100
  const { database, job } = await queuedJob(Array.from({ length: total }, (_, n) => `t${n}`))
  const rare = [1, 1_999, 2_000, 2_001, 6_100]
  const results = Array.from({ length: total }, (_, n) => {
    const isRare = rare.includes(n + 1)
    const klass = isRare ? (n % 2 === 0 ? 'unknown' : 'risky') : 'deliverable'
    return { position: n + 1, result: '{}', class: klass }
  })
  await write(database, trx => recordResults(trx, job.id, results))
  const page = async (after: number, max: number) => {
    const classes = ['unknown', 'risky'] as const
    const rows = await resultPage(database, { jobId: job.id, after, max, classes })
    return rows.map(({ position }) => position)
  }
  expect(await page(0, 3)).toEqual([1, 1_999, 2_000])
  expect(await page(2_000, 3)).toEqual([2_001, 6_100])
  expect(await page(6_100, 3)).toEqual([])
  expect(await page(0, 9)).toEqual(rare)
})
