import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { resumeBulk } from '../../src/cli/bulk/bulk-on-machine.ts'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { emptyFolder, memoryContext, type Ran, runEv, withRelativePaths } from '../support/cli.ts'
import { rowsIn } from '../support/csv.ts'

const LIST = [
  'id,email',
  ...['1,valid1@x.example', '2,invalid2@x.example', '3,risky3@x.example'],
  ...['4,timeout4@x.example', '5,valid5@x.example', '6,valid1@x.example'],
].join('\n')

/** Runs `ev bulk` on a list in the sandbox, in an empty folder. */
async function bulk(
  args: readonly string[],
  { home = emptyFolder(), list = LIST }: { home?: string; list?: string } = {},
): Promise<Ran & { home: string; files: string[] }> {
  writeFileSync(join(home, 'list.csv'), list)
  const all = ['bulk', 'list.csv', '--sandbox', '--data-dir', 'data', ...args]
  const result = await runEv(all, { home, offline: true })
  return { ...withRelativePaths(result, home), home, files: filesIn(home) }
}

const filesIn = (home: string) =>
  readdirSync(home).filter(name => name !== 'data' && name !== 'list.csv')

const idsIn = (home: string, file: string) => rowsIn(join(home, file)).map(row => Number(row.id))

// Each test has several sequential runs, which are slow on a busy machine.
describe.concurrent('--split', { timeout: 60_000 }, () => {
  test('writes a file with a header for each class, and lists the files', async () => {
    const { code, home, files, stdout, stderr } = await bulk(
      ['-o', 'out.csv', '--split', '--json'],
      { list: LIST.replace('3,risky3', '3,valid3') },
    )
    expect(code, stderr).toBe(0)
    expect(files).toEqual([
      'out.deliverable.csv',
      'out.risky.csv',
      'out.undeliverable.csv',
      'out.unknown.csv',
    ])
    expect(files.map(file => idsIn(home, file))).toEqual([[1, 3, 5, 6], [], [2], [4]])
    expect(readFileSync(join(home, 'out.risky.csv'), 'utf8')).toMatch(/^id,email,ev_class,.*\n$/)
    expect(stderr).toContain(
      ', written to\n        4  out.deliverable.csv\n        0  out.risky.csv\n',
    )
    expect(JSON.parse(stdout)).toMatchObject({
      output: 'out.csv',
      written: 6,
      files: [
        { path: 'out.deliverable.csv', classes: ['deliverable'], rows: 4 },
        { path: 'out.risky.csv', classes: ['risky'], rows: 0 },
        { path: 'out.undeliverable.csv', classes: ['undeliverable'], rows: 1 },
        { path: 'out.unknown.csv', classes: ['unknown'], rows: 1 },
      ],
    })
  })

  test('with --only writes only the files of those classes', async () => {
    const { home, files } = await bulk(['-o', 'out', '--split', '--only', 'unknown,deliverable'])
    expect(files).toEqual(['out.deliverable', 'out.unknown'])
    expect(files.map(file => idsIn(home, file))).toEqual([[1, 5, 6], [4]])
  })

  test.runIf(existsSync('/dev/full'))(
    'writes all of its files or none, and leaves existing files unchanged',
    async () => {
      const home = emptyFolder()
      writeFileSync(join(home, 'out.deliverable.csv'), 'earlier')
      symlinkSync('/dev/full', join(home, 'out.unknown.csv'))
      const { code, stderr, files } = await bulk(['-o', 'out.csv', '--split', '--force'], { home })
      expect(code).toBe(73)
      expect(stderr).toMatch(
        /^error: out\.unknown\.csv cannot be written: no space left on device/m,
      )
      expect(files).toEqual(['out.deliverable.csv', 'out.unknown.csv'])
      expect(readFileSync(join(home, 'out.deliverable.csv'), 'utf8')).toBe('earlier')
    },
  )
})

describe.concurrent('--only', () => {
  test('writes the rows of its classes, counts all rows, and prints how many were written', async () => {
    const { home, stdout, stderr } = await bulk([
      ...['-o', 'out.csv', '--only', 'deliverable,unknown', '--json'],
    ])
    expect(idsIn(home, 'out.csv')).toEqual([1, 4, 5, 6])
    expect(stderr).toMatch(/undeliverable +1 .*\n/)
    expect(stderr).toMatch(/6 rows in .*, 4 of them written to out\.csv\.$/m)
    expect(JSON.parse(stdout)).toMatchObject({
      total: 6,
      written: 4,
      risky: 1,
      undeliverable: 1,
      files: [{ path: 'out.csv', classes: ['deliverable', 'unknown'], rows: 4 }],
    })
  })
})

