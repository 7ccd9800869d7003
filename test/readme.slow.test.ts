import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SimulatorProcess, startSimulatorProcess } from '../src/simulator/simulator-process.ts'
import { emptyFolder } from './support/home.ts'
import {
  type CodeBlock,
  codeBlocks,
  codeBlocksOf,
  ROOT,
  sectionOf,
  shownOutput,
} from './support/markdown.ts'
import { Terminal } from './support/terminal.ts'

// Follows the README as a new user does: in a fresh clone, with an empty home directory and without
// the programs of this project in PATH. After the first steps, each row of the table "I want to …"
// is followed to its page, whose first commands are run as printed. Mail servers are simulated: the
// environment sets their addresses. Only `npm ci` is not run, because tests do not download
// packages: the clone uses the packages of this project.

const folder = emptyFolder()
const clone = join(folder, 'ev')
/** Where `npm link` installs `ev`. */
const firstHome = join(folder, 'home')
const terminals: Terminal[] = []
let simulator: SimulatorProcess

beforeAll(async () => {
  createClone()
  mkdirSync(firstHome)
  simulator = await startSimulatorProcess(join(ROOT, 'fixtures/simulator/demo.json'))
})

afterAll(async () => {
  for (const terminal of terminals) await terminal.close()
  await simulator.close()
})

/** A row of the table: its link, and the command to start with. */
type Row = { readonly goal: string; readonly link: string; readonly command: string }

const rows = [
  ...sectionOf('README.md', 'I want to …').matchAll(/^\| \[(.+?)\]\((.+?)\) \| `(.+?)`/gm),
].map(([, goal = '', link = '', command = '']): Row => ({ goal, link, command }))

/** Where the first commands of a row are, and what a new user does with them. */
const PATHS: Readonly<Record<string, { section: [page: string, heading: string]; run: Follow }>> = {
  'docs/cli.md#lists': { section: ['README.md', 'Clean a list'], run: runBlocks },
  'docs/dashboard.md#quick-start': {
    section: ['docs/dashboard.md', 'Quick start'],
    run: tryDashboard,
  },
  'docs/api.md#quick-start': { section: ['docs/api.md', 'Quick start'], run: runBlocks },
  'docs/forms.md#quick-start': { section: ['docs/forms.md', 'Quick start'], run: tryForm },
  'docs/mcp.md': { section: ['docs/mcp.md', ''], run: tryAgent },
  'docs/service.md#quick-start': { section: ['docs/service.md', 'Quick start'], run: runBlocks },
  'docs/simulator.md#quick-start': {
    section: ['docs/simulator.md', 'Quick start'],
    run: runBlocks,
  },
  'docs/engine.md#quick-start': { section: ['docs/engine.md', 'Quick start'], run: runBlocks },
}

type Follow = (terminal: Terminal, blocks: readonly CodeBlock[]) => Promise<void>

describe('the first steps of the README', () => {
  test('run the demo, which prints the verdict that is shown', async () => {
    const terminal = await openTerminal(clone, firstHome)
    const [command, shown] = codeBlocksOf(sectionOf('README.md', 'Try it'))
    const { code, stdout } = await terminal.run(inClone(command))
    expect(code, stdout).toBe(0)
    expect(withoutVariables(stdout)).toContain(withoutVariables(shown?.text ?? ''))
  })

  test('make ev a command of every folder', async () => {
    const section = sectionOf('README.md', 'Install')
    const [, prefix = ''] = /`(npm config set prefix \S+)`/.exec(section) ?? []
    const terminal = await openTerminal(clone, firstHome)
    expect(await terminal.run(prefix)).toMatchObject({ code: 0 })
    const [command] = codeBlocksOf(section)
    const linked = await terminal.run(inClone(command))
    expect(linked, linked.stderr).toMatchObject({ code: 0, stderr: '' })
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const ran = await (await openTerminal(folder, firstHome)).run('ev --version')
    expect(ran).toMatchObject({ code: 0, stdout: `${version}\n` })
  })
})

test('the table of the README has eight goals, each with a page that starts with its command', () => {
  expect(rows.map(({ link }) => link)).toEqual(Object.keys(PATHS))
  for (const { link, command } of rows) {
    const { page, text } = readSection(link)
    expect(text, `${page} shows ${command}`).toContain(command)
  }
})

describe('a new user who wants to', () => {
  test.each(rows)('$goal', async ({ link }) => {
    const home = emptyFolder()
    const terminal = await openTerminal(home, home)
    await PATHS[link]?.run(terminal, codeBlocksOf(readSection(link).text))
    await terminal.close()
  })
})

test('the examples of docs/engine.md print what they show', async () => {
  const home = emptyFolder()
  const terminal = await openTerminal(home, home)
  await runBlocks(terminal, codeBlocks('docs/engine.md'))
  await terminal.close()
})

/** Builds what `npm ci` builds, without the download. */
const inClone = (block: CodeBlock | undefined): string =>
  (block?.text ?? '').replace('npm ci', 'node tools/build.mjs --if-changed')

function readSection(link: string): { page: string; text: string } {
  const [page = '', heading = ''] = PATHS[link]?.section ?? []
  const text = heading === '' ? readFileSync(join(ROOT, page), 'utf8') : sectionOf(page, heading)
  return { page, text }
}

/** Runs blocks in their order, and compares their output with the one that is shown. */
async function runBlocks(terminal: Terminal, blocks: readonly CodeBlock[]): Promise<void> {
  for (const [at, { language, text }] of blocks.entries()) {
    if (OUTPUTS.has(language)) continue
    const next = blocks[at + 1]
    const shown = next !== undefined && OUTPUTS.has(next.language) ? next : null
    if (language === 'js') await runProgram(terminal, text)
    else if (language === 'sh') await runCommands(terminal, text, shown)
    else throw new Error(`A block of the language "${language}" is not run: ${text}`)
  }
}

