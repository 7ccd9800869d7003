import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startEv } from '../../support/cli.ts'
import { request, startService } from '../../support/cli-service.ts'
import { HERE, homeWith, newKey, read } from '../../support/cli-webhooks.ts'

/** Starts a service on a data directory, and returns the warnings that it logs until it is up. */
async function warningsOf(home: string, environment: Readonly<Record<string, string>> = {}) {
  const args = [
    'serve',
    '--data-dir',
    'data',
    '--listen',
    '127.0.0.1:0',
    '--helo',
    'ev.example.com',
  ]
  const running = startEv(args, { home, environment })
  await running.printed('API documentation:', 'stderr')
  running.signal('SIGTERM')
  const { stderr } = await running.ended
  const lines = stderr.split('\n').filter(line => line.startsWith('{'))
  return lines.map(line => JSON.parse(line)).filter(({ level }) => level === 'warn')
}

const changed = [{ message: expect.stringMatching(/^the secret has changed: /) }]

describe('startup warnings', () => {
  test('are empty if nothing has changed, and report a secret that cannot decrypt responses', async () => {
    const home = await homeWith('Shop')
    const key = await newKey(home)
    const service = await startService(home)
    const body = { name: 'CI', scopes: ['jobs:read'] }
    const headers = { 'Idempotency-Key': 'one' }
    expect((await request(service, key, '/v1/keys', { body, headers })).status).toBe(201)
    await service.end('SIGTERM')
    expect(await warningsOf(home)).toEqual([])
    expect(await warningsOf(home, { EV_SECRET: 'x'.repeat(32) })).toMatchObject(changed)
  })

  test('report a secret that cannot decrypt those of webhooks', async () => {
    const home = await homeWith('Shop')
    const url = 'https://127.0.0.1:8443/hook'
    await read(home, 'webhooks', 'create', '--url', url, '--events', '*', ...HERE)
    expect(await warningsOf(home, { EV_SECRET: 'x'.repeat(32) })).toMatchObject(changed)
  })

  test('name accounts with an unknown plan', async () => {
    const home = await homeWith()
    const file = join(home, 'ev.config.json')
    writeFileSync(file, JSON.stringify({ plans: { team: { requests: 10 } } }))
    const { id } = await read(home, 'accounts', 'create', '--name', 'Shop', '--plan', 'team')
    rmSync(file)
    expect(await warningsOf(home)).toMatchObject([
      { message: expect.stringMatching(/^the plan "team" does not exist; /), accountId: id },
    ])
  })
})
