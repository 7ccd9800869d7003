import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags } from '../support/cli.ts'
import { startService, verifyList } from '../support/cli-service.ts'
import { homeWith, newKey } from '../support/cli-webhooks.ts'

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
      /^Recorded 1 piece of feedback\.\n1 piece rejected: The address is invalid: .*\n1 row or message without feedback\. To import rows without a kind, such as an export of bounces, add --kind bounced\.\n$/,
    )
    expect(JSON.parse((await ev(home, 'import', 'events.csv', '--json')).stdout)).toMatchObject({
      recorded: 0,
      duplicates: 1,
      rejected: 1,
      ignored: 1,
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

  test('stops at the limit of the plan, and continues where it stopped', async () => {
    const home = emptyFolder()
    const setPlan = (limit: number) =>
      writeFileSync(
        join(home, 'ev.config.json'),
        JSON.stringify({ plans: { small: { requests: 10, 'stored-feedback': limit } } }),
      )
    setPlan(1_000)
    const account = ['accounts', 'create', '--name', 'Shop', '--plan', 'small']
    await runEv([...account, '--data-dir', 'data'], { home, offline: true })
    const rows = Array.from({ length: 1_200 }, (_, n) => `user${n}@a.example,delivered\n`)
    writeFileSync(join(home, 'events.csv'), `email,event\n${rows.join('')}`)
    const refused = await ev(home, 'import', 'events.csv')
    expect(refused.code).toBe(64)
    expect(refused.stdout).toBe('Recorded 1,000 pieces of feedback.\n')
    expect(refused.stderr).toMatch(
      /^error: The account stores 1,000 pieces of feedback, 200 more cannot be recorded, and the Small plan allows 1,000\. To change the plan/,
    )
    setPlan(1_200)
    expect(JSON.parse((await ev(home, 'import', 'events.csv', '--json')).stdout)).toMatchObject({
      recorded: 200,
      duplicates: 1_000,
    })
  })

  test('says what cannot be read', async () => {
    const home = emptyFolder()
    const missing = await ev(home, 'import', 'none.csv')
    expect(missing).toMatchObject({ code: 66 })
    expect(missing.stderr).toMatch(/^error: none\.csv cannot be read/)
    const kind = await ev(home, 'import', 'none.csv', '--kind', 'opened')
    expect(kind).toMatchObject({ code: 64 })
    expect(kind.stderr).toContain('it takes one of delivered, bounced, complained')
  })
})

describe.concurrent('ev feedback report', { timeout: 60_000 }, () => {
  test('says that there is nothing to compare yet', async () => {
    const home = emptyFolder()
    const { code, stdout } = await ev(home, 'report')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^There are no outcomes to compare yet\./)
    expect(JSON.parse((await ev(home, 'report', '--json')).stdout)).toMatchObject({
      total: { count: 0 },
      reasons: [],
      operators: [],
    })
  })

  test('has a row for each reason and operator, and the replies that feedback contradicts', async () => {
    const simulator = await startSimulator({
      domains: {
        'good.test': { mx: [[10, 'aspmx.l.google.com']] },
        'bad.test': { mx: [[10, 'bad-test.mail.protection.outlook.com']] },
        'open.test': { mx: [[10, 'mx.open.test']] },
      },
      hosts: {
        'aspmx.l.google.com': { behavior: 'polite' },
        'bad-test.mail.protection.outlook.com': { behavior: 'polite' },
        'mx.open.test': { behavior: 'catch-all' },
      },
    })
    const home = await homeWith('Shop')
    const key = await newKey(home)
    // Verdicts are kept for accounts that report feedback.
    writeFileSync(join(home, 'first.csv'), 'email,event\nann@example.com,delivered\n')
    await ev(home, 'import', 'first.csv')
    const service = await startService(home, simulatorFlags(simulator))
    /** Verifies `count` addresses of a domain, of which `bounced` bounce. */
    const rowsOf = (domain: string, count: number, bounced: number) =>
      Array.from({ length: count }, (_, n) => ({
        email: `user${n}@${domain}`,
        event: n < bounced ? 'hard_bounce' : 'delivered',
      }))
    const rows = [
      ...rowsOf('good.test', 100, 10),
      ...rowsOf('bad.test', 40, 30),
      ...rowsOf('open.test', 50, 30),
    ]
    await verifyList(service, key, { body: { emails: rows.map(({ email }) => email) } })
    await service.end('SIGTERM')
    await simulator.close()
    const lines = rows.map(({ email, event }) => `${email},${event}\n`)
    writeFileSync(join(home, 'events.csv'), `email,event\n${lines.join('')}`)
    await ev(home, 'import', 'events.csv')
    const { stdout } = await ev(home, 'report')
    expect(stdout).toMatch(/^REASON +COUNT +PREDICTED +OBSERVED +BRIER +ECE$/m)
    expect(stdout).toMatch(/^all verdicts +190 +83\.2% +68\.4% +0\.257 +0\.200$/m)
    expect(stdout).toMatch(/^accepted_email, google +100 +95\.0% +90\.0% +0\.092 +0\.050$/m)
    expect(stdout).toMatch(/^catch_all, open\.test +50 +50\.0% +60\.0%/m)
    expect(stdout).toContain(
      'Bounces to addresses that were not deliverable by their verdict: 30 of 70 (42.9%).',
    )
    expect(stdout).toMatch(/^Replies that feedback contradicts, of all accounts$/m)
    expect(stdout).toMatch(
      /^microsoft-365 +accepted +40 +30 +59\.8% +1 +250 2\.1\.5 ok \(accepted\/recipient\)$/m,
    )
    const report = JSON.parse((await ev(home, 'report', '--json')).stdout)
    expect(report).toMatchObject({
      total: { count: 190, predicted: 0.8316, observed: 0.6842 },
      reasons: [{ reason: 'accepted_email' }, { reason: 'catch_all' }],
      outcomes: { predicted_bounces: 30, missed_bounces: 40, lost_deliveries: 20 },
      received: [{ source: 'import', delivered: 121, bounced: 70, complained: 0 }],
    })
    // Reports contradict 10% of the replies of Google, which is too few to list them.
    expect(report.contradicted_replies).toEqual([
      {
        operator: 'microsoft-365',
        said: 'accepted',
        meaning: 'accepted/recipient',
        reply: '250 2.1.5 ok',
        count: 40,
        contradicted: 30,
        share_min: 0.5981,
        accounts: 1,
      },
    ])
  })
})

