import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import type { HostPlan } from '../../../src/simulator/smtp-host/behaviors.ts'
import { Talk } from '../talk.ts'

const HOST = 'mx.a.test'
let simulator: Simulator | undefined
afterEach(() => simulator?.close())

/** Connects to a new host and reads its greeting. */
async function visit(plan: Omit<HostPlan, 'behavior'> & Partial<Pick<HostPlan, 'behavior'>>) {
  simulator = await startSimulator({
    domains: {},
    hosts: { [HOST]: { behavior: 'catch-all', ...plan } },
  })
  return Talk.with(simulator, HOST)
}

async function greeted(plan: Parameters<typeof visit>[0]): Promise<Talk> {
  const talk = await visit(plan)
  expect(await talk.reply()).toMatch(/^220 /)
  return talk
}

describe('TLS', () => {
  test('can be offered by any host', async () => {
    const talk = await greeted({ starttls: true })
    expect(await talk.say('EHLO probe.test')).toContain('250 STARTTLS')
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^250 /)
    await talk.say('RSET')
    expect(await talk.say('STARTTLS')).toMatch(/^220 /)
    await talk.secure()
    expect(await talk.say('EHLO probe.test')).toMatch(/^250-/)
    talk.hangUp()
  })

  test('can be required without being offered', async () => {
    const talk = await greeted({ behavior: 'needs-starttls', starttls: false })
    expect(await talk.say('EHLO probe.test')).not.toContain('STARTTLS')
    expect(await talk.say('STARTTLS')).toMatch(/^502 /)
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^530 5\.7\.0 /)
    talk.hangUp()
  })

  test('can be rejected temporarily', async () => {
    const talk = await greeted({
      starttls: true,
      rules: [{ on: 'STARTTLS', reply: '454 4.7.0 TLS not available' }],
    })
    await talk.say('EHLO probe.test')
    expect(await talk.say('STARTTLS')).toMatch(/^454 /)
    expect(await talk.say('MAIL FROM:<>')).toMatch(/^250 /)
    talk.hangUp()
  })

  test('can fail in the handshake with an alert', async () => {
    const talk = await greeted({
      starttls: true,
      rules: [{ on: 'STARTTLS', reply: '220 go', end: 'tls-alert' }],
    })
    await talk.say('EHLO probe.test')
    expect(await talk.say('STARTTLS')).toBe('220 go')
    await expect(talk.secure()).rejects.toThrow(/alert handshake failure/)
  })

  test('can be followed by other data', async () => {
    const talk = await greeted({
      starttls: true,
      rules: [{ on: 'STARTTLS', raw: '220 go\r\nthis is no TLS, whatever you say', end: 'hang' }],
    })
    await talk.say('EHLO probe.test')
    talk.send('STARTTLS\r\n')
    expect(await talk.received(30)).toBe('220 go\r\nthis is no TLS, whatever you say')
    talk.hangUp()
  })

  test('discards plain text injected before it', async () => {
    const talk = await greeted({
      starttls: true,
      rules: [{ on: 'STARTTLS', reply: '220 go\n250 2.1.5 Put in between' }],
    })
    await talk.say('EHLO probe.test')
    talk.send('STARTTLS\r\n')
    expect(await talk.received(30)).toBe('220 go\r\n250 2.1.5 Put in between\r\n')
    expect(await talk.reply()).toBe('220 go')
    expect(await talk.reply()).toBe('250 2.1.5 Put in between')
    await talk.secure()
    expect(await talk.say('EHLO probe.test')).toMatch(/^250-/)
    talk.hangUp()
  })

  test('can break after the handshake', async () => {
    const talk = await greeted({
      starttls: true,
      rules: [{ on: 'RCPT', secure: true, end: 'reset' }],
    })
    await talk.say('EHLO probe.test')
    await talk.say('STARTTLS')
    await talk.secure()
    await talk.say('EHLO probe.test')
    await talk.say('MAIL FROM:<>')
    expect(await talk.say('RCPT TO:<ann@a.test>')).toBe('ECONNRESET')
  })
})

