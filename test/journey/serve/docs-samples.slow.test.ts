import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../../src/simulator/simulator-process.ts'
import { emptyFolder, simulatorFlags } from '../../support/ev-process.ts'
import { readDoc } from '../../support/markdown.ts'
import { type ServiceProcess, startService } from '../../support/service-process.ts'

// Runs the samples of the reference at /docs as they are printed, with a key and IDs that exist.

const has = (program: string) => spawnSync(program, ['--version']).status === 0

let simulator: SimulatorProcess
let service: ServiceProcess
const home = emptyFolder()

beforeAll(async () => {
  simulator = await startScenarioProcess(SCENARIO)
  service = await startService(home, [
    ...simulatorFlags(simulator),
    ...['--limits', 'off', '--webhook-allow-ranges', '127.0.0.0/8'],
  ])
  writeFileSync(join(home, 'customers.csv'), 'name,email\nAnn,user@example.com\n')
})

afterAll(async () => {
  await service.end('SIGTERM')
  await simulator.close()
})

const SCENARIO: Scenario = {
  mailboxes: ['user'],
  domains: {
    'example.com': { mx: [[10, 'mx.example.com']], a: ['127.20.0.9'] },
    'app.example.com': { a: ['127.20.0.9'] },
  },
  hosts: { 'mx.example.com': { behavior: 'polite' } },
}

/** Sends a request that prepares a sample; returns the first ID with the prefix in its response. */
async function ask(path: string, prefix: string, body?: object): Promise<string> {
  const response = await fetch(`${service.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${service.key}`,
      'X-EV-Sandbox': 'true',
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const id = new RegExp(`:"(${prefix}_\\w+)"`).exec(text)?.[1]
  if (id === undefined) throw new Error(`${path}: ${text}`)
  return id
}

/** A finished list with as many rows as the samples name, all of the class that one re-verifies. */
async function createList(): Promise<string> {
  const emails = Array.from({ length: 12 }, (_, n) => `timeout${n}@example.com`)
  const id = await ask('/v1/verify/batch', 'job', { emails })
  return ask(`/v1/jobs/${id}?wait=60`, 'job')
}

const createEndpoint = () =>
  ask('/v1/webhooks', 'wh', { url: 'https://app.example.com/hook', events: ['batch.completed'] })

/** What an example names, with the other examples in its path: the ID of a new one. */
const CREATE: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  job_xyz789: async () => ({ job_xyz789: await createList() }),
  key_01: async () => ({
    key_01: await ask('/v1/keys', 'key', { name: 'sample', scopes: ['jobs:read'] }),
  }),
  per_01: async () => ({
    per_01: await ask('/v1/people', 'per', { name: 'Bob', email: uniqueEmail(), role: 'viewer' }),
  }),
  acc_01: async () => ({
    acc_01: await ask('/v1/accounts', 'acc', { name: uniqueName(), plan: 'free' }),
  }),
  fbs_8f3a2c1d7b5e4096a1c3: async () => ({
    fbs_8f3a2c1d7b5e4096a1c3: await ask('/v1/feedback/sources', 'fbs', { provider: 'postmark' }),
  }),
  sch_abc123: async () => ({
    sch_abc123: await ask('/v1/schedules', 'sch', { job_id: await createList(), every_days: 30 }),
  }),
  wh_8f3a2c1d: async () => {
    const id = await createEndpoint()
    return { wh_8f3a2c1d: id, dlv_01: await ask(`/v1/webhooks/${id}/test`, 'dlv', {}) }
  },
  evt_abc123: async () => {
    await ask(`/v1/webhooks/${await createEndpoint()}/test`, 'dlv', {})
    return { evt_abc123: await ask('/v1/events', 'evt') }
  },
}

let names = 0
/** No two accounts have the same name, and no two people of an account the same address. */
const uniqueName = () => `Shop ${++names}`
const uniqueEmail = () => `ann${++names}@example.com`

/** Replaces the key and the IDs of a sample by ones that exist. */
async function fill(sample: string): Promise<string> {
  const ids: Record<string, string> = {
    YOUR_KEY: service.key,
    Shop: uniqueName(),
    'ann@example.com': uniqueEmail(),
  }
  for (const [example, create] of Object.entries(CREATE)) {
    if (sample.includes(example)) Object.assign(ids, await create())
  }
  return Object.entries(ids).reduce((text, [from, to]) => text.replaceAll(from, to), sample)
}

