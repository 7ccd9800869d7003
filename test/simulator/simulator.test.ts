import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { readScenario, type Scenario } from '../../src/simulator/scenario.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { Talk } from './talk.ts'

const SMALL: Scenario = {
  domains: { 'a.test': { mx: [[10, 'mx.a.test']] } },
  hosts: { 'mx.a.test': { behavior: 'polite' } },
}

describe('a simulator', () => {
  test('gives each host its own address and all the same port', async () => {
    const simulator = await startSimulator({
      domains: {},
      hosts: { 'mx1.test': { behavior: 'catch-all' }, 'mx2.test': { behavior: 'rejects-all' } },
    })
    expect([...simulator.addresses.values()]).toEqual([['127.20.0.1'], ['127.20.0.2']])
    for (const [host, code] of [
      ['mx1.test', 250],
      ['mx2.test', 550],
    ] as const) {
      const talk = await Talk.with(simulator, host)
      expect(await talk.reply()).toBe(`220 ${host} ESMTP`)
      await talk.say('HELO probe.test')
      await talk.say('MAIL FROM:<>')
      expect(Number((await talk.say('RCPT TO:<ann@a.test>'))?.slice(0, 3))).toBe(code)
      talk.hangUp()
    }
    await simulator.close()
  })

  test('closes its sessions, so that its ports are free', async () => {
    const first = await startSimulator(SMALL)
    const talk = await Talk.with(first, 'mx.a.test')
    await talk.reply()
    await first.close()
    expect(String(await talk.say('NOOP'))).not.toMatch(/^250/)
    const { smtpPort } = first
    const again = await startSimulator({ ...SMALL, smtpPort })
    expect(again.smtpPort).toBe(smtpPort)
    await expect(startSimulator({ ...SMALL, smtpPort })).rejects.toThrow(/EADDRINUSE/)
    await again.close()
  })

  test('shares the mailboxes of the scenario with hosts that have none', async () => {
    const simulator = await startSimulator({ ...SMALL, mailboxes: ['ann'] })
    const talk = await Talk.with(simulator, 'mx.a.test')
    await talk.reply()
    await talk.say('HELO probe.test')
    await talk.say('MAIL FROM:<>')
    expect(await talk.say('RCPT TO:<ann@a.test>')).toMatch(/^250 /)
    expect(await talk.say('RCPT TO:<user1@a.test>')).toMatch(/^550 /)
    talk.hangUp()
    await simulator.close()
  })
})

describe('a simulator with latency', () => {
  test('takes two round trips to a greeting and one to a reply, in order', async () => {
    const roundTripMs = 40
    const simulator = await startSimulator({ ...SMALL, roundTripMs })
    const start = systemClock.monotonicNow()
    const talk = await Talk.with(simulator, 'mx.a.test')
    await talk.reply()
    // A timer may fire up to a millisecond early.
    expect(systemClock.monotonicNow() - start).toBeGreaterThanOrEqual(2 * roundTripMs - 3)
    await talk.say('EHLO probe.test')
    const asked = systemClock.monotonicNow()
    talk.send('MAIL FROM:<>\r\n')
    for (let at = 0; at < 50; at += 1)
      talk.send(`RCPT TO:<${at % 2 ? 'user' : 'zoe'}${at}@a.test>\r\n`)
    talk.send('QUIT\r\n')
    expect(await talk.reply()).toMatch(/^250 /)
    expect(systemClock.monotonicNow() - asked).toBeGreaterThanOrEqual(roundTripMs - 3)
    for (let at = 0; at < 50; at += 1) {
      expect(await talk.reply()).toMatch(at % 2 ? /^250 / : new RegExp(`^550 .*zoe${at}@`))
    }
    expect(await talk.reply()).toMatch(/^221 /)
    expect(await talk.reply()).toBeNull()
    await simulator.close()
  })

  test('supports TLS, and connection resets', async () => {
    const simulator = await startSimulator({
      domains: {},
      hosts: { 'mx.a.test': { behavior: 'needs-starttls' }, 'mx.b.test': { behavior: 'resets' } },
      roundTripMs: 4,
    })
    const talk = await Talk.with(simulator, 'mx.a.test')
    await talk.reply()
    await talk.say('EHLO probe.test')
    await talk.say('STARTTLS')
    await talk.secure()
    expect(await talk.say('EHLO probe.test')).toMatch(/^250-/)
    talk.hangUp()
    const other = await Talk.with(simulator, 'mx.b.test')
    await other.reply()
    await other.say('HELO probe.test')
    await other.say('MAIL FROM:<>')
    expect(await other.say('RCPT TO:<ann@a.test>')).toBe('ECONNRESET')
    await simulator.close()
  })
})

