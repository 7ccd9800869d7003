import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BLOCKLISTS } from '../../../src/doctor/identity/blocklists.ts'
import type { DomainPlan } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv } from '../../support/cli.ts'

// `ev doctor` as people start it, in worlds where all is well and where hardly anything is.

/** Where the healthy machine comes from. */
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
const tells = {
  on: 'EHLO',
  reply: '250-{host} at your service, [{client}]\n250 PIPELINING',
} as const

let world: Simulator
beforeAll(async () => {
  world = await startSimulator({
    domains: DOMAINS,
    hosts: {
      'mx.one.test': { behavior: 'polite', rules: [tells] },
      'mx.two.test': { behavior: 'polite', rules: [tells] },
      'mx.hostile.test': { behavior: 'blocks-us' },
      'mx.dead.test': { behavior: 'dead' },
    },
  })
})
afterAll(() => world.close())

const HEALTHY = [
  ...['--source-address', GOOD, '--helo', 'probe.example.com'],
  ...['--mail-from', 'probe@example.com', '--ask', 'mx.one.test,mx.two.test,127.20.0.1'],
]

function doctor(args: readonly string[], home = emptyFolder()): Promise<Ran> {
  chmodSync(join(home, 'data'), 0o700)
  const { dnsAddress, smtpPort } = world
  // Of a flag that is given twice the last counts.
  const towards = ['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--special-domains']
  const settings = [...towards, '--allow-ranges', '127.0.0.0/8', '--data-dir', join(home, 'data')]
  return runEv(['doctor', ...settings, ...args], { home })
}

type Report = { ok: boolean; checks: Record<'check' | 'state' | 'says' | 'todo', string>[] }
const reportOf = ({ stdout }: Ran): Report => JSON.parse(stdout)
const statesOf = (ran: Ran) =>
  Object.fromEntries(reportOf(ran).checks.map(({ check, state }) => [check, state]))

// A DNS server that is not there is waited for.
describe.concurrent('ev doctor with a DNS server that answers nothing', () => {
  test('a dead DNS server is no reason to wait, and not taken for a verdict on the rest', async () => {
    const ran = await doctor([...HEALTHY, '--dns', '127.0.0.1:1', '--json'])
    expect(ran.code).toBe(1)
    expect(statesOf(ran)).toMatchObject({
      dns: 'fail',
      'port-25': 'warn', // One server of three was called, by its address: the port is open.
      address: 'ok',
      ptr: 'warn',
      'mail-from': 'warn',
      spf: 'warn',
      blocklists: 'warn',
      disk: 'ok',
    })
  })

  test('a warning alone ends with 0', async () => {
    const ran = await doctor([...HEALTHY, '--dns', `${world.dnsAddress},127.0.0.1:1`])
    expect(ran.code).toBe(0)
    expect(ran.stdout).toMatch(/\n! dns +127\.0\.0\.1:1 does not resolve names/)
    expect(ran.stdout).toMatch(
      /\nNo check failed, 1 warning\. This machine can verify addresses\.\n$/,
    )
  })
})