describe.concurrent('ev feedback sources', { timeout: 60_000 }, () => {
  /** A folder whose database has one account. */
  async function home() {
    const folder = emptyFolder()
    const account = ['accounts', 'create', '--name', 'Shop', '--data-dir', 'data']
    expect(await runEv(account, { home: folder, offline: true })).toMatchObject({ code: 0 })
    return folder
  }
  const TOPIC = 'arn:aws:sns:us-east-1:123456789012:ses-feedback'

  test('are created, listed and deleted', async () => {
    const folder = await home()
    expect((await ev(folder, 'sources')).stdout).toMatch(/^No feedback sources\./)
    const url = ['--base-url', 'https://ev.example.com']
    const created = await ev(folder, 'sources', 'create', 'ses', '--key', TOPIC, ...url)
    expect(created.stdout).toMatch(
      /^Created feedback source fbs_\w{20} of account acc_\w+\. Enter these values at Amazon SES:\n\n {2}URL {2}https:\/\/ev\.example\.com\/v1\/feedback\/ses\/fbs_\w{20}\n$/,
    )
    const [source] = JSON.parse((await ev(folder, 'sources', '--json')).stdout) as { id: string }[]
    expect(source).toMatchObject({ provider: 'ses', key_hint: TOPIC, last_received_at: null })
    expect((await ev(folder, 'sources', ...url)).stdout).toMatch(
      /LAST REQUEST +KEY +URL\nfbs_.* ses .*–.*https:/,
    )
    const id = source?.id ?? ''
    expect(await ev(folder, 'sources', 'delete', id)).toMatchObject({ code: 64 })
    expect(await ev(folder, 'sources', 'delete', id, '--yes')).toMatchObject({ code: 0 })
    expect(await ev(folder, 'sources', 'delete', id, '--yes')).toMatchObject({ code: 66 })
    expect((await ev(folder, 'sources', '--json')).stdout).toBe('[]\n')
  })

  test('without a key show a password once', async () => {
    const folder = await home()
    const { stdout } = await ev(folder, 'sources', 'create', 'postmark')
    expect(stdout).toMatch(/ {2}URL +https:\/\/HOST\/v1\/feedback\/postmark\/fbs_/)
    expect(stdout).toMatch(/ {2}username {2}ev\n {2}password {2}\w{32}\n/)
    expect(stdout).toContain('Store the password now')
    const { stdout: json } = await ev(folder, 'sources', 'create', 'sparkpost', '--json')
    expect(JSON.parse(json)).toMatchObject({ basic_auth: { username: 'ev' } })
  })

  test('read a key from stdin, and say what is wrong with one', async () => {
    const folder = await home()
    const create = ['feedback', 'sources', 'create', 'mailgun', '--key', '-', '--data-dir', 'data']
    const given = { home: folder, offline: true, stdin: 'key-0123456789abcdef\n' }
    expect(await runEv([...create, '--json'], given)).toMatchObject({ code: 0 })
    const wrong = await ev(folder, 'sources', 'create', 'ses', '--key', 'x')
    expect(wrong).toMatchObject({ code: 64 })
    expect(wrong.stderr).toMatch(
      /^error: --key must be the ARN of the SNS topic of Amazon SES, such as arn:aws:/,
    )
    const unknown = await ev(folder, 'sources', 'create', 'mailchimp')
    expect(unknown.stderr).toMatch(/Unknown provider "mailchimp"\. Providers: ses, sendgrid,/)
  })
})
