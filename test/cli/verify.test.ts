import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LIST_COLUMNS } from '../../src/engine/verdict/present-result.ts'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { type CliOptions, emptyFolder, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { RESULT_NAMES } from '../support/result.ts'

const SCENARIO: Scenario = {
  mailboxes: ['ann', 'ben', 'o’neil'],
  domains: {
    'good.test': { mx: [[10, 'mx.good.test']] },
    'open.test': { mx: [[10, 'mx.open.test']], txt: ['v=spf1 -all'] },
    '_dmarc.open.test': { txt: ['v=DMARC1; p=reject'] },
    'dead.test': { mx: [[10, 'mx.dead.test']] },
    'silent.test': { mx: [[10, 'mx.silent.test']] },
    'quiet.test': { mx: [[10, 'mx.quiet.test']] },
    'wary.test': { mx: [[10, 'mx.wary.test']] },
  },
  hosts: {
    'mx.good.test': { behavior: 'polite' },
    'mx.open.test': { behavior: 'catch-all' },
    'mx.dead.test': { behavior: 'dead' },
    'mx.silent.test': { behavior: 'silent' },
    'mx.quiet.test': { behavior: 'polite' },
    'mx.wary.test': { behavior: 'blocks-us' },
  },
}

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(SCENARIO)
})
afterAll(() => simulator.close())

const verify = (args: readonly string[], options: Partial<CliOptions> = {}) =>
  runEv(['verify', ...args, ...simulatorFlags(simulator)], { home: emptyFolder(), ...options })

