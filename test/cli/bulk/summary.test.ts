import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags } from '../../support/cli.ts'

/** Runs `ev bulk` on a list and returns the summary, without the time it took. */
async function summarize(rows: readonly string[], args: readonly string[], columns?: number) {
  const home = emptyFolder()
  const header = rows.some(row => row.includes(',')) ? 'email,ZB Status' : 'email'
  writeFileSync(join(home, 'list.csv'), [header, ...rows, ''].join('\n'))
  const all = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data', ...args]
  const terminal = columns === undefined ? {} : { columns }
  const { code, stderr } = await runEv(all, { home, ...terminal })
  expect(code, stderr).toBe(0)
  const text = stderr.slice(stderr.search(/^ {2}(SIMULATED results|deliverable )/m))
  return text.replace(/in [\d.]+ (ms|s)( \([\d,]+\/s\))?/, 'in 1 s').replaceAll(`${home}/`, '')
}

const repeat = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}@x.example`)

test('counts are aligned below the longest reason too', async () => {
  const list = ['invalid@x.example,invalid', 'valid@x.example,']
  const options = ['--keep-external', '--external-date', new Date().toISOString().slice(0, 10)]
  const lines = (await summarize(list, ['--sandbox', ...options])).split('\n')
  const counts = lines.filter(line => line.endsWith('%'))
  expect(counts.map(line => line.trim().split(' ')[0])).toContain('external_undeliverable')
  expect(new Set(counts.map(line => line.length)).size).toBe(1)
})

test('the summary names the reasons of each class, the suggestions and the next step', async () => {
  const list = [
    ...repeat(1_200, 'valid'),
    ...['catchall@gmial.com', 'role@x.example', 'role1@x.example', 'disposable@x.example'],
    ...['risky@x.example', 'invalid@x.example', 'not an address', 'timeout@x.example', 'n/a'],
  ]
  const summary = await summarize(list, ['--sandbox'])
  expect(summary).toBe(`  SIMULATED results
  deliverable                 1,200    99.3%
    accepted_email            1,200    99.3%
  risky                           5     0.4%
    role_account                  2     0.2%
    catch_all                     1     0.1%
    disposable_email              1     0.1%
    other reasons                 1     0.1%
  undeliverable                   2     0.2%
    invalid_email                 1     0.1%
    rejected_email                1     0.1%
  unknown                         2     0.2%
    no_address                    1     0.1%
    timeout                       1     0.1%

1,209 rows in 1 s, written to out.csv.
Actions: send 1,200, send_with_care 4, retry_later 1, suppress 4.
Expected bounces: 2.2% (0.3% to 15.7%) of mail to all addresses, 2.0% (0.2% to 16.4%) if you follow the actions.
These rates are assumptions, as no bounces and deliveries are reported. Amazon SES reviews accounts from 5% and may pause them from 10%; Gmail limits complaints to 0.3%.
1 row has a suggested correction in the column ev_did_you_mean.
To write only the deliverable rows, run the same command with --only deliverable -o good.csv.
`)
})

test('numbers, percentages and words stay whole at 60 and 80 columns', async () => {
  const list = [...repeat(5, 'valid'), ...repeat(3, 'invalid'), 'catchall@gmial.com']
  for (const columns of [60, 80]) {
    const summary = await summarize(list, ['--sandbox'], columns)
    for (const line of summary.split('\n')) expect(line.length, line).toBeLessThanOrEqual(columns)
    expect(summary.replaceAll('\n', ' ')).toContain(
      'To write only the deliverable rows, run the same command with --only deliverable -o good.csv.',
    )
  }
})

test('the summary says how to retry rows whose server could not be reached', async () => {
  const simulator = await startSimulator({
    domains: { 'dead.test': { mx: [[10, 'mx.dead.test']] } },
    hosts: { 'mx.dead.test': { behavior: 'dead' } },
  })
  onTestFinished(() => simulator.close())
  const summary = await summarize(
    ['ann@dead.test', 'bob@dead.test', 'n/a'],
    ['--no-wait', ...simulatorFlags(simulator)],
  )
  expect(summary).toContain(
    'To retry the 2 unknown rows, run the same command again later, without --no-wait: it reuses cached results.\n',
  )
  expect(summary).not.toContain('--only deliverable')
})

describe('--fail-above', () => {
  const ROWS = [...repeat(95, 'valid'), ...repeat(5, 'invalid'), 'timeout@x.example']

  async function run(...args: string[]) {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), ['email', ...ROWS, ''].join('\n'))
    return runEv(['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', ...args], { home })
  }

  test('exits with 1 if mail to the rows of the output is expected to bounce more', async () => {
    const { code, stderr } = await run('--fail-above', '3%')
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /\nerror: Mail to the 101 addresses of the output is expected to bounce at 6\.9% \(.*\), above --fail-above 3%\.\n$/,
    )
  })

  test('exits with 0 if the rows that are left are below, and JSON has both figures', async () => {
    const { code, stdout } = await run('--fail-above', '3%', '--only', 'deliverable', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      actions: { send: 95, send_with_care: 0, retry_later: 1, suppress: 5 },
      projection: { before: { addresses: 101 }, after: { addresses: 95, bounce_rate: 0.02 } },
      fail_above: { limit: 0.03, exceeded: false, addresses: 95, bounce_rate: 0.02 },
    })
  })

  test('judges the rows that --action selects', async () => {
    const { code, stdout } = await run('--action', 'send', '--fail-above', '3%', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ written: 95, fail_above: { addresses: 95 } })
    const refused = await run('--action', 'mail')
    expect([refused.code, refused.stderr]).toEqual([
      64,
      'error: --action has "mail"; it takes a comma-separated list of send, send_with_care, retry_later, suppress.\n',
    ])
  })

  test.each(['3', '0.03', '101%', 'much'])('refuses %s', async value => {
    const { code, stderr } = await run('--fail-above', value)
    expect([code, stderr]).toEqual([
      64,
      `error: --fail-above is "${value}"; it takes a percentage from 0% to 100%, such as 3%.\n`,
    ])
  })
})
