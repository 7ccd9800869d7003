import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { EV, folderWith, type Ran, runEv, simulatorFlags } from '../support/ev-process.ts'
import { withEqualHosts } from '../support/own-hosts.ts'

/** Domains with one host each: polite, or deferring for one second. */
const POLITE = ['good.test', 'listed.test', 'run.test']
const GREY = ['later.test', 'kept.test', 'spared.test', 'hung.test']
const polite = withEqualHosts(POLITE, { behavior: 'polite' })
const grey = withEqualHosts(GREY, { behavior: 'greylist', seconds: 1 })
const SCENARIO: Scenario = {
  domains: {
    'a.b.listed.test': { mx: [[10, 'mx.listed.test']] },
    ...polite.domains,
    ...grey.domains,
  },
  hosts: { ...polite.hosts, ...grey.hosts },
}

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(SCENARIO)
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
