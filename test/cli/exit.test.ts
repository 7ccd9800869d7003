import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { type Random, systemRandom } from '../../src/platform/random.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import {
  type CliOptions,
  folderWith,
  type Ran,
  runEv,
  simulatorFlags,
  startEv,
} from '../support/cli.ts'
import { withOwnHosts } from '../support/own-hosts.ts'

// Every exit code of `ev verify` and `ev bulk`. Those of other commands are tested with them.

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(
    withOwnHosts({
      'good.test': { behavior: 'polite' },
      'open.test': { behavior: 'catch-all' },
      'dead.test': { behavior: 'dead' },
      'silent.test': { behavior: 'silent' },
      'mute.test': { behavior: 'silent' },
    }),
  )
})
afterAll(() => simulator.close())

const BROKEN_CLOCK: Clock = {
  ...systemClock,
  monotonicNow() {
    throw new Error('a fault of ours')
  },
}
const BROKEN_RANDOM: Random = {
  ...systemRandom,
  token() {
    throw new Error('a fault of ours')
  },
}
const OUT = ['list.csv', '-o', 'out.csv']

type Case = [code: number, when: string, args: readonly string[], options?: Partial<CliOptions>]

/** Runs ev against the simulator, in a folder with a list and a file without addresses. */
async function run(args: readonly string[], options: Partial<CliOptions> = {}): Promise<Ran> {
  const home = folderWith({
    'list.csv': 'email\nuser1@good.test\nuser2@dead.test\n',
    'plain.csv': 'a,b\n1,2\n',
  })
  return runEv([...args, ...simulatorFlags(simulator)], {
    home,
    ...options,
    environment: { EV_DATA_DIR: 'data', ...options.environment },
  })
}

/** Returns the exit code of a run that is interrupted while it waits for a server. */
async function stopped(name: string, args: readonly string[]): Promise<number | null> {
  const home = folderWith({ 'list.csv': `user1@${name}\n` })
  const running = startEv([...args, ...simulatorFlags(simulator), '--greeting-timeout', '2000'], {
    home,
    environment: { EV_DATA_DIR: 'data' },
  })
  while ((simulator.counters().hosts[`mx.${name}`]?.connections ?? 0) === 0) {
    await new Promise(resolve => setImmediate(resolve))
  }
  running.signal('SIGINT')
  return (await running.ended).code
}

describe.concurrent('ev verify', { timeout: 60_000 }, () => {
  test.each<Case>([
    [0, 'all are deliverable', ['user1@good.test', 'user2@good.test']],
    [1, 'one is not deliverable', ['user1@good.test', 'gone@good.test']],
    [1, 'one is risky, and another unknown', ['user1@open.test', 'user1@dead.test']],
    [2, 'one is unknown and the others are deliverable', ['user1@good.test', 'user1@dead.test']],
    [64, 'the usage is wrong', ['user1@good.test', '--nonsense']],
    [70, 'ev has an internal error', ['user1@good.test'], { context: { clock: BROKEN_CLOCK } }],
    [78, 'a setting is invalid', ['user1@good.test'], { environment: { EV_MAIL_FROM: 'nobody' } }],
  ])('exits with %i when %s', async (code, _, args, options) => {
    const ran = await run(['verify', ...args], options)
    expect(ran.code, ran.stderr).toBe(code)
  })

  test('exits with 130 when it is interrupted', async () => {
    expect(await stopped('silent.test', ['verify', 'user1@silent.test'])).toBe(130)
  })
})

describe.concurrent('ev bulk', { timeout: 60_000 }, () => {
  test.each<Case>([
    [0, 'the list is finished, whatever its verdicts are', OUT],
    [64, 'the usage is wrong', ['list.csv', '--nonsense']],
    [65, 'the list has no addresses', ['plain.csv', '-o', 'out.csv']],
    [66, 'there is no such list', ['none.csv', '-o', 'out.csv']],
    [70, 'ev has an internal error', OUT, { context: { random: BROKEN_RANDOM } }],
    [73, 'its output cannot be written', ['list.csv', '-o', 'none/out.csv']],
    [74, 'its data cannot be stored', ['list.csv', '-o', 'out.csv', '--data-dir', 'list.csv/x']],
    [78, 'a setting is invalid', OUT, { environment: { EV_MAIL_FROM: 'nobody' } }],
  ])('exits with %i when %s', async (code, _, args, options) => {
    const ran = await run(['bulk', ...args], options)
    expect(ran.code, ran.stderr).toBe(code)
    expect(ran.stderr).not.toMatch(/^ +at /m)
  })

  test('exits with 130 when it is interrupted', async () => {
    expect(await stopped('mute.test', ['bulk', ...OUT])).toBe(130)
  })
})
