import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { EV, folderWith, type Ran, runEv, simulatorFlags } from '../support/ev-process.ts'
import { withOwnHosts } from '../support/own-hosts.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(
    withOwnHosts({ 'hung.test': { behavior: 'greylist', seconds: 1 } }),
  )
})
afterAll(() => simulator.close())

const BULK = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']

const probeCount = (domain: string) =>
  simulator.counters().hosts[`mx.${domain}`]?.recipients.get(`user1@${domain}`) ?? 0

async function probedOnce(domain: string): Promise<void> {
  while (probeCount(domain) < 1) await setTimeout(5)
}

describe.concurrent('ev bulk', () => {
  const hasScript = existsSync('/usr/bin/script')
  test.runIf(hasScript)('stops when its terminal closes, and can be resumed', async () => {
    const home = folderWith({ 'list.csv': 'email\nuser1@hung.test\n' })
    const args = [...BULK, ...simulatorFlags(simulator), '--greylist-delay', '2']
    const command = ['exec', process.execPath, EV, ...args].join(' ')
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    await probedOnce('hung.test')
    terminal.kill('SIGKILL')
    await once(terminal, 'exit')
    // The random recipient differs between runs, and the server defers it too.
    const resumeArgs = [...BULK, ...simulatorFlags(simulator), '--greylist-delay', '2']
    const again = await untilFree(() => runEv(resumeArgs, { home }))
    expect(again.stderr).toContain('Resuming this list')
    expect(again.code).toBe(0)
  })
})

/** Retries while the stopped process still holds its lock. */
async function untilFree(run: () => Promise<Ran>): Promise<Ran> {
  for (;;) {
    const ran = await run()
    if (!ran.stderr.includes('Another ev process')) return ran
  }
}
