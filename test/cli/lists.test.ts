import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { folderWith, type Ran, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { rowsIn } from '../support/csv.ts'
import { withEqualHosts } from '../support/own-hosts.ts'

/** Domains with one host each: polite, or deferring for one second. */
const POLITE = ['good.test', 'listed.test', 'run.test']
const GREY = ['later.test', 'kept.test', 'spared.test']
const polite = withEqualHosts(POLITE, { behavior: 'polite' })
const grey = withEqualHosts(GREY, { behavior: 'greylist', seconds: 1 })
const SCENARIO: Scenario = {
  domains: {
    'a.b.listed.test': { mx: [[10, 'mx.listed.test']] },
    ...polite.domains,
    ...grey.domains,
  },
  hosts: { ...polite.hosts, ...grey.hosts },
}

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator(SCENARIO)
})
afterAll(() => simulator.close())

/** Verifies one address in a folder with these files. */
async function verify(address: string, args: readonly string[], files: Record<string, string>) {
  const home = folderWith(files)
  const all = ['verify', address, '--json', '--include', 'flags,evidence', ...args]
  const ran = await runEv([...all, ...simulatorFlags(simulator)], { home })
  return { ...ran, result: ran.stdout === '' ? null : JSON.parse(ran.stdout) }
}

// Each test waits for its own process, so the tests run concurrently.
describe.concurrent('ev verify with a custom list', () => {
  test.each([
    ['--disposable-file', 'disposable_email', 'listed.test\n', 'user1@listed.test'],
    ['--disposable-file', 'disposable_email', 'listed.test\n', 'user1@a.b.listed.test'],
    ['--blocked-file', 'blocklisted', '@listed.test\n', 'user1@listed.test'],
    ['--blocked-file', 'blocklisted', 'User1@listed.test\n', 'user1@listed.test'],
    ['--spam-trap-file', 'spam_trap', '*.listed.test\n', 'user1@listed.test'],
    ['--spam-trap-file', 'spam_trap', 'user1@listed.test\n', 'user1@listed.test'],
  ])('%s: %s', async (flag, reason, content, address) => {
    const { result, stderr, code } = await verify(address, [flag, 'own.txt'], {
      'own.txt': content,
    })
    expect(result, stderr).toMatchObject({ reason, risk_level: 'high', evidence: { answer: null } })
    expect(code).toBe(1)
    expect(simulator.counters().hosts['mx.listed.test']?.connections).toBe(0)
  })

  test('--role-file adds to the built-in names', async () => {
    const { result } = await verify('user7@good.test', ['--role-file', 'own.txt'], {
      'own.txt': '\uFEFF# ours\r\nUSER7\r\n',
    })
    expect(result).toMatchObject({ reason: 'role_account', flags: { is_role: true } })
  })

  test('--allow-file wins over every disposable list', async () => {
    const files = { 'bad.txt': 'good.test', 'fine.txt': 'good.test' }
    const args = ['--disposable-file', 'bad.txt', '--allow-file', 'fine.txt']
    const { result } = await verify('user1@good.test', args, files)
    expect(result).toMatchObject({ reason: 'accepted_email', flags: { is_disposable: false } })
  })

  test('a blocked entry wins over an allowed one', async () => {
    const args = ['--blocked-file', 'own.txt', '--allow-file', 'own.txt']
    const { result } = await verify('user1@good.test', args, { 'own.txt': 'good.test' })
    expect(result).toMatchObject({ reason: 'blocklisted' })
  })

  test.each([
    ['--disposable-file', 'ann@listed.test', 'a domain such as'],
    ['--allow-file', 'ann@listed.test', 'a domain such as'],
    ['--blocked-file', 'listed', 'a domain such as'],
    ['--spam-trap-file', 'foo bar', 'a domain such as'],
    ['--role-file', 'ann@listed.test', 'the part before the @'],
  ])(
    '%s with an invalid line exits with 78 and names the line and the format',
    async (flag, bad, takes) => {
      const files = { 'own.txt': `# ours\n\n${bad} # why\n` }
      const { code, stdout, stderr } = await verify('user1@good.test', [flag, 'own.txt'], files)
      expect({ code, stdout }).toEqual({ code: 78, stdout: '' })
      expect(stderr).toMatch(
        /^error: The list .*own\.txt has "[^"]+" on line 3\. .* Each line takes .*\n$/,
      )
      expect(stderr).toContain(`"${bad}"`)
      expect(stderr).toContain(takes)
    },
  )
})