const OUTPUTS = new Set(['json', 'csv', 'text'])

/** Commands that run until Ctrl-C, and what they print when they are ready. */
const SERVERS: readonly [command: RegExp, ready: RegExp][] = [
  [/^ev serve\b/, /API documentation:/],
  [/^ev simulate\b/, /Try it:/],
]

async function runCommands(terminal: Terminal, text: string, shown: CodeBlock | null) {
  const ready = SERVERS.find(([command]) => command.test(text))?.[1]
  if (ready !== undefined) return terminal.start(text, ready)
  const isInClone = text.startsWith('npm run ')
  const { code, stdout, stderr } = await terminal.run(
    isInClone ? `cd ${clone} && ${text}` : text.replaceAll('/path/to/ev', clone),
  )
  // The doctor reports that the simulated network has no public address.
  expect(text === 'ev doctor' ? [0, 1] : [0], `${text}\n${stdout}${stderr}`).toContain(code)
  expect(stdout, text).not.toContain('"success":false')
  if (shown === null) return
  const [found, expected] = [withoutVariables(stdout), withoutVariables(shown.text)]
  if (shown.language === 'json') expect(JSON.parse(found)).toEqual(JSON.parse(expected))
  else if (shown.language === 'csv') expect(found.split(/\r?\n/)).toEqual(expected.split('\n'))
  else expect(found).toContain(expected)
}

async function runProgram(terminal: Terminal, text: string): Promise<void> {
  const shown = shownOutput(text)
  expect(shown).not.toEqual([])
  writeFileSync(join(terminal.folder, 'program.mjs'), text)
  const { code, stdout, stderr } = await terminal.run('node program.mjs')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.trim().split('\n')).toEqual(shown)
}

/** Signs in with the key that the demo prints, and verifies the address that the page names. */
async function tryDashboard(terminal: Terminal, [demo]: readonly CodeBlock[]): Promise<void> {
  await terminal.start(`cd ${clone} && ${demo?.text}`, /ev_live_\w+/)
  const url = terminal.withValues('http://127.0.0.1:8080')
  const body = new URLSearchParams({ key: terminal.key, next: '/overview' })
  const signedIn = await fetch(`${url}/sign-in`, { method: 'POST', body, redirect: 'manual' })
  expect(signedIn.status).toBe(303)
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  const overview = await fetch(`${url}/overview`, { headers: { cookie } })
  expect(await overview.text()).toContain('Overview')
  const [, email = ''] =
    /enter `(\S+@\S+)`/.exec(sectionOf('docs/dashboard.md', 'Quick start')) ?? []
  const verified = await fetch(`${url}/v1/verify/single`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${terminal.key}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ email }),
  })
  expect(await verified.json()).toMatchObject({ class: 'deliverable' })
}

/** Runs the commands, and loads the script of the page from the service. */
async function tryForm(terminal: Terminal, blocks: readonly CodeBlock[]): Promise<void> {
  const isPage = ({ language }: CodeBlock) => language === 'html'
  await runBlocks(
    terminal,
    blocks.filter(block => !isPage(block)),
  )
  const [, src = ''] = /src="(\S+)"/.exec(blocks.find(isPage)?.text ?? '') ?? []
  const script = await fetch(terminal.withValues(src))
  expect(script.headers.get('content-type')).toMatch(/^text\/javascript/)
}

/** Configures the server as an application does, and calls its tool. */
async function tryAgent(terminal: Terminal, blocks: readonly CodeBlock[]): Promise<void> {
  const { text = '{}' } = blocks.find(block => block.text.includes('"mcpServers"')) ?? {}
  const { mcpServers } = JSON.parse(terminal.withValues(text).replaceAll('/path/to/ev', clone))
  const { command, args } = mcpServers.ev
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({ command, args, env: { ...terminal.environment } }),
  )
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('verify')
  const email = 'anna.moreau@northwind-tea.example'
  const answer = await client.callTool({ name: 'verify', arguments: { email } })
  expect(JSON.stringify(answer)).toContain('deliverable')
  await client.close()
}

/** Copies what a clone contains: files that git ignores, such as build output, are not in one. */
function createClone(): void {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1e8 })
  const paths = stdout.split('\0').filter(path => path !== '')
  expect(paths.length).toBeGreaterThan(1_000)
  for (const path of paths) {
    mkdirSync(dirname(join(clone, path)), { recursive: true })
    cpSync(join(ROOT, path), join(clone, path))
  }
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
}

/** Replaces what differs between two runs. */
const withoutVariables = (text: string): string =>
  text
    .trim()
    .replaceAll(/"response_time": ?\d+/g, '"response_time":0')
    .replaceAll(/^( +time +)\d+ ms$/gm, '$1TIME')

/** Opens a terminal without the programs of this project: only `npm link` adds one to its PATH. */
async function openTerminal(cwd: string, home: string): Promise<Terminal> {
  const paths = (process.env.PATH ?? '').split(delimiter)
  const terminal = await Terminal.open({
    folder: cwd,
    environment: {
      PATH: [
        join(firstHome, '.local/bin'),
        ...paths.filter(path => !/node_modules/.test(path)),
      ].join(delimiter),
      HOME: home,
      EV_DNS: simulator.dnsAddress,
      EV_SMTP_PORT: String(simulator.smtpPort),
      EV_ALLOW_RANGES: '127.0.0.0/8',
      EV_SPECIAL_DOMAINS: 'on',
      EV_HELO: 'probe.example.com',
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
    },
  })
  terminals.push(terminal)
  return terminal
}
