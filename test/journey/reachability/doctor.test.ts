import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BLOCKLISTS } from '../../../src/doctor/identity/blocklists.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import type { DomainPlan } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv } from '../../support/cli.ts'

// `ev doctor` as people start it, in worlds where all is well and where hardly anything is.

/** Where the healthy one comes from, and the sick one. */
const [GOOD, BAD] = ['127.0.0.9', '127.0.0.66']

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

/** Measures no latency: a busy machine must not look like a slow resolver. */
const UNHURRIED = { ...systemClock, monotonicNow: () => 0 }

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
  return runEv(['doctor', ...settings, ...args], { home, context: { clock: UNHURRIED } })
}

type Report = { ok: boolean; checks: Record<'check' | 'state' | 'says' | 'todo', string>[] }
const reportOf = ({ stdout }: Ran): Report => JSON.parse(stdout)
const statesOf = (ran: Ran) =>
  Object.fromEntries(reportOf(ran).checks.map(({ check, state }) => [check, state]))

describe.concurrent('ev doctor where all is well', () => {
  test('says so line by line, and ends with 0', async () => {
    const before = world.counters().hosts['mx.two.test']?.connections ?? 0
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
    expect(world.counters().hosts['mx.two.test']?.connections).toBeGreaterThan(before)
  })

  test('speaks nothing but EHLO and QUIT', async () => {
    await doctor(HEALTHY)
    const spoken = Object.entries(world.counters().total.commands).filter(([, times]) => times > 0)
    expect(spoken.map(([verb]) => verb).toSorted()).toEqual(['EHLO', 'QUIT'])
  })

  test('--json has each finding with its state and what to do', async () => {
    const ran = await doctor([...HEALTHY, '--json'])
    expect(ran.code).toBe(0)
    const { ok, checks } = reportOf(ran)
    expect(ok).toBe(true)
    expect(checks).toHaveLength(12)
    expect(checks[0]).toEqual({
      check: 'dns',
      egress: null,
      state: 'ok',
      says: expect.stringContaining(world.dnsAddress),
      todo: null,
    })
  })
})

describe.concurrent('ev doctor where it is not', () => {
  test('reports each failure with its fix, and exits with 1', async () => {
    const ran = await doctor([
      ...['--source-address', BAD, '--helo', 'gone.example.com', '--smtp-port', '1'],
      ...['--mail-from', 'probe@example.com', '--ask', 'mx.one.test,mx.dead.test', '--json'],
    ])
    expect(ran.code).toBe(1)
    expect(reportOf(ran).ok).toBe(false)
    const failed = reportOf(ran).checks.filter(({ state }) => state === 'fail')
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
    const ran = await doctor([...HEALTHY, '--mail-from', 'probe@nobody.example.com', '--json'])
    expect(ran.code).toBe(1)
    expect(statesOf(ran)).toMatchObject({ 'mail-from': 'fail', 'port-25': 'ok', ptr: 'ok' })
  })

  test('servers that refuse our address are heard', async () => {
    const ran = await doctor([...HEALTHY, '--ask', 'mx.hostile.test'])
    expect(ran.code).toBe(1)
    expect(ran.stdout).toContain('✘ port 25')
    expect(ran.stdout).toContain(
      `mx.hostile.test replied "554 5.7.1 Service unavailable; Client host [${GOOD}] blocked`,
    )
    // And tell where we come from.
    expect(ran.stdout).toContain(`the public IP address is ${GOOD} (reported by 1 server)`)
    expect(ran.stdout).toMatch(/\n {18}to do: The servers reject the IP address/)
    expect(ran.stdout).toMatch(
      /\n1 check failed\. Fix the failed checks before you verify addresses\.\n$/,
    )
  })

  test('each egress of the config file is looked at by its name', async () => {
    const home = emptyFolder()
    const egresses = [
      { name: 'well', 'source-address': GOOD, helo: 'probe.example.com' },
      { name: 'ill', 'source-address': BAD, helo: 'probe.example.com' },
    ]
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify({ egresses }))
    const { code, stdout } = await doctor(['--ask', 'mx.one.test'], home)
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(`✔ ptr +well: ${GOOD} has the PTR name`))
    expect(stdout).toMatch(new RegExp(`✘ ptr +ill: ${BAD} has no PTR record`))
    expect(stdout.match(/^. disk/gm)).toHaveLength(1)
  })

  test('what --ask does not take is told, with 64', async () => {
    const ran = await doctor(['--ask', 'mx.one.test,http://x'])
    expect(ran).toMatchObject({ code: 64, stdout: '' })
    expect(ran.stderr).toBe(
      'ev: --ask has "http://x"; it takes host names or IP addresses of mail servers, such as mx.example.com,192.0.2.25.\n',
    )
  })
})
