import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { objectsOf, rowsOf, withoutTimes } from '../support/csv.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../support/ev-process.ts'
import { xorshift } from '../support/random.ts'
import { readWorkbook, textRow, workbookOf } from '../support/workbook.ts'

const ROWS = 1_500
const DOMAINS = 30
const KILLS = 3
const SEED = 20_260_601

/** Concurrent sessions, probed recipients of each that are not stored yet, an unsynced group. */
const CONCURRENCY = 20
const RECIPIENTS = 10
const GROUP = 50
const IN_FLIGHT_MAX = CONCURRENCY * RECIPIENTS + GROUP

const ALLOWED = new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])

let simulator: SimulatorProcess
beforeAll(async () => {
  simulator = await startScenarioProcess(scenario())
})
afterAll(() => simulator.close())

describe('a list whose process is killed repeatedly with -9', () => {
  test('has the output of an uninterrupted run, and only in-flight addresses are probed again', async () => {
    const reference = emptyFolder()
    expect(await runEv(bulkArgs(reference), { home: reference })).toMatchObject({ code: 0 })
    await simulator.reset()

    const home = emptyFolder()
    const args = bulkArgs(home)
    const random = xorshift(SEED)
    let kills = 0
    for (let durable = 0; kills < KILLS; kills++) {
      const running = startEv(args, { home })
      // A random point in the part of the list that this run processes.
      const goal = Math.round(((kills + random()) / KILLS) * ROWS * 0.75)
      await untilProbed(goal)
      running.child.kill('SIGKILL')
      const result = await running.ended
      expect(result).toMatchObject({ signal: 'SIGKILL' })
      expect(existsSync(join(home, 'out.csv'))).toBe(false)
      // Progress never decreases.
      const done = Number(
        /Resuming this list: ([\d,]+) of/.exec(result.stderr)?.[1]?.replace(',', '') ?? 0,
      )
      expect(done).toBeGreaterThanOrEqual(durable)
      durable = done
    }
    const last = await runEv(args, { home })
    expect(last.code, last.stderr).toBe(0)
    expect(last.stderr).toMatch(/Resuming this list: [1-9][\d,]* of 1,500 rows are finished/)

    const text = readFileSync(join(home, 'out.csv'), 'utf8')
    expect(withoutTimes(text)).toBe(withoutTimes(readFileSync(join(reference, 'out.csv'), 'utf8')))
    expect(existsSync(join(home, 'out.csv.partial'))).toBe(false)
    const classes = rowsOf(text).map(row => row.ev_class)
    expect(classes).toEqual(Array.from({ length: ROWS }, (_, n) => classOfRow(n)))

    const { total, hosts } = await simulator.counters()
    const probed = [...total.recipients].filter(([address]) => /^(user|gone)\d/.test(address))
    const repeatedProbes = probed.reduce((sum, [, times]) => sum + times - 1, 0)
    expect(repeatedProbes).toBeLessThanOrEqual(kills * IN_FLIGHT_MAX)
    expect(Object.keys(total.commands).filter(verb => !ALLOWED.has(verb))).toEqual([])
    // Sessions of a killed process may linger a moment at the server.
    const peaks = Object.values(hosts).map(({ sessionsPeak }) => sessionsPeak)
    expect(Math.max(...peaks)).toBeLessThanOrEqual(4)
    expect({ pregreet: total.pregreet, badLines: total.badLines }).toEqual({
      pregreet: 0,
      badLines: 0,
    })
  })

  test.each(['csv', 'xlsx'])(
    'leaves no partial output under the final name if killed while the output is written: %s',
    async format => {
      const home = emptyFolder()
      const [list, out] = [`list.${format}`, `out.${format}`]
      const rows = Array.from({ length: 8_000 }, (_, n) => `valid${n}@x.example`)
      const sheet = ['email', ...rows].map(row => textRow(row)).join('')
      const text = `email\n${rows.join('\n')}\n`
      writeFileSync(join(home, list), format === 'csv' ? text : await workbookOf({ sheet }))
      writeFileSync(join(home, out), 'an earlier result\n')
      const args = ['bulk', list, '-o', out, '--force', '--sandbox', '--data-dir', 'data']
      const running = startEv(args, { home })
      let isDone = false
      void running.ended.then(() => {
        isDone = true
      })
      while (!isDone && sizeOf(join(home, `${out}.partial`)) === 0) await setTimeout(1)
      running.child.kill('SIGKILL')
      expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
      expect(readFileSync(join(home, out), 'utf8')).toBe('an earlier result\n')
      expect(await runEv(args, { home })).toMatchObject({ code: 0 })
      const bytes = readFileSync(join(home, out))
      const written =
        format === 'csv' ? rowsOf(`${bytes}`) : objectsOf((await readWorkbook(bytes)).rows)
      expect(written.map(({ email }) => email)).toEqual(rows)
      expect(existsSync(join(home, `${out}.partial`))).toBe(false)
    },
  )
})

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Polite and catch-all hosts with a round-trip time. */
function scenario(): Scenario {
  const names = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)
  return {
    roundTripMs: 20,
    mailboxes: ['user*'],
    domains: Object.fromEntries(names.map(name => [name, { mx: [[10, `mx.${name}`]] as const }])),
    hosts: Object.fromEntries(
      names.map((name, n) => [`mx.${name}`, { behavior: isCatchAll(n) ? 'catch-all' : 'polite' }]),
    ),
  }
}

const isCatchAll = (domain: number) => domain % 10 === 7
const isUnknown = (row: number) => row % 11 === 3

function classOfRow(row: number): string {
  if (isCatchAll(row % DOMAINS)) return 'risky'
  return isUnknown(row) ? 'undeliverable' : 'deliverable'
}

function bulkArgs(home: string): string[] {
  const lines = Array.from({ length: ROWS }, (_, row) => {
    const address = `${isUnknown(row) ? 'gone' : 'user'}${row}@d${row % DOMAINS}.test`
    return `${row},${address},"row, ${row}"`
  })
  const list = join(home, 'list.csv')
  if (!existsSync(list)) writeFileSync(list, `id,email,note\n${lines.join('\n')}\n`)
  const limits = ['--concurrency', `${CONCURRENCY}`, '--recipients-per-session', `${RECIPIENTS}`]
  return [
    'bulk',
    'list.csv',
    '-o',
    'out.csv',
    '--data-dir',
    'data',
    ...simulatorFlags(simulator),
    ...limits,
  ]
}

/** Waits until this many different addresses of the list have been probed. */
async function untilProbed(addresses: number): Promise<void> {
  for (;;) {
    const { recipients } = (await simulator.counters()).total
    const probed = [...recipients.keys()].filter(address => /^(user|gone)\d/.test(address))
    if (probed.length >= addresses) return
    await setTimeout(10)
  }
}
