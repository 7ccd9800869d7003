import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../support/cli.ts'

const ev = (home: string, ...args: string[]) =>
  runEv(['feedback', ...args, '--data-dir', 'data'], { home, offline: true })

const POSTFIX = new URL('../../fixtures/feedback/postfix-failed.eml', import.meta.url)

describe.concurrent('ev feedback import', { timeout: 60_000 }, () => {
  test('reads a CSV file, and counts it once', async () => {
    const home = emptyFolder()
    const rows = 'email,event,time\nann@example.com,bounce,2026-11-01\nx,bounce,2026-11-01\n'
    writeFileSync(join(home, 'events.csv'), `${rows}bob@example.com,open-rate,2026-11-01\n`)
    const first = await ev(home, 'import', 'events.csv')
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toMatch(
      /^Recorded 1 piece of feedback\.\n1 piece rejected: The address is invalid: .*\n1 row or message without feedback\.\n$/,
    )
    expect(JSON.parse((await ev(home, 'import', 'events.csv', '--json')).stdout)).toMatchObject({
      ...{ recorded: 0, duplicates: 1, rejected: 1, ignored: 1 },
    })
  })

  test('reads the messages of a Maildir', async () => {
    const home = emptyFolder()
    for (const folder of ['cur', 'new', 'tmp']) {
      mkdirSync(join(home, 'Maildir', folder), { recursive: true })
      copyFileSync(POSTFIX, join(home, 'Maildir', folder, '1.host:2,S'))
    }
    const { stdout } = await ev(home, 'import', 'Maildir', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ recorded: 2, duplicates: 2, ignored: 0 })
  })

  test('says what cannot be read', async () => {
    const home = emptyFolder()
    const missing = await ev(home, 'import', 'none.csv')
    expect(missing).toMatchObject({ code: 66 })
    expect(missing.stderr).toMatch(/^error: none\.csv cannot be read/)
    const kind = await ev(home, 'import', 'none.csv', '--kind', 'opened')
    expect(kind).toMatchObject({ code: 64 })
    expect(kind.stderr).toContain('it takes delivered, bounced, complained')
  })
})
