import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LIST_COLUMNS } from '../../src/engine/verdict/present-result.ts'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import {
  type CliOptions,
  emptyFolder,
  type Ran,
  runEv,
  simulatorFlags,
  startEv,
  withRelativePaths,
} from '../support/cli.ts'
import { rowsIn, rowsOf, withoutTimes } from '../support/csv.ts'
import { withEqualHosts } from '../support/own-hosts.ts'
import { getProbeCounts, listOf, untilProbed } from '../support/probe-counts.ts'

/** Runs `ev bulk` on a list in an empty folder; `out` is the path of the output. */
async function bulk(
  list: string | Uint8Array,
  args: readonly string[] = [],
  options: Partial<CliOptions> = {},
): Promise<Ran & { home: string; out: string }> {
  const home = options.home ?? emptyFolder()
  writeFileSync(join(home, 'list.csv'), list)
  const all = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data', ...args]
  const result = await runEv(all, { home, ...options })
  return { ...withRelativePaths(result, home), home, out: join(home, 'out.csv') }
}

const sandbox = (list: string | Uint8Array, args: readonly string[] = []) =>
  bulk(list, ['--sandbox', ...args], { offline: true })

const decode = (file: string, encoding: string) =>
  new TextDecoder(encoding).decode(readFileSync(file))

describe.concurrent('a list', () => {
  test('keeps its columns, their order and its rows; the columns of ev come after them', async () => {
    const list = 'id,Email,note\n2,valid1@x.example,"a, ""b"""\n1,invalid@x.example,\n3,,empty\n'
    const { code, out } = await sandbox(list)
    expect(code).toBe(0)
    const text = readFileSync(out, 'utf8')
    expect(text.split('\n')[0]).toBe(['id', 'Email', 'note', ...LIST_COLUMNS].join(','))
    expect(rowsOf(text)).toMatchObject([
      { id: '2', Email: 'valid1@x.example', note: 'a, "b"', ev_class: 'deliverable' },
      { id: '1', Email: 'invalid@x.example', note: '', ev_class: 'undeliverable' },
      { id: '3', Email: '', note: 'empty', ev_class: 'unknown', ev_reason: 'no_address' },
    ])
  })

  test('with semicolons, a byte order mark and CRLF keeps them', async () => {
    const list = '\uFEFFName;E-Mail\r\nZoë;valid1@x.example\r\n"a;b";valid2@x.example\r\n'
    const { out } = await sandbox(list)
    const text = readFileSync(out, 'utf8')
    expect(text).toMatch(/^\uFEFFName;E-Mail;ev_class;.*\r\nZoë;valid1@x\.example;deliverable;/)
    expect(rowsIn(out, ';').map(row => row.Name)).toEqual(['Zoë', 'a;b'])
  })

  test.each([
    ['windows-1252', Buffer.from('name,email\nFran\xe7ois,valid1@x.example\n', 'latin1')],
    ['utf-16le', Buffer.from('\uFEFFname,email\nFrançois,valid1@x.example\n', 'utf16le')],
    ['shift_jis', Buffer.from('name,email\n\x8eR\x93c,valid1@x.example\n', 'latin1')],
  ])('in %s is written in this encoding', async (encoding, list) => {
    const { out, stderr } = await sandbox(list, ['--encoding', encoding])
    const name = encoding === 'shift_jis' ? '山田' : 'François'
    const text = new TextDecoder(encoding).decode(readFileSync(out))
    expect(rowsOf(text)).toMatchObject([{ name, ev_class: 'deliverable' }])
    expect(readFileSync(out).subarray(0, 2)).toEqual(list.subarray(0, 2))
    expect(stderr).toContain(`The output is in ${encoding}, as the list.`)
  })

  test('without a header is processed from its first row', async () => {
    const { out } = await sandbox('valid1@x.example\nvalid2@x.example\n')
    expect(rowsIn(out).map(row => row.email)).toEqual(['valid1@x.example', 'valid2@x.example'])
  })

  test('has its address column selected by name or by number', async () => {
    const list = 'old,new\ninvalid@x.example,valid@x.example\n'
    for (const column of ['new', '2']) {
      const { out } = await sandbox(list, ['--column', column])
      expect(rowsIn(out)).toMatchObject([{ ev_email: 'valid@x.example' }])
    }
  })

  test('with only a header results in only a header', async () => {
    const { code, out, stderr } = await sandbox('id,email\n')
    expect({ code, lines: readFileSync(out, 'utf8').split('\n').length }).toEqual({
      code: 0,
      lines: 2,
    })
    expect(stderr).toContain('0 rows')
  })

  test('has the address extracted from a cell, and the cell kept', async () => {
    const { out } = await sandbox('email\nAnn Lee <valid@x.example>\n')
    expect(rowsIn(out)).toMatchObject([
      { email: 'Ann Lee <valid@x.example>', ev_email: 'valid@x.example' },
    ])
  })

  test('has its detected encoding printed, and can be read with another one', async () => {
    const list = Buffer.from('name,email\nGy\xf5r,valid@x.example\n', 'latin1')
    const found = await sandbox(list)
    expect(found.stderr).toContain('1 row, addresses in column email, read as windows-1252.')
    expect(rowsOf(decode(found.out, 'windows-1252'))).toMatchObject([{ name: 'Gyõr' }])
    const overridden = await sandbox(list, ['--encoding', 'windows-1250'])
    expect(overridden.stderr).toContain('read as windows-1250.')
    expect(rowsOf(decode(overridden.out, 'windows-1250'))).toMatchObject([{ name: 'Győr' }])
  })

  test('has spreadsheet formulas escaped unless --raw is set', async () => {
    const list = 'email\n=cmd|x\nvalid@x.example\n'
    const guarded = rowsIn((await sandbox(list)).out)
    expect(guarded).toMatchObject([{ email: "'=cmd|x", ev_email: "'=cmd|x" }, {}])
    const raw = rowsIn((await sandbox(list, ['--raw'])).out)
    expect(raw).toMatchObject([{ email: '=cmd|x', ev_email: '=cmd|x' }, {}])
  })
})

