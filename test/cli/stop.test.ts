import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, SECOND, systemClock } from '../../src/platform/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { withOwnHosts } from '../support/own-hosts.ts'
import { waitUntil } from '../support/wait.ts'

let simulator: Simulator

beforeAll(async () => {
  simulator = await startSimulator(
    withOwnHosts({
      'silent.test': { behavior: 'silent' },
      'unreachable.test': { behavior: 'drops' },
      'hung.test': { behavior: 'polite', rules: [{ on: 'EHLO', end: 'hang' }] },
      'mute.test': { behavior: 'polite', rules: [{ on: 'RCPT', end: 'hang' }] },
      'good.test': { behavior: 'polite' },
    }),
  )
})
afterAll(() => simulator.close())

const BULK = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
const STOPPING =
  'Stopping: saving the results of open connections. Press Ctrl-C again to stop at once.\n'

/** Timers of a second or more never fire: whoever waits for one waits forever. */
const WITHOUT_TIMEOUTS: Clock = {
  ...systemClock,
  after: (ms, run) => (ms >= SECOND ? () => {} : systemClock.after(ms, run)),
}

describe('ev bulk', () => {
  test.each(['silent', 'hung', 'unreachable'])(
    'answers Ctrl-C at once and does not wait for a server that was not asked about anybody: %s',
    async name => {
      const home = emptyFolder()
      writeFileSync(`${home}/list.csv`, `user1@${name}.test\n`)
      const flags = [...simulatorFlags(simulator), '--greeting-timeout', '600000']
      const running = startEv([...BULK, ...flags], { home, context: { clock: WITHOUT_TIMEOUTS } })
      await (name === 'unreachable' ? dnsAnswer() : connection(name))
      running.signal('SIGINT')
      expect(running.stderr).toContain(STOPPING)
      const { code, stderr } = await running.ended
      expect(code).toBe(130)
      expect(stderr).toMatch(/Stopped: 0 of 1 rows are finished and saved\./)
    },
  )

  test('a second Ctrl-C ends it at once, and what was saved stays saved', async () => {
    const home = emptyFolder()
    writeFileSync(`${home}/list.csv`, 'user1@good.test\nuser2@good.test\nuser1@mute.test\n')
    let passed = 0
    const clock: Clock = {
      ...systemClock,
      monotonicNow: () => systemClock.monotonicNow() + passed,
    }
    const running = startEv([...BULK, ...simulatorFlags(simulator)], { home, context: { clock } })
    await connection('mute')
    await waitUntil(async () => (await rowsDone(home)) >= 2)
    running.signal('SIGINT')
    passed += SECOND
    running.signal('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, stdout: '' })
    expect(running.stderr).not.toContain('Stopped:')
    expect(await rowsDone(home)).toBe(2)
  })
})

describe('ev serve', () => {
  test('says on a terminal that it stops, also if its log is silent', async () => {
    const home = emptyFolder()
    const args = ['serve', '--data-dir', 'data', '--port', '0', '--log', 'silent']
    const running = startEv(args, { home, columns: 80 })
    await running.printed('API documentation:', 'stderr')
    running.signal('SIGINT')
    expect(running.stderr).toContain('Stopping: finishing requests in flight. Press Ctrl-C again')
    expect(await running.ended).toMatchObject({ code: 0 })
  })
})

describe('ev mcp', () => {
  test('says that it stops', async () => {
    const running = startEv(['mcp', '--sandbox'], { home: emptyFolder(), stdinOpen: true })
    running.stdin.write(INITIALIZE)
    await running.printed('"serverInfo"')
    running.signal('SIGINT')
    expect(running.stderr).toContain('Stopping: closing connections.')
    expect(await running.ended).toMatchObject({ code: 0 })
  })
})

const INITIALIZE = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
})}\n`

async function rowsDone(home: string): Promise<number> {
  const { stdout } = await runEv(['jobs', '--json', '--data-dir', 'data'], { home })
  return JSON.parse(stdout)[0].done
}

/** Resolves once the server of a domain has had that many connections. */
async function connection(name: string, count = 1): Promise<void> {
  const connections = () => simulator.counters().hosts[`mx.${name}.test`]?.connections ?? 0
  await waitUntil(() => connections() >= count)
}

/** Resolves once the address of the unreachable server was asked for. */
async function dnsAnswer(): Promise<void> {
  const { total } = simulator.counters().dns
  await waitUntil(() => simulator.counters().dns.total >= total + 2)
}
