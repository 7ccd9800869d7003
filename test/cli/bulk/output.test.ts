import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { describeBinary } from '../../../src/csv/encoding.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { folderWith, type Ran, runEv, simulatorFlags, startEv } from '../../support/cli.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'
import { waitUntil } from '../../support/wait.ts'
import { readWorkbook } from '../../support/workbook.ts'

const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown']

describe('the output of any list', () => {
  test('has the same rows whole and split, in every format', async () => {
    await fc.assert(
      fc.asyncProperty(anyList, async text => {
        const folder = withList(text)
        const put = async (name: string, ...flags: string[]) =>
          expect(await bulk(folder, '-o', name, ...COLUMN, ...flags)).toMatchObject({ code: 0 })

        await put('whole')
        const [header, ...rows] = table(folder, 'whole')
        const column = header?.indexOf('ev_class') ?? -1
        const ofClass = (...wanted: string[]) => [
          header,
          ...rows.filter(row => wanted.includes(row[column] ?? '')),
        ]

        await put('part', '--split')
        for (const klass of CLASSES) {
          expect(table(folder, `part.${klass}`)).toEqual(ofClass(klass))
        }

        await put('only', '--only', 'risky,unknown')
        expect(table(folder, 'only')).toEqual(ofClass('risky', 'unknown'))

        await put('ndjson', '--format', 'ndjson')
        await put('json', '--format', 'json')
        const objects = lines(folder, 'ndjson')
        expect(JSON.parse(content(folder, 'json'))).toEqual(objects)
        expect(objects.map(({ row }) => row)).toEqual(rows.map((_, i) => i + 1))
        expect(objects.map(verdictOf)).toEqual(rows.map(row => verdictIn(header, row)))
        expect(objects.map(({ input }) => input.id)).toEqual(rows.map(([id]) => id))
        expect(content(folder, 'ndjson').isWellFormed()).toBe(true)

        await put('book.xlsx')
        const book = await readWorkbook(readFileSync(join(folder, 'book.xlsx')))
        expect(book.rows.slice(1).map(([id]) => id)).toEqual(objects.map(({ input }) => input.id))

        await put('good', '--only', 'deliverable', '--format', 'json')
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

  test.runIf(existsSync('/dev/full'))('is complete or not there at all', async () => {
    const folder = withList(LIST)
    symlinkSync('/dev/full', join(folder, 'a.undeliverable.csv'))
    expect(await bulk(folder, '-o', 'a.csv', '--split')).toMatchObject({ code: 73 })
    expect(readdirSync(folder).sort()).toEqual(['a.undeliverable.csv', 'data', 'list.csv'])
  })

  test('without rows is a header, nothing, or an empty array', async () => {
    const folder = withList(LIST)
    for (const name of ['a.csv', 'a.ndjson', 'a.json']) {
      await bulk(folder, '-o', name, '--only', 'risky')
    }
    expect(content(folder, 'a.csv')).toMatch(/^id,email,ev_class,[a-z_,]+\n$/)
    expect(content(folder, 'a.ndjson')).toBe('')
    expect(JSON.parse(content(folder, 'a.json'))).toEqual([])
  })

  test('has each address once with --deduplicate, in the file of its class', async () => {
    const folder = withList(
      'id,email\n1,valid1@x.example\n2,invalid2@x.example\n3,valid1@x.example\n4,no\n5,no\n',
    )
    const once = ['--deduplicate', 'address', ...COLUMN]
    await bulk(folder, '-o', 'a.csv', ...once)
    expect(table(folder, 'a.csv').map(([id]) => id)).toEqual(['id', '1', '2', '4'])
    await bulk(folder, '-o', 'b.csv', '--split', ...once)
    const rowsOf = (klass: string) => table(folder, `b.${klass}.csv`).length - 1
    expect(CLASSES.map(rowsOf)).toEqual([1, 0, 2, 0])
  })

  test('of a list that changes in the meantime is not written, and existing output is kept', async () => {
    const simulator = await startSimulator({
      domains: { 'good.test': { mx: [[10, 'mx.good.test']] } },
      hosts: { 'mx.good.test': { behavior: 'polite' } },
    })
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--force', '--data-dir', 'data']
    /** Changes the list once its mail server is connected to. */
    const changed = async (text: string): Promise<Ran> => {
      const folder = withList('id,email\n1,user1@good.test\n2,user2@good.test\n')
      writeFileSync(join(folder, 'out.csv'), 'earlier')
      const count = () => simulator.counters().hosts['mx.good.test']?.connections ?? 0
      const before = count()
      const running = startEv([...args, ...simulatorFlags(simulator)], { home: folder })
      await waitUntil(() => count() > before)
      writeFileSync(join(folder, 'list.csv'), text)
      const ran = await running.ended
      expect(readdirSync(folder).sort()).toEqual(['data', 'list.csv', 'out.csv'])
      expect(content(folder, 'out.csv')).toBe('earlier')
      return ran
    }
    const first = 'id,email\n1,user1@good.test\n'
    for (const text of [`${first}2,user3@good.test\n`, first, 'email\n']) {
      expect((await changed(text)).stderr).toMatch(
        /changed while ev was processing it\. Restore the original file/,
      )
    }
    await simulator.close()
  })

  test('has in JSON the unescaped cells and all details of the address', async () => {
    const folder = withList('id,email\n1,=cmd|x\n2,role@x.example\n')
    await bulk(folder, '-o', 'out', '--format', 'ndjson', ...COLUMN)
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
    fc.array(fc.tuple(address, fc.array(cell, { maxLength: 6 })), { minLength: 1, maxLength: 12 }),
  )
  .map(([names, rows]) =>
    [['id', 'email', ...names], ...rows.map(([email, rest], n) => [`${n}`, email, ...rest])]
      .map(cells => cells.map(text => `"${text.replaceAll('"', '""')}"`).join(','))
      .join('\n'),
  )
  .filter(text => describeBinary(Buffer.from(text)) === null)

const COLUMN = ['--column', 'email']

const withList = (list: string) => folderWith({ 'list.csv': list })

/** All runs check at the same time, so that their results are the same. */
const NOW = systemClock.now()
const clock: Clock = { ...systemClock, now: () => NOW }

const bulk = (home: string, ...args: string[]): Promise<Ran> =>
  runEv(['bulk', 'list.csv', '--sandbox', '--data-dir', 'data', ...args], {
    home,
    offline: true,
    context: { clock },
  })

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