describe.concurrent('--format', () => {
  test('ndjson writes one object per row, from stdin to stdout', async () => {
    const args = ['bulk', '-', '-o', '-', '--format', 'ndjson', '--sandbox', '--data-dir', 'data']
    const { code, stdout } = await runEv(args, { home: emptyFolder(), stdin: LIST, offline: true })
    expect(code).toBe(0)
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(rows.map(({ row, result }) => [row, result.class])).toEqual([
      ...[
        [1, 'deliverable'],
        [2, 'undeliverable'],
        [3, 'risky'],
      ],
      ...[
        [4, 'unknown'],
        [5, 'deliverable'],
        [6, 'deliverable'],
      ],
    ])
    expect(rows[3]).toMatchObject({
      input: { id: '4', email: 'timeout4@x.example' },
      result: { email: 'timeout4@x.example', reason: 'timeout', flags: {}, evidence: {} },
    })
  })

  test.runIf(existsSync('/dev/full'))(
    'a list from stdin can be resumed by its ID, which deletes its copy',
    async () => {
      const home = emptyFolder()
      symlinkSync('/dev/full', join(home, 'out'))
      const args = [
        'bulk',
        '-',
        '-o',
        'out',
        '--format',
        'ndjson',
        '--sandbox',
        '--data-dir',
        'data',
      ]
      const full = await runEv(args, { home, stdin: LIST, offline: true })
      expect(full).toMatchObject({ code: 73, stdout: '' })
      rmSync(join(home, 'out'))
      const copies = () => readdirSync(join(home, 'data/stdin')).length
      expect(copies()).toBe(1)
      const dataDir = join(home, 'data')
      const database = await openDatabase(`sqlite:${join(dataDir, 'ev.sqlite')}`, systemClock)
      const { id } = await database.db.selectFrom('job').select('id').executeTakeFirstOrThrow()
      await database.close()
      expect(
        await resumeBulk(memoryContext({ home: emptyFolder() }).context, id, {
          dataDir,
          quiet: true,
        }),
      ).toBe(0)
      expect(readFileSync(join(home, 'out'), 'utf8').split('\n')).toHaveLength(7)
      expect(copies()).toBe(0)
    },
  )

  test('json writes an array, also with --split', async () => {
    const { home, files } = await bulk(['-o', 'out.json', '--format', 'json', '--split'])
    const rows = files.map(file => JSON.parse(readFileSync(join(home, file), 'utf8')))
    expect(rows.map(array => array.map(({ row }: { row: number }) => row))).toEqual([
      ...[[1, 5, 6], [3], [2], [4]],
    ])
  })
})

describe.concurrent('an invalid output', () => {
  test.each([
    ['--split to stdout', ['-o', '-', '--split'], 64, /--split .* stdout\. .*-o/],
    [
      'an unknown class',
      ['-o', 'out', '--only', 'good'],
      64,
      /--only has "good"; it takes a comma-separated list of deliverable, risky, und/,
    ],
    ['an unknown format', ['-o', 'out', '--format', 'xml'], 64, /takes one of csv, xlsx, ndjson/],
    ['--split with the name of a folder', ['-o', 'data', '--split'], 73, /data is a folder/],
    ['--split to a device', ['-o', '/dev/null', '--split'], 64, /not a regular file.*-o/],
    [
      '--split to a missing folder',
      ['-o', 'no/out', '--split'],
      73,
      /folder no does not exist.*-o/,
    ],
    ['a path that ends with a slash', ['-o', 'no/', '--split'], 73, /no\/ is a folder/],
  ])('%s is rejected before any work', async (_, args, code, sentence) => {
    const result = await bulk(args)
    expect(result.stderr).toMatch(sentence)
    expect(result).toMatchObject({ code, stdout: '', files: [] })
    expect(existsSync('/dev/null.deliverable')).toBe(false)
  })

  test.each([
    ['a split file', 'out.risky.csv', ['--split']],
    ['a partial split file', 'out.risky.csv.partial', ['--split']],
    ['the partial output', 'out.csv.partial', []],
  ])('that would overwrite the list with %s leaves the list unchanged', async (_, name, args) => {
    const home = emptyFolder()
    writeFileSync(join(home, name), LIST)
    const all = ['bulk', name, '-o', 'out.csv', '--sandbox', '--data-dir', 'data', ...args]
    const { code, stderr } = await runEv(all, { home, offline: true })
    expect({ code, stderr }).toMatchObject({ code: 64, stderr: expect.stringContaining('list') })
    expect(readFileSync(join(home, name), 'utf8')).toBe(LIST)
  })

  test('is rejected if two split files are the same file', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'one'), 'earlier')
    symlinkSync('one', join(home, 'out.risky.csv'))
    symlinkSync('one', join(home, 'out.unknown.csv'))
    const { code, stderr } = await bulk(['-o', 'out.csv', '--split', '--force'], { home })
    expect(stderr).toContain('out.risky.csv and out.unknown.csv are the same file')
    expect(code).toBe(64)
    expect(readFileSync(join(home, 'one'), 'utf8')).toBe('earlier')
  })
})
