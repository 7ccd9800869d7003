import { describe, expect, test } from 'vitest'
import { commandTree, pathOf } from '../../src/cli/ev-command.ts'
import { emptyFolder, runEv, wholeProgram } from '../support/cli.ts'

/** Returns what is offered for the last word: its kind, and the words before their descriptions. */
async function offered(
  words: readonly string[],
  options: Partial<Parameters<typeof runEv>[1]> = {},
): Promise<string[]> {
  const [current = '', ...before] = [words.at(-1), ...words.slice(0, -1)]
  const ran = await runEv(['__complete', `=${current}`, ...before], {
    home: emptyFolder(),
    offline: true,
    ...options,
  })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  return ran.stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t')[0] ?? '')
}

test('offers every command and every option that help shows', async () => {
  for (const command of commandTree(await wholeProgram())) {
    const path = pathOf(command).split(' ').slice(1)
    const options = command.options.filter(({ hidden }) => !hidden)
    expect(await offered([...path, '--'])).toEqual([
      'words',
      ...options.map(({ long }) => long),
      '--help',
    ])
    if (command.commands.length === 0) continue
    const names = command.commands.map(one => one.name())
    expect(await offered([...path, ''])).toEqual(['words', ...names])
    expect(await offered(['help', ...path, ''])).toEqual(['words', ...names])
  }
})

test.each([
  [['pu'], ['words', 'purge']],
  [
    ['--url', 'https://ev.example.com', 'pu'],
    ['words', 'purge'],
  ],
  [
    ['jobs', 'sh'],
    ['words', 'show'],
  ],
  [
    ['bulk', '--format', ''],
    ['words', 'csv', 'xlsx', 'ndjson', 'json'],
  ],
  [
    ['bulk', 'list.csv', '--format', 'x'],
    ['words', 'xlsx'],
  ],
  [
    ['completion', ''],
    ['words', 'bash', 'zsh', 'fish', 'powershell'],
  ],
  [
    ['verify', '--cache', 'o'],
    ['words', 'on', 'off'],
  ],
  [
    ['accounts', 'set-admin', 'Shop', ''],
    ['words', 'on', 'off'],
  ],
  [
    ['people', 'require-two-factor', ''],
    ['words', 'on', 'off'],
  ],
  [
    ['webhooks', 'deliveries', '--status', 'f'],
    ['words', 'failed'],
  ],
  [['bulk', ''], ['files']],
  [['bulk', 'list.csv', '-o', 'l'], ['files']],
  [['bulk', '--data-dir', 'l'], ['folders']],
  [['lists', 'update', 'role', 'a.txt', 'b'], ['words']],
  [['verify', '--helo', ''], ['words']],
  [['verify', ''], ['words']],
  [['nosuch', ''], ['words']],
])('ev %j: %j', async (words, expected) => {
  expect(await offered(words)).toEqual(expected)
})

test('offers the IDs of accounts, keys, webhooks and jobs, and nothing without a database', async () => {
  const home = emptyFolder()
  const environment = { EV_DATA_DIR: 'data' }
  const ev = (...args: string[]) => runEv([...args], { home, environment })
  const ids = (...words: string[]) => offered([...words, ''], { home, environment })
  expect(await ids('keys', 'rotate')).toEqual(['words'])
  await ev('accounts', 'create', '--name', 'Shop')
  await ev('keys', 'create', '--name', 'CI')
  const to = ['--url', 'https://127.0.0.1/hook', '--webhook-allow-ranges', '127.0.0.1']
  await ev('webhooks', 'create', '--events', '*', ...to)
  await runEv(['bulk', '-', '--sandbox', '-o', 'out.csv'], {
    home,
    environment,
    stdin: 'valid@x.example\n',
  })
  expect(await ids('keys', 'rotate')).toEqual(['words', expect.stringMatching(/^key_\w{16}$/)])
  expect(await ids('jobs', 'show')).toEqual(['words', expect.stringMatching(/^job_\w{16}$/)])
  expect(await ids('webhooks', 'test')).toEqual(['words', expect.stringMatching(/^wh_\w{16}$/)])
  const account = ['words', expect.stringMatching(/^acc_\w{16}$/)]
  expect(await ids('accounts', 'set-plan')).toEqual(account)
  expect(await ids('keys', 'list', '--account')).toEqual(account)
})

describe('ev completion', () => {
  test('lists the shells after an unknown one', async () => {
    const ran = await runEv(['completion', 'csh'], { home: emptyFolder() })
    expect(ran).toMatchObject({ code: 64, stdout: '' })
    expect(ran.stderr).toMatch(/"shell" is "csh"; it takes one of bash, zsh, fish, powershell/)
  })

  test('the PowerShell script has its brackets in pairs', async () => {
    const { stdout } = await runEv(['completion', 'powershell'], { home: emptyFolder() })
    const brackets = (open: string, close: string) =>
      stdout.split(open).length - stdout.split(close).length
    expect([brackets('{', '}'), brackets('(', ')'), brackets('[', ']')]).toEqual([0, 0, 0])
    expect(stdout).toContain('ev __complete "=$wordToComplete" @before')
  })
})
