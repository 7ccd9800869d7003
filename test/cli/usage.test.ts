import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { program } from '../../src/cli/program.ts'
import { ENGINE_SETTINGS, SERVE_SETTINGS } from '../../src/config/settings.ts'
import { emptyFolder, memoryContext, type Ran, runEv } from '../support/cli.ts'

/** Expects a message on stderr without a stack, and nothing on stdout. */
function expectSentence({ stdout, stderr }: Ran, about: RegExp): void {
  expect(stderr).toMatch(about)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(stdout).toBe('')
}

// Each test waits for its own process, so the tests run concurrently.
describe.concurrent('invalid usage', () => {
  test.each([
    ['no command', [], /Usage: ev/],
    [
      'an unknown command',
      ['verfy', 'a@b.example'],
      /unknown command 'verfy'[\s\S]*Did you mean verify/,
    ],
    ['an unknown flag', ['verify', 'a@b.example', '--jsn'], /unknown option '--jsn'[\s\S]*--json/],
    ['no address', ['verify'], /missing required argument 'address'[\s\S]*ev help/],
    ['no output', ['bulk', 'list.csv'], /required option '-o, --output <file>'/],
    ['a flag without its value', ['verify', 'a@b.example', '--helo'], /--helo <NAME>.*missing/],
    ['two output formats', ['verify', 'a@b.example', '--json', '--ndjson'], /--ndjson.*--json/],
    [
      'a bad flag value',
      ['verify', 'a@b.example', '--smtp-port', 'x'],
      /^ev: --smtp-port is "x"; it takes a whole number from 1 to 65535\.$/m,
    ],
    [
      'a bad --include',
      ['verify', 'a@b.example', '--include', 'all'],
      /--include has "all"; it takes flags, evidence or both\./,
    ],
    [
      'a bad list of ranges',
      ['verify', 'a@b.example', '--allow-ranges', 'lan'],
      /--allow-ranges is "lan"; it takes IP addresses or CIDRs/,
    ],
  ])('%s exits with 64 and a remedy', async (_, args, about) => {
    const ran = await runEv(args, { home: emptyFolder(), offline: true })
    expect(ran.code).toBe(64)
    expectSentence(ran, about)
  })
})

describe.concurrent('invalid settings', () => {
  test.each([
    ['a variable', {}, { EV_SMTP_PORT: 'x' }, /^ev: EV_SMTP_PORT is "x"; it takes a whole number/],
    [
      'a config file with an unknown setting',
      { port: 25 },
      {},
      /^ev: "port" in ev\.config\.json is not a setting of ev\. /,
    ],
    [
      'a config file with a bad value',
      { helo: 'a b' },
      {},
      /^ev: "helo" in ev\.config\.json is "a b"; it takes a host name/,
    ],
    [
      'a config file that is not JSON',
      'helo: x',
      {},
      /^ev: The config file ev\.config\.json cannot be read: .* It must be a JSON object\.$/m,
    ],
    ['a config file that is a list', [], {}, /is not an object\. It must be a JSON object\.$/m],
    [
      'a missing config file',
      {},
      { EV_CONFIG: 'mine.json' },
      /^ev: EV_CONFIG names mine\.json, which does not exist\./,
    ],
    [
      'a missing list of domains',
      {},
      { EV_ALLOW_FILE: 'a.txt' },
      /^ev: The list .*a\.txt cannot be read/,
    ],
  ] as [string, unknown, Record<string, string>, RegExp][])(
    '%s exits with 78 and a message',
    async (_, file, environment, about) => {
      const home = emptyFolder()
      const text = typeof file === 'string' ? file : JSON.stringify(file)
      writeFileSync(join(home, 'ev.config.json'), text)
      const args = ['verify', 'valid@x.example', '--sandbox']
      const ran = await runEv(args, { home, environment, offline: true })
      expect(ran.code).toBe(78)
      expectSentence(ran, about)
    },
  )

  test('--debug adds the stack to the message', async () => {
    const args = ['verify', 'a@b.example', '--smtp-port', 'x', '--debug']
    const { stderr, code } = await runEv(args, { home: emptyFolder() })
    expect(code).toBe(64)
    expect(stderr).toMatch(/^ev: --smtp-port is "x"[^\n]*\n.*^ {4}at /ms)
  })

  test('a flag wins over the environment, the environment over the file; --config names another file', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'other.json'), JSON.stringify({ helo: 'a b' }))
    const run = (args: string[], environment: Record<string, string>) =>
      runEv(['verify', 'valid@x.example', '--sandbox', ...args], {
        home,
        environment,
        offline: true,
      })
    const named = ['--config', 'other.json']
    expect(await run(named, {})).toMatchObject({ code: 78 })
    expect(await run(named, { EV_HELO: 'probe.example.com' })).toMatchObject({ code: 0 })
    expect(await run([...named, '--helo', 'probe.example.com'], { EV_HELO: 'b c' })).toMatchObject({
      code: 0,
    })
  })

  test('the config file of the user applies if the folder has none', async () => {
    const home = emptyFolder()
    mkdirSync(join(home, 'settings/ev'), { recursive: true })
    writeFileSync(join(home, 'settings/ev/ev.config.json'), '{"helo":"a b"}')
    const environment = { XDG_CONFIG_HOME: join(home, 'settings') }
    const ran = await runEv(['verify', 'valid@x.example', '--sandbox'], { home, environment })
    expect(ran.code).toBe(78)
    expectSentence(ran, /settings\/ev\/ev\.config\.json is "a b"/)
  })
})

describe.concurrent('help', () => {
  test.each(['verify', 'bulk', 'doctor'])(
    'of %s shows examples and every setting of the engine, and none of the service',
    async command => {
      const { code, stdout } = await runEv(['help', command], { home: emptyFolder() })
      expect(code).toBe(0)
      expect(stdout).toMatch(new RegExp(`Examples:\n  ev ${command} \\S`))
      for (const { flag } of ENGINE_SETTINGS) expect(stdout).toContain(`  ${flag}`)
      for (const { flag } of SERVE_SETTINGS) expect(stdout).not.toContain(`  ${flag} `)
      expect(stdout).toContain('  --config <FILE>')
    },
  )

  test('shows defaults in the units of the settings', () => {
    const purge = program(memoryContext({ home: tmpdir() }).context, () => {}).commands.find(
      command => command.name() === 'purge',
    )
    expect(purge?.helpInformation()).toMatch(/--keep-results <D> [^-]*\(default: 30\)/)
  })

  test('exists for every command and subcommand, with an example', async () => {
    const home = emptyFolder()
    const below = program(memoryContext({ home: tmpdir() }).context, () => {}).commands.flatMap(
      command => [
        ['help', command.name()],
        ...command.commands.map(one => [command.name(), one.name(), '--help']),
      ],
    )
    expect(below.length).toBeGreaterThan(10)
    for (const args of below) {
      const { code, stdout, stderr } = await runEv(args, { home, offline: true })
      expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' })
      expect(stdout, args.join(' ')).toMatch(new RegExp(`Examples:\\n  .*ev ${nameOf(args)}`))
    }
  }, 60_000)

  test('of ev lists its commands, and --version prints the version of the package', async () => {
    const home = emptyFolder()
    expect((await runEv(['--help'], { home })).stdout).toMatch(/verify .*\n +bulk /)
    const version = await runEv(['--version'], { home })
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})

const nameOf = (args: readonly string[]) =>
  args.filter(word => !/^(help|--help)$/.test(word)).join(' ')
