import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandTree, pathOf } from '../../src/cli/ev-command.ts'
import { SETTING_GROUPS } from '../../src/cli/settings.ts'
import { ENGINE_SETTINGS, SERVE_SETTINGS, SETTINGS } from '../../src/config/settings.ts'
import { emptyFolder, runEv, wholeProgram } from '../support/cli.ts'
import { expectSentence } from '../support/home.ts'

// Each test waits for its own process, so the tests run concurrently.
describe.concurrent('invalid usage', () => {
  test.each([
    ['no command', [], /Usage: ev/],
    [
      'an unknown command',
      ['verfy', 'a@b.example'],
      /^error: Unknown command "ev verfy"\. Did you mean verify\?/,
    ],
    [
      'an unknown flag',
      ['verify', 'a@b.example', '--jsn'],
      /^error: Unknown option "--jsn"\. Did you mean --json\? .*"ev verify --help-all"/,
    ],
    [
      'an option by the name that other programs give it',
      ['verify', 'a@b.example', '--timeout', '5'],
      /Unknown option "--timeout"\. Did you mean --deadline\?/,
    ],
    [
      'an option that is similar only by its letters',
      ['verify', 'a@b.example', '--bort'],
      /^error: Unknown option "--bort"\. To list/,
    ],
    ['help of an unknown command', ['help', 'nosuch'], /^error: Unknown command "ev nosuch"\. Av/],
    [
      'help of a command behind one without subcommands',
      ['help', 'verify', 'bulk'],
      /^error: Unknown command "ev verify bulk"\. To show the help of "ev verify", run "ev verify --help"\./,
    ],
    [
      'an address without a command',
      ['ann@a.test'],
      /^error: Unknown command .* To verify an address, run "ev verify ann@a\.test"\./,
    ],
    [
      'a key without the URL of its service',
      ['--key', 'ev_live_a', 'verify', 'a@b.example'],
      /^error: --key is set, but no service\. Add --url/,
    ],
    ['no option', ['keys', 'create'], /^error: Option "--name <name>" is required\./],
    [
      'an unknown choice',
      ['bulk', 'a.csv', '--format', 'x'],
      /is "x"; it takes one of csv, xlsx, ndj/,
    ],
    ['a spreadsheet as output', ['bulk', 'a.csv', '-o', 'a.ods'], /\.ods is not known/],
    [
      'a flag without its value',
      ['verify', 'a@b.example', '--helo'],
      /Option "--helo <name>" needs a value\./,
    ],
    [
      'two output formats',
      ['verify', 'a@b.example', '--json', '--ndjson'],
      /Options "--ndjson" and "--json" exclude each other\./,
    ],
    [
      'a bad flag value',
      ['verify', 'a@b.example', '--smtp-port', 'x'],
      /^error: --smtp-port is "x"; it takes a whole number from 1 to 65535\.$/m,
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

test('a missing argument or option is answered with the usage and two examples', async () => {
  const address = await runEv(['verify'], { home: emptyFolder(), offline: true })
  expect(address).toMatchObject({ code: 64, stdout: '' })
  expect(address.stderr).toBe(`error: Argument "address" is missing.

Usage: ev verify [options] <address...>

Examples:
  ev verify ann@example.com
  ev verify --explain ann@example.com

To list all options, run "ev verify --help-all".
`)
  const option = await runEv(['keys', 'create'], { home: emptyFolder(), offline: true })
  expect(option.stderr).toMatch(
    /^error: Option "--name <name>" is required\.\n\nUsage: ev keys create .*\n\nExamples:\n {2}ev keys create --name CI\n/,
  )
})

test('a binary file is refused as a list, as feedback and as a source of a list', async () => {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), Buffer.from('89504e470d0a1a0a0000000d', 'hex'))
  const list = await runEv(['bulk', 'list.csv'], { home, offline: true })
  expect(list).toMatchObject({ code: 65, stdout: '' })
  expect(list.stderr).toMatch(
    /^error: The list is a PNG image, not a text file\. A list is CSV, TSV, one address per line or an Excel workbook \(\.xlsx\), also compressed with gzip or ZIP\. .*\n$/,
  )
  const feedback = await runEv(['feedback', 'import', 'list.csv'], { home, offline: true })
  expect(feedback).toMatchObject({ code: 65, stdout: '' })
  expect(feedback.stderr).toMatch(/^error: The file is a PNG image, not a text file\./)
  const lists = ['lists', 'update', 'blocked', 'list.csv', '--blocked-file', 'blocked.txt']
  expect(await runEv(lists, { home, offline: true })).toMatchObject({ code: 65, stdout: '' })
})

describe.concurrent('invalid settings', () => {
  test.each([
    [
      'a variable',
      {},
      { EV_SMTP_PORT: 'x' },
      /^error: EV_SMTP_PORT is "x"; it takes a whole number/,
    ],
    [
      'a config file with an unknown setting',
      { prot: 25 },
      {},
      /^error: "prot" in ev\.config\.json is not a setting of ev\. Did you mean "port"\? /,
    ],
    [
      'an unknown variable',
      {},
      { EV_PROT: '25' },
      /^error: EV_PROT in the environment is not a setting of ev\. Did you mean EV_PORT\? To list all settings, run "ev config --help-all"\./,
    ],
    [
      'a config file with a bad value',
      { helo: 'a b' },
      {},
      /^error: "helo" in ev\.config\.json is "a b"; it takes a host name/,
    ],
    [
      'a config file that is not JSON',
      'helo: x',
      {},
      /^error: The config file ev\.config\.json cannot be read: .* It must be a JSON object\.$/m,
    ],
    ['a config file that is a list', [], {}, /is not an object\. It must be a JSON object\.$/m],
    [
      'a missing config file',
      {},
      { EV_CONFIG: 'mine.json' },
      /^error: EV_CONFIG names mine\.json, which cannot be read: no such file or directory\./,
    ],
    [
      'a missing list of domains',
      {},
      { EV_ALLOW_FILE: 'a.txt' },
      /^error: The list .*a\.txt cannot be read/,
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
    expect(stderr).toMatch(/^error: --smtp-port is "x"[^\n]*\n.*^ {4}at /ms)
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
    'of %s shows examples and common settings; --help-all shows every setting of the engine',
    async command => {
      const { code, stdout } = await runEv(['help', command], { home: emptyFolder() })
      expect(code).toBe(0)
      expect(stdout).toMatch(new RegExp(`Examples:\n  ev ${command} \\S`))
      expect(stdout).toContain('  --config <file>')
      expect(stdout).toContain('  --helo <name>')
      expect(stdout).not.toContain('  --reply-timeout')
      const all = await runEv([command, '--help-all'], { home: emptyFolder() })
      expect(all).toMatchObject({ code: 0, stderr: '' })
      for (const { flag, isSecret } of ENGINE_SETTINGS)
        expect(all.stdout.includes(`  ${flag}`)).toBe(!isSecret)
      for (const { flag } of SERVE_SETTINGS) expect(all.stdout).not.toContain(`  ${flag} `)
    },
  )

  test('has each setting under one heading', () => {
    const keys = SETTING_GROUPS.flatMap(([, group]) => group)
    expect(keys.toSorted()).toEqual(SETTINGS.map(({ key }) => key).toSorted())
  })

  test('breaks a long example so that it can be pasted', async () => {
    const { stdout } = await runEv(['help', 'serve'], { home: emptyFolder(), columns: 60 })
    expect(stdout).toContain(
      '  ev serve --listen 0.0.0.0:443 --tls-cert fullchain.pem \\\n    --tls-key privkey.pem\n',
    )
  })

  test('of a nested command is shown by "ev help" and by its parent', async () => {
    const home = emptyFolder()
    const direct = await runEv(['jobs', 'resume', '--help'], { home })
    expect(await runEv(['help', 'jobs', 'resume'], { home })).toEqual(direct)
    expect(await runEv(['jobs', 'help', 'resume'], { home })).toEqual(direct)
    expect(direct.stdout).toMatch(/^Usage: ev jobs resume /)
  })

  test('shows defaults in the units of the settings', async () => {
    const purge = (await wholeProgram()).commands.find(command => command.name() === 'purge')
    expect(purge?.helpInformation()).toMatch(/--keep-results <days> [^-]*\(default: 30\)/)
  })

  test('describes every command, argument and option in one form', async () => {
    const tree = commandTree(await wholeProgram())
    const described = tree.flatMap(command => [
      ...(command.parent === null ? [] : [[pathOf(command), command.description()] as const]),
      ...[...command.options, ...command.registeredArguments]
        .filter(one => !('hidden' in one && one.hidden))
        .map(one => [`${pathOf(command)} ${one.name()}`, one.description] as const),
    ])
    expect(described.length).toBeGreaterThan(500)
    // A phrase without a period that starts in lower case, or with an acronym or a name.
    const form = /^(?:[a-z]|[A-Z]{2,}[0-9]? |PostgreSQL )(?:[^`“”‘’]*[^`“”‘’.])$/
    for (const [name, text] of described) expect(text, name).toMatch(form)
    for (const command of tree.filter(one => one.name() === 'help')) {
      expect(command.description()).toBe('show the help of a command')
    }
  })

  test('of ev lists its commands, and --version prints the version of the package', async () => {
    const home = emptyFolder()
    expect((await runEv(['--help'], { home })).stdout).toMatch(/verify .*\n +bulk /)
    const version = await runEv(['--version'], { home })
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  test('ev version prints the versions of ev and Node, as text and as JSON', async () => {
    const home = emptyFolder()
    const number = (await runEv(['--version'], { home })).stdout.trim()
    const { code, stdout } = await runEv(['version'], { home })
    expect([code, stdout]).toEqual([
      0,
      `ev ${number} (Node ${process.version}, ${process.platform} ${process.arch})\n`,
    ])
    const json = await runEv(['version', '--json'], { home })
    expect(JSON.parse(json.stdout)).toMatchObject({ version: number, node: process.version })
  })
})