describe('the library engine', () => {
  test('replies as the rules say, and counts the same', async () => {
    const simulator = await startSimulator({
      domains: {},
      hosts: { 'mx.a.test': { behavior: 'needs-starttls', engine: 'smtp-server' } },
    })
    const talk = await Talk.with(simulator, 'mx.a.test')
    expect(await talk.reply()).toMatch(/^220 mx\.a\.test /)
    expect(await talk.say('EHLO probe.test')).toMatch(/PIPELINING[\s\S]*STARTTLS/)
    expect(await talk.say('MAIL FROM:<>')).toBe('530 5.7.0 Must issue a STARTTLS command first')
    await talk.say('STARTTLS')
    await talk.secure()
    await talk.say('EHLO probe.test')
    talk.send('MAIL FROM:<>\r\nRCPT TO:<user1@a.test>\r\nRCPT TO:<zoe@a.test>\r\n')
    expect(await talk.reply()).toMatch(/^250 /)
    expect(await talk.reply()).toMatch(/^250 /)
    expect(await talk.reply()).toMatch(/^550 5\.1\.1 <zoe@a\.test>: .*User unknown/)
    expect(simulator.counters().total).toMatchObject({
      commands: { EHLO: 2, STARTTLS: 1, MAIL: 2, RCPT: 2 },
      connections: 1,
      transactions: 1,
      tlsSessions: 1,
      recipientsPerTransactionMax: 2,
      recipients: new Map([
        ['user1@a.test', 1],
        ['zoe@a.test', 1],
      ]),
    })
    talk.hangUp()
    await simulator.close()
  })

  test('can reject the connection', async () => {
    const simulator = await startSimulator({
      domains: {},
      hosts: { 'mx.a.test': { behavior: 'blocks-us', engine: 'smtp-server' } },
    })
    const talk = await Talk.with(simulator, 'mx.a.test')
    expect(await talk.reply()).toMatch(/^554 5\.7\.1 .*blocked using/)
    expect(await talk.reply()).toBeNull()
    await simulator.close()
  })
})

describe('the demo', () => {
  const fixtures = join(import.meta.dirname, '../../fixtures')
  const scenario = readScenario(join(fixtures, 'simulator/demo.json'))

  test('has a scenario whose exchangers all have an address', async () => {
    const simulator = await startSimulator(scenario)
    const exchangers = Object.values(scenario.domains).flatMap(({ mx }) =>
      typeof mx === 'object' ? mx.map(([, host]) => host) : [],
    )
    expect(exchangers.filter(host => !simulator.addresses.has(host))).toEqual([])
    await simulator.close()
  })

  test('has a list of some hundred people that covers every domain of its scenario', () => {
    const rows: Record<string, string>[] = parse(readFileSync(join(fixtures, 'list/demo.csv')), {
      columns: true,
    })
    expect(rows.length).toBeGreaterThanOrEqual(300)
    const asked = new Set(rows.map(row => row.Email?.trim().toLowerCase().split('@').at(-1)))
    const names = [...Object.keys(scenario.domains), 'implicit.test']
    expect(names.filter(name => !asked.has(name))).toEqual([])
  })
})