describe.concurrent('operators in the config file', () => {
  const config = (operators: object) => ({ 'ev.config.json': JSON.stringify({ operators }) })

  test('have the configured name, title and truth', async () => {
    const acme = { hosts: ['good.test'], title: 'Acme Mail', truth: 'accepts-all' }
    const { result, stderr } = await verify('user2@good.test', [], config({ acme }))
    expect(result, stderr).toMatchObject({ reason: 'catch_all', evidence: { operator: 'acme' } })
    const verifyArgs = ['verify', 'user2@good.test', ...simulatorFlags(simulator)]
    const { stdout } = await runEv(verifyArgs, { home: folderWith(config({ acme })) })
    expect(stdout).toMatch(/mail server .*, run by Acme Mail\n/)
  })

  test('that are unknown exit with 78 and a suggestion', async () => {
    const { code, stderr } = await verify('user2@good.test', [], config({ gogle: {} }))
    expect(code).toBe(78)
    expect(stderr).toMatch(/^error: "operators" has an entry "gogle"\. Did you mean "google"\? /)
  })
})

const BULK = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']

/** Starts a list of one deferred row, with a custom list of disposable domains. */
async function startedList(domain: string, files: Record<string, string> = {}) {
  const home = folderWith({
    'list.csv': `email\nuser1@${domain}\n`,
    'own.txt': '# none yet\n',
    ...files,
  })
  // Longer than the steps of a test, which take milliseconds.
  const args = [...BULK, ...simulatorFlags(simulator), '--greylist-delay', '3']
  const running = startEv([...args, '--disposable-file', 'own.txt'], { home })
  await probedOnce(domain)
  return { home, ...running }
}

const probeCount = (domain: string) =>
  simulator.counters().hosts[`mx.${domain}`]?.recipients.get(`user1@${domain}`) ?? 0

async function probedOnce(domain: string): Promise<void> {
  while (probeCount(domain) < 1) await setTimeout(5)
}

async function reasonsOf({ ended, home }: { ended: Promise<Ran>; home: string }) {
  const { code, stderr } = await ended
  expect(code, stderr).toBe(0)
  return rowsIn(join(home, 'out.csv')).map(row => row.ev_reason)
}

describe.concurrent('ev bulk', () => {
  test('checks custom lists before it reads the input', async () => {
    const home = folderWith({ 'list.csv': 'email\nuser1@run.test\n', 'own.txt': 'foo bar' })
    const args = [...BULK, ...simulatorFlags(simulator), '--allow-file', 'own.txt']
    const { code, stderr } = await runEv(args, { home, isFirst: true })
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringMatching(/^error: The list .*own\.txt has "foo bar" on line 1\. /),
    })
    expect(existsSync(join(home, 'data/ev.sqlite'))).toBe(false)
  })

  test('reloads custom lists on SIGHUP, and applies them to waiting rows without a new probe', async () => {
    const list = await startedList('later.test')
    writeFileSync(join(list.home, 'own.txt'), 'later.test\n')
    list.signal('SIGHUP')
    await list.printed('note: Configuration lists reloaded', 'stderr')
    expect(await reasonsOf(list)).toEqual(['disposable_email'])
    expect(probeCount('later.test')).toBe(1)
  })

  test('keeps its lists on SIGHUP if one is invalid, prints the line, and continues', async () => {
    const list = await startedList('kept.test')
    writeFileSync(join(list.home, 'own.txt'), 'kept.test\nfoo bar\n')
    list.signal('SIGHUP')
    await list.printed('own.txt has "foo bar" on line 2.', 'stderr')
    expect(await reasonsOf(list)).toEqual(['accepted_email'])
    expect((await list.ended).stderr).toMatch(
      /^error: Configuration lists not reloaded\. The list .*own\.txt /m,
    )
  })

  test('reads the config file again on SIGHUP', async () => {
    const list = await startedList('spared.test', {
      'ev.config.json': '{}',
      'b.txt': 'spared.test',
    })
    writeFileSync(join(list.home, 'ev.config.json'), '{"blocked-file":"b.txt"}')
    list.signal('SIGHUP')
    await list.printed('Configuration lists reloaded', 'stderr')
    expect(await reasonsOf(list)).toEqual(['blocklisted'])
  })
})
