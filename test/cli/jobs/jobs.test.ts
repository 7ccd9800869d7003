import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, type RunningCli, runEv, simulatorFlags, startEv } from '../../support/cli.ts'
import { homeWith, type JobObject, jobCommands, listAt, SLOW } from '../../support/cli-jobs.ts'
import { rowsIn } from '../../support/csv.ts'
import { expectSentence } from '../../support/home.ts'
import { withOwnHosts } from '../../support/own-hosts.ts'
import { untilProbed } from '../../support/probe-counts.ts'

const LIST = 'email\nvalid1@x.example\ninvalid1@x.example\ninvalid1@x.example\n'
const BULK = ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', '--quiet', '--data-dir', 'data']

const { jobs, listed, only } = jobCommands(runEv)

// Each test runs several commands in sequence, which may be slow on a busy machine.
describe.concurrent('ev jobs', { timeout: 60_000 }, () => {
  test('prints that there are no jobs, and creates no file', async () => {
    const home = emptyFolder()
    const { code, stdout } = await jobs(home)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^No jobs in \S+\/data\. To create one, run "ev bulk FILE"\.\n$/)
    expect(JSON.parse((await jobs(home, '--json')).stdout)).toEqual([])
    expect(readdirSync(join(home, 'data'))).toEqual([])
  })

  test('lists jobs as a table or as JSON; list is the default', async () => {
    const home = homeWith(LIST)
    expect(await runEv(BULK, { home })).toMatchObject({ code: 0 })
    const { code, stdout } = await jobs(home)
    const [heading = '', row = '', ...rest] = stdout.split('\n')
    expect(code).toBe(0)
    expect(heading).toMatch(/^ID +STATE +ROWS +DONE .*CREATED +TYPE +LIST$/)
    expect(row).toMatch(
      /^job_[a-z0-9]{16} +completed +3 +100% +1 +0 +2 +0 +\d{4}-\d\d-\d\d \d\d:\d\d UTC\S* +list +\/.*list\.csv$/,
    )
    expect(rest).toEqual([''])
    expect((await jobs(home, 'list')).stdout).toBe(stdout)
    expect(await only(home)).toEqual({
      job_id: row.slice(0, 20),
      state: 'completed',
      type: 'list',
      account_id: null,
      name: null,
      metadata: {},
      webhook_id: null,
      previous_job_id: null,
      schedule_id: null,
      list: expect.stringMatching(/\/list\.csv$/),
      output: expect.stringMatching(/\/out\.csv$/),
      total: 3,
      done: 3,
      progress: 100,
      duplicates: 1,
      deliverable: 1,
      risky: 0,
      undeliverable: 2,
      unknown: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      finished_at: expect.stringMatching(/Z$/),
      written_at: expect.stringMatching(/Z$/),
    })
  })

  test('--limit shows the newest jobs and the number of the others', async () => {
    const home = homeWith(LIST)
    await runEv(BULK, { home })
    await runEv([...BULK, '--fresh', '--no-header'], { home })
    const { stdout, stderr } = await jobs(home, '--limit', '1')
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(stderr).toBe('note: 1 older job not shown.\n')
    expect(JSON.parse((await jobs(home, '--limit', '1', '--json')).stdout)).toHaveLength(1)
    expectSentence(await jobs(home, '--limit', '0'), /^error: --limit is "0"; it takes a whole/)
  })

  test('--metadata of ev bulk is shown, and --metadata of ev jobs lists the jobs that have it', async () => {
    const home = homeWith(LIST)
    const pairs = ['--metadata', 'customer=42', '--metadata', 'note=a=b, c']
    expect(await runEv([...BULK, ...pairs], { home })).toMatchObject({ code: 0 })
    await runEv([...BULK, '--no-header', '--metadata', 'customer=7'], { home })
    const found = JSON.parse((await jobs(home, '--json', '--metadata', 'customer=42')).stdout)
    expect(found).toMatchObject([{ metadata: { customer: '42', note: 'a=b, c' } }])
    const { stdout } = await jobs(home, 'show', found[0].job_id)
    expect(stdout).toMatch(/\n {2}metadata +customer=42, note=a=b, c\n/)
    const both = ['--metadata', 'customer=7', '--metadata', 'note=a=b, c']
    expect(JSON.parse((await jobs(home, '--json', ...both)).stdout)).toEqual([])
  })

  test.each([
    [['customer'], /--metadata is "customer"; give a key and a value, as in "customer=42"/],
    [['=42'], /--metadata is "=42"; give a key/],
    [['a=1', 'a=2'], /--metadata has the key "a" twice; give each key once/],
    [['a[b]=1'], /--metadata has the key "a\[b\]"; a key has 1 to 40 characters and no/],
    [[`a=${'x'.repeat(501)}`], /under "a"; a value is a string of at most 500/],
  ])('--metadata %j is refused before the list is read', async (values, about) => {
    const flags = values.flatMap(value => ['--metadata', value])
    const ran = await runEv(['bulk', 'missing.csv', ...flags], { home: emptyFolder() })
    expect(ran.code).toBe(64)
    expectSentence(ran, about)
  })

  test.each([60, 80])('the table fits a terminal of %i columns', async columns => {
    const home = homeWith(LIST)
    await runEv(BULK, { home })
    const { stdout } = await runEv(['jobs', '--data-dir', 'data'], { home, columns })
    expect(stdout).toMatch(/^ID +STATE +ROWS .*LIST$/m)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
  })

  test('without -o, the output is beside the list', async () => {
    const home = homeWith(LIST)
    const args = ['bulk', 'list.csv', '--sandbox', '--data-dir', 'data']
    expect(await runEv(args, { home })).toMatchObject({ code: 0, stdout: '' })
    expect(rowsIn(join(home, 'list.verified.csv'))).toHaveLength(3)
  })

  test('accepts an ID or a prefix of it, with or without job_', async () => {
    const home = homeWith(LIST)
    await runEv(BULK, { home })
    const { job_id } = await only(home)
    for (const name of [job_id, job_id.slice(0, 10), job_id.slice(4, 9)]) {
      expect((await jobs(home, 'show', name)).stdout, name).toMatch(new RegExp(`^${job_id}\n`))
    }
    const short = await jobs(home, 'show', job_id.slice(0, 6))
    expect(short.code).toBe(64)
    expectSentence(short, /too short for a job ID\. Give at least 4 characters/)
  })

  test.each(['show', 'resume', 'finish', 'cancel', 'delete'])(
    '%s of an unknown job exits with 66 and names ev jobs',
    async command => {
      const nothing = await jobs(emptyFolder(), command, 'job_none')
      const home = homeWith(LIST)
      await runEv(BULK, { home })
      for (const ran of [nothing, await jobs(home, command, 'job_none')]) {
        expect(ran.code).toBe(66)
        expectSentence(ran, /^error: Job job_none does not exist\. To list jobs, run "ev jobs"\.$/m)
      }
    },
  )

  test('lists the commands after an unknown one', async () => {
    const ran = await jobs(emptyFolder(), 'stop', 'job_x')
    expect(ran.code).toBe(64)
    expectSentence(
      ran,
      /Unknown command "ev jobs stop"\. Available: list, show, resume, finish, cancel, delete, download-url, reverify, changes\./,
    )
  })

  test('does not resume or cancel a finished job; delete keeps its output', async () => {
    const home = homeWith(LIST)
    await runEv(BULK, { home })
    const { job_id } = await only(home)
    for (const [command, about] of [
      ['resume', /is finished, and its output is written/],
      ['cancel', /The job is already completed\. To delete it: ev jobs delete/],
    ] as const) {
      const ran = await jobs(home, command, job_id)
      expect(ran.code).toBe(64)
      expectSentence(ran, about)
    }
    expect(await jobs(home, 'delete', job_id, '--yes')).toMatchObject({
      code: 0,
      stdout: `Deleted ${job_id} with its 3 rows.\n`,
    })
    expect(await listed(home)).toEqual([])
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(3)
  })

  test('shows a job without its output as unwritten, and resume writes it', async () => {
    const home = homeWith(LIST)
    const full = BULK.map(word => (word === 'out.csv' ? '/dev/full' : word))
    expect(await runEv(full, { home })).toMatchObject({ code: 73 })
    expect(await only(home)).toMatchObject({ state: 'unwritten', done: 3, written_at: null })
    const { job_id } = await only(home)
    const resumed = await jobs(home, 'resume', job_id)
    expect(resumed.code, resumed.stderr).toBe(73)
    // The stored output is still /dev/full; the command below names another one.
    expect(await runEv(BULK, { home })).toMatchObject({ code: 0 })
    expect(await only(home)).toMatchObject({ job_id, state: 'completed' })
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(3)
  })
})

