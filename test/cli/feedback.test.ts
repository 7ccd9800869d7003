import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
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

describe.concurrent('ev feedback report', { timeout: 60_000 }, () => {
  test('says that there is nothing to compare yet', async () => {
    const home = emptyFolder()
    const { code, stdout } = await ev(home, 'report')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^No verdict has a known outcome yet\./)
    expect(JSON.parse((await ev(home, 'report', '--json')).stdout)).toMatchObject({
      ...{ total: { count: 0 }, reasons: [], operators: [] },
    })
  })

  test('has a row for each reason and operator', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'first.csv'), 'email,event\nann@example.com,delivered\n')
    await ev(home, 'import', 'first.csv')
    const database = await openDatabase(`sqlite:${join(home, 'data', 'ev.sqlite')}`, systemClock)
    const count = { account_id: '', period: 0, confidence: 90 }
    await database.db
      .insertInto('feedback_count')
      .values([
        { ...count, reason: 'accepted_email', operator: 'Google', correct: 90, wrong: 10 },
        { ...count, reason: 'catch_all', operator: '', correct: 40, wrong: 60 },
      ])
      .execute()
    await database.close()
    const { stdout } = await ev(home, 'report')
    expect(stdout).toMatch(/^REASON +COUNT +PREDICTED +OBSERVED +BRIER +ECE$/m)
    expect(stdout).toMatch(/^all verdicts +200 +90 % +65 % +0\.290 +0\.250$/m)
    expect(stdout).toMatch(/^accepted_email, Google +100 +90 % +90 % +0\.090 +0\.000$/m)
    expect(stdout).toMatch(/^catch_all, unknown operator +100 +90 % +40 %/m)
    expect(JSON.parse((await ev(home, 'report', '--json')).stdout)).toMatchObject({
      ...{ total: { count: 200, predicted: 0.9, observed: 0.65, calibration_error: 0.25 } },
      reasons: [{ reason: 'accepted_email' }, { reason: 'catch_all' }],
    })
  })
})