// Each test waits for its own process, so the tests run concurrently.
describe.concurrent('the exit code of ev verify', () => {
  test.each([
    ['0 when all are deliverable', ['ann@good.test', 'ben@good.test'], 0],
    ['1 when one is rejected', ['ann@good.test', 'gone@good.test'], 1],
    ['1 when one is risky', ['ann@open.test'], 1],
    ['1 when one is invalid', ['ann@good.test', 'no address'], 1],
    ['2 when one is unknown and the others are deliverable', ['ann@good.test', 'ann@dead.test'], 2],
    ['1 when one is unknown and another undeliverable', ['ann@dead.test', 'gone@good.test'], 1],
    ['64 when an option starts with a dash', ['ann@good.test', '—sandbox'], 64],
    ['64 when an option starts with a dash and a hyphen', ['–-no-smtp', 'ann@good.test'], 64],
    ['65 when stdin has no address', ['-'], 65],
  ])('is %s', async (_, addresses, code) => {
    const ran = await verify(addresses)
    expect(ran.code, ran.stderr).toBe(code)
  })

  test('comes with the option to write in place of one that starts with a dash', async () => {
    const { stderr } = await verify(['ann@good.test', '—no-smtp'])
    expect(stderr).toContain('"—no-smtp" starts with a dash, not with hyphens. Write --no-smtp.')
  })

  test('is 130 when it is interrupted', async () => {
    const args = ['verify', 'ann@silent.test', ...simulatorFlags(simulator)]
    const running = startEv(args, { home: emptyFolder() })
    await connected(simulator, 'mx.silent.test')
    running.signal('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, signal: null, stdout: '' })
  })
})

describe.concurrent('ev verify as text', () => {
  test('names both addresses of a text with two, and suggests none made of both', async () => {
    const { code, stdout } = await verify(['two@a.com, three@b.com'])
    expect(code).toBe(1)
    expect(stdout).toContain('There are two addresses, two@a.com and three@b.com:')
    expect(stdout).not.toContain('a.com.')
  })

  test('prints why no mail server could be reached, and suggests ev doctor', async () => {
    const { stdout } = await verify(['ann@dead.test', '--explain'])
    expect(stdout).toMatch(/ details +Connection refused \(127\./)
    expect(stdout).toMatch(/ to do .*"ev doctor"/)
    expect(stdout).toContain('\n  No SMTP dialogue.\n')
  })

  test('prints once that a server rejected the connection; as JSON without evidence, a warning does', async () => {
    const { stdout, stderr } = await verify(['ann@wary.test'])
    expect(stdout).toMatch(/ reply +554 /)
    expect(stderr).not.toContain('mail server rejected the connection')
    const json = await verify(['ann@wary.test', '--json'])
    expect(json.stderr).toContain(
      'warning: Mail server rejected the connection: blocklist (host: mx.wary.test, ',
    )
  })

  test('prints class, reason, remedy and evidence, without colors into a pipe', async () => {
    const { stdout } = await verify(['gone@good.test'])
    expect(stdout).toContain('✘ gone@good.test is undeliverable\n')
    expect(stdout).toMatch(/reason +rejected_email \(risk high, confidence \d+\)/)
    expect(stdout).toMatch(/to do +\S/)
    expect(stdout).toMatch(/mail server +mx\.good\.test \[127\./)
    expect(stdout).toMatch(/reply +550 5\.1\.1 <gone@good\.test>/)
    // biome-ignore lint/complexity/useRegexLiterals: the escape character itself.
    expect(stdout).not.toMatch(new RegExp('\u001b'))
  })

  test('--explain adds the SMTP dialogue, which has no DATA command', async () => {
    const { stdout } = await verify(['ann@good.test', '--explain'])
    const dialogue = stdout.slice(stdout.indexOf('SMTP dialogue:'))
    expect(dialogue).toMatch(/220 mx\.good\.test/)
    expect(dialogue).toMatch(/EHLO probe\.example\.com/)
    expect(dialogue).toMatch(/RCPT TO:<ann@good\.test>/)
    expect(Object.keys(simulator.counters().total.commands)).not.toContain('DATA')
  })

  test('prints the signals that --signals looks up', async () => {
    const plain = await verify(['ann@open.test'])
    expect(plain.stdout).toMatch(/risk medium, confidence 50/)
    expect(plain.stdout).not.toMatch(/^ +signals/m)
    const { stdout } = await verify(['ann@open.test', '--signals', 'policies,parking'])
    expect(stdout).toMatch(/risk high, confidence 65/)
    expect(stdout).toMatch(/^ +signals +The domain sends no mail .* \(\+15\)$/m)
  })

  test('uses the feedback in the data directory, and says so', async () => {
    const home = emptyFolder()
    const flags = ['--data-dir', join(home, 'data')]
    writeFileSync(
      join(home, 'b.csv'),
      'email,event,code,text\nann@open.test,bounced,550,User unknown\n',
    )
    expect((await runEv(['feedback', 'import', 'b.csv', ...flags], { home })).code).toBe(0)
    const { stdout } = await verify(['ann@open.test', '--explain', ...flags], { home })
    expect(stdout).toMatch(/ann@open\.test is undeliverable/)
    expect(stdout).toMatch(/^ +feedback +bounced on \d{4}-\d\d-\d\d, which decides$/m)
    const { stdout: other } = await verify(['ben@open.test', ...flags], { home })
    expect(other).toMatch(/ben@open\.test is risky/)
    expect(other).not.toMatch(/^ +feedback/m)
  })

  test('a database that cannot be opened is a warning', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'ev.sqlite'), 'this is no database, but long enough to be read')
    const ran = await verify(['ann@good.test', '--data-dir', home], { home })
    expect(ran.code).toBe(0)
    expect(ran.stderr).toMatch(/^warning: Feedback is not used: /m)
  })

  test('removes text pasted around an address, with a note on stderr', async () => {
    const { code, stdout, stderr } = await verify(['Ann Lee <ann@good.test>;'])
    expect(code).toBe(0)
    expect(stdout).toContain('ann@good.test is deliverable')
    expect(stderr).toMatch(/^note: .+$/m)
  })

  test('sanitizes hostile text in an address', async () => {
    const { stdout, stderr } = await verify(['a\u001b[31m\u0007\u202eb@good.test'])
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
  })

  test('warns on stderr if the host name is not fully qualified', async () => {
    const args = ['verify', 'ann@good.test', ...simulatorFlags(simulator), '--helo', 'desk']
    const { stdout, stderr } = await runEv(args, { home: emptyFolder() })
    expect(stderr).toMatch(/^note: .*--helo probe\.example\.com.*\n$/)
    expect(stdout).not.toContain('note')
  })
})

