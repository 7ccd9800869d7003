import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')
const clock = { ...(await import('../../../src/platform/clock.ts')).systemClock, now: () => NOW }

const HEADER = 'Email Address,ZB Status,ZB Sub Status,ZB Processed At'

/** Runs `ev bulk --sandbox`, in which `valid…` and `invalid…` are what ev itself finds. */
async function bulk(list: string, args: readonly string[] = []) {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), list)
  const run = await runEv(['bulk', 'list.csv', '--sandbox', '--data-dir', 'data', ...args], {
    home,
    context: { clock },
  })
  return { run, home, rows: () => rowsIn(join(home, 'list.verified.csv')) }
}

describe.concurrent('ev bulk --keep-external', () => {
  test('keeps recent results, marked as those of the service, and verifies the rest', async () => {
    const { run, rows } = await bulk(
      [
        HEADER,
        'invalid1@x.example,valid,,2026-05-20 10:00:00.123',
        'valid2@x.example,invalid,mailbox_not_found,2026-05-20',
        'valid3@x.example,valid,,2026-02-20',
        'valid4@x.example,unknown,greylisted,2026-04-20',
        'valid5@x.example,do_not_mail,disposable,2026-05-20',
        'invalid6@x.example,,,',
        'not an address,valid,,2026-05-20',
        '',
      ].join('\n'),
      ['--keep-external'],
    )
    expect(run.code).toBe(0)
    expect(rows().map(row => [row.ev_class, row.ev_reason, row.ev_checked_by])).toEqual([
      ['deliverable', 'external_deliverable', 'zerobounce'],
      ['undeliverable', 'external_undeliverable', 'zerobounce'],
      ['deliverable', 'accepted_email', 'sandbox'],
      ['deliverable', 'accepted_email', 'sandbox'],
      ['risky', 'external_do_not_mail', 'zerobounce'],
      ['undeliverable', 'rejected_email', 'sandbox'],
      ['undeliverable', 'invalid_email', 'sandbox'],
    ])
    expect(rows()[0]).toMatchObject({
      ev_checked_at: '2026-05-20T10:00:00.123Z',
      ev_smtp_valid: 'false',
      ev_domain_exists: 'false',
      ev_action: 'send_with_care',
      ev_confidence: '50',
    })
    const stderr = run.stderr.replace(/\s+/g, ' ')
    expect(stderr).toContain('3 rows keep the result of ZeroBounce; ev has not tested them.')
    expect(stderr).toContain('2 results are too old, so their rows are verified.')
  })

  test('keeps nothing without a date, and says what to do', async () => {
    const list = 'email,email_status\ninvalid1@x.example,valid\n'
    const { run, rows } = await bulk(list, ['--keep-external'])
    expect(rows()).toMatchObject([{ ev_reason: 'rejected_email', ev_checked_by: 'sandbox' }])
    const stderr = run.stderr.replace(/\s+/g, ' ')
    expect(stderr).toContain('0 rows keep the result of NeverBounce')
    expect(stderr).toContain('1 result has no date that ev can read')
    expect(stderr).toContain('--external-date says when the export was made')
  })

  test('takes the age from --external-date where the list has none', async () => {
    const list = 'email,email_status\ninvalid1@x.example,valid\n'
    const kept = await bulk(list, ['--keep-external', '--external-date', '2026-05-01'])
    expect(kept.rows()).toMatchObject([
      { ev_reason: 'external_deliverable', ev_checked_at: '2026-05-01T00:00:00.000Z' },
    ])
    const old = await bulk(list, ['--keep-external', '--external-date', '2026-01-01'])
    expect(old.rows()).toMatchObject([{ ev_reason: 'rejected_email' }])
    const longer = ['--external-max-age', '365']
    const allowed = await bulk(list, [
      ...['--keep-external', '--external-date', '2026-01-01', ...longer],
    ])
    expect(allowed.rows()).toMatchObject([{ ev_reason: 'external_deliverable' }])
  })

  test('does not believe a date in the future', async () => {
    const list = `${HEADER}\ninvalid1@x.example,valid,,2027-01-01\n`
    const { rows } = await bulk(list, ['--keep-external'])
    expect(rows()).toMatchObject([{ ev_reason: 'rejected_email' }])
  })

  test('gives duplicates the result of their first row', async () => {
    const { run, rows } = await bulk(
      `${HEADER}\nvalid1@x.example,invalid,,2026-05-20\nvalid1@X.example,,,\n`,
      ['--keep-external', '--json'],
    )
    expect(rows().map(row => row.ev_reason)).toEqual([
      'external_undeliverable',
      'external_undeliverable',
    ])
    expect(JSON.parse(run.stdout)).toMatchObject({ undeliverable: 2 })
  })

  test('reads an export that ev wrote in the words of the service', async () => {
    const { home } = await bulk('email\nvalid1@x.example\n', ['--vocabulary', 'neverbounce'])
    const again = await runEv(
      ['bulk', 'list.verified.csv', '--sandbox', '--data-dir', 'data', '--keep-external'],
      { home, context: { clock } },
    )
    // What was simulated is not kept.
    expect(again.stderr.replace(/\s+/g, ' ')).toContain('0 rows keep the result of NeverBounce')
  })

  test('is offered, and not done, for a list with such results', async () => {
    const { run, rows } = await bulk(`${HEADER}\ninvalid1@x.example,valid,,2026-05-20\n`)
    expect(rows()).toMatchObject([{ ev_reason: 'rejected_email', ev_checked_by: 'sandbox' }])
    expect(run.stderr.replace(/\s+/g, ' ')).toContain('add --keep-external')
  })

  test('says that a list has no such results', async () => {
    const { run } = await bulk('email,status\nvalid1@x.example,valid\n', ['--keep-external'])
    expect(run.stderr.replace(/\s+/g, ' ')).toContain('every row is verified')
  })

  test.each([
    [['--keep-external', '--external-date', '03/04/2026'], 'it takes a date such as 2026-03-01'],
    [['--external-date', '2026-03-01'], 'needs --keep-external'],
  ])('refuses %j before any work', async (args, message) => {
    const { run } = await bulk('email\nvalid1@x.example\n', args)
    expect(run.code).toBe(64)
    expect(run.stderr.replace(/\s+/g, ' ')).toContain(message)
  })

  test('writes the other service into the columns of a vocabulary', async () => {
    const { rows } = await bulk(`${HEADER}\ninvalid1@x.example,valid,,2026-05-20\n`, [
      ...['--keep-external', '--vocabulary', 'kickbox'],
    ])
    expect(rows()).toMatchObject([{ result: 'deliverable', reason: '', checked_by: 'zerobounce' }])
  })
})
