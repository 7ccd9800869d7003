import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { BLOCKLISTS } from '../../src/doctor/identity/blocklists.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv } from './cli.ts'

// Runs `ev doctor` against a simulator, with a correct and with a broken setup.

/** Source addresses with a correct and with a broken setup. */
export const [GOOD, BAD] = ['127.0.0.9', '127.0.0.66']

const ehloWithClientIp = {
  on: 'EHLO',
  reply: '250-{host} at your service, [{client}]\n250 PIPELINING',
} as const

export const startDoctorSimulator = (): Promise<Simulator> =>
  startSimulator({
    domains: {
      ...Object.fromEntries(
        BLOCKLISTS.map(({ zone }) => [`2.0.0.127.${zone}`, { a: ['127.0.0.2'] }]),
      ),
      '9.0.0.127.in-addr.arpa': { ptr: 'probe.example.com' },
      'probe.example.com': { a: [GOOD] },
      'example.com': { mx: [[10, 'mx.one.test']], txt: [`v=spf1 include:_spf.example.com -all`] },
      '_spf.example.com': { txt: [`v=spf1 ip4:${GOOD}/32 ?all`] },
      '66.0.0.127.zen.spamhaus.org': { a: ['127.0.0.11'], txt: ['https://blocklist.example/66'] },
      'nobody.example.com': {},
    },
    hosts: {
      'mx.one.test': { behavior: 'polite', rules: [ehloWithClientIp] },
      'mx.two.test': { behavior: 'polite', rules: [ehloWithClientIp] },
      'mx.hostile.test': { behavior: 'blocks-us' },
      'mx.dead.test': { behavior: 'dead' },
    },
  })

export const HEALTHY = [
  ...['--source-address', GOOD, '--helo', 'probe.example.com'],
  ...['--mail-from', 'probe@example.com', '--ask', 'mx.one.test,mx.two.test,127.20.0.1'],
]

type DoctorOptions = { readonly home?: string | undefined; readonly clock?: Clock }

export function runDoctor(
  { dnsAddress, smtpPort }: Simulator,
  args: readonly string[],
  { home = emptyFolder(), clock = systemClock }: DoctorOptions = {},
): Promise<Ran> {
  const data = join(home, 'data')
  chmodSync(data, 0o700)
  // If a flag is given twice, the last value applies.
  const settings = [
    ...['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--special-domains'],
    ...['--allow-ranges', '127.0.0.0/8', '--data-dir', data],
  ]
  return runEv(['doctor', ...settings, ...args], { home, context: { clock } })
}

type Report = { ok: boolean; checks: Record<'check' | 'state' | 'says' | 'todo', string>[] }

export const parseReport = ({ stdout }: Ran): Report => JSON.parse(stdout)

export const getStates = (result: Ran) =>
  Object.fromEntries(parseReport(result).checks.map(({ check, state }) => [check, state]))
