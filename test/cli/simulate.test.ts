import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv, startEv } from '../support/cli.ts'

const SMALL = {
  mailboxes: ['ann'],
  domains: { 'a.test': { mx: [[10, 'mx.a.test']] } },
  hosts: { 'mx.a.test': { behavior: 'polite' } },
}

function homeWith(scenario: unknown): string {
  const home = emptyFolder()
  writeFileSync(join(home, 'scenario.json'), JSON.stringify(scenario))
  return home
}

/** The first line of `ev simulate --json`. */
async function readEndpoints(running: ReturnType<typeof startEv>) {
  await running.printed('\n')
  return JSON.parse(running.stdout.slice(0, running.stdout.indexOf('\n')))
}

describe.concurrent('ev simulate', () => {
  test('prints how to use it, and its counters at the end', async () => {
    const home = homeWith(SMALL)
    const simulator = startEv(['simulate', 'scenario.json'], { home, stdinOpen: true })
    await simulator.printed('ann@a.test\n')
    const printed = simulator.stdout
    expect(printed).toMatch(/a\.test +mx\.a\.test \(polite, 127\.20\.0\.1\)/)
    const [, command = ''] = /^ {2}ev (verify .*)$/m.exec(printed) ?? []
    const ran = await runEv(command.split(' '), { home })
    expect(ran).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ann@a.test is deliverable'),
    })
    simulator.signal('SIGINT')
    const { code, stdout, stderr } = await simulator.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/mx\.a\.test +1 +1 +2 +0 +0\n/)
    expect(stdout).toMatch(/DNS queries: [1-9]/)
  })

  test('uses JSON with --json, and ends with its parent', async () => {
    const home = homeWith(SMALL)
    const simulator = startEv(['simulate', 'scenario.json', '--json'], { home, stdinOpen: true })
    const endpoints = await readEndpoints(simulator)
    expect(endpoints).toMatchObject({
      dnsAddress: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      smtpPort: expect.any(Number),
      pid: process.pid,
      addresses: { 'mx.a.test': ['127.20.0.1'] },
      options: {
        dns: [endpoints.dnsAddress],
        smtpPort: endpoints.smtpPort,
        allowRanges: ['127.0.0.0/8'],
        specialDomains: true,
      },
      try: 'ann@a.test',
    })
    await runEv(['verify', ...endpoints.arguments, 'zoe@a.test'], { home })
    simulator.stdin.write('counters\nreset\nnonsense\n')
    simulator.stdin.end()
    const { code, stdout } = await simulator.ended
    expect(code).toBe(0)
    const [, counters, reset, nonsense, last] = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(counters.total.recipients).toMatchObject({ 'zoe@a.test': 1 })
    expect(counters.hosts['mx.a.test'].clients).toMatchObject({ '127.0.0.1': { connections: 1 } })
    expect(counters.dns.questions).toMatchObject({ 'a.test MX': 1 })
    expect(reset).toEqual({})
    expect(nonsense.error).toContain('nonsense')
    expect(last.total).toMatchObject({ connections: 0, recipients: {} })
  })

  test('uses the given ports', async () => {
    const home = homeWith({ ...SMALL, dnsPort: 1, smtpPort: 1 })
    const free = startEv(['simulate', '--json'], { home, stdinOpen: true })
    const { dnsAddress, smtpPort } = await readEndpoints(free)
    free.stdin.end()
    await free.ended
    const dnsPort = dnsAddress.split(':')[1]
    const ports = ['--dns-port', dnsPort, '--smtp-port', `${smtpPort}`]
    const simulator = startEv(['simulate', 'scenario.json', '--json', ...ports], {
      home,
      stdinOpen: true,
    })
    expect(await readEndpoints(simulator)).toMatchObject({ dnsAddress, smtpPort })
    const second = await runEv(['simulate', 'scenario.json', ...ports], { home })
    expect(second).toMatchObject({ code: 74, stdout: '' })
    expect(second.stderr).toMatch(
      /^error: Port \d+ is in use \(.*EADDRINUSE.*\)\. Choose another port, or omit it/,
    )
    simulator.stdin.end()
    await simulator.ended
  })

  test('prints an example that runs', async () => {
    const home = emptyFolder()
    const { code, stdout } = await runEv(['simulate', '--example'], { home })
    expect(code).toBe(0)
    writeFileSync(join(home, 'scenario.json'), stdout)
    const simulator = startEv(['simulate', 'scenario.json', '--json'], { home, stdinOpen: true })
    expect(await readEndpoints(simulator)).toMatchObject({ try: 'ann@polite.test' })
    simulator.stdin.end()
    expect((await simulator.ended).code).toBe(0)
  })

  test.each([
    ['a missing file', ['nowhere.json'], 66, /Cannot read the scenario .*nowhere\.json/],
    [
      'a mistake in the scenario',
      ['scenario.json'],
      65,
      /^error: scenario\.hosts\["mx\.a\.test"\]\.behavior is "grumpy"; it takes one of polite, /,
    ],
    [
      'a bad port',
      ['scenario.json', '--smtp-port', '70000'],
      64,
      /^error: --smtp-port is "70000"; it takes a whole number from 0 to 65535/,
    ],
    [
      'an unknown flag',
      ['scenario.json', '--smpt-port', '1'],
      64,
      /Unknown option "--smpt-port"\. Did you mean --smtp-port/,
    ],
  ])('reports %s', async (_, args, code, about) => {
    const home = homeWith({ ...SMALL, hosts: { 'mx.a.test': { behavior: 'grumpy' } } })
    const ran = await runEv(['simulate', ...args], { home })
    expect(ran).toMatchObject({ code, stdout: '' })
    expect(ran.stderr).toMatch(about)
  })
})
