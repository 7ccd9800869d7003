import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags } from '../../support/cli.ts'

const TRUTH =
  'address,truth\nann@a.test,exists\ngone@a.test,missing\nann@all.test,exists\ngone@all.test,missing\n'

/** Runs `ev measure` without the verifications of ev, on results in files of a folder. */
function measure(files: Readonly<Record<string, string>>, args: readonly string[]) {
  const home = emptyFolder()
  for (const [name, text] of Object.entries({ 'truth.csv': TRUTH, ...files })) {
    writeFileSync(join(home, name), text)
  }
  const run = runEv(['measure', 'truth.csv', '--no-ev', ...args], { home })
  return { run, read: (name: string) => readFileSync(join(home, name), 'utf8') }
}

describe.concurrent('ev measure', () => {
  test('compares the verdicts of ev with the truth, and counts its connections', async () => {
    const simulator = await startSimulator({
      mailboxes: ['ann'],
      domains: { 'a.test': { mx: [[10, 'mx.a.test']] }, 'all.test': { mx: [[10, 'mx.all.test']] } },
      hosts: { 'mx.a.test': { behavior: 'polite' }, 'mx.all.test': { behavior: 'catch-all' } },
    })
    const home = emptyFolder()
    writeFileSync(join(home, 'truth.csv'), TRUTH)
    const { code, stdout } = await runEv(
      ['measure', 'truth.csv', '--json', ...simulatorFlags(simulator)],
      { home },
    )
    const { connections } = simulator.counters().total
    await simulator.close()
    expect(code).toBe(0)
    const shown = JSON.parse(stdout)
    expect(shown).toMatchObject({ addresses: 4, exists: 2, missing: 2, skipped: 0 })
    expect(shown.tools).toMatchObject([
      {
        name: 'ev',
        matrix: {
          exists: { deliverable: 1, risky: 1, undeliverable: 0, unknown: 0, none: 0 },
          missing: { deliverable: 0, risky: 1, undeliverable: 1, unknown: 0, none: 0 },
        },
        lost: { count: 0, total: 2, share: 0, min: 0 },
        caught: { count: 1, total: 2, share: 0.5 },
        blocks: 0,
      },
    ])
    expect(shown.tools[0].connections).toBe(connections)
  })

  test('measures a command that reads addresses and writes JSON lines', async () => {
    const program =
      "const rl = require('node:readline').createInterface({ input: process.stdin }); rl.on('line', email => console.log(JSON.stringify({ email, class: email.startsWith('ann') ? 'deliverable' : 'undeliverable' })))"
    const { run } = measure({ 'tool.cjs': program }, [
      ...['--tool', `mine="${process.execPath}" tool.cjs`, '--json'],
    ])
    const { code, stdout } = await run
    expect(code).toBe(0)
    expect(JSON.parse(stdout).tools).toMatchObject([
      { name: 'mine', confirmed: { count: 2, total: 2 }, caught: { count: 2, total: 2 } },
    ])
  })

  test('measures an export of another service, with a page to publish', async () => {
    const results =
      'Email Address,ZB Status,ZB Sub Status\nann@a.test,valid,\ngone@a.test,invalid,mailbox_not_found\nAnn@ALL.test,catch-all,\n'
    const { run, read } = measure({ 'zb.csv': results }, [
      ...['--results', 'ZeroBounce=zb.csv', '-o', 'page.md'],
    ])
    const { code, stdout } = await run
    expect(code).toBe(0)
    expect(stdout).toContain('4 addresses with known truth: 2 mailboxes exist, 2 are missing.')
    const page = read('page.md')
    expect(page).toContain('| exists | 1 | 1 | 0 | 0 | 0 |')
    // The last address has no verdict.
    expect(page).toContain('| missing | 0 | 0 | 1 | 0 | 1 |')
    expect(page).toContain('| existing mailboxes called deliverable | 50.0% (9.5% to 90.5%) of 2 |')
  })

  test('writes a page as HTML, with names as text', async () => {
    const { run, read } = measure({ 'r.csv': 'email,class\nann@a.test,deliverable\n' }, [
      ...['--results', 'a/b=r.csv', '-o', 'page.html'],
    ])
    expect((await run).code).toBe(0)
    expect(read('page.html')).toMatch(/^<!doctype html>[\s\S]*<h2>Verdicts of a\/b<\/h2>/)
  })

  test.each([
    [
      'a list without truth',
      { 'truth.csv': 'email\na@x.test\n' },
      ['--results', 'a=r.csv'],
      65,
      'has no column "truth"',
    ],
    [
      'words that are not known',
      { 'truth.csv': 'email,truth\na@x.test,maybe\n' },
      ['--results', 'a=r.csv'],
      65,
      'It takes exists',
    ],
    [
      'results without a verdict',
      { 'r.csv': 'email,other\na@x.test,1\n' },
      ['--results', 'a=r.csv'],
      65,
      'its columns are email, other',
    ],
    ['a command that fails', {}, ['--tool', 'a=exit 3'], 65, 'ended with code 3'],
    ['a tool without a name', {}, ['--tool', './run'], 64, 'it takes name=command'],
    [
      'a page of another kind',
      {},
      ['--results', 'a=r.csv', '-o', 'page.pdf'],
      64,
      'ends in .md or .html',
    ],
    ['nothing to measure', {}, [], 64, '--no-ev needs --tool or --results'],
  ] as const)('refuses %s', async (_, files, args, code, message) => {
    const ran = await measure(files, args).run
    expect(ran.code).toBe(code)
    expect(ran.stderr.replace(/\s+/g, ' ')).toContain(message)
  })
})
