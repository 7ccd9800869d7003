import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ENVIRONMENT, installed } from '../../real/server.ts'
import { serverCertificate } from '../../support/certificate.ts'
import { openHttpServer } from '../../support/http-server.ts'
import { REQUIRED } from '../../support/real-servers.ts'

const SCANNER = installed('usr/bin/sslscan')
const missing = existsSync(SCANNER)
  ? null
  : 'sslscan is not installed: run: sudo bash tools/install-mail-servers.sh'
if (missing !== null && REQUIRED) throw new Error(missing)

/** Scans a port of 127.0.0.1. Returns the attributes of each element of its report. */
async function scan(port: number): Promise<(element: string) => Record<string, string>[]> {
  const { stdout } = await promisify(execFile)(
    SCANNER,
    ['--xml=-', '--no-colour', `127.0.0.1:${port}`],
    { env: ENVIRONMENT },
  )
  return element =>
    [...stdout.matchAll(new RegExp(`<${element} ([^>]*?)/?>`, 'g'))].map(([, attributes = '']) =>
      Object.fromEntries(
        [...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
      ),
    )
}

test.skipIf(missing !== null)(
  `sslscan finds no weak protocol, cipher suite or extension${missing === null ? '' : ` (${missing})`}`,
  async () => {
    const { port } = await openHttpServer({ certificate: serverCertificate() })
    const find = await scan(port)
    expect(
      find('protocol')
        .filter(({ enabled }) => enabled === '1')
        .map(({ version }) => version),
    ).toEqual(['1.2', '1.3'])
    const suites = find('cipher').map(({ cipher = '' }) => cipher)
    expect(suites.filter(name => !/^TLS_|^ECDHE-.*(?:GCM|POLY1305)/.test(name))).toEqual([])
    // A certificate of RSA: three suites of each version.
    expect(suites).toHaveLength(6)
    expect(find('heartbleed').map(({ vulnerable }) => vulnerable)).toEqual(['0', '0'])
    expect(find('renegotiation')).toEqual([{ supported: '0', secure: '0' }])
  },
)
