import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Scenario } from '../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../src/simulator/simulator.ts'
import { signedHeaders } from '../src/webhooks/signature.ts'
import { emptyFolder, runEv } from './support/ev-process.ts'
import { ROOT } from './support/markdown.ts'
import { NODE_VERSIONS, OTHER_RUNTIMES } from './support/node-versions.ts'
import { type ServiceProcess, startService } from './support/service-process.ts'

const THIS_NODE = { path: process.execPath, version: process.version }

/** The URL of a compiled file. */
const built = (path: string) => pathToFileURL(join(ROOT, 'dist', path)).href

const deps = {} as { simulator: Simulator; service: ServiceProcess }

beforeAll(async () => {
  expect(inject('buildFault')).toBe('')
  deps.simulator = await startSimulator(SCENARIO)
  deps.service = await startService(emptyFolder())
})

afterAll(async () => {
  await deps.simulator.close()
  await deps.service.end('SIGTERM')
})

describe.each([...NODE_VERSIONS, THIS_NODE])('Node $version', ({ path, version }) => {
  test('runs the engine', async () => {
    const { dnsAddress: dns, smtpPort } = deps.simulator
    const network = { dns: [dns], smtpPort, allowRanges: ['127.0.0.0/8'], specialDomains: true }
    const printed = await run(path, ENGINE_PROGRAM, { ...network, helo: 'probe.test' })
    expect(printed).toEqual({
      single: ['accepted_email deliverable', 'rejected_email undeliverable'],
      many: {
        'ann@open.test': 'catch_all',
        'ann@tls.test': 'accepted_email',
        'ann@backup.test': 'accepted_email',
        'nobody@backup.test': 'rejected_email',
        'ann@long.test': 'accepted_email',
        'ann@bücher.test': 'accepted_email',
        'ann@nowhere.test': 'invalid_domain',
        'not an address': 'invalid_email',
      },
    })
  })

  test('runs the client', async () => {
    expect(await run(path, CLIENT_PROGRAM, clientInput())).toEqual(CLIENT_OUTPUT)
  })

  // The command does not support Node 20: see pack.slow.test.ts.
  test.skipIf(version.startsWith('v20.'))('runs the command line', async () => {
    const args = ['verify', 'valid@x.example', 'invalid@x.example', '--sandbox', '--ndjson']
    const ran = await runEv(args, { home: emptyFolder(), node: path })
    expect(ran).toMatchObject({ code: 1, stderr: '' })
    const reasons = ran.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).reason)
    expect(reasons).toEqual(['accepted_email', 'rejected_email'])
  })
})

test.each(OTHER_RUNTIMES)('$name runs the client', async ({ path, evaluate }) => {
  expect(await run(path, CLIENT_PROGRAM, clientInput(), evaluate)).toEqual(CLIENT_OUTPUT)
})

test('the declarations compile with the types of Node 20', () => {
  const program = join(emptyFolder(), 'program.mts')
  const imports = ['index.js', 'client/client.js'].map(
    (path, n) => `export * as entry${n} from '${join(ROOT, 'dist', path)}'\n`,
  )
  writeFileSync(program, imports.join(''))
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--skipLibCheck', 'false']
  const types = ['--lib', 'es2023', '--types', 'node', '--typeRoots', TYPES_OF_NODE_20]
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '--ignoreConfig', ...options, ...types, program]
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
})

const TYPES_OF_NODE_20 = 'node_modules/@node20'

const SCENARIO: Scenario = {
  mailboxes: ['ann'],
  domains: {
    'shop.test': { mx: [[10, 'mx.shop.test']] },
    'open.test': { mx: [[10, 'mx.open.test']] },
    'tls.test': { mx: [[10, 'mx.tls.test']] },
    'backup.test': {
      mx: [
        [10, 'mx.closed.test'],
        [20, 'mx.shop.test'],
      ],
    },
    'xn--bcher-kva.test': { mx: [[10, 'mx.shop.test']] },
    'long.test': { mx: [[10, 'mx.shop.test']], fault: 'truncated' },
  },
  hosts: {
    'mx.shop.test': { behavior: 'polite' },
    'mx.open.test': { behavior: 'catch-all' },
    'mx.tls.test': { behavior: 'needs-starttls' },
    'mx.closed.test': { behavior: 'dead' },
  },
}

const ENGINE_PROGRAM = `
  import { classOf, createEngine } from '${built('index.js')}'
  const engine = createEngine(input)
  const verify = async address => {
    const { verdict } = await engine.verify(address)
    return verdict.reason + ' ' + classOf(verdict)
  }
  const single = [await verify('ann@shop.test'), await verify('nobody@shop.test')]
  const addresses = [
    'ann@open.test', 'ann@tls.test', 'ann@backup.test', 'nobody@backup.test', 'ann@long.test',
    'ann@bücher.test', 'ann@nowhere.test', 'not an address',
  ]
  const many = {}
  for await (const { email, verdict } of engine.verifyMany(addresses)) many[email] = verdict.reason
  await engine.close()
  output({ single, many })`

const CLIENT_PROGRAM = `
  import { EvClient, verifyWebhook } from '${built('client/client.js')}'
  const client = new EvClient(input.options)
  const single = await client.verify.single('valid@example.com')
  const error = await client.verify.single('not an address').catch(error => error.code)
  const { job_id } = await client.file('Name,Email\\nAnn,valid@example.com\\nBen,invalid@example.com\\n')
  const { status } = await client.waitForJob(job_id)
  const rows = []
  for await (const { reason } of client.jobs.results(job_id)) rows.push(reason)
  let records = 0
  for await (const record of client.jobs.csv(job_id)) records++
  const event = await verifyWebhook(input.body, input.headers, input.secret)
  output({ single: single.reason, error, status, rows, records, event: event.event })`

function clientInput() {
  const body = '{"event":"webhook.test","event_id":"evt_1","data":{}}'
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const headers = signedHeaders(body, { eventId: 'evt_1', at: Date.now(), secrets: [secret] })
  const { key: apiKey, url: baseUrl } = deps.service
  return { options: { apiKey, baseUrl, sandbox: true }, body, headers, secret }
}

const CLIENT_OUTPUT = {
  single: 'accepted_email',
  error: 'invalid_email',
  status: 'completed',
  rows: ['accepted_email', 'rejected_email'],
  records: 3,
  event: 'webhook.test',
}

/** Runs a program, which has `input`, and returns what it passes to `output`. */
async function run(
  runtime: string,
  program: string,
  input: object,
  evaluate: readonly string[] = ['--input-type=module', '--eval'],
): Promise<unknown> {
  const source = `const input = ${JSON.stringify(input)}
    const output = value => console.log(JSON.stringify(value))
    ${program}`
  const child = spawn(runtime, [...evaluate, source], { timeout: 60_000 })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}