describe.concurrent('the output', () => {
  const LIST = 'email\nvalid1@x.example\nvalid2@x.example\ninvalid1@x.example\ntimeout1@x.example\n'

  test('prints the summary on stderr and nothing on stdout', async () => {
    const { stdout, stderr } = await sandbox(LIST)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/4 rows, addresses in column email\./)
    expect(stderr).toMatch(
      /deliverable +2 +50\.0%\n +accepted_email +2 .*\n +risky +0 .*\n +undeliverable +1 .*\n +rejected_email .*\n +unknown +1 /,
    )
    expect(stderr).toContain('written to out.csv.')
  })

  test('--quiet prints nothing', async () => {
    expect(await sandbox(LIST, ['--quiet'])).toMatchObject({ code: 0, stdout: '', stderr: '' })
  })

  test('--json prints the summary as one object', async () => {
    const { stdout } = await sandbox(LIST, ['--json', '--quiet'])
    expect(JSON.parse(stdout)).toEqual({
      job_id: expect.stringMatching(/^job_[a-z0-9]{16}$/),
      output: 'out.csv',
      files: [
        {
          path: 'out.csv',
          classes: ['deliverable', 'risky', 'undeliverable', 'unknown'],
          rows: 4,
        },
      ],
      encoding: 'utf-8',
      sandbox: true,
      total: 4,
      duplicates: 0,
      deliverable: 2,
      risky: 0,
      undeliverable: 1,
      unknown: 1,
      no_address: 0,
      reasons: {
        deliverable: { accepted_email: 2 },
        risky: {},
        undeliverable: { rejected_email: 1 },
        unknown: { timeout: 1 },
      },
      actions: { send: 2, send_with_care: 0, retry_later: 1, suppress: 1 },
      projection: expect.objectContaining({ reports: 0 }),
      suggestions: 0,
      written: 4,
    })
  })

  test('- reads the list from stdin, writes to stdout and keeps no copy', async () => {
    const home = emptyFolder()
    const args = ['bulk', '-', '-o', '-', '--sandbox', '--data-dir', 'data', '--json']
    const { code, stdout } = await runEv(args, { home, stdin: LIST, offline: true })
    expect(code).toBe(0)
    expect(rowsOf(stdout).map(row => row.ev_class)).toEqual([
      ...['deliverable', 'deliverable', 'undeliverable', 'unknown'],
    ])
    expect(readdirSync(join(home, 'data/stdin'))).toEqual([])
  })

  test('follows a symbolic link, and writes directly to a device', async () => {
    const home = emptyFolder()
    symlinkSync('behind.csv', join(home, 'out.csv'))
    writeFileSync(join(home, 'behind.csv'), '')
    await bulk(LIST, ['--sandbox'], { home })
    expect(rowsIn(join(home, 'behind.csv'))).toHaveLength(4)
    expect((await sandbox(LIST, ['-o', '/dev/null'])).code).toBe(0)
    expect(existsSync('/dev/null.partial')).toBe(false)
  })
})

