import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BLOCKLISTS } from '../../../src/doctor/identity/blocklists.ts'
import type { DomainPlan } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv } from '../../support/cli.ts'

// Runs `ev doctor` against a simulator, with a correct and with a broken setup.

/** A source address with a correct setup. */
const GOOD = '127.0.0.9'

const DOMAINS: Record<string, DomainPlan> = {
  ...Object.fromEntries(BLOCKLISTS.map(({ zone }) => [`2.0.0.127.${zone}`, { a: ['127.0.0.2'] }])),
  '9.0.0.127.in-addr.arpa': { ptr: 'probe.example.com' },
  'probe.example.com': { a: [GOOD] },
  'example.com': { mx: [[10, 'mx.one.test']], txt: [`v=spf1 include:_spf.example.com -all`] },
  '_spf.example.com': { txt: [`v=spf1 ip4:${GOOD}/32 ?all`] },
  '66.0.0.127.zen.spamhaus.org': { a: ['127.0.0.11'], txt: ['https://blocklist.example/66'] },
  'nobody.example.com': {},
}
const ehloWithClientIp = {
  on: 'EHLO',
  reply: '250-{host} at your service, [{client}]\n250 PIPELINING',
} as const

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({
    domains: DOMAINS,
    hosts: {
      'mx.one.test': { behavior: 'polite', rules: [ehloWithClientIp] },
      'mx.two.test': { behavior: 'polite', rules: [ehloWithClientIp] },
      'mx.hostile.test': { behavior: 'blocks-us' },
      'mx.dead.test': { behavior: 'dead' },
    },
  })
})
afterAll(() => simulator.close())

const HEALTHY = [
  ...['--source-address', GOOD, '--helo', 'probe.example.com'],
  ...['--mail-from', 'probe@example.com', '--ask', 'mx.one.test,mx.two.test,127.20.0.1'],
]

function doctor(args: readonly string[], home = emptyFolder()): Promise<Ran> {
  chmodSync(join(home, 'data'), 0o700)
  const { dnsAddress, smtpPort } = simulator
  // If a flag is given twice, the last value applies.
  const simulatorFlags = ['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--special-domains']
  const settings = [
    ...simulatorFlags,
    '--allow-ranges',
    '127.0.0.0/8',
    '--data-dir',
    join(home, 'data'),
  ]
  return runEv(['doctor', ...settings, ...args], { home })
}

type Report = { ok: boolean; checks: Record<'check' | 'state' | 'says' | 'todo', string>[] }
const parseReport = ({ stdout }: Ran): Report => JSON.parse(stdout)
const getStates = (result: Ran) =>
  Object.fromEntries(parseReport(result).checks.map(({ check, state }) => [check, state]))

// These tests wait for a DNS server that does not exist.
describe.concurrent('ev doctor with an unreachable DNS server', () => {
  test('fails the DNS check and only warns about the checks that need DNS', async () => {
    const result = await doctor([...HEALTHY, '--dns', '127.0.0.1:1', '--json'])
    expect(result.code).toBe(1)
    expect(getStates(result)).toMatchObject({
      dns: 'fail',
      'port-25': 'warn', // One of three servers was dialed, by its IP address: the port is open.
      address: 'ok',
      ptr: 'warn',
      'mail-from': 'warn',
      spf: 'warn',
      blocklists: 'warn',
      disk: 'ok',
    })
  })

  test('exits with 0 if there are only warnings', async () => {
    const result = await doctor([...HEALTHY, '--dns', `${simulator.dnsAddress},127.0.0.1:1`])
    expect(result.code).toBe(0)
    expect(result.stdout).toMatch(/\n! dns +127\.0\.0\.1:1 does not resolve names/)
    expect(result.stdout).toMatch(
      /\nNo failures, 1 warning\. This machine can verify addresses\.\n$/,
    )
  })
})
