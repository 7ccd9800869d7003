import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compact, type Database, secureDelete } from '../../src/store/database.ts'
import { cancelJob } from '../../src/store/job/course.ts'
import { markWritten, readJob } from '../../src/store/job/jobs.ts'
import { deleteJob } from '../../src/store/job/removal.ts'
import { countAnswersUntil, eraseTraces, tracesOf } from '../../src/store/purge.ts'
import { addJob, tempDatabase, tempFolder } from './temp-database.ts'

const ANN = { key: 'ann@example.com', text: 'ann@example.com' }

/** Gives rows of a written job results that hold these texts. */
async function writtenJob(database: Database, texts: readonly string[], id = 'job_a') {
  await addJob(database, texts, id)
  await database.db
    .updateTable('item')
    .set(eb => ({ state: 'done', class: 'risky', result: eb.ref('text') }))
    .where('job_id', '=', id)
    .where('state', '=', 'queued')
    .execute()
  await markWritten(database, id)
}

const addAnswer = (database: Database, address_key: string, keep_until = 0) =>
  database.db.insertInto('answer').values({ address_key, remembered: '{}', keep_until }).execute()

describe('the traces of an address', () => {
  test.each([
    ['its own row', 'ann@example.com', true],
    ['a row in other case', 'Ann@Example.COM', true],
    ['a cell that holds more', 'Ann (ann@example.com), home', true],
    ['a sentence that ends with it', 'write to ann@example.com.', true],
    ['one of which it is a part, at its beginning', 'joann@example.com', false],
    ['one with a tag before it', 'x+ann@example.com', false],
    ['one with a dot before it', 'b.ann@example.com', false],
    ['one of which it is a part, at its end', 'ann@example.community', false],
    ['one whose domain goes on', 'ann@example.com.au', false],
    ['one that stands there twice, once whole', 'joann@example.com ann@example.com', true],
  ])('in %s are found: %s', async (_, text, found) => {
    const database = await tempDatabase()
    await writtenJob(database, ['first@example.com', text])
    const { items } = await tracesOf(database, ANN)
    expect(items).toEqual(found ? [{ jobId: 'job_a', position: 2, finished: true }] : [])
  })

  test('are also remembered answers, in any case', async () => {
    const database = await tempDatabase()
    for (const key of ['ann@example.com', 'Ann@example.com', 'joann@example.com']) {
      await addAnswer(database, key)
    }
    const { answers } = await tracesOf(database, ANN)
    expect([...answers].sort()).toEqual(['Ann@example.com', 'ann@example.com'])
  })

  test('tell whether their job is finished: written or cancelled', async () => {
    const database = await tempDatabase()
    await addJob(database, ['ann@example.com'], 'open')
    await addJob(database, ['ann@example.com'], 'cancelled')
    await cancelJob(database, 'cancelled')
    const { items } = await tracesOf(database, ANN)
    expect(items.map(({ jobId, finished }) => [jobId, finished]).sort()).toEqual([
      ['cancelled', true],
      ['open', false],
    ])
  })
})

test('what is erased leaves the job its counts, and each row its place and class', async () => {
  const database = await tempDatabase()
  await writtenJob(database, ['ben@example.com', 'ann@example.com', 'ann@example.com'])
  await addAnswer(database, 'ann@example.com')
  const before = await readJob(database, 'job_a')
  await eraseTraces(database, await tracesOf(database, ANN))
  expect(await tracesOf(database, ANN)).toEqual({ answers: [], items: [] })
  expect(await readJob(database, 'job_a')).toEqual(before)
  const rows = await database.db.selectFrom('item').selectAll().orderBy('position').execute()
  expect(rows.map(({ text, state, class: klass }) => [text, state, klass])).toEqual([
    ['ben@example.com', 'done', 'risky'],
    ['', 'done', 'risky'],
    ['', 'same', null],
  ])
  expect(JSON.stringify(rows)).not.toContain('ann@')
})

test('answers are counted that are kept until then and no longer', async () => {
  const database = await tempDatabase()
  await addAnswer(database, 'a@x.test', 10)
  await addAnswer(database, 'b@x.test', 20)
  expect(await countAnswersUntil(database, 9)).toBe(0)
  expect(await countAnswersUntil(database, 10)).toBe(1)
  expect(await countAnswersUntil(database, 20)).toBe(2)
})

describe('the file', () => {
  const bytesOf = (file: string) =>
    ['', '-wal']
      .map(end => `${file}${end}`)
      .filter(path => statSync(path, { throwIfNoEntry: false }) !== undefined)
      .map(path => readFileSync(path, 'latin1'))
      .join('')
  const found = (file: string, ...texts: string[]) =>
    texts.map(text => bytesOf(file).includes(text))

  test('holds no byte of what was erased, and is smaller, once it is compact', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const database = await tempDatabase({ file })
    const texts = Array.from({ length: 3_000 }, (_, n) => `user${n}@somewhere.example`)
    await writtenJob(database, texts, 'big')
    await writtenJob(database, ['ann@example.com', 'ben@example.com'], 'small')
    expect(await compact(database)).toBe(true)
    const size = statSync(file).size
    expect(found(file, 'user2999@somewhere', 'ann@example')).toEqual([true, true])
    await secureDelete(database)
    await deleteJob(database, 'big')
    await eraseTraces(database, await tracesOf(database, ANN))
    expect(await compact(database)).toBe(true)
    expect(found(file, 'somewhere', 'ann@example', 'ben@example')).toEqual([false, false, true])
    expect(statSync(file).size).toBeLessThan(size / 2)
  })
})