describe.concurrent('a list that cannot be processed', () => {
  test.each([
    [
      'does not exist',
      ['bulk', 'none.csv', '-o', 'out.csv'],
      66,
      /^error: The list none\.csv cannot be read/,
    ],
    [
      'is a folder',
      ['bulk', 'data', '-o', 'out.csv'],
      66,
      /^error: data is a folder, not a list\./,
    ],
    [
      'is empty',
      ['bulk', 'empty.csv', '-o', 'out.csv'],
      65,
      /^error: The list is empty\. Give at least one address/,
    ],
    [
      'has no addresses',
      ['bulk', 'plain.csv', '-o', 'out.csv'],
      65,
      /^error: No address column found\. .*--column/,
    ],
    [
      'lacks the selected column',
      ['bulk', 'list.csv', '-o', 'out.csv', '--column', 'mail'],
      65,
      /^error: .*mail/,
    ],
    [
      'is the output',
      ['bulk', 'list.csv', '-o', './data/../list.csv'],
      64,
      /^error: The output .* is the list itself\. Name another/,
    ],
    [
      'has an output in a missing folder',
      ['bulk', 'list.csv', '-o', 'no/out.csv'],
      73,
      /^error: The folder no does not exist\. .*-o/,
    ],
    [
      'has a folder as its output',
      ['bulk', 'list.csv', '-o', 'data'],
      73,
      /^error: data is a folder\. .*-o/,
    ],
    [
      'has an unusable data directory',
      ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'list.csv/x'],
      74,
      /^error: .*list\.csv\/x.* --data-dir/,
    ],
    [
      'comes from stdin with an unusable data directory',
      ['bulk', '-', '-o', 'out.csv', '--data-dir', 'list.csv/x'],
      74,
      /^error: The list from stdin .* --data-dir/,
    ],
    [
      'has no directory for its locks',
      [
        'bulk',
        'list.csv',
        '-o',
        'out.csv',
        '--data-dir',
        'list.csv/x',
        '--database',
        'sqlite:a.db',
      ],
      74,
      /^error: The data directory .* --data-dir/,
    ],
    [
      'has a database file that is no database',
      ['bulk', 'list.csv', '-o', 'out.csv', '--database', 'sqlite:list.csv'],
      74,
      /^error: The database list\.csv cannot be used: file is not a database\. Choose another/,
    ],
  ] as [string, string[], number, RegExp][])(
    'because it %s fails before any work, with an exit code and a message',
    async (_, args, code, sentence) => {
      const home = emptyFolder()
      const text = 'email\nvalid@x.example\n'
      writeFileSync(join(home, 'list.csv'), text)
      writeFileSync(join(home, 'empty.csv'), '')
      writeFileSync(join(home, 'plain.csv'), 'a,b\n1,2\n')
      const all = [
        ...args,
        '--sandbox',
        ...(args.includes('--data-dir') ? [] : ['--data-dir', 'data']),
      ]
      const result = withRelativePaths(await runEv(all, { home, offline: true }), home)
      expect(result.code, result.stderr).toBe(code)
      expect(result.stderr).toMatch(sentence)
      expect(result.stderr).not.toMatch(/^ +at /m)
      expect(result.stdout).toBe('')
      expect(readdirSync(home).filter(name => /out\.csv|partial/.test(name))).toEqual([])
      expect(readFileSync(join(home, 'list.csv'), 'utf8')).toBe(text)
    },
  )
})

