import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { type ListFile, openList } from '../../../src/cli/bulk/list-file.ts'
import { type OutputOptions, writeOutput } from '../../../src/cli/bulk/output.ts'
import { type OutputFlags, planOutput } from '../../../src/cli/bulk/output-plan.ts'
import { type Format, rowText } from '../../../src/cli/bulk/row-text.ts'
import { type ListDialect, readList } from '../../../src/csv/csv.ts'
import { describeBinary } from '../../../src/csv/encoding.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { type Class, toClass } from '../../../src/engine/verdict/verdict.ts'
import { openContent } from '../../../src/formats/open-content.ts'
import { createFirstFilter } from '../../../src/jobs/import/import-counter.ts'
import { parseRow } from '../../../src/jobs/import/submission.ts'
import { recordResults } from '../../../src/jobs/item-store.ts'
import { addJob, tempDatabase, tempFolder } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'
import { countedRandom } from '../../support/random.ts'
import { textOf } from '../../support/workbook.ts'

const CLASSES: readonly Class[] = ['deliverable', 'risky', 'undeliverable', 'unknown']

describe('the output of any list', () => {
  test('has the same rows whole and split, in every format', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    let n = 0
    await fc.assert(
      fc.asyncProperty(anyList, async text => {
        n += 1
        const list = await decided(database, `job_${n}`, text, folder)
        const put = (name: string, flags: Partial<OutputFlags>, format: Format = 'csv') =>
          writeAs(database, list, { output: join(folder, name), ...flags }, format)

        await put('whole', {})
        const [header, ...rows] = table(folder, 'whole')
        const column = header?.indexOf('ev_class') ?? -1
        const ofClass = (...wanted: string[]) => [
          header,
          ...rows.filter(row => wanted.includes(row[column] ?? '')),
        ]

        const { files } = await put('part', { split: true })
        for (const klass of CLASSES) {
          expect(table(folder, `part.${klass}`)).toEqual(ofClass(klass))
        }
        expect(files.reduce((sum, file) => sum + file.rows, 0)).toBe(rows.length)

        await put('only', { only: 'risky,unknown' })
        expect(table(folder, 'only')).toEqual(ofClass('risky', 'unknown'))

        await put('ndjson', {}, 'ndjson')
        await put('json', {}, 'json')
        const objects = lines(folder, 'ndjson')
        expect(JSON.parse(content(folder, 'json'))).toEqual(objects)
        expect(objects.map(({ row }) => row)).toEqual(rows.map((_, i) => i + 1))
        expect(objects.map(verdictOf)).toEqual(rows.map(row => verdictIn(header, row)))
        expect(objects.map(({ input }) => input.id)).toEqual(rows.map(([id]) => id))
        expect(content(folder, 'ndjson').isWellFormed()).toBe(true)

        await put('book.xlsx', {}, 'xlsx')
        const book = await openContent(join(folder, 'book.xlsx'), { expandedBytesMax: 2 ** 24 })
        const cells = parse(await textOf(book), { relaxColumnCount: true }) as string[][]
        expect(cells.slice(1).map(([id]) => id)).toEqual(objects.map(({ input }) => input.id))

        await put('good', { only: 'deliverable' }, 'json')
        expect(JSON.parse(content(folder, 'good'))).toEqual(
          objects.filter(({ result }) => result.class === 'deliverable'),
        )
        expect(readdirSync(folder).filter(name => name.endsWith('.partial'))).toEqual([])
      }),
      { numRuns: runs(40) },
    )
  })
})

