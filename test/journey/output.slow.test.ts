import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { rowsIn, rowsOf } from '../support/csv.ts'
import { emptyFolder, runEv, startEv } from '../support/ev-process.ts'

const LIST = [
  'id,email',
  ...['1,valid1@x.example', '2,invalid2@x.example', '3,risky3@x.example'],
  ...['4,timeout4@x.example', '5,valid5@x.example', '6,valid1@x.example'],
].join('\n')

const filesIn = (home: string) =>
  readdirSync(home).filter(name => name !== 'data' && name !== 'list.csv')

const idsIn = (home: string, file: string) => rowsIn(join(home, file)).map(row => Number(row.id))

describe('--split', () => {
  test('leaves no partial file if killed while it writes, and can be resumed', async () => {
    const home = emptyFolder()
    const names = ['valid', 'invalid', 'risky', 'timeout']
    const rows = Array.from({ length: 8_000 }, (_, n) => `${n},${names[n % 4]}${n}@x.example`)
    writeFileSync(join(home, 'list.csv'), ['id,email', ...rows].join('\n'))
    writeFileSync(join(home, 'out.risky.csv'), 'earlier')
    const args = [
      '-o',
      'out.csv',
      '--split',
      '--force',
      '--sandbox',
      '--data-dir',
      'data',
      '--quiet',
    ]
    const running = startEv(['bulk', 'list.csv', ...args], { home })
    const last = join(home, 'out.unknown.csv.partial')
    let isDone = false
    void running.ended.then(() => {
      isDone = true
    })
    while (!isDone && !statSync(last, { throwIfNoEntry: false })?.size) await setTimeout(1)
    running.child.kill('SIGKILL')
    expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
    expect(filesIn(home).filter(name => !name.endsWith('.partial'))).toEqual(['out.risky.csv'])
    expect(readFileSync(join(home, 'out.risky.csv'), 'utf8')).toBe('earlier')
    expect(await runEv(['bulk', 'list.csv', ...args], { home })).toMatchObject({ code: 0 })
    expect(filesIn(home)).toEqual(Object.keys(SPLIT))
    for (const [file, rest] of Object.entries(SPLIT)) {
      expect(idsIn(home, file)).toEqual(Array.from({ length: 2_000 }, (_, n) => 4 * n + rest))
    }
  })

  test('locks each of its files against other runs while it writes', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), LIST)
    writeFileSync(join(home, 'other.csv'), 'email\nvalid9@x.example\n')
    // A writer of a pipe waits for its reader.
    spawnSync('mkfifo', [join(home, 'out.risky.csv')])
    const settings = ['--sandbox', '--data-dir', 'data']
    const first = startEv(['bulk', 'list.csv', '-o', 'out.csv', '--split', ...settings], { home })
    // By then it has the locks of its files.
    await first.printed('6 rows, addresses in column email', 'stderr')
    const args = ['bulk', 'other.csv', '-o', 'out.unknown.csv', ...settings]
    const second = await runEv(args, { home })
    expect(second.stderr).toMatch(
      /^error: Another ev process writes to out\.unknown\.csv\. Wait for it/m,
    )
    expect(second.code).toBe(74)
    const piped = readFile(join(home, 'out.risky.csv'), 'utf8')
    expect(await first.ended).toMatchObject({ code: 0 })
    expect(rowsOf(await piped).map(row => row.id)).toEqual(['3'])
    expect(await runEv(args, { home })).toMatchObject({ code: 0 })
  })

  /** The files of `-o out.csv`, and the index of their rows in each group of four rows. */
  const SPLIT = {
    'out.deliverable.csv': 0,
    'out.risky.csv': 2,
    'out.undeliverable.csv': 1,
    'out.unknown.csv': 3,
  }
})