describe.concurrent('ev verify of several addresses', () => {
  const THREE = ['valid@x.example', 'invalid@y.example', 'catchall@gmial.com']
  const sandbox = (addresses: readonly string[], options: Partial<CliOptions> = {}) =>
    runEv(['verify', '--sandbox', ...addresses], { home: emptyFolder(), offline: true, ...options })
  const COUNTS = '3 addresses (SIMULATED): 1 deliverable, 1 risky, 1 undeliverable.\n'

  test('prints a table with the counts; into a pipe, its width does not depend on the terminal', async () => {
    const { code, stdout, stderr } = await sandbox(THREE)
    expect([code, stderr]).toEqual([1, ''])
    expect(
      stdout,
    ).toBe(`  ADDRESS             CLASS          REASON          ACTION          SUGGESTION
✔ valid@x.example     deliverable    accepted_email  send
✘ invalid@y.example   undeliverable  rejected_email  suppress
! catchall@gmial.com  risky          catch_all       send_with_care  catchall@gmail.com

${COUNTS}`)
  })

  test('names an empty address', async () => {
    expect((await sandbox([''])).stdout).toMatch(/^✘ \(empty\) is undeliverable/)
    expect((await sandbox(['', 'valid@x.example'])).stdout).toMatch(/^✘ \(empty\) +undeliverable/m)
  })

  test.each([
    [
      70,
      '! catchall@gmial.com  risky          catch_all       send_with_care\n  Did you mean catchall@gmail.com?\n',
    ],
    [
      40,
      '! catchall@gmial.com\n  risky, catch_all, send_with_care\n  Did you mean catchall@gmail.com?\n',
    ],
  ])('fits a terminal of %i columns without cutting a word', async (columns, row) => {
    const { stdout } = await sandbox(THREE, { columns })
    expect(stripVTControlCharacters(stdout)).toContain(row)
    for (const line of stripVTControlCharacters(stdout).split('\n')) {
      expect(line.length, line).toBeLessThanOrEqual(columns)
    }
  })

  test('prints each in full with --explain, and one address from stdin too', async () => {
    const explained = await sandbox([...THREE, '--explain'])
    expect(explained.stdout).toMatch(/^✔ valid@x\.example is deliverable \(SIMULATED\)\n/)
    const one = await sandbox(['-'], { stdin: 'valid@x.example\n' })
    expect(one.stdout).toMatch(/^✔ valid@x\.example is deliverable \(SIMULATED\)\n/)
    const two = await sandbox(['-'], { stdin: `${THREE.join('\n')}\n` })
    expect(two.stdout).toContain(COUNTS)
  })
})

describe.concurrent('ev verify as CSV', () => {
  test('prints the columns that ev bulk adds', async () => {
    const { code, stdout, stderr } = await verify(['ann@good.test', 'x', '--format', 'csv'])
    const [header, ...rows] = stdout.trimEnd().split('\n')
    expect([code, stderr]).toEqual([1, ''])
    expect(header).toBe(['email', ...LIST_COLUMNS].join(','))
    expect(rows.map(row => row.split(',').slice(0, 5))).toEqual([
      ['ann@good.test', 'deliverable', 'send', 'ann@good.test', 'true'],
      ['x', 'undeliverable', 'suppress', 'x', 'false'],
    ])
  })

  test('fails with a message if stdin has no address', async () => {
    const { code, stderr } = await verify(['-', '--format', 'text'], { stdin: ' \n\n' })
    expect([code, stderr]).toEqual([65, 'error: No addresses on stdin.\n'])
  })

  test('--quiet prints no notes; no note on the HELO name if no server is asked', async () => {
    const quiet = await verify(['<ann@good.test>', '--helo', 'desk', '--quiet'])
    expect(quiet.stderr).toBe('')
    const offline = await verify(['ann@nowhere.test', '--helo', 'desk'])
    expect(offline.stderr).toBe('')
  })

  test('--verbose prints debug messages, and --log wins over it', async () => {
    const verbose = await verify(['ann@good.test', '--verbose'])
    const silent = await verify(['ann@good.test', '--verbose', '--log', 'silent'])
    expect([verbose.code, silent.stderr]).toEqual([0, ''])
    expect((await verify(['ann@good.test', '-q', '-v'])).stderr).toMatch(/exclude each other/)
  })
})

