import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { rowsOf, withoutTimes } from '../support/csv.ts'
import { emptyFolder, runEv, startEv, towards } from '../support/ev-process.ts'
import { xorshift } from '../support/random.ts'

const ROWS = 1_500
const DOMAINS = 30
const KILLS = 3
const SEED = 20_260_601

/** Conversations at once, each with so many recipients asked and not yet recorded, and a group not yet durable. */
const CONCURRENCY = 20
const RECIPIENTS = 10
const GROUP = 50
const IN_FLIGHT_MAX = CONCURRENCY * RECIPIENTS + GROUP

const ALLOWED = new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])

let world: SimulatorProcess
beforeAll(async () => {
  world = await startScenarioProcess(scenario())
})
afterAll(() => world.close())

describe('a list that is killed with -9 again and again', () => {
  test('ends with the output of a quiet run, and asks nobody twice but what was in flight', async () => {
    const quiet = emptyFolder()
    expect(await runEv(bulkArgs(quiet), { home: quiet })).toMatchObject({ code: 0 })
    await world.reset()

    const home = emptyFolder()
    const args = bulkArgs(home)
    const entropy = xorshift(SEED)
    let kills = 0
    for (let durable = 0; kills < KILLS; kills++) {
      const running = startEv(args, { home })
      // Somewhere in the third of the list that this run works on.
      const goal = Math.round(((kills + entropy()) / KILLS) * ROWS * 0.75)
      await askedAbout(goal)
      running.child.kill('SIGKILL')
      const ran = await running.ended
      expect(ran).toMatchObject({ signal: 'SIGKILL' })
      expect(existsSync(join(home, 'out.csv'))).toBe(false)
      // Progress never goes back.
      const done = Number(/Resuming this list: (\d+) of/.exec(ran.stderr)?.[1] ?? 0)
      expect(done).toBeGreaterThanOrEqual(durable)
      durable = done
    }
    const last = await runEv(args, { home })
    expect(last.code, last.stderr).toBe(0)
    expect(last.stderr).toMatch(/Resuming this list: [1-9]\d* of 1500 rows are done/)

    const text = readFileSync(join(home, 'out.csv'), 'utf8')
    expect(withoutTimes(text)).toBe(withoutTimes(readFileSync(join(quiet, 'out.csv'), 'utf8')))
    expect(existsSync(join(home, 'out.csv.partial'))).toBe(false)
    const classes = rowsOf(text).map(row => row.ev_class)
    expect(classes).toEqual(Array.from({ length: ROWS }, (_, n) => classOfRow(n)))

    const { total, hosts } = await world.counters()
    const again = [...total.recipients].filter(([address]) => /^(user|gone)\d/.test(address))
    const askedTwice = again.reduce((sum, [, times]) => sum + times - 1, 0)
    expect(askedTwice).toBeLessThanOrEqual(kills * IN_FLIGHT_MAX)
    expect(Object.keys(total.commands).filter(verb => !ALLOWED.has(verb))).toEqual([])
    // Sessions of a killed process may linger a moment at the server.
    const peaks = Object.values(hosts).map(({ sessionsPeak }) => sessionsPeak)
    expect(Math.max(...peaks)).toBeLessThanOrEqual(4)
    expect({ pregreet: total.pregreet, badLines: total.badLines }).toEqual({
      pregreet: 0,
      badLines: 0,
    })
  })

  test('while its output is written leaves no part of it under the final name', async () => {
    const home = emptyFolder()
    const rows = Array.from({ length: 8_000 }, (_, n) => `valid${n}@x.example`)
    writeFileSync(join(home, 'list.csv'), `email\n${rows.join('\n')}\n`)
    writeFileSync(join(home, 'out.csv'), 'an earlier result\n')
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', '--data-dir', 'data']
    const running = startEv(args, { home })
    let over = false
    void running.ended.then(() => {
      over = true
    })
    while (!over && sizeOf(join(home, 'out.csv.partial')) === 0) await setTimeout(1)
    running.child.kill('SIGKILL')
    expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
    expect(readFileSync(join(home, 'out.csv'), 'utf8')).toBe('an earlier result\n')
    expect(await runEv(args, { home })).toMatchObject({ code: 0 })
    expect(rowsOf(readFileSync(join(home, 'out.csv'), 'utf8'))).toHaveLength(rows.length)
    expect(existsSync(join(home, 'out.csv.partial'))).toBe(false)
  })
})

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Polite hosts, some that take everything, at some distance. */
function scenario(): Scenario {
  const names = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)
  return {
    roundTripMs: 20,
    mailboxes: ['user*'],
    domains: Object.fromEntries(names.map(name => [name, { mx: [[10, `mx.${name}`]] as const }])),
    hosts: Object.fromEntries(
      names.map((name, n) => [`mx.${name}`, { behavior: isOpen(n) ? 'catch-all' : 'polite' }]),
    ),
  }
}

const isOpen = (domain: number) => domain % 10 === 7
const isGone = (row: number) => row % 11 === 3

function classOfRow(row: number): string {
  if (isOpen(row % DOMAINS)) return 'risky'
  return isGone(row) ? 'undeliverable' : 'deliverable'
}

function bulkArgs(home: string): string[] {
  const lines = Array.from({ length: ROWS }, (_, row) => {
    const address = `${isGone(row) ? 'gone' : 'user'}${row}@d${row % DOMAINS}.test`
    return `${row},${address},"row, ${row}"`
  })
  const list = join(home, 'list.csv')
  if (!existsSync(list)) writeFileSync(list, `id,email,note\n${lines.join('\n')}\n`)
  const pace = ['--concurrency', `${CONCURRENCY}`, '--recipients-per-session', `${RECIPIENTS}`]
  return ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data', ...towards(world), ...pace]
}

/** Waits until so many different addresses of the list were asked in all. */
async function askedAbout(addresses: number): Promise<void> {
  for (;;) {
    const { recipients } = (await world.counters()).total
    const asked = [...recipients.keys()].filter(address => /^(user|gone)\d/.test(address))
    if (asked.length >= addresses) return
    await setTimeout(10)
  }
}
