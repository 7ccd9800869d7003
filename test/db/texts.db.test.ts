import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { addHistory, deleteJobHistory } from '../../src/accounts/credits/history.ts'
import { getHistoryPage } from '../../src/accounts/credits/history-page.ts'
import { type Database, write } from '../../src/db/database.ts'
import { type Schema, TABLES } from '../../src/db/schema.ts'
import { inArray } from '../../src/db/sql-dialect.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { newRow, readJob } from '../../src/jobs/job-store.ts'
import { findResults, resultPage } from '../../src/jobs/results/result-store.ts'
import { addJob, onPostgres, tempDatabase } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'

// What people write is kept as it is, whatever it is, in whichever database.

const ODD = [
  ...['', ' ', '\0', 'a\0b', '\0\0', '"', "o'neil@x.test", '$1', '%s', '\\', '\\u0000', '\\\0'],
  ...['😀@x.test', 'é', 'e\u0301', '\u{10fffe}', '\u{10fffe}0', '\u{10ffff}', '\ufeffa', '\u2028'],
  ...['{"a":1}', '{"a":"\\u0000"}', '["\\ud800"]', '{\0', 'İ', 'ß', '\r\n', '\t', '\x7f', '\x01'],
]

test('every text column of every table preserves unusual texts', async () => {
  const database = await tempDatabase()
  for (const table of TABLES) {
    const columns = await columnsOf(database, table)
    // One transaction: separate ones would each wait for the disk.
    await write(database, async trx => {
      for (const [n, text] of ODD.entries()) {
        const row = rowOf(table, columns, text, n)
        await trx
          .insertInto(table)
          .values(row as never)
          .execute()
        const read = await trx.selectFrom(table).selectAll().execute()
        expect(read, `${table} with ${JSON.stringify(text)}`).toContainEqual(row)
        await trx.deleteFrom(table).execute()
      }
    })
  }
})

test('rows of a list preserve them with their cells, and are found by them', async () => {
  const database = await tempDatabase()
  await database.db
    .insertInto('job')
    .values(newRow({ id: 'j', sourceKey: 's', source: '{}' }, 0))
    .execute()
  const cells = (text: string) => JSON.stringify([text, `${text}\0`])
  const items = ODD.map((text, n) => ({
    position: n + 1,
    text,
    dedupeKey: `${n} ${text}`,
    cells: cells(text),
  }))
  await addItems(database, 'j', items)
  await queueJob(database, 'j')
  const rows = await resultPage(database, { jobId: 'j', after: 0, max: 99 })
  expect(rows.map(row => row.text)).toEqual(ODD)
  expect(rows.map(row => row.cells)).toEqual(ODD.map(cells))
  for (const search of ['😀', 'É', 'i̇', '\u{10fffe}', "O'NEIL", '"', '%s']) {
    const found = await findResults(database, { jobId: 'j', after: 0, max: 99, search })
    const sought = search.toLowerCase()
    const expected = ODD.filter(text => text.toLowerCase().includes(sought))
    expect(
      found.rows.map(row => row.text),
      search,
    ).toEqual(expected)
  }
})

test('a result with a NUL and a lone surrogate is read like any other', async () => {
  const { database, jobId } = await listOf(['a@x.test'])
  const result = JSON.stringify({ evidence: '\0', said: '\ud800', verdict: { reason: 'timeout' } })
  await sql`
    update item set state = 'done', class = 'unknown', result = ${result}
    where job_id = ${jobId}`.execute(database.db)
  const found = await findResults(database, { jobId, after: 0, max: 9, reasons: ['timeout'] })
  expect(found.rows.map(row => row.result)).toEqual([result])
})

test('the history preserves them, and can be searched and deleted by them', async () => {
  const database = await tempDatabase()
  const rows = ODD.map((email, n) => ({
    id: `ver_${n}`,
    account_id: 'acc_a',
    key_id: 'key_a',
    email,
    valid: 1,
    deliverable: 1,
    risk_level: 'low',
    reason: 'accepted_email',
    class: 'deliverable',
    cached: 0,
    source: 'batch' as const,
    job_id: 'job_a',
    sandbox: 0,
    created_at: 100 + n,
  }))
  await write(database, trx => addHistory(trx, rows))
  const query = { accountId: 'acc_a', sandbox: false, before: null, max: 99 }
  expect((await getHistoryPage(database, query)).rows).toEqual(rows.toReversed())
  for (const email of ['É', "O'Neil@X.test", '\u{10fffe}', '']) {
    const found = await getHistoryPage(database, { ...query, email })
    const expected = ODD.filter(text => text.toLowerCase() === email.toLowerCase())
    expect(
      found.rows.map(row => row.email),
      email,
    ).toEqual(expected)
  }
  const job = newRow({ id: 'job_a', sourceKey: 's', source: '{}' }, 100)
  await deleteJobHistory(database, { ...job, account_id: 'acc_a', finished_at: 200 })
  expect((await getHistoryPage(database, query)).rows).toEqual([])
})

test('several as one parameter are each preserved', async () => {
  const { db } = await tempDatabase()
  const { rows } = await sql<{ text: string }>`
    select cast(${'a\0b'} as text) as text
    where cast(${'a\0b'} as text) in ${inArray(db, ['x', 'a\0b'])}`.execute(db)
  expect(rows).toEqual([{ text: 'a\0b' }])
})

test('IDs are ordered by bytes, whatever the locale of the database', async () => {
  const ids = ['Z', 'a', 'B', 'job_1', 'job-1', 'job_10', 'job_2', 'JOB', 'é', 'z', '_', '1']
  const database = await tempDatabase()
  for (const id of ids) await addJob(database, [], id)
  const bytes = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const rows = await database.db.selectFrom('job').select('id').orderBy('id').execute()
  expect(rows.map(({ id }) => id)).toEqual(bytes)
  const greater = await database.db.selectFrom('job').select('id').where('id', '>', 'Z').execute()
  expect(new Set(greater.map(({ id }) => id))).toEqual(new Set(bytes.slice(bytes.indexOf('Z') + 1)))
})

async function listOf(texts: readonly string[]) {
  const database = await tempDatabase()
  await addJob(database, texts, 'job_a')
  return { database, jobId: (await readJob(database, 'job_a')).id }
}

/** A row of a table with this text in each free-text column. */
function rowOf(
  table: keyof Schema,
  columns: readonly Column[],
  text: string,
  n: number,
): Record<string, unknown> {
  const row = Object.fromEntries(
    columns.map(({ name, type }) => [name, /text/i.test(type) ? text : n]),
  )
  // Columns with check constraints.
  if (table === 'job') Object.assign(row, { state: 'completed', done: 0, total: 0, finished_at: n })
  if (table === 'item') Object.assign(row, { state: 'done', same_as: null })
  return row
}

type Column = { readonly name: string; readonly type: string }

const columnsOf = (database: Database, table: keyof Schema) =>
  onPostgres ? columnsOnServer(database, table) : columnsInFile(database, table)

async function columnsOnServer({ db }: Database, table: string): Promise<Column[]> {
  const { rows } = await sql<Column>`
    select column_name as name, data_type as type from information_schema.columns
    where table_schema = current_schema() and table_name = ${table}`.execute(db)
  return rows
}

async function columnsInFile({ db }: Database, table: string): Promise<Column[]> {
  const { rows } = await sql<Column>`select name, type from pragma_table_info(${table})`.execute(db)
  return rows
}
