import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import type { Simulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder } from '../../support/cli.ts'
import {
  BAD,
  GOOD,
  getStates,
  HEALTHY,
  parseReport,
  runDoctor,
  startDoctorSimulator,
} from '../../support/doctor.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startDoctorSimulator()
})
afterAll(() => simulator.close())

/** Measures no latency: a busy machine must not look like a slow resolver. */
const ZERO_LATENCY_CLOCK = { ...systemClock, monotonicNow: () => 0 }

const doctor = (args: readonly string[], home?: string) =>
  runDoctor(simulator, args, { home, clock: ZERO_LATENCY_CLOCK })

describe.concurrent('ev doctor with a correct setup', () => {
  test('prints a line for each check and exits with 0', async () => {
    const before = simulator.counters().hosts['mx.two.test']?.connections ?? 0
    const { code, stdout, stderr } = await doctor(HEALTHY)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.split('\n')
    expect(lines.slice(0, 12).map(line => line.slice(0, 17).trimEnd())).toEqual([
      '✔ dns',
      '✔ port 25',
      '✔ address',
      '✔ ptr',
      '✔ helo',
      '✔ mail from',
      '✔ spf',
      '✔ blocklists',
      '✔ clock',
      '✔ disk',
      '✔ open files',
      '✔ data directory',
    ])
    expect(stdout).toContain(`the public IP address is ${GOOD} (reported by 3 servers)`)
    expect(stdout).toContain('3 of 3 mail servers accepted')
    expect(lines.at(-2)).toBe('All checks passed. This machine can verify addresses.')
    expect(simulator.counters().hosts['mx.two.test']?.connections).toBeGreaterThan(before)
  })

  test('sends only EHLO and QUIT', async () => {
    await doctor(HEALTHY)
    const sent = Object.entries(simulator.counters().total.commands).filter(
      ([, times]) => times > 0,
    )
    expect(sent.map(([verb]) => verb).toSorted()).toEqual(['EHLO', 'QUIT'])
  })

  test('--json has the state and the fix of each check', async () => {
    const result = await doctor([...HEALTHY, '--json'])
    expect(result.code).toBe(0)
    const { ok, checks } = parseReport(result)
    expect(ok).toBe(true)
    expect(checks).toHaveLength(12)
    expect(checks[0]).toEqual({
      check: 'dns',
      egress: null,
      state: 'ok',
      says: expect.stringContaining(simulator.dnsAddress),
      todo: null,
    })
  })
})

describe.concurrent('ev doctor with a broken setup', () => {
  test('reports each failure with its fix, and exits with 1', async () => {
    const result = await doctor([
      ...['--source-address', BAD, '--helo', 'gone.example.com', '--smtp-port', '1'],
      ...['--mail-from', 'probe@example.com', '--ask', 'mx.one.test,mx.dead.test', '--json'],
    ])
    expect(result.code).toBe(1)
    expect(parseReport(result).ok).toBe(false)
    const failed = parseReport(result).checks.filter(({ state }) => state === 'fail')
    expect(Object.fromEntries(failed.map(({ check, todo }) => [check, todo]))).toEqual({
      'port-25': expect.stringMatching(/firewall.*port 1\. Open it there/),
      ptr: expect.stringContaining(`Set a PTR record for ${BAD}`),
      helo: expect.stringContaining('Add an address record for gone.example.com'),
      spf: expect.stringContaining(`Add ip4:${BAD} to the SPF record of example.com`),
      blocklists: expect.stringMatching(/PTR record.*PBL.*--proxy/),
    })
    expect(failed.find(({ check }) => check === 'blocklists')?.says).toContain(
      'https://blocklist.example/66',
    )
  })

  test('a sender that accepts no replies is a failure', async () => {
    const result = await doctor([...HEALTHY, '--mail-from', 'probe@nobody.example.com', '--json'])
    expect(result.code).toBe(1)
    expect(getStates(result)).toMatchObject({ 'mail-from': 'fail', 'port-25': 'ok', ptr: 'ok' })
  })

  test('reports the replies of servers that block the IP address', async () => {
    const result = await doctor([...HEALTHY, '--ask', 'mx.hostile.test'])
    expect(result.code).toBe(1)
    expect(result.stdout).toContain('✘ port 25')
    expect(result.stdout).toContain(
      `mx.hostile.test replied "554 5.7.1 Service unavailable; Client host [${GOOD}] blocked`,
    )
    // Such a server also reports the public IP address.
    expect(result.stdout).toContain(`the public IP address is ${GOOD} (reported by 1 server)`)
    expect(result.stdout).toMatch(/\n {18}to do: The servers reject the IP address/)
    expect(result.stdout).toMatch(/\n1 failure\. Fix the failures before you verify addresses\.\n$/)
  })

  test('checks each egress of the config file by its name', async () => {
    const home = emptyFolder()
    const egresses = [
      { name: 'healthy', 'source-address': GOOD, helo: 'probe.example.com' },
      { name: 'broken', 'source-address': BAD, helo: 'probe.example.com' },
    ]
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify({ egresses }))
    const { code, stdout } = await doctor(['--ask', 'mx.one.test'], home)
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(`✔ ptr +healthy: ${GOOD} has the PTR name`))
    expect(stdout).toMatch(new RegExp(`✘ ptr +broken: ${BAD} has no PTR record`))
    expect(stdout.match(/^. disk/gm)).toHaveLength(1)
  })

  test('rejects an invalid --ask with exit code 64', async () => {
    const result = await doctor(['--ask', 'mx.one.test,http://x'])
    expect(result).toMatchObject({ code: 64, stdout: '' })
    expect(result.stderr).toBe(
      'error: --ask has "http://x"; it takes host names or IP addresses of mail servers, such as mx.example.com,192.0.2.25.\n',
    )
  })
})
