import { spawnSync } from 'node:child_process'
import { existsSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import {
  EV,
  type EvOptions,
  emptyFolder,
  folderWith,
  type Ran,
  runEv,
  simulatorFlags,
} from '../support/ev-process.ts'
import { withOwnHosts } from '../support/own-hosts.ts'

// Every exit code of `ev verify` and `ev bulk`. Those of other commands are tested with them.

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(
    withOwnHosts({
      'good.test': { behavior: 'polite' },
      'dead.test': { behavior: 'dead' },
    }),
  )
})
afterAll(() => simulator.close())

const hasFull = existsSync('/dev/full')

/** Runs ev against the simulator, in a folder with a list and a file without addresses. */
async function run(args: readonly string[], options: Partial<EvOptions> = {}): Promise<Ran> {
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

/** Returns the exit code for a pipe whose reader closes it at once. */
function intoClosedPipe(args: string): string {
  const home = emptyFolder()
  writeFileSync(
    join(home, 'list.csv'),
    Array.from({ length: 3_000 }, (_, n) => `valid${n}@x.example`).join('\n'),
  )
  const script = `"$0" "$1" ${args} --sandbox | head -1 >/dev/null; echo "\${PIPESTATUS[0]}"`
  const { stdout } = spawnSync('bash', ['-c', script, process.execPath, EV], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, EV_DATA_DIR: 'data' },
    encoding: 'utf8',
  })
  return stdout.trim()
}

describe.concurrent('ev verify', () => {
  test.runIf(hasFull)('exits with 73 when its output cannot be written', async () => {
    const ran = await run(['verify', 'user1@good.test'], { stdout: openSync('/dev/full', 'w') })
    expect(ran.code, ran.stderr).toBe(73)
  })

  test('exits with 74 when its reader closes the pipe', () => {
    expect(intoClosedPipe('verify --ndjson - <list.csv')).toBe('74')
  })
})

describe.concurrent('ev bulk', () => {
  test('exits with 74 when its reader closes the pipe', () => {
    expect(intoClosedPipe('bulk list.csv -o - --quiet')).toBe('74')
  })
})
