import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect } from 'vitest'
import { type ClientOptions, EvClient } from '../../../src/client/client.ts'
import { type Scenario, type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'
import { emptyFolder, towards } from '../../support/cli.ts'
import { type CliService, startService } from '../../support/cli-service.ts'

// A service over TLS with a mail world in place of the internet, started once for a test file.

export let world: Simulator
export let service: CliService
export const home = emptyFolder()
let key: string

/** Starts the service before the tests of the file that calls it, and ends it after them. */
export function useService(): void {
  let before: string[] = []
  beforeAll(async () => {
    world = await startSimulator(SCENARIO)
    const certificate = selfSigned('localhost')
    for (const part of ['cert', 'key'] as const) writeFileSync(join(home, part), certificate[part])
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
    // As NODE_EXTRA_CA_CERTS would, which only counts at the start of a process.
    before = getCACertificates('default')
    setDefaultCACertificates([certificate.cert])
    service = await startService(home, args())
    key = service.key
  }, 60_000)

  afterAll(async () => {
    const ended = await service.end('SIGTERM')
    await world.close()
    setDefaultCACertificates(before)
    expect(ended.code, ended.stderr).toBe(0)
  }, 60_000)
}

/** Starts the service in the same folder again, once it has ended. */
export async function startAgain(): Promise<void> {
  service = await startService(home, args())
}

const args = () => [
  ...towards(world),
  ...['--tls-cert', 'cert', '--tls-key', 'key', '--webhook-allow-ranges', '127.0.0.0/8'],
]

/** By the name in its certificate. */
const baseUrl = () => service.url.replace('127.0.0.1', 'localhost')

export const client = (o: Partial<ClientOptions> = {}) =>
  new EvClient({ apiKey: key, baseUrl: baseUrl(), ...o })

/** Without a client, which would not send what is wrong, and would try again. */
export const ask = (path: string, { headers, ...init }: RequestInit = {}) =>
  fetch(`${baseUrl()}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
  })

export const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(path, { method: 'POST', body: JSON.stringify(body), headers })

export async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
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
/** Domains of long lists whose server takes any address. */
export const isOpen = (row: number) => row % DOMAINS === 7

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
        { behavior: isOpen(n) ? 'catch-all' : 'polite' },
      ]),
    ),
  },
}
