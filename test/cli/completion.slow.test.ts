import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { program } from '../../src/cli/run.ts'
import { memoryContext } from '../support/cli.ts'
import { EV, emptyFolder, runEv } from '../support/ev-process.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
const scripts = {} as Record<(typeof SHELLS)[number], string>
beforeAll(async () => {
  const home = emptyFolder()
  for (const shell of SHELLS) {
    const { code, stdout, stderr } = await runEv(['completion', shell], { home, offline: true })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    scripts[shell] = stdout
  }
})

/** Returns the completions of bash for the last word, in a folder with a few files. */
function offered(words: readonly string[], home = folderWithFiles()): string[] {
  const script = `
    ${scripts.bash}
    ev() { "$NODE" "$EV" "$@"; }
    COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')})
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _ev
    printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, EV_DATA_DIR: 'data', NODE: process.execPath, EV },
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout.split('\n').filter(line => line !== '')
}

function folderWithFiles(): string {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), '')
  writeFileSync(join(home, 'my list.csv'), '')
  mkdirSync(join(home, 'lists'))
  return home
}

describe('bash', () => {
  test('completes commands, subcommands and the arguments of help', () => {
    const commands = program(memoryContext({ home: tmpdir() }).context, () => {}).commands.map(
      command => command.name(),
    )
    expect(commands.length).toBeGreaterThan(5)
    expect(offered(['ev', ''])).toEqual(commands)
    expect(offered(['ev', 'pu'])).toEqual(['purge'])
    expect(offered(['ev', 'jobs', ''])).toEqual([
      ...[
        'list',
        'show',
        'resume',
        'finish',
        'cancel',
        'delete',
        'download-url',
        'reverify',
        'changes',
      ],
      'help',
    ])
    expect(offered(['ev', 'help', 'co'])).toEqual(['config', 'completion'])
    expect(offered(['ev', 'completion', ''])).toEqual([...SHELLS, 'powershell'])
  })

  test('completes the options of the current command only', () => {
    expect(offered(['ev', 'bulk', '--sp'])).toEqual(
      expect.arrayContaining(['--split', '--special-domains']),
    )
    expect(offered(['ev', 'verify', '--spl'])).toEqual([])
    expect(offered(['ev', 'verify', 'a@b.example', '--js'])).toEqual(['--json'])
    expect(offered(['ev', 'jobs', 'show', '--j'])).toEqual(['--json'])
  })

  test('completes files and folders, also with spaces in their names', () => {
    expect(offered(['ev', 'bulk', 'l']).sort()).toEqual(['list.csv', 'lists'])
    expect(offered(['ev', 'bulk', 'my'])).toEqual(['my list.csv'])
    expect(offered(['ev', 'bulk', 'list.csv', '-o', 'l']).sort()).toEqual(['list.csv', 'lists'])
    expect(offered(['ev', 'verify', '--allow-file', 'li']).sort()).toEqual(['list.csv', 'lists'])
    expect(offered(['ev', 'bulk', '--data-dir', 'l'])).toEqual(['lists'])
  })

  test('completes the choices of an option, and nothing for free text', () => {
    expect(offered(['ev', 'bulk', '--format', ''])).toEqual(['csv', 'xlsx', 'ndjson', 'json'])
    expect(offered(['ev', 'verify', '--cache', 'o'])).toEqual(['on', 'off'])
    expect(offered(['ev', 'verify', '--helo', ''])).toEqual([])
    expect(offered(['ev', 'verify', ''])).toEqual([])
  })

  test('completes IDs of jobs', async () => {
    const home = emptyFolder()
    expect(offered(['ev', 'jobs', 'show', ''], home)).toEqual([])
    writeFileSync(join(home, 'list.csv'), 'valid@x.example\n')
    await runEv(['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', '--data-dir', 'data'], { home })
    expect(offered(['ev', 'jobs', 'show', 'job_'], home)).toEqual([
      expect.stringMatching(/^job_[a-z0-9]{16}$/),
    ])
  })

  test('completes IDs of webhooks', async () => {
    const home = emptyFolder()
    expect(offered(['ev', 'webhooks', 'test', ''], home)).toEqual([])
    const make = (...args: string[]) => runEv([...args, '--data-dir', 'data'], { home })
    await make('accounts', 'create', '--name', 'Shop')
    const to = ['--url', 'https://127.0.0.1/hook', '--webhook-allow-ranges', '127.0.0.1']
    await make('webhooks', 'create', '--events', '*', ...to)
    expect(offered(['ev', 'webhooks', 'test', 'wh_'], home)).toEqual([
      expect.stringMatching(/^wh_[a-z0-9]{16}$/),
    ])
    expect(offered(['ev', 'webhooks', 'deliveries', '--status', 'f'])).toEqual(['failed'])
  })
})

describe('every shell', () => {
  const installed = SHELLS.filter(shell => spawnSync(shell, ['-c', 'true']).status === 0)
  test.each(installed)('%s parses its script', shell => {
    const file = join(emptyFolder(), 'script')
    writeFileSync(file, scripts[shell])
    const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})