describe.concurrent('a damaged database', () => {
  test('exits with 74 and a remedy, whenever the damage is found', async () => {
    const home = emptyFolder()
    const file = join(home, 'data/ev.sqlite')
    const rows = Array.from({ length: 2_000 }, (_, n) => `valid${n}@x.example`)
    // A list whose output cannot be written stays unfinished.
    const unfinished = await bulk(rows.join('\n'), ['--sandbox', '-o', '/dev/full'], { home })
    expect(unfinished.code, unfinished.stderr).toBe(73)
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 8 * 4_096)
    writeFileSync(file, bytes)
    const { code, stderr } = await bulk(rows.join('\n'), ['--sandbox'], { home })
    expect(code, stderr).toBe(74)
    expect(stderr).toMatch(/^error: The database .* malformed.* move (it|the file) away/m)
    expect(stderr).not.toMatch(/^ +at /m)
  })
})

// Each test has several sequential runs, which are slow on a busy machine.
describe.concurrent('a list with simulated mail servers', { timeout: 60_000 }, () => {
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator(SCENARIO)
  })
  afterAll(() => simulator.close())

  test('with duplicates probes each address once and has a result in every row', async () => {
    const list = [
      'email',
      'user1@twins.test',
      'User1@TWINS.test',
      'user1@Twins.Test',
      'user1@twins.test',
    ]
    const { out, stderr } = await bulk(list.join('\n'), simulatorFlags(simulator))
    const rows = rowsIn(out)
    expect(rows.map(row => row.email)).toEqual(list.slice(1))
    expect(rows.map(row => row.ev_class)).toEqual(Array(4).fill('deliverable'))
    // Only the host of a mailbox may ignore the case of its local part (RFC 5321 §2.4).
    expect(stderr).toContain('2 duplicates are verified once')
    expect([...getProbeCounts(simulator, 'mx.twins.test').values()]).toEqual([1, 1])
  })

  test('that is stopped resumes, with the output of an uninterrupted run', async () => {
    const list = listOf('stop.test', 300)
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), list)
    const args = [
      'bulk',
      'list.csv',
      '-o',
      'out.csv',
      '--data-dir',
      'data',
      ...simulatorFlags(simulator),
    ]
    const first = startEv(args, { home })
    await untilProbed(simulator, 'mx.stop.test', 60)
    first.signal('SIGINT')
    const stopped = await first.ended
    expect(stopped).toMatchObject({ code: 130, stdout: '' })
    expect(stopped.stderr).toMatch(
      /Stopped: \d+ of 300 rows are finished and saved\. To resume, run the same command/,
    )
    expect(readdirSync(home).sort()).toEqual(['data', 'list.csv'])
    const second = await runEv(args, { home })
    expect(second.code, second.stderr).toBe(0)
    const [, done] = /Resuming this list: (\d+) of 300 rows are finished/.exec(second.stderr) ?? []
    expect(Number(done)).toBeGreaterThan(0)
    // Addresses that were answered before the stop are not probed again.
    expect(
      [...getProbeCounts(simulator, 'mx.stop.test').values()].filter(times => times > 1),
    ).toEqual([])
    const resumed = withoutTimes(readFileSync(join(home, 'out.csv'), 'utf8'))
    const reference = await bulk(list, simulatorFlags(simulator))
    expect(resumed).toBe(withoutTimes(readFileSync(reference.out, 'utf8')))
  })

  test('--fresh discards the results of an earlier run', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), listOf('fresh.test', 120))
    const args = [
      'bulk',
      'list.csv',
      '-o',
      'out.csv',
      '--data-dir',
      'data',
      ...simulatorFlags(simulator),
    ]
    const first = startEv(args, { home })
    await untilProbed(simulator, 'mx.fresh.test', 30)
    first.signal('SIGINT')
    expect((await first.ended).code).toBe(130)
    const fresh = await runEv([...args, '--fresh', '--cache', 'off'], { home })
    expect(fresh.stderr).not.toContain('Resuming')
    expect(fresh.code).toBe(0)
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(120)
    const repeated = [...getProbeCounts(simulator, 'mx.fresh.test').values()].filter(
      times => times > 1,
    )
    expect(repeated.length).toBeGreaterThan(0)
  })
})

/** Polite hosts with a round-trip time, one for each test. */
const SCENARIO: Scenario = {
  roundTripMs: 20,
  ...withEqualHosts(['twins.test', 'stop.test', 'fresh.test'], { behavior: 'polite' }),
}
