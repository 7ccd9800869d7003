import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { purgeText } from '../../src/cli/purge.ts'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { verificationRow } from '../support/account-rows.ts'
import { emptyFolder, runEv, simulatorFlags } from '../support/cli.ts'
import { rowsIn } from '../support/csv.ts'

const LIST = 'email\nann@good.test\nben@good.test\ngone@good.test\n'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['ann', 'ben', 'joann'],
    domains: { 'good.test': { mx: [[10, 'mx.good.test']] } },
    hosts: { 'mx.good.test': { behavior: 'polite' } },
  })
})
afterAll(() => simulator.close())

/** Creates a folder with a finished list: the database has its items and cached answers. */
async function homeAfter(list = LIST): Promise<string> {
  const home = emptyFolder()
  await bulk(home, list)
  expect(holds(home, 'good.test')).toBe(true)
  return home
}

async function bulk(home: string, list: string, output = 'out.csv') {
  writeFileSync(join(home, 'list.csv'), list)
  const args = ['bulk', 'list.csv', '-o', output, '--quiet', '--data-dir', 'data']
  return runEv([...args, ...simulatorFlags(simulator)], { home })
}

const purge = (home: string, ...args: string[]) =>
  runEv(['purge', '--yes', '--data-dir', 'data', ...args], { home, offline: true })

const purged = async (home: string, ...args: string[]) =>
  JSON.parse((await purge(home, '--json', ...args)).stdout)

const jobsOf = async (home: string) =>
  JSON.parse((await runEv(['jobs', '--json', '--data-dir', 'data'], { home })).stdout)

/** Whether any file in the data directory contains the text. */
function holds(home: string, text: string): boolean {
  const folder = join(home, 'data')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter(name => /\.(sqlite(-\w+)?|csv|partial)$/.test(name))
  return files.some(name => readFileSync(join(folder, name)).includes(text))
}

async function inDatabase(home: string, work: (database: Database) => Promise<unknown>) {
  const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
  await work(database).finally(() => database.close())
}

const DAY_MS = 86_400_000

test('does not print a size that rounds to the same value', () => {
  const purged = { dryRun: false, jobs: [], answers: 0, files: [], young: 0, traces: null }
  const service = { history: 0, deliveries: 0, replays: 0 }
  const summaryOf = (before: number, after: number) =>
    purgeText({
      ...purged,
      service,
      unfinished: 0,
      bytes: { before, after },
      isGone: true,
      isShared: false,
    })
  expect(summaryOf(1_520_000, 1_510_000)).toBe('Nothing to delete.\n')
  expect(summaryOf(1_520_000, 1_400_000)).toContain('shrank from 1.5 MB to 1.4 MB.')
})

