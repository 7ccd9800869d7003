import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect } from 'vitest'
import { type ClientOptions, EvClient } from '../../../src/client/client.ts'
import { type Scenario, type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'
import { emptyFolder, simulatorFlags } from '../../support/cli.ts'
import { type CliService, startService } from '../../support/cli-service.ts'

// A service over TLS with simulated mail servers, started once for a test file.

export let simulator: Simulator
export let service: CliService
export const home = emptyFolder()
let key: string

/** Starts the service before the tests of the file that calls it, and stops it after them. */
export function useService(): void {
  let before: string[] = []
  beforeAll(async () => {
    simulator = await startSimulator(SCENARIO)
    const certificate = selfSigned('localhost')
    for (const part of ['cert', 'key'] as const) writeFileSync(join(home, part), certificate[part])
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
    // NODE_EXTRA_CA_CERTS would do the same, but applies only at the start of a process.
    before = getCACertificates('default')
    setDefaultCACertificates([certificate.cert])
    service = await startService(home, args())
    key = service.key
  }, 60_000)

  afterAll(async () => {
    const ended = await service.end('SIGTERM')
    await simulator.close()
    setDefaultCACertificates(before)
    expect(ended.code, ended.stderr).toBe(0)
  }, 60_000)
}

/** Starts the service again in the same folder, after it has stopped. */
export async function restartService(): Promise<void> {
  service = await startService(home, args())
}

const args = () => [
  ...simulatorFlags(simulator),
  ...['--tls-cert', 'cert', '--tls-key', 'key', '--webhook-allow-ranges', '127.0.0.0/8'],
]

/** The URL with the name in the certificate. */
const baseUrl = () => service.url.replace('127.0.0.1', 'localhost')

export const client = (o: Partial<ClientOptions> = {}) =>
  new EvClient({ apiKey: key, baseUrl: baseUrl(), ...o })

/** Sends a request without the client, which would reject invalid requests and retry. */
export const sendRequest = (path: string, { headers, ...init }: RequestInit = {}) =>
  fetch(`${baseUrl()}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
  })

export const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  sendRequest(path, { method: 'POST', body: JSON.stringify(body), headers })

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

export const FREE_CREDITS = 5
export const DOMAINS = 20

const CONFIG = {
  'ip-limits': { 'single-per-minute': 10_000, 'bulk-per-hour': 1_000 },
  plans: { free: { requests: 100, per: 'second', 'credits-per-day': FREE_CREDITS } },
}

const domainsOfList = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)
/** Returns whether the domain of a row of a long list is a catch-all. */
export const isCatchAll = (row: number) => row % DOMAINS === 7

const mx = (name: string) => ({ [name]: { mx: [[10, `mx.${name}`]] as const } })

const SCENARIO: Scenario = {
  mailboxes: ['user*', 'info'],
  domains: Object.assign(
    { 'no-mail.test': { mx: 'null' } },
    ...[
      'polite.test',
      'everything.test',
      'blocked.test',
      'later.test',
      'slow.test',
      ...domainsOfList,
    ].map(mx),
  ),
  hosts: {
    'mx.polite.test': { behavior: 'polite' },
    'mx.everything.test': { behavior: 'catch-all' },
    'mx.blocked.test': { behavior: 'blocks-us' },
    'mx.slow.test': { behavior: 'slow', ms: 100 },
    'mx.later.test': { behavior: 'greylist', seconds: 3_600 },
    ...Object.fromEntries(
      domainsOfList.map((name, n) => [
        `mx.${name}`,
        { behavior: isCatchAll(n) ? 'catch-all' : 'polite' },
      ]),
    ),
  },
}
