import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { eachPage } from '../../src/maintenance/pages.ts'
import { addJob, tempDatabase } from '../support/database.ts'

test.each([
  [1, [1, 1, 1, 1, 1, 1, 1, 0]],
  [3, [3, 3, 1]],
  [7, [7, 0]],
  [8, [7]],
])('pages of %i rows cover all rows once: %j', async (rows, sizes) => {
  const database = await tempDatabase()
  await addJob(database, ['a', 'b', 'c', 'd'], 'job_b')
  await addJob(database, ['a', 'b', 'c'], 'job_a')
  const seen: number[] = []
  const look = async (within: ReturnType<typeof sql<boolean>>) => {
    const found = await sql<{ job_id: string; position: number }>`
      select job_id, position from item where ${within}`.execute(database.db)
    seen.push(found.rows.length)
    return found.rows.map(row => `${row.job_id} ${row.position}`)
  }
  const all = await eachPage(database.db, 'item', look, rows)
  expect(seen).toEqual(sizes)
  expect(all.toSorted()).toEqual([
    ...['job_a 1', 'job_a 2', 'job_a 3', 'job_b 1', 'job_b 2', 'job_b 3', 'job_b 4'],
  ])
})

test('an empty table has one empty page', async () => {
  const { db } = await tempDatabase()
  const look = async (within: ReturnType<typeof sql<boolean>>) =>
    (await sql`select id from event where ${within}`.execute(db)).rows
  expect(await eachPage(db, 'event', look)).toEqual([])
})