describe.concurrent('ev purge', { timeout: 60_000 }, () => {
  test('deletes nothing and creates nothing if there is no data', async () => {
    const home = emptyFolder()
    expect(await purge(home, '--all')).toMatchObject({
      code: 0,
      stdout: 'Nothing to delete.\n',
      stderr: '',
    })
    expect(readdirSync(join(home, 'data'))).toEqual([])
  })

  test('deletes lists finished before --keep-results, and expired answers', async () => {
    const home = await homeAfter()
    expect(await purged(home, '--keep-results', '2')).toMatchObject({ jobs: [], answers: 0 })
    const now = systemClock.now()
    await inDatabase(home, async ({ db }) => {
      await db
        .updateTable('job')
        .set({ finished_at: now - 3 * DAY_MS })
        .execute()
      await db
        .updateTable('answer')
        .set({ keep_until: now - 1 })
        .where('address_key', 'like', 'ann%')
        .execute()
    })
    expect(await purged(home, '--keep-results', '4')).toMatchObject({ jobs: [], answers: 1 })
    expect(await purged(home, '--keep-results', '2')).toMatchObject({
      jobs: [expect.stringMatching(/^job_/)],
      rows: 3,
      answers: 0,
    })
    expect(await jobsOf(home)).toEqual([])
    expect([holds(home, 'ann@good.test'), holds(home, 'ben@good.test')]).toEqual([false, true])
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(3)
  })

  test('--all deletes all finished lists and answers, leaves no byte of an address, and shrinks the file', async () => {
    const rows = Array.from({ length: 1_500 }, (_, n) => `nobody ${n} at good.test`)
    const home = await homeAfter(`${LIST}${rows.join('\n')}\n`)
    const { stdout } = await purge(home, '--all')
    expect(stdout).toMatch(
      /^Deleted:\n {2}1 finished list of 1,503 rows: job_[a-z0-9]+\n {2}3 cached answers\n/,
    )
    expect(stdout).toMatch(/The database shrank from \d\.\d MB to \d+ KB\.\n$/)
    expect(holds(home, 'good.test')).toBe(false)
    expect(await jobsOf(home)).toEqual([])
  })

  test('--dry-run prints the same and deletes nothing', async () => {
    const home = await homeAfter()
    const { stdout } = await purge(home, '--all', '--dry-run')
    expect(stdout).toMatch(
      /^Would delete:\n {2}1 finished list of 3 rows: job_.*\n {2}3 cached answers\n$/,
    )
    expect(await jobsOf(home)).toHaveLength(1)
    expect(await purged(home, '--all')).toMatchObject({ rows: 3, answers: 3 })
  })

  test('keeps unfinished lists even with --all, and says so', async () => {
    const home = await homeAfter()
    await inDatabase(home, ({ db }) =>
      db
        .updateTable('job')
        .set({ state: 'processing', finished_at: null, written_at: null })
        .execute(),
    )
    expect((await purge(home, '--all')).stdout).toMatch(
      /Unfinished lists are kept: 1\. See "ev jobs"\./,
    )
    expect(await jobsOf(home)).toMatchObject([{ state: 'stopped' }])
  })

  test('deletes copies of stdin that no list needs, except recent ones and other files', async () => {
    const home = emptyFolder()
    const folder = join(home, 'data/stdin')
    mkdirSync(folder)
    const old = systemClock.now() / 1_000 - 3_600
    const put = (name: string, age: 'old' | 'young') => {
      writeFileSync(join(folder, name), 'ann@good.test\n')
      if (age === 'old') utimesSync(join(folder, name), old, old)
    }
    put(`${'a'.repeat(32)}.csv`, 'old')
    put(`${'b'.repeat(32)}.csv`, 'young')
    put('notes.csv', 'old')
    put('4194304999.partial', 'old') // No process has this number.
    put(`${process.pid}.partial`, 'old')
    expect(await purged(home, '--dry-run')).toMatchObject({ leftover_files: 2, young_files: 1 })
    expect((await purge(home)).stdout).toBe(
      'Deleted:\n  2 leftover copies of a list from stdin or a URL\n' +
        'Copies of lists less than 10 minutes old are kept: 1 copy.\n',
    )
    expect(readdirSync(folder).sort()).toEqual(
      [`${'b'.repeat(32)}.csv`, 'notes.csv', `${process.pid}.partial`].sort(),
    )
  })

  test('keeps the copy of stdin of an unfinished list', async () => {
    const home = emptyFolder()
    const args = ['bulk', '-', '-o', '/dev/full', '--sandbox', '--quiet', '--data-dir', 'data']
    expect(await runEv(args, { home, stdin: LIST })).toMatchObject({ code: 73 })
    const [copy = ''] = readdirSync(join(home, 'data/stdin'))
    utimesSync(join(home, 'data/stdin', copy), 1, 1)
    expect(await purged(home)).toMatchObject({ leftover_files: 0 })
    expect(existsSync(join(home, 'data/stdin', copy))).toBe(true)
    // It is deleted with its list.
    expect(await purged(home, '--all')).toMatchObject({ rows: 3, leftover_files: 1 })
  })
})