describe.concurrent('a running job', { timeout: 60_000 }, () => {
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator(SCENARIO)
  })
  afterAll(() => simulator.close())

  const args = (...more: string[]) => [
    ...[
      'bulk',
      'list.csv',
      '-o',
      'out.csv',
      '--data-dir',
      'data',
      ...simulatorFlags(simulator),
      ...more,
    ],
  ]

  test('of a list that was verified without a cache leaves no address once it is deleted', async () => {
    const home = homeWith(listAt('erased.test', 40))
    expect(await runEv(args('--cache', 'off'), { home })).toMatchObject({ code: 0 })
    const { job_id } = await only(home)
    expect(await jobs(home, 'delete', job_id, '--yes')).toMatchObject({ code: 0 })
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes('@erased.test')).toBe(false)
  })

  test('is not resumed after its file changed or disappeared, and keeps its results', async () => {
    const home = homeWith(listAt('change.test', 200))
    const running = startEv(args(...SLOW), { home })
    await untilProbed(simulator, 'mx.change.test', 10)
    running.signal('SIGINT')
    expect((await running.ended).code).toBe(130)
    const before = await only(home)
    const resume = () =>
      runEv(['jobs', 'resume', before.job_id, '--data-dir', 'data', ...simulatorFlags(simulator)], {
        home,
      })
    writeFileSync(join(home, 'list.csv'), listAt('change.test', 201))
    const changed = await resume()
    expect(changed.code, changed.stderr).toBe(65)
    expectSentence(changed, /list\.csv has changed since/)
    rmSync(join(home, 'list.csv'))
    const vanished = await resume()
    expect(vanished.code, vanished.stderr).toBe(66)
    expectSentence(vanished, /list\.csv cannot be read/)
    expect(await only(home)).toEqual(before)
  })

  test('that waits for greylisting shows the operator and the time, and stops within seconds when cancelled', async () => {
    const home = homeWith('email\nuser1@grey.test\nuser2@grey.test\n')
    const running = startEv(args(), { home })
    const { job_id } = await waiting(home)
    const { stdout } = await jobs(home, 'show', job_id)
    expect(stdout).toMatch(/state +processing\n/)
    expect(stdout).toMatch(
      /PROVIDER +WAITING +NEXT ATTEMPT\ngrey\.test +2 +in \d+ (s|min)( \d+ s)?, at \d{4}-/,
    )
    expect(stdout).toMatch(
      /waiting +2 addresses at grey\.test: the mail server deferred them\. Next attempt at \d{4}-/,
    )
    const shown = JSON.parse((await jobs(home, 'show', job_id, '--json')).stdout)
    expect(shown).toMatchObject({ job_id, queued: 0, in_flight: 0 })
    expect(shown.waiting).toEqual([
      { operator: 'grey.test', items: 2, due_at: expect.stringMatching(/Z$/) },
    ])
    const cancelled = await jobs(home, 'cancel', job_id)
    expect(cancelled).toMatchObject({ code: 0, stderr: '' })
    expect(cancelled.stdout).toMatch(
      /0 of 2 rows were finished\. The process that works on it stops within/,
    )
    await expectCancelled(running, job_id)
    expect(existsSync(join(home, 'out.csv'))).toBe(false)
    expect(await only(home)).toMatchObject({ state: 'cancelled', done: 0 })
  })

  test('that waits for greylisting ends within seconds when finished, with all rows', async () => {
    const home = homeWith('email\nuser1@grey.test\nuser2@grey.test\n')
    const running = startEv(args(), { home })
    const { job_id } = await waiting(home)
    const finished = await jobs(home, 'finish', job_id)
    expect(finished).toMatchObject({ code: 0, stderr: '' })
    expect(finished.stdout).toBe(
      `Finishing ${job_id}: 2 rows without a result. Waiting rows get their current result within seconds.\n`,
    )
    expect((await running.ended).code).toBe(0)
    expect(readFileSync(join(home, 'out.csv'), 'utf8').match(/,greylisted,/g)).toHaveLength(2)
    expect(await only(home)).toMatchObject({ state: 'completed', unknown: 2 })
    expect((await jobs(home, 'finish', job_id)).stdout).toBe(`${job_id} is already completed.\n`)
  })

  test('that waits is finished with a key on a terminal, which the line about the wait names', async () => {
    const home = homeWith('email\nuser1@grey.test\nuser2@grey.test\n')
    const running = startEv(args(), { home, columns: 200, stdinOpen: true })
    await running.printed('Press f to finish now (--no-wait never waits).', 'stderr')
    running.stdin.write('xf')
    const { code, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stderr).toContain('Finishing: waiting rows get their current result.')
    expect(readFileSync(join(home, 'out.csv'), 'utf8').match(/,greylisted,/g)).toHaveLength(2)
  })

  test('that was stopped is finished when it is resumed', async () => {
    const home = homeWith('email\nuser1@grey.test\nuser2@grey.test\n')
    const running = startEv(args(), { home })
    const { job_id } = await waiting(home)
    running.signal('SIGINT')
    await running.ended
    expect((await jobs(home, 'finish', job_id)).stdout).toBe(
      `Finishing ${job_id}: 2 rows without a result. To write its output, run "ev jobs resume ${job_id}".\n`,
    )
    const resume = ['jobs', 'resume', job_id, '--data-dir', 'data', ...simulatorFlags(simulator)]
    expect(await runEv(resume, { home })).toMatchObject({ code: 0 })
    expect(readFileSync(join(home, 'out.csv'), 'utf8').match(/,greylisted,/g)).toHaveLength(2)
  })

  test('that is cancelled stores no more results, and starts over next time', async () => {
    const home = homeWith(listAt('cancel.test', 300))
    const running = startEv(args(...SLOW), { home })
    await untilProbed(simulator, 'mx.cancel.test', 10)
    const { job_id } = await only(home)
    expect(await jobs(home, 'cancel', job_id)).toMatchObject({ code: 0 })
    const atCancel = (await only(home)).done
    await expectCancelled(running, job_id)
    expect(await only(home)).toMatchObject({ state: 'cancelled', done: atCancel })
    const refused = await jobs(home, 'resume', job_id)
    expect(refused.code).toBe(64)
    expectSentence(refused, /cancelled.*To start over/)
    const restarted = await runEv(args(), { home })
    expect(restarted.code, restarted.stderr).toBe(0)
    expect(restarted.stderr).not.toContain('Resuming')
    expect(await listed(home)).toMatchObject([
      { state: 'completed', done: 300 },
      { job_id, state: 'cancelled' },
    ])
  })
})

async function expectCancelled(running: RunningCli, jobId: string): Promise<void> {
  const { code, stdout, stderr } = await running.ended
  expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
  expect(stderr).toMatch(new RegExp(`The list was cancelled with "ev jobs cancel ${jobId}"`))
  expect(stderr).not.toMatch(/^ +at /m)
}

/** Waits until all items of the job are deferred. */
async function waiting(home: string): Promise<JobObject> {
  for (;;) {
    const [job] = await listed(home)
    const { stdout } = await jobs(home, 'show', job?.job_id ?? 'none', '--json')
    const rest = stdout === '' ? null : JSON.parse(stdout)
    const due = Date.parse(rest?.waiting?.[0]?.due_at)
    if (rest?.waiting?.[0]?.items === 2 && due > Date.now() + 5_000) return job as JobObject
  }
}

const POLITE = { behavior: 'polite' } as const
const SCENARIO: Scenario = {
  roundTripMs: 20,
  ...withOwnHosts({
    'change.test': POLITE,
    'erased.test': POLITE,
    'cancel.test': POLITE,
    'grey.test': { behavior: 'greylist', seconds: 300 },
  }),
}
