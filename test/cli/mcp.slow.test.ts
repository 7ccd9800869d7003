import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { EV, emptyFolder } from '../support/ev-process.ts'
import { simulatorFlags } from '../support/home.ts'
import { connectHttp, connectMcp } from '../support/mcp.ts'
import { type ServiceProcess, startService } from '../support/service-process.ts'

// The client of the official SDK talks to processes: to `ev mcp` over stdio, with an engine of its
// own or with a service, and to `/mcp` of the service.

/** Time that an answer may take for the client. */
const ANSWER_MAX_MS = 10_000

let simulator: Simulator
let service: ServiceProcess

beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['user*'],
    domains: {
      'a.test': { mx: [[10, 'mx.a.test']] },
      'blocked.test': { mx: [[10, 'mx.blocked.test']] },
      'silent.test': { mx: [[10, 'mx.silent.test']] },
    },
    hosts: {
      'mx.a.test': { behavior: 'polite' },
      'mx.blocked.test': { behavior: 'blocks-us' },
      'mx.silent.test': { behavior: 'silent' },
    },
  })
  service = await startService(emptyFolder(), simulatorFlags(simulator))
})

afterAll(async () => {
  await service.end('SIGTERM')
  await simulator.close()
})

function connectStdio(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const home = emptyFolder()
  return connectMcp(
    new StdioClientTransport({
      command: process.execPath,
      args: [EV, 'mcp', ...args],
      cwd: home,
      env: { HOME: home, ...env },
      stderr: 'pipe',
    }),
  )
}

type Connected = ReturnType<typeof connectMcp>

const DOORS: readonly [name: string, open: () => Connected][] = [
  ['ev mcp', () => connectStdio(simulatorFlags(simulator))],
  ['ev mcp --url', () => connectStdio(['--url', service.url], { EV_KEY: service.key })],
  ['/mcp', () => connectHttp({ url: service.url, key: service.key })],
]

describe.each(DOORS)('%s', (_, open) => {
  test('verifies and explains an address', async () => {
    const { call } = await open()
    const email = 'nobody@a.test'
    expect((await call('verify', { email })).value).toMatchObject({
      email,
      class: 'undeliverable',
      reason: 'rejected_email',
      means: 'The mail server says that this mailbox does not exist.',
      what_to_do: 'Remove it.',
    })
    expect((await call('explain', { email })).value).toMatchObject({
      evidence: { mail_server: 'mx.a.test', reply_code: 550 },
    })
    expect((await call('verify', { email: 'no address' })).value).toMatchObject({
      class: 'undeliverable',
    })
  })

  test('answers a list at a provider that blocks it within ten seconds', async () => {
    const { call } = await open()
    // The provider counts as blocking after some refusals.
    for (let n = 0; n < 3; n++) await call('verify', { email: `user${n}@blocked.test` })
    const emails = ['user1@a.test', 'user8@blocked.test', 'user9@blocked.test']
    const startedAt = performance.now()
    const { value } = await call('verify_list', { emails })
    expect(performance.now() - startedAt).toBeLessThan(ANSWER_MAX_MS)
    expect(value).toMatchObject({
      status: 'processing',
      total: 3,
      processed: 1,
      results: [{ email: 'user1@a.test', class: 'deliverable' }],
      pending: ['user8@blocked.test', 'user9@blocked.test'],
      waiting_for: [
        expect.stringMatching(/^2 addresses at blocked\.test: the provider blocks this service\./),
      ],
    })
    const { job_id } = value
    expect((await call('cancel_job', { job_id })).value).toMatchObject({ status: 'cancelled' })
  })

  test('answers one address at a silent server within ten seconds as unknown', async () => {
    const { call } = await open()
    const startedAt = performance.now()
    const { value } = await call('verify', { email: 'user2@silent.test' })
    expect(performance.now() - startedAt).toBeLessThan(ANSWER_MAX_MS)
    expect(value).toMatchObject({ class: 'unknown' })
  })
})

test('a client that disconnects from /mcp cancels its list', async () => {
  const { call } = await connectHttp({ url: service.url, key: service.key }, MODERN)
  const jobs = new EvClient({ baseUrl: service.url, apiKey: service.key }).jobs
  const statuses = async () => (await jobs.list().page()).items.map(({ status }) => status)
  for (let n = 0; n < 3; n++) await call('verify', { email: `user${n}@blocked.test` })
  const before = (await statuses()).length
  const disconnecting = new AbortController()
  const emails = ['user6@blocked.test', 'user7@blocked.test']
  const run = call('verify_list', { emails }, { signal: disconnecting.signal })
  run.catch(() => {})
  await expect.poll(async () => (await statuses()).length, WAIT).toBe(before + 1)
  disconnecting.abort()
  await expect.poll(async () => (await statuses())[0], WAIT).toBe('cancelled')
})

/** Less than the time after which the call would be answered. */
const WAIT = { timeout: 6_000 }
/** In this version of the protocol, a client cancels a call by closing its connection. */
const MODERN = { versionNegotiation: { mode: { pin: '2026-07-28' } } } as const
