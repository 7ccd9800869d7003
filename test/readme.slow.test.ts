import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SimulatorProcess, startSimulatorProcess } from '../src/simulator/simulator-process.ts'
import { freePort } from './support/free-port.ts'
import { emptyFolder } from './support/home.ts'
import { type CodeBlock, codeBlocks, ROOT, shownOutput } from './support/markdown.ts'

// Runs every code block of the README in order, as a new user does: in a copy of the project, with
// an empty home directory. Mail servers are simulated: the environment sets their addresses. The
// only command that is not run is `npm ci`, because tests do not download packages; the copy uses
// the packages of this project.

/** A block that is run, and the output that the README shows for it. */
type Step = { readonly run: CodeBlock; readonly shown: CodeBlock | null }

const blocks = codeBlocks('README.md')
const steps = blocks.flatMap((block, at): Step[] => {
  if (isOutput(block)) return []
  const next = blocks[at + 1]
  return [{ run: block, shown: next !== undefined && isOutput(next) ? next : null }]
})
/** The first block shows what ev does; the second one builds it. */
const [preview, setup, ...others] = steps
const inOrder = [setup, preview, ...others].filter(step => step !== undefined)

const folder = emptyFolder()
const copy = join(folder, 'ev')
const app = join(folder, 'app')
/** The key that the service prints, and the ID of the job that was submitted last. */
const seen = { key: '', job: '' }
/** Where programs are stored: the copy, and after `npm install` a project that uses ev. */
let programFolder = copy
let environment: NodeJS.ProcessEnv = {}
let simulator: SimulatorProcess
let service: ReturnType<typeof spawn> | null = null
let port = 0

beforeAll(async () => {
  copyProject()
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true }')
  simulator = await startSimulatorProcess(join(ROOT, 'fixtures/simulator/demo.json'))
  port = await freePort()
  environment = {
    ...{ PATH: process.env.PATH, HOME: folder },
    ...{ EV_DNS: simulator.dnsAddress, EV_SMTP_PORT: String(simulator.smtpPort) },
    ...{ EV_ALLOW_RANGES: '127.0.0.0/8', EV_SPECIAL_DOMAINS: 'on' },
    ...{ EV_HELO: 'probe.example.com', EV_LISTEN: `127.0.0.1:${port}` },
    ...{ npm_config_offline: 'true', npm_config_update_notifier: 'false' },
  }
})

afterAll(async () => {
  if (service?.pid !== undefined) process.kill(-service.pid, 'SIGTERM')
  await simulator.close()
})

test('the README has a block of each kind', () => {
  expect(new Set(blocks.map(({ language }) => language))).toEqual(
    new Set(['console', 'sh', 'json', 'csv', 'js']),
  )
  expect(steps.length).toBeGreaterThan(11)
})

describe('the README', () => {
  test.each(inOrder)('runs $run.language: $run.text', async ({ run, shown }) => {
    if (run.language === 'js') return runProgram(run.text)
    if (run.text === 'npx ev serve') return startService()
    const [command, output] = run.language === 'console' ? split(run.text) : [run.text, null]
    const isInstall = command.startsWith('npm install')
    if (isInstall) programFolder = app
    if (seen.job !== '' && command.includes('/download')) await jobEnd()
    const ran = await runShell(withValues(command), isInstall ? app : copy)
    // The doctor reports that the simulated network has no public address.
    const allowed = command === 'npx ev doctor' ? [0, 1] : [0]
    expect(allowed, ran.stdout + ran.stderr).toContain(ran.code)
    seen.job = /"job_id":"(\w+)"/.exec(ran.stdout)?.[1] ?? seen.job
    if (output !== null) expect(withoutVariables(ran.stdout)).toBe(withoutVariables(output))
    if (shown !== null) expect(parseOutput(shown, ran.stdout)).toEqual(parseOutput(shown))
  })
})

function isOutput({ language }: CodeBlock): boolean {
  return language === 'json' || language === 'csv'
}

/** Copies the project without its packages, which are linked, and without build output. */
function copyProject(): void {
  const skipped = new Set(['node_modules', 'dist', '.git', 'coverage'])
  cpSync(ROOT, copy, {
    recursive: true,
    filter: path => !skipped.has(relative(ROOT, path).split(sep)[0] ?? ''),
  })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
}

/** Replaces the placeholders of a block by values of this run. */
const withValues = (text: string): string =>
  text
    .replace('npm ci', 'node tools/build.mjs')
    .replaceAll('/path/to/ev', copy)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replaceAll('ev_live_…', seen.key)
    .replaceAll(/job_sbx_\w+/g, seen.job)

/** Replaces what differs between two runs. */
const withoutVariables = (text: string): string =>
  text
    .trim()
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .replaceAll(/job_sbx_\w+/g, 'JOB')
    .replaceAll(/"response_time": ?\d+/g, '"response_time":0')
    .replaceAll(/^( +time +)\d+ ms$/gm, '$1TIME')

/** Parses the output of a block, or the output that the README shows for it. */
function parseOutput(shown: CodeBlock, text = shown.text): unknown {
  const plain = withoutVariables(text)
  return shown.language === 'json' ? JSON.parse(plain) : plain.split(/\r?\n/)
}

/** Splits a block into its command, the line that begins with `$`, and the output below it. */
function split(text: string): [command: string, output: string] {
  const [first = '', ...rest] = text.split('\n')
  expect(first).toMatch(/^\$ /)
  return [first.slice(2), rest.join('\n')]
}

type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Exported variables stay for later blocks, as in a terminal. */
const exported: string[] = []

async function runShell(text: string, cwd: string): Promise<Ran> {
  const script = [...exported, text].join('\n')
  exported.push(...(text.match(/^export .*$/gm) ?? []))
  const child = spawn('bash', ['--norc', '-e', '-o', 'pipefail', '-c', script], {
    cwd,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { code, ...output }
}

/** Starts the service as its own process group, and resolves when it listens. */
async function startService(): Promise<void> {
  const child = spawn('npx', ['ev', 'serve'], {
    cwd: copy,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  service = child
  await new Promise<void>((resolve, reject) => {
    let log = ''
    const check = () => {
      if (seen.key !== '' && log.includes('API documentation:')) resolve()
    }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      seen.key = /ev_live_\w+/.exec(chunk)?.[0] ?? seen.key
      check()
    })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk
      check()
    })
    child.on('close', () => reject(new Error(`the service has stopped: ${log}`)))
  })
}

/** Resolves when the job has ended: a user takes longer than the simulated job. */
async function jobEnd(): Promise<void> {
  const headers = { Authorization: `Bearer ${seen.key}` }
  const url = `http://127.0.0.1:${port}/v1/jobs/${seen.job}?wait=50`
  for (;;) {
    const { status } = (await (await fetch(url, { headers })).json()) as { status: string }
    if (status === 'completed') return
    expect(['queued', 'processing']).toContain(status)
  }
}

let programs = 0

async function runProgram(text: string): Promise<void> {
  const shown = shownOutput(text)
  expect(shown).not.toEqual([])
  const name = `program${++programs}.mjs`
  writeFileSync(join(programFolder, name), withValues(text))
  const { code, stdout, stderr } = await runShell(`node ${name}`, programFolder)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.trim().split('\n')).toEqual(shown)
}