describe.concurrent('ev verify as JSON', () => {
  test('--action-policy decides about the action, in text, JSON and CSV', async () => {
    const strict = ['--action-policy', 'strict', '--sandbox', 'role@example.com']
    expect((await verify(strict)).stdout).toContain(
      '\n  action       suppress: The address belongs to a function, not to a person, so do not send.\n',
    )
    const json = await verify([...strict, '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ class: 'risky', action: 'suppress' })
    expect((await verify([...strict, '--format', 'csv'])).stdout).toContain(',risky,suppress,')
  })

  test('--json prints one object for one address, and nothing else', async () => {
    const { stdout, stderr } = await verify(['ann@good.test', '--json'])
    const result = JSON.parse(stdout)
    expect(Object.keys(result).sort()).toEqual([...RESULT_NAMES].sort())
    expect(result).toMatchObject({
      email: 'ann@good.test',
      valid: true,
      deliverable: true,
      risk_level: 'low',
      provider: 'good.test',
      reason: 'accepted_email',
      cached: false,
      details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
    })
    expect(stderr).toBe('')
  })

  test('--json prints an array for several, in the order given', async () => {
    const given = ['ann@good.test', 'ann@dead.test', 'no address', 'gone@good.test']
    const { stdout, code } = await verify([...given, '--json'])
    expect(JSON.parse(stdout).map(({ email }: { email: string }) => email)).toEqual(given)
    expect(code).toBe(1)
  })

  test('--include adds flags and evidence, each only when asked for', async () => {
    const { stdout } = await verify(['ann@open.test', '--json', '--include', 'flags,evidence'])
    expect(JSON.parse(stdout)).toMatchObject({
      class: 'risky',
      flags: { is_catch_all: true, is_role: false, is_disposable: false, is_free: false },
      mx_host: 'mx.open.test',
      evidence: { host: 'mx.open.test', answer: { kind: 'accepted', code: 250 }, catch_all: true },
    })
    const flags = JSON.parse(
      (await verify(['ann@open.test', '--json', '--include', 'flags'])).stdout,
    )
    expect(flags).toHaveProperty('flags')
    expect(flags).not.toHaveProperty('evidence')
  })

  test('--explain with evidence includes the dialogue', async () => {
    const { stdout } = await verify(['ann@good.test', '--json', '--explain', '--include=evidence'])
    const { dialogue } = JSON.parse(stdout).evidence
    expect(dialogue).toContainEqual(expect.stringContaining('RCPT TO:<ann@good.test>'))
  })

  test('--ndjson prints one object per line', async () => {
    const { stdout } = await verify(['ann@good.test', 'gone@good.test', '--ndjson'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map(line => JSON.parse(line).reason)).toEqual(['accepted_email', 'rejected_email'])
  })

  test('- reads addresses from stdin, one per line, and skips blank lines', async () => {
    const stdin = 'ann@good.test\r\n\n  \ngone@good.test\nben@good.test'
    const { stdout, code } = await verify(['-', '--ndjson'], { stdin })
    const asked = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).email)
    expect(asked).toEqual(['ann@good.test', 'gone@good.test', 'ben@good.test'])
    expect(code).toBe(1)
  })

  test('prints a result as soon as it is available, before stdin ends', async () => {
    const args = ['verify', '-', '--ndjson', ...simulatorFlags(simulator)]
    const running = startEv(args, {
      home: emptyFolder(),
      stdin: 'ann@good.test\n',
      stdinOpen: true,
    })
    await running.printed('"email":"ann@good.test"')
    running.stdin.end('gone@good.test\n')
    const { code, stdout } = await running.ended
    expect({ code, lines: stdout.trimEnd().split('\n').length }).toEqual({ code: 1, lines: 2 })
  })

  test('prints no notes on pasted text with JSON', async () => {
    const { stdout, stderr } = await verify(['mailto:ann@good.test', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ email: 'ann@good.test', deliverable: true })
    expect(stderr).toBe('')
  })
})

describe.concurrent('ev verify without mail servers', () => {
  test('--no-smtp queries only the DNS', async () => {
    const { stdout } = await verify(['ann@quiet.test', '--no-smtp', '--json', '--include=evidence'])
    expect(JSON.parse(stdout)).toMatchObject({ evidence: { skipped: 'unwanted', answer: null } })
    const { hosts, dns } = simulator.counters()
    expect(hosts['mx.quiet.test']?.connections).toBe(0)
    expect(dns.questions.get('quiet.test MX')).toBe(1)
  })

  test.each([
    ['valid@x.example', 'accepted_email', 0],
    ['invalid@x.example', 'rejected_email', 1],
    ['catchall@x.example', 'catch_all', 1],
    ['timeout@x.example', 'timeout', 2],
    ['greylisted@x.example', 'greylisted', 2],
  ])(
    '--sandbox simulates %s as %s, opens no socket and asks no DNS',
    async (address, reason, code) => {
      const args = ['verify', address, '--sandbox', '--json']
      const ran = await runEv(args, { home: emptyFolder(), offline: true })
      expect(ran).toMatchObject({ code, stderr: '' })
      expect(JSON.parse(ran.stdout)).toMatchObject({ email: address, reason })
    },
  )

  test('the offline guard of these tests detects a lookup', async () => {
    const args = ['verify', 'ann@example.com', '--dns', '127.0.0.1']
    expect(await runEv(args, { home: emptyFolder(), offline: true })).toMatchObject({ code: 99 })
  })
})

async function connected({ counters }: Simulator, host: string): Promise<void> {
  while ((counters().hosts[host]?.sessionsNow ?? 0) === 0) {
    await new Promise(resolve => setImmediate(resolve))
  }
}