describe('the output of a list', () => {
  const LIST = 'id,email\n1,valid1@x.example\n2,invalid2@x.example\n'

  test('leaves no partial file when it is stopped', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    const list = await decided(database, 'job_a', LIST, folder)
    const before = readdirSync(folder)
    const flags = { output: join(folder, 'a.csv'), split: true }
    const stopping = AbortSignal.abort()
    const writing = writeAs(database, list, flags, 'csv', { stopping })
    await expect(writing).rejects.toMatchObject({ code: 'interrupted' })
    expect(readdirSync(folder)).toEqual(before)
  })

  test('without rows is a header, nothing, or an empty array', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    const list = await decided(database, 'job_a', LIST, folder)
    const only = { only: 'risky' }
    await writeAs(database, list, { output: join(folder, 'a.csv'), ...only }, 'csv')
    await writeAs(database, list, { output: join(folder, 'a.ndjson'), ...only }, 'ndjson')
    await writeAs(database, list, { output: join(folder, 'a.json'), ...only }, 'json')
    expect(content(folder, 'a.csv')).toMatch(/^id,email,ev_class,[a-z_,]+\n$/)
    expect(content(folder, 'a.ndjson')).toBe('')
    expect(JSON.parse(content(folder, 'a.json'))).toEqual([])
  })

  test('has each address once with --deduplicate, in the file of its class', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    const text =
      'id,email\n1,valid1@x.example\n2,invalid2@x.example\n3,valid1@x.example\n4,no\n5,no\n'
    const list = await decided(database, 'job_a', text, folder)
    const write = (name: string, flags: Partial<OutputFlags> = {}) => {
      const createFilter = () => createFirstFilter('address', countedRandom())
      return writeAs(database, list, { output: join(folder, name), ...flags }, 'csv', {
        createFilter,
      })
    }
    await write('a.csv')
    expect(table(folder, 'a.csv').map(([id]) => id)).toEqual(['id', '1', '2', '4'])
    expect((await write('b.csv', { split: true })).files.map(({ rows }) => rows)).toEqual([
      1, 0, 2, 0,
    ])
  })

  test('that has changed is not written, and existing output is kept', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    const list = await decided(database, 'job_a', LIST, folder)
    const output = join(folder, 'out.csv')
    writeFileSync(output, 'earlier')
    for (const changed of [LIST.replace('2,in', '2,'), `${LIST}3,valid3@x.example\n`, 'email\n']) {
      writeFileSync(list.path, changed)
      await expect(writeAs(database, list, { output }, 'csv')).rejects.toThrow(
        /changed while ev was processing it\. Restore the original file/,
      )
      expect(readdirSync(folder).sort()).toEqual(['list.csv', 'out.csv'])
      expect(readFileSync(output, 'utf8')).toBe('earlier')
    }
    writeFileSync(list.path, LIST)
    await writeAs(database, list, { output }, 'csv')
    expect(table(folder, 'out.csv')).toHaveLength(3)
  })

  test('has in JSON the unescaped cells and all details of the address', async () => {
    const folder = tempFolder()
    const database = await tempDatabase()
    const list = await decided(database, 'job_a', 'id,email\n1,=cmd|x\n2,role@x.example\n', folder)
    await writeAs(database, list, { output: join(folder, 'out') }, 'ndjson')
    const [formula, role] = lines(folder, 'out')
    expect(formula).toMatchObject({ row: 1, input: { id: '1', email: '=cmd|x' } })
    expect(formula?.result).toMatchObject({ email: '=cmd|x', reason: 'invalid_email' })
    expect(role?.result).toMatchObject({
      email: 'role@x.example',
      class: 'risky',
      reason: 'role_account',
      valid: true,
      flags: { is_role: true },
      evidence: { skipped: 'sandbox', answer: null },
    })
  })
})

/** Rows of random text, with quotes, line breaks, NULs, and missing or extra cells. */
const cell = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 8 }),
  fc.constantFrom('', ' ', '=1+1', '"', 'a\r\nb', ';', '\0', '𝒜'),
)
const address = fc
  .tuple(
    fc.constantFrom('valid', 'invalid', 'risky', 'timeout', 'role', 'x y', ''),
    fc.nat({ max: 20 }),
  )
  .map(([name, n]) => (name === '' ? '' : `${name}${n}@x.example`))
const anyList = fc
  .tuple(
    fc.array(fc.constantFrom('note', 'note', 'note_2', '', '3', '__proto__'), { maxLength: 4 }),
    fc.array(fc.tuple(address, fc.array(cell, { maxLength: 6 })), { maxLength: 12 }),
  )
  .map(([names, rows]) =>
    [['id', 'email', ...names], ...rows.map(([email, rest], n) => [`${n}`, email, ...rest])]
      .map(cells => cells.map(text => `"${text.replaceAll('"', '""')}"`).join(','))
      .join('\n'),
  )
  .filter(text => describeBinary(Buffer.from(text)) === null)

/** Stores the list with a result for each row. */
async function decided(
  database: Database,
  jobId: string,
  text: string,
  folder: string,
): Promise<ListFile> {
  const file = join(folder, 'list.csv')
  writeFileSync(file, text)
  const list = await openList(process, file, folder, { column: 'email', header: true })
  const texts: string[] = []
  for await (const batch of readList(list.bytes(), list.dialect)) {
    texts.push(...batch.map(row => parseRow(row.text, row.row).text))
  }
  await addJob(database, texts, jobId)
  const recorded = texts.map((asked, n) => {
    const result = sandboxResult(database.clock, asked)
    return { position: n + 1, result: JSON.stringify(result), class: toClass(result.verdict) }
  })
  // A duplicate has the result of its first occurrence.
  const first = recorded.filter(
    ({ position }) => texts.indexOf(texts[position - 1] ?? '') === position - 1,
  )
  await write(database, trx => recordResults(trx, ofJob(jobId, first)))
  return { ...list, jobId } as ListFile
}

function writeAs(
  database: Database,
  list: ListFile,
  flags: OutputFlags,
  format: Format,
  more: Partial<OutputOptions> = {},
) {
  const { jobId } = list as ListFile & { jobId: string }
  const createText = (dialect: ListDialect) =>
    rowText(format, dialect, { raw: false, policy: 'balanced' })
  return writeOutput(
    process,
    planOutput(flags),
    list,
    { database, jobId },
    { createText, format, ...more },
  )
}

const content = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8')

const table = (folder: string, name: string) =>
  parse(content(folder, name), { relaxColumnCount: true }) as string[][]

type RowObject = {
  readonly row: number
  readonly input: Readonly<Record<string, string>>
  readonly result: Readonly<Record<string, unknown>>
}

const lines = (folder: string, name: string): RowObject[] =>
  content(folder, name)
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

/** In CSV, `valid` of an unknown result is empty. */
const verdictOf = ({ result }: RowObject) => {
  const valid = result.class === 'unknown' ? '' : result.valid
  return [result.class, valid, result.risk_level, result.reason].map(String)
}

const verdictIn = (header: readonly string[] | undefined, row: readonly string[]) =>
  ['ev_class', 'ev_valid', 'ev_risk_level', 'ev_reason'].map(
    name => row[header?.indexOf(name) ?? -1],
  )
