import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { signedHeaders } from '../../src/webhooks/signature.ts'
import { certificateOf, testAuthority } from '../support/certificate.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { startService } from '../support/service-process.ts'

// Runs the tests of the Python client with the Python of this machine.

const ROOT = join(import.meta.dirname, '../..')
const PACKAGE = join(ROOT, 'clients/python')
const REQUIRED = process.env.EV_REAL_SERVERS === 'required'
const missing = ['python3', 'mypy'].filter(
  program => spawnSync(program, ['--version']).error !== undefined,
)

if (missing.length > 0 && REQUIRED) throw new Error(`${missing.join(' and ')} missing`)
for (const program of missing) {
  console.warn(`Tests of the Python client are skipped: ${program} is missing.`)
}

describe('the Python client', () => {
  test.skipIf(missing.includes('python3'))('passes its tests without a service', async () => {
    const { code, output } = await runPython(['discover', '-s', 'tests', '-t', '.'])
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/OK \(skipped=/) })
  })

  test.skipIf(missing.includes('python3'))(
    'runs the examples of its README and its tests against a service',
    async () => {
      const home = emptyFolder()
      const authority = testAuthority()
      const { cert, key } = certificateOf('right', 'localhost', '127.0.0.1')
      const files = { 'cert.pem': cert, 'key.pem': key, 'ca.pem': authority.cert }
      for (const [name, content] of Object.entries(files)) writeFileSync(join(home, name), content)
      const service = await startService(home, [
        ...['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'],
        ...['--webhook-allow-ranges', '127.0.0.0/8'],
      ])
      const environment = {
        SSL_CERT_FILE: join(home, 'ca.pem'),
        EV_TEST_URL: service.url.replace('127.0.0.1', 'localhost'),
        EV_TEST_KEY: service.key,
        EV_TEST_WEBHOOK: JSON.stringify(signedWebhook()),
      }
      // The README needs an account without jobs.
      for (const tests of ['tests.test_readme', 'tests.test_service']) {
        const { code, output } = await runPython([tests], environment)
        expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/\nOK\n$/) })
      }
      await service.end('SIGTERM')
    },
  )

  test.skipIf(missing.includes('mypy'))(
    'passes mypy --strict for Python 3.9, and so do the examples of its README',
    () => {
      const folder = emptyFolder()
      const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8')
      const examples = [...readme.matchAll(/```python\n([\s\S]*?)```/g)].map(([, code]) => code)
      writeFileSync(join(folder, 'examples.py'), examples.join('\n'))
      const files = ['ev_client', join(folder, 'examples.py')]
      const args = ['--strict', '--python-version', '3.9', '--cache-dir', folder, ...files]
      const { status, stdout } = spawnSync('mypy', args, { cwd: PACKAGE, encoding: 'utf8' })
      expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^Success/) })
    },
  )

  test.each(['models.py', 'resources.py'])(
    'has the types and methods of docs/openapi.json in %s: run npm run openapi',
    name => {
      const folder = emptyFolder()
      spawnSync(process.execPath, [join(ROOT, 'tools/python-types.mjs'), folder])
      const made = readFileSync(join(folder, name), 'utf8')
      expect(readFileSync(join(PACKAGE, 'ev_client', name), 'utf8')).toBe(made)
    },
  )
})

/** Runs tests of the client; every unclosed connection is an error. */
async function runPython(tests: string[], environment: Record<string, string> = {}) {
  const args = ['-B', '-W', 'error::ResourceWarning', '-m', 'unittest', ...tests]
  const child = spawn('python3', args, {
    cwd: PACKAGE,
    env: { PATH: process.env.PATH, ...environment },
  })
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  const output = await text(child.stderr)
  return { code: await ended, output }
}

function signedWebhook() {
  const body = JSON.stringify({
    event: 'quota.warning',
    event_id: 'evt_1',
    timestamp: new Date().toISOString(),
    data: { remaining: 20, note: 'ä' },
  })
  const secrets = [
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'whsec_AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH',
  ] as const
  return {
    body,
    secrets,
    headers: signedHeaders(body, { eventId: 'evt_1', at: Date.now(), secrets }),
  }
}
