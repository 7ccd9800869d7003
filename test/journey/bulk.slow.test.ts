import { type ChildProcess, spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readScenario, type Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { rowsIn, rowsOf } from '../support/csv.ts'
import { EV, emptyFolder, runEv, simulatorFlags, startEv } from '../support/ev-process.ts'
import { getProbeCounts, listOf, untilProbed } from '../support/probe-counts.ts'

const ROOT = join(import.meta.dirname, '../..')

describe.concurrent('the output', () => {
  const LIST = 'email\nvalid1@x.example\nvalid2@x.example\ninvalid1@x.example\ntimeout1@x.example\n'

  test('exits without a crash if the reader of stdout closes it, and keeps the results', async () => {
    const home = emptyFolder()
    const many = Array.from({ length: 3_000 }, (_, n) => `valid${n}@x.example`)
    writeFileSync(join(home, 'list.csv'), many.join('\n'))
    const result = spawnSync(
      'bash',
      [
        '-c',
        '"$0" "$1" bulk list.csv -o - --sandbox --data-dir data --quiet | head -1; echo "$PIPESTATUS"',
        ...[process.execPath, EV],
      ],
      { cwd: home, env: { PATH: process.env.PATH, HOME: home }, encoding: 'utf8' },
    )
    expect(result.stdout).toMatch(/^email,ev_class,.*\n74\n$/)
    expect(result.stderr).toBe('')
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', '--data-dir', 'data']
    expect((await runEv(args, { home })).stderr).toContain('3,000 of 3,000 rows are finished')
  })

  test.runIf(existsSync('/dev/full'))(
    'exits with 73 on a full disk, and the same command resumes',
    async () => {
      const home = emptyFolder()
      writeFileSync(join(home, 'list.csv'), LIST)
      const args = ['bulk', 'list.csv', '--sandbox', '--data-dir', 'data', '-o']
      const result = await runEv([...args, '-'], { home, stdout: openSync('/dev/full', 'w') })
      expect(result.code).toBe(73)
      expect(result.stderr).toMatch(
        /^error: The output cannot be written: no space left on device/m,
      )
      expect(await runEv([...args, 'out.csv'], { home })).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('4 of 4 rows are finished'),
      })
    },
  )
})

describe('a list with simulated mail servers', () => {
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator(SCENARIO)
  })
  afterAll(() => simulator.close())

  test('is not processed by a second ev while another one processes it', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), listOf('busy.test', 200))
    writeFileSync(join(home, 'other.csv'), listOf('other.test', 2))
    writeFileSync(join(home, 'another.csv'), listOf('other.test', 3))
    const args = ['--data-dir', 'data', ...simulatorFlags(simulator)]
    const first = startEv(['bulk', 'list.csv', '-o', 'out.csv', ...args], { home })
    await untilProbed(simulator, 'mx.busy.test', 20)
    await stopBetweenWrites(first.child, join(home, 'data/ev.sqlite'))
    const [second, third, fourth] = await Promise.all([
      runEv(['bulk', 'list.csv', '-o', 'out2.csv', ...args], { home }),
      runEv(['bulk', 'another.csv', '-o', 'out.csv', ...args], { home }),
      runEv(['bulk', 'other.csv', '-o', 'out3.csv', ...args], { home }),
    ])
    expect(second.code).toBe(74)
    expect(second.stderr).toMatch(
      /^error: Another ev process is processing this list\. Wait for it to finish, or stop it first\.$/m,
    )
    expect(third.code).toBe(74)
    expect(third.stderr).toMatch(/^error: Another ev process writes to out\.csv\. Wait for it/m)
    expect(fourth.code).toBe(0)
    first.child.kill('SIGCONT')
    const { code, stderr } = await first.ended
    expect(code, stderr).toBe(0)
    expect(rowsIn(join(home, 'out.csv'))).toHaveLength(200)
    expect(
      [...getProbeCounts(simulator, 'mx.busy.test').values()].filter(times => times > 1),
    ).toEqual([])
  })
})

describe('the demo list', () => {
  test('has the expected summary and verdicts', async () => {
    const simulator = await startSimulator(readScenario(join(ROOT, 'fixtures/simulator/demo.json')))
    try {
      const list = readFileSync(join(ROOT, 'fixtures/list/demo.csv'))
      const home = emptyFolder()
      writeFileSync(join(home, 'list.csv'), list)
      const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data', '--json', '--raw']
      const { code, stdout, stderr } = await runEv([...args, ...simulatorFlags(simulator)], {
        home,
      })
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({
        total: 378,
        duplicates: 8,
        deliverable: 258,
        risky: 33,
        undeliverable: 67,
        unknown: 20,
        no_address: 3,
      })
      const rows = rowsIn(join(home, 'out.csv'))
      const originals = rowsOf(list.toString('utf8'))
      expect(rows).toHaveLength(originals.length)
      for (const [n, original] of originals.entries()) expect(rows[n]).toMatchObject(original)
      for (const [domain, reason] of EXPECTED_REASONS) {
        const reasons = rows.filter(row => row.ev_provider === domain).map(row => row.ev_reason)
        expect([domain, ...new Set(reasons)]).toEqual([domain, reason])
      }
      const { pregreet, outOfOrder, badLines, commands } = simulator.counters().total
      expect({ pregreet, outOfOrder, badLines }).toEqual({
        pregreet: 0,
        outOfOrder: 0,
        badLines: 0,
      })
      expect(Object.keys(commands).filter(verb => !ALLOWED.includes(verb))).toEqual([])
    } finally {
      await simulator.close()
    }
  })
})

/** The reason of all addresses of a domain, for domains with one reason. */
const EXPECTED_REASONS = [
  ['everything.test', 'catch_all'],
  ['fortress.test', 'probe_blocked'],
  ['deadend.test', 'no_connect'],
  ['inside.test', 'no_connect'],
  ['nomail.test', 'does_not_accept_mail'],
  ['webonly.test', 'no_mx_record'],
  ['vanished.test', 'invalid_domain'],
  ['overflow.test', 'mailbox_full'],
  ['sleepy.test', 'mailbox_disabled'],
  ['moment.test', 'unavailable_smtp'],
  ['mailinator.com', 'disposable_email'],
  ['secondchance.test', 'accepted_email'],
  ['onebyone.test', 'accepted_email'],
  ['stepwise.test', 'accepted_email'],
  ['antique.test', 'accepted_email'],
] as const

/** The commands that a verifier may send. */
const ALLOWED = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP']

/** Polite hosts with a round-trip time. */
const SCENARIO: Scenario = {
  roundTripMs: 20,
  domains: {
    'busy.test': { mx: [[10, 'mx.busy.test']] },
    'other.test': { mx: [[10, 'mx.other.test']] },
  },
  hosts: { 'mx.busy.test': { behavior: 'polite' }, 'mx.other.test': { behavior: 'polite' } },
}

/** Stops a process while it does not hold the lock of its database, as others would wait for it. */
async function stopBetweenWrites(child: ChildProcess, file: string): Promise<void> {
  const sqlite = new SqliteDatabase(file, { timeout: 0 })
  try {
    for (;;) {
      child.kill('SIGSTOP')
      // The signal takes effect when the process next enters the kernel.
      await setImmediate()
      if (isWritable(sqlite)) return
      child.kill('SIGCONT')
      await setImmediate()
    }
  } finally {
    sqlite.close()
  }
}

function isWritable(sqlite: SqliteDatabase.Database): boolean {
  try {
    sqlite.exec('begin immediate; rollback')
    return true
  } catch {
    return false
  }
}
