import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemRandom as random } from '../../../src/platform/random.ts'
import type { TransportResult } from '../../../src/webhooks/transport.ts'
import { makeAuthority } from '../../support/certificate.ts'
import type { Receiver } from '../../support/http-receiver.ts'
import { openReceiver } from '../../support/https-post.ts'

const run = promisify(execFile)
const SENDER = join(import.meta.dirname, 'send-once.ts')

/** The result of a request sent by a process with this environment. */
async function sentBy(
  environment: Record<string, string>,
  { url, ca }: Receiver,
  believes = true,
): Promise<TransportResult> {
  const { stdout } = await run(process.execPath, [SENDER, url, believes ? ca : ''], {
    env: environment,
  })
  return JSON.parse(stdout)
}

describe('the environment of the process', () => {
  test('cannot set a proxy', async () => {
    const [receiver, proxy] = [await openReceiver(), await openReceiver({ tls: 'none' })]
    const url = `http://127.0.0.1:${proxy.port}`
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy']
    const proxies = Object.fromEntries(names.map(name => [name, url]))
    const receipt = await sentBy({ ...proxies, NODE_USE_ENV_PROXY: '1' }, receiver)
    expect(receipt).toMatchObject({ answer: { status: 200 } })
    expect(proxy.connections.opened).toBe(0)
  })

  test('cannot disable certificate verification or enable old TLS versions', async () => {
    const weak = {
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      NODE_OPTIONS: '--tls-min-v1.0 --tls-cipher-list=ALL:@SECLEVEL=0 --no-warnings',
    }
    const unknownCa = await openReceiver({ certificate: 'self-signed' })
    expect((await sentBy(weak, unknownCa)).fault).toMatch(/self-signed/)
    const old = await openReceiver({ tls: 'TLSv1.1' })
    expect((await sentBy(weak, old)).fault).toMatch(/TLS 1\.2 or later is required/)
  })

  test('can add a CA beside the configured one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-ca-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const receiver = await openReceiver()
    const file = join(folder, 'ca.pem')
    writeFileSync(file, receiver.ca)
    expect((await sentBy({}, receiver, false)).fault).toMatch(/unknown CA/)
    const environment = { NODE_EXTRA_CA_CERTS: file }
    expect(await sentBy(environment, receiver, false)).toMatchObject({ answer: { status: 200 } })
    const { cert: ca } = makeAuthority({ name: 'Another', now: systemClock.now(), days: 1, random })
    const unknownCa = { ...receiver, ca }
    expect(await sentBy(environment, unknownCa)).toMatchObject({ answer: { status: 200 } })
  })
})
