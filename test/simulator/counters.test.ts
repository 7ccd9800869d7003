import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { askedTwice, countersFromJson, countersToJson } from '../../src/simulator/counters.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { Talk } from './talk.ts'

const A = 'mx.a.test'
const B = 'mx.b.test'
let simulator: Simulator

beforeEach(async () => {
  const polite = { behavior: 'polite' } as const
  simulator = await startSimulator({
    domains: {},
    hosts: {
      [A]: polite,
      [B]: { behavior: 'no-pipelining' },
      'late.test': { behavior: 'slow', ms: 50 },
    },
  })
})
afterEach(() => simulator.close())

async function greeted(host = A): Promise<Talk> {
  const talk = await Talk.with(simulator, host)
  await talk.reply()
  return talk
}

async function rcpt(talk: Talk, ...addresses: string[]): Promise<void> {
  await talk.say('MAIL FROM:<>')
  for (const address of addresses) await talk.say(`RCPT TO:<${address}>`)
}

/** Sends QUIT and waits until the server has closed the connection. */
async function leave(talk: Talk): Promise<void> {
  await talk.say('QUIT')
  await talk.reply()
}

describe('the counters', () => {
  test('count commands by name, unknown ones too', async () => {
    const talk = await greeted()
    await talk.say('EHLO probe.test')
    await rcpt(talk, 'user1@a.test')
    expect(await talk.say('DATA')).toMatch(/^500 /)
    await talk.say('vrfy <user1@a.test>')
    await talk.say('RSET')
    await talk.say('NOOP')
    await leave(talk)
    expect(simulator.counters().total.commands).toEqual({
      EHLO: 1,
      MAIL: 1,
      RCPT: 1,
      DATA: 1,
      VRFY: 1,
      RSET: 1,
      NOOP: 1,
      QUIT: 1,
    })
  })

  test('count connections and peak sessions', async () => {
    const first = await greeted()
    const second = await greeted(B)
    expect(simulator.counters().total).toMatchObject({
      connections: 2,
      sessionsNow: 2,
      sessionsPeak: 2,
    })
    await leave(first)
    const third = await greeted()
    expect(simulator.counters().total).toMatchObject({ connections: 3, sessionsPeak: 2 })
    expect(simulator.counters().hosts[A]).toMatchObject({ connections: 2, sessionsPeak: 1 })
    for (const talk of [second, third]) talk.hangUp()
  })

  test('count the RCPT commands of each address over all hosts', async () => {
    const talk = await greeted()
    await talk.say('EHLO probe.test')
    await rcpt(talk, 'user1@a.test', 'user2@a.test')
    await talk.say('RSET')
    await rcpt(talk, 'user1@a.test')
    const other = await greeted(B)
    await other.say('EHLO probe.test')
    await rcpt(other, 'user2@a.test', 'zoe@a.test')
    const { total } = simulator.counters()
    expect([...total.recipients]).toEqual([
      ['user1@a.test', 2],
      ['user2@a.test', 2],
      ['zoe@a.test', 1],
    ])
    expect(askedTwice(total)).toEqual(['user1@a.test', 'user2@a.test'])
    expect(askedTwice(simulator.counters().hosts[B] ?? total)).toEqual([])
    expect(total).toMatchObject({
      transactions: 3,
      recipientsPerConnectionMax: 3,
      recipientsPerTransactionMax: 2,
    })
    for (const each of [talk, other]) each.hangUp()
  })

  test('count sessions by recipient domain', async () => {
    const [talk, other] = [await greeted(), await greeted(B)]
    for (const each of [talk, other]) await each.say('EHLO probe.test')
    await rcpt(talk, 'user1@a.test', 'user2@A.test', 'user1@b.test')
    await rcpt(other, 'user3@a.test')
    expect(simulator.counters().domains).toMatchObject({
      'a.test': { connections: 2, sessionsNow: 2, sessionsPeak: 2 },
      'b.test': { connections: 1, sessionsNow: 1, sessionsPeak: 1 },
    })
    for (const each of [talk, other]) await leave(each)
    expect(simulator.counters().domains['a.test']).toMatchObject({
      sessionsNow: 0,
      sessionsPeak: 2,
    })
  })

  test('count bytes before the greeting', async () => {
    const talk = await Talk.with(simulator, 'late.test')
    talk.send('EHLO probe.test\r\n')
    await talk.reply()
    expect(simulator.counters().total.pregreet).toBe('EHLO probe.test\r\n'.length)
    talk.hangUp()
  })

  test('count pipelining only if it is not offered or a command ends a group', async () => {
    const talk = await greeted()
    await talk.say('EHLO probe.test')
    talk.send('MAIL FROM:<>\r\nRCPT TO:<user1@a.test>\r\nRSET\r\n')
    for (let replies = 0; replies < 3; replies += 1) await talk.reply()
    expect(simulator.counters().total.outOfOrder).toBe(0)
    talk.send('EHLO probe.test\r\nMAIL FROM:<>\r\n')
    for (let replies = 0; replies < 2; replies += 1) await talk.reply()
    expect(simulator.counters().total.outOfOrder).toBe(1)
    talk.hangUp()
  })

  test('count lines that are too long or end with a bare LF', async () => {
    const talk = await greeted()
    talk.send('EHLO probe.test\n')
    expect(await talk.reply()).toMatch(/^500 5\.5\.2 /)
    talk.send(`EHLO ${'x'.repeat(3_000)}\r\n`)
    expect(await talk.reply()).toMatch(/^500 5\.5\.2 /)
    expect(simulator.counters().total.badLines).toBeGreaterThanOrEqual(2)
    talk.hangUp()
  })

  test('reset, except for open sessions', async () => {
    const talk = await greeted()
    await talk.say('EHLO probe.test')
    await rcpt(talk, 'user1@a.test')
    const before = simulator.counters()
    simulator.resetCounters()
    const sessions = { sessionsNow: 1, sessionsPeak: 1 }
    const stillOpen = { connections: 0, connectionsPerSecondPeak: 0, ...sessions }
    expect(simulator.counters().domains).toEqual({ 'a.test': stillOpen })
    expect(simulator.counters().total).toEqual({
      ...before.total,
      ...stillOpen,
      clients: { '127.0.0.1': stillOpen },
      commands: {},
      recipients: new Map(),
      transactions: 0,
      recipientsPerConnectionMax: 0,
      recipientsPerTransactionMax: 0,
    })
    expect(before.total.commands).toEqual({ EHLO: 1, MAIL: 1, RCPT: 1 })
    talk.hangUp()
  })

  test('survive serialization', async () => {
    const talk = await greeted()
    await talk.say('EHLO probe.test')
    await rcpt(talk, 'user1@a.test')
    const counters = simulator.counters()
    expect(countersFromJson(countersToJson(counters))).toEqual(counters)
    talk.hangUp()
  })
})
