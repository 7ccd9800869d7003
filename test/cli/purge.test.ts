import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY, systemClock } from '../../src/platform/clock.ts'
import { formatBytes } from '../../src/platform/format.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { type CliOptions, emptyFolder, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { request, startService } from '../support/cli-service.ts'
import { HERE, homeWith, newKey, read } from '../support/cli-webhooks.ts'
import { shiftedClock } from '../support/clock.ts'
import { rowsIn } from '../support/csv.ts'
import { startReceiver } from '../support/http-receiver.ts'
import { waitUntil } from '../support/wait.ts'

const LIST = 'email\nann@good.test\nben@good.test\ngone@good.test\n'

/** Rows with invalid addresses. Each takes about 570 bytes in the database. */
const nobodies = (count: number) =>
  Array.from({ length: count }, (_, n) => `nobody ${n} at good.test\n`).join('')

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['ann', 'ben', 'joann'],
    domains: {
      'good.test': { mx: [[10, 'mx.good.test']] },
      'mute.test': { mx: [[10, 'mx.mute.test']] },
    },
    hosts: { 'mx.good.test': { behavior: 'polite' }, 'mx.mute.test': { behavior: 'silent' } },
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

async function bulk(
  home: string,
  list: string,
  output = 'out.csv',
  context: CliOptions['context'] = {},
) {
  writeFileSync(join(home, 'list.csv'), list)
  const args = ['bulk', 'list.csv', '-o', output, '--quiet', '--data-dir', 'data']
  return runEv([...args, ...simulatorFlags(simulator)], { home, context })
}

const purge = (home: string, ...args: string[]) => purgeAfter(0, home, ...args)

/** Purges after this many days; a size that rounds to the same value is not printed. */
async function purgeAfter(days: number, home: string, ...args: string[]) {
  const clock = shiftedClock(systemClock)
  clock.pass(days * DAY)
  const all = ['purge', '--yes', '--data-dir', 'data', ...args]
  const ran = await runEv(all, { home, offline: true, context: { clock } })
  expect(ran.stdout).not.toMatch(/shrank from (.+) to \1\.$/m)
  return ran
}

const purged = (home: string, ...args: string[]) => purgedAfter(0, home, ...args)
const purgedAfter = async (days: number, home: string, ...args: string[]) =>
  JSON.parse((await purgeAfter(days, home, '--json', ...args)).stdout)

const jobsOf = async (home: string) =>
  JSON.parse((await runEv(['jobs', '--json', '--data-dir', 'data'], { home })).stdout)

/** Whether any file in the data directory contains the text. */
function holds(home: string, text: string): boolean {
  const folder = join(home, 'data')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter(name => /\.(sqlite(-\w+)?|csv|partial)$/.test(name))
  return files.some(name => readFileSync(join(folder, name)).includes(text))
}

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
    expect(await purgedAfter(3, home, '--keep-results', '4')).toMatchObject({
      jobs: [],
      answers: 1,
    })
    expect(await purgedAfter(3, home, '--keep-results', '2')).toMatchObject({
      jobs: [expect.stringMatching(/^job_/)],
      rows: 3,
      answers: 0,
    })
    expect(await jobsOf(home)).toEqual([])
    expect(holds(home, 'ann@good.test')).toBe(true)
    expect(await purgedAfter(60, home)).toMatchObject({ answers: 2 })
    expect(holds(home, 'ann@good.test')).toBe(false)
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(3)
  })

  test('prints no size that rounds to the same value', async () => {
    const home = await homeAfter(`${LIST}${nobodies(50)}`)
    const clock = shiftedClock(systemClock)
    clock.pass(3 * DAY)
    await bulk(home, `email\n${nobodies(1_400)}`, 'later.csv', { clock })
    // Nothing is old enough: this only compacts the file.
    await purgeAfter(3, home, '--keep-results', '4')
    const size = () => statSync(join(home, 'data/ev.sqlite')).size
    const before = size()
    const { stdout } = await purgeAfter(3, home, '--keep-results', '2')
    expect(size()).toBeLessThan(before)
    expect([before, size()].map(formatBytes)).toEqual(['1.2 MB', '1.2 MB'])
    expect(stdout).toMatch(/^Deleted:\n {2}1 finished list of 53 rows: job_\w+\n/)
    expect(stdout).not.toContain('shrank')
  })

  test('--all deletes all finished lists and answers, leaves no byte of an address, and shrinks the file', async () => {
    const home = await homeAfter(`${LIST}${nobodies(1_500)}`)
    const { stdout } = await purge(home, '--all')
    expect(stdout).toMatch(/^Deleted:\n {2}1 finished list of 1,503 rows: job_\w+\n/)
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
    writeFileSync(join(home, 'mute.csv'), 'user1@mute.test\n')
    const args = ['bulk', 'mute.csv', '-o', 'mute.out.csv', '--data-dir', 'data']
    const running = startEv([...args, ...simulatorFlags(simulator)], { home })
    await waitUntil(() => (simulator.counters().hosts['mx.mute.test']?.connections ?? 0) > 0)
    running.signal('SIGINT')
    expect((await running.ended).code).toBe(130)
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

/** A service that verified an address, stored the response and delivered an event. */
async function homeOfService(): Promise<{ home: string; key: string }> {
  const receiver = await startReceiver({ name: '127.0.0.1' })
  const home = await homeWith('Shop')
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  const create = ['webhooks', 'create', '--url', receiver.url, '--events', '*', ...HERE]
  const { id } = await read(home, ...create)
  const test = ['webhooks', 'test', id, ...HERE, '--webhook-ca-file', 'ca.pem']
  expect((await runEv([...test, '--data-dir', 'data'], { home })).code).toBe(0)
  await receiver.close()
  const key = await newKey(home)
  const service = await startService(home, simulatorFlags(simulator))
  const body = { email: 'ann@good.test' }
  const headers = { 'Idempotency-Key': 'one' }
  expect((await request(service, key, '/v1/verify', { body, headers })).status).toBe(200)
  await service.end('SIGTERM')
  return { home, key }
}

describe('ev purge of service data', { timeout: 60_000 }, () => {
  test('deletes history, deliveries and stored responses by their age', async () => {
    const { home } = await homeOfService()
    const [none, one] = [
      { history: 0, deliveries: 0, replays: 0 },
      { history: 1, deliveries: 1, replays: 1 },
    ]
    expect(await purged(home)).toMatchObject(none)
    const dry = (days: number, ...args: string[]) => purgedAfter(days, home, '--dry-run', ...args)
    expect(await dry(6)).toMatchObject({ ...none, replays: 1, dry_run: true })
    expect(await dry(8)).toMatchObject({ ...one, history: 0 })
    expect(await dry(8, '--keep-history', '7')).toMatchObject(one)
    expect(await dry(91)).toMatchObject(one)
    const { stdout } = await purge(home, '--all')
    expect(stdout).toContain('  1 verification in the history\n')
    expect(await purged(home, '--all')).toMatchObject(none)
  })

  test('erases an address from the history, which keeps its verdict', async () => {
    const { home, key } = await homeOfService()
    const { stdout } = await purge(home, '--address', 'Ann@good.test')
    expect(stdout).toContain('  the address in 1 verification of the history\n')
    expect(holds(home, 'ann@good')).toBe(false)
    const service = await startService(home)
    const history = await request(service, key, '/v1/history')
    expect(await history.json()).toMatchObject({
      data: { items: [{ email: '', reason: 'accepted_email' }] },
    })
    await service.end('SIGTERM')
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