/** Stores verifications, a delivered event and a stored response of this many days ago. */
async function homeOfService(...days: number[]): Promise<string> {
  const home = emptyFolder()
  await inDatabase(home, async ({ db }) => {
    for (const ago of days) {
      const created_at = systemClock.now() - ago * DAY_MS
      const whose = { account_id: 'acc_a', created_at }
      await db
        .insertInto('verification')
        .values(verificationRow({ ...whose, id: `ver_${ago}`, email: 'ann@good.test' }))
        .execute()
      const event = { ...whose, id: `evt_${ago}`, kind: 'quota.warning', body: '{}' }
      await db.insertInto('event').values(event).execute()
      const delivery = { event_id: event.id, webhook_id: 'wh_a', kind: event.kind, due_at: 0 }
      const ended = { state: 'delivered', trigger: 'scheduled', attempt: 1, created_at } as const
      const expires_at = created_at + 7 * DAY_MS
      await db
        .insertInto('delivery')
        .values({ ...delivery, ...ended, id: `dlv_${ago}`, expires_at })
        .execute()
      const replay = { key_id: 'key_a', idempotency_key: `${ago}`, fingerprint: '', status: 200 }
      await db
        .insertInto('replay')
        .values({ ...replay, answer: '', created_at })
        .execute()
    }
  })
  return home
}

describe.concurrent('ev purge of service data', { timeout: 60_000 }, () => {
  test('deletes history, deliveries and stored responses by their age', async () => {
    const home = await homeOfService(0, 8, 10, 91)
    const old = { history: 1, deliveries: 3, replays: 3 }
    expect(await purged(home, '--dry-run')).toMatchObject({ ...old, dry_run: true })
    expect(await purged(home, '--keep-history', '9')).toMatchObject({ ...old, history: 2 })
    expect(await purged(home)).toMatchObject({ history: 0, deliveries: 0, replays: 0 })
    const { stdout } = await purge(home, '--all')
    expect(stdout).toContain('  2 verifications in the history\n')
    expect(await purged(home, '--all')).toMatchObject({ history: 0, deliveries: 0, replays: 0 })
  })

  test('erases an address from the history, which keeps its verdict', async () => {
    const home = await homeOfService(0, 1)
    const { stdout } = await purge(home, '--address', 'Ann@good.test')
    expect(stdout).toContain('  the address in 2 verifications of the history\n')
    expect(holds(home, 'ann@good')).toBe(false)
    await inDatabase(home, async ({ db }) => {
      const rows = await db.selectFrom('verification').select(['email', 'reason']).execute()
      expect(rows).toEqual(Array(2).fill({ email: '', reason: 'accepted_email' }))
    })
  })
})

describe.concurrent('ev purge --address', { timeout: 60_000 }, () => {
  test('erases every byte of that address only, and keeps the counts of the list', async () => {
    const home = await homeAfter(`${LIST}joann@good.test\n`)
    const [before] = await jobsOf(home)
    const { code, stdout } = await purge(home, '--address', 'Ann@GOOD.test')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^Deleted:\n {2}1 cached answer for the address\n {2}the address in 1 row of 1 finished list\n/,
    )
    const file = readFileSync(join(home, 'data/ev.sqlite'), 'latin1')
    expect(/(?<!jo)ann@good\.test/.test(file)).toBe(false)
    expect(holds(home, 'joann@good.test')).toBe(true)
    expect(await jobsOf(home)).toEqual([before])
  })

  test('is rejected while an unfinished list has the address, and erases nothing', async () => {
    const home = await homeAfter()
    await bulk(home, 'email\nann@good.test\nann@good.test\n', '/dev/full')
    const { code, stdout, stderr } = await purge(home, '--address', 'ann@good.test')
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toMatch(
      /^error: ann@good\.test is in an unfinished list: (job_\w+)\. Nothing was erased\. .*"ev jobs cancel \1".*$/m,
    )
    expect(await purged(home, '--all', '--dry-run')).toMatchObject({ answers: 3 })
  })

  test('requires a valid address, and conflicts with --all', async () => {
    const home = emptyFolder()
    const bad = await purge(home, '--address', 'nobody')
    expect(bad.code).toBe(65)
    expect(bad.stderr).toMatch(/^error: --address is "nobody", which is not an email address\. /m)
    const both = await purge(home, '--address', 'a@good.test', '--all')
    expect(both.code).toBe(64)
    expect(both.stderr).toMatch(/--address.*--all.* exclude each other/)
  })
})
