import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
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
  test('completes commands, options and choices', () => {
    expect(offered(['ev', 'pu'])).toEqual(['purge'])
    expect(offered(['ev', 'jobs', 'show', '--j'])).toEqual(['--json'])
    expect(offered(['ev', 'bulk', '--format', ''])).toEqual(['csv', 'xlsx', 'ndjson', 'json'])
    expect(offered(['ev', 'verify', ''])).toEqual([])
  })

  test('completes files and folders, also with spaces in their names', () => {
    expect(offered(['ev', 'bulk', 'l']).sort()).toEqual(['list.csv', 'lists'])
    expect(offered(['ev', 'bulk', 'my'])).toEqual(['my list.csv'])
    expect(offered(['ev', 'bulk', '--data-dir', 'l'])).toEqual(['lists'])
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
