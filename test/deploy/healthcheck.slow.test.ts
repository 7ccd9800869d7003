import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const PROGRAM = join(import.meta.dirname, '../../deploy/healthcheck.mjs')

/** Returns the exit code of the health check while a server listens on both loopback addresses. */
async function check(environment: (port: number) => Record<string, string>, args: string[] = []) {
  const server = createServer((_, response) => response.end('ok')).listen(0, '::')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const all = args.map(arg => arg.replace('PORT', `${port}`))
  const child = spawn(process.execPath, [PROGRAM, ...all], { env: environment(port) })
  const [code] = await once(child, 'exit')
  return code
}

test.each<[string, (port: number) => Record<string, string>, string[]?]>([
  ['the listen address', port => ({ EV_LISTEN: `0.0.0.0:${port}` })],
  ['a port that changes it', port => ({ EV_LISTEN: '0.0.0.0:1', EV_PORT: `${port}` })],
  ['a host and a port', port => ({ EV_HOST: '::', EV_PORT: `${port}` })],
  [
    'the listen address if Kubernetes has set EV_PORT',
    port => ({ EV_LISTEN: `0.0.0.0:${port}`, EV_PORT: 'tcp://10.0.0.1:8080' }),
  ],
  ['the address of a worker', () => ({ EV_PORT: '1' }), ['127.0.0.1:PORT']],
])('the health check of the image uses %s', async (_, environment, args) => {
  expect(await check(environment, args)).toBe(0)
})

test('the health check of the image fails if nothing listens', async () => {
  expect(await check(() => ({ EV_LISTEN: '127.0.0.1:1' }))).toBe(1)
})