type Sample = { readonly operation: string; readonly text: string }

/** Returns the samples of all pages in a language. */
async function samplesOf(language: string): Promise<Sample[]> {
  const { tags } = JSON.parse(readDoc('docs/openapi.json'))
  const pages = await Promise.all(
    tags.map(async ({ name }: { name: string }) =>
      (await fetch(`${service.url}/docs/reference/${name.toLowerCase()}`)).text(),
    ),
  )
  const sections = pages.flatMap(page => page.split('<h2 id="').slice(1))
  return sections.flatMap(section => {
    const operation = section.slice(0, section.indexOf('"'))
    const start = section.split(
      `<div class="code is-${language}"><pre data-copy tabindex="0"><code>`,
    )[1]
    return start === undefined ? [] : [{ operation, text: textOf(start.split('</code>')[0] ?? '') }]
  })
}

const textOf = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

/** Runs a program in the folder of the samples: not blocking, or connections of tests would end. */
const run = (program: string, args: readonly string[]) =>
  new Promise<{ stdout: string; stderr: string }>(resolve => {
    execFile(program, args, { cwd: home }, (_, stdout, stderr) => resolve({ stdout, stderr }))
  })

/** A finished list cannot be cancelled or resumed, and the bucket of the example does not exist. */
const OTHER_STATUS: Readonly<Record<string, number>> = {
  cancelJob: 409,
  resumeJob: 409,
  verifyUrl: 400,
}
/** Only email providers send this one. */
const WITHOUT_SAMPLE = ['receiveFeedback']

test('each operation has a sample in each language', async () => {
  const { paths } = JSON.parse(readDoc('docs/openapi.json'))
  const all = Object.values<Record<string, { operationId: string }>>(paths).flatMap(item =>
    Object.values(item).map(({ operationId }) => operationId),
  )
  for (const language of ['curl', 'js', 'python']) {
    const shown = new Set((await samplesOf(language)).map(({ operation }) => operation))
    expect(all.filter(one => !shown.has(one))).toEqual(WITHOUT_SAMPLE)
  }
})

/** Runs the samples of a language; returns those that failed, with their output. */
async function runSamples(
  language: string,
  start: (sample: string) => Promise<{ readonly status: number; readonly output: string }>,
): Promise<string[]> {
  const failed: string[] = []
  const samples = await samplesOf(language)
  expect(samples.length).toBeGreaterThan(60)
  for (const { operation, text } of samples) {
    const sample = await fill(text)
    const { status, output } = await start(sample)
    const isExpected = (status >= 200 && status < 300) || status === OTHER_STATUS[operation]
    if (!isExpected) failed.push(`${operation}\n${sample}\n${status} ${output}`)
  }
  return failed
}

describe('the samples succeed in', () => {
  test.skipIf(!has('curl'))('curl', { timeout: 600_000 }, async () => {
    const failed = await runSamples('curl', async sample => {
      const command = sample.replace(/^curl /, `curl -sS -w '\n%{http_code}' `)
      const { stdout, stderr } = await run('sh', ['-c', command])
      return { status: Number(stdout.slice(stdout.lastIndexOf('\n'))), output: stdout + stderr }
    })
    expect(failed).toEqual([])
  })

  test('JavaScript', { timeout: 600_000 }, async () => {
    const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
    // Samples read a file of the folder.
    const before = process.cwd()
    process.chdir(home)
    onTestFinished(() => process.chdir(before))
    const failed = await runSamples('js', async sample => {
      const module = `${sample}\nexport { response }`
      const { response } = await import(`data:text/javascript,${encodeURIComponent(module)}`)
      return { status: response.status, output: inspect(printed.mock.lastCall) }
    })
    expect(failed).toEqual([])
  })
})

test.skipIf(!has('python3'))('the samples in Python are programs', async () => {
  const check =
    'import json, sys\nfor text in json.load(sys.stdin): compile(text, "sample", "exec")'
  const input = JSON.stringify((await samplesOf('python')).map(({ text }) => text))
  const { status, stderr } = spawnSync('python3', ['-c', check], { input, encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
})