describe('streams', () => {
  test('can be any bytes: bare LF, NUL and beyond ASCII, and the session continues', async () => {
    const bytes = '250-bare\n250-\u0000\r\n250 \u00fcber\r\n'
    const talk = await greeted({ rules: [{ on: 'EHLO', raw: bytes }] })
    talk.send('EHLO probe.test\r\n')
    expect(await talk.received(bytes.length)).toBe(bytes)
    talk.send('MAIL FROM:<>\r\n')
    expect(await talk.received(bytes.length + 1)).toBe(`${bytes}250 2.1.0 Ok\r\n`)
    talk.hangUp()
  })

  test('can end within a reply', async () => {
    const talk = await visit({ rules: [{ on: 'CONNECT', raw: '220-mx.a', end: 'close' }] })
    expect(await talk.reply()).toBeNull()
    expect(await talk.received(0)).toBe('220-mx.a')
  })

  test('can be a raw greeting, which does not count as early talk', async () => {
    const talk = await visit({ rules: [{ on: 'CONNECT', raw: '220 mx.a.test\n' }] })
    await talk.received(14)
    talk.send('EHLO probe.test\r\n')
    expect(await talk.received(20)).toContain('250-mx.a.test')
    expect(simulator?.counters().total.pregreet).toBe(0)
    talk.hangUp()
  })
})

describe('a host that drops', () => {
  /** Returns the state of a connection attempt after a while. */
  const outcomeOf = (ip: string | undefined, port: number) =>
    new Promise<string>(resolve => {
      const socket = connect({ host: ip, port, timeout: 300 })
      const settle = (what: string) => {
        resolve(what)
        socket.destroy()
      }
      socket.on('connect', () => settle('taken'))
      socket.on('error', (error: NodeJS.ErrnoException) => settle(error.code ?? ''))
      socket.on('timeout', () => settle('nothing'))
    })

  test('neither accepts nor refuses connections, beside others that reply', async () => {
    simulator = await startSimulator({
      domains: {},
      hosts: {
        'mx.a.test': { behavior: 'polite' },
        'mx1.drops.test': { behavior: 'drops' },
        'mx2.drops.test': { behavior: 'drops' },
      },
    })
    const { smtpPort, addresses } = simulator
    const outcomes = ['mx.a.test', 'mx1.drops.test', 'mx2.drops.test', 'mx1.drops.test'].map(name =>
      outcomeOf(addresses.get(name)?.[0], smtpPort),
    )
    expect(await Promise.all(outcomes)).toEqual(['taken', 'nothing', 'nothing', 'nothing'])
  })

  test('releases its port when the simulator is closed', async () => {
    const scenario = { domains: {}, hosts: { 'mx.drops.test': { behavior: 'drops' } } } as const
    const first = await startSimulator(scenario)
    const { smtpPort } = first
    await expect(startSimulator({ ...scenario, smtpPort })).rejects.toThrow(
      `Port ${smtpPort} is in use`,
    )
    await first.close()
    simulator = await startSimulator({ ...scenario, smtpPort })
    expect(simulator.smtpPort).toBe(smtpPort)
  })
})

test('a scenario without reachable hosts has a port that refuses connections', async () => {
  simulator = await startSimulator({ domains: {}, hosts: { [HOST]: { behavior: 'dead' } } })
  expect(simulator.smtpPort).toBeGreaterThan(0)
  await expect(Talk.with(simulator, HOST)).rejects.toThrow('ECONNREFUSED')
})

test('a host without an address gets a unique one', async () => {
  simulator = await startSimulator({
    domains: {},
    hosts: {
      [HOST]: { behavior: 'polite' },
      'mx.b.test': { behavior: 'polite', ip: '127.20.0.1' },
    },
  })
  expect(simulator.addresses.get(HOST)).toEqual(['127.20.0.2'])
})
