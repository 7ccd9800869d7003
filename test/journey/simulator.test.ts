import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { createEngine } from '../../src/index.ts'
import { EXAMPLE_FILE, readScenario, type Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

let simulator: Simulator
let engine: Engine

async function startEngine(scenario: Scenario): Promise<void> {
  simulator = await startSimulator(scenario)
  engine = createEngine({
    dns: [simulator.dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    sessionsPerSecond: 1_000,
    connectTimeoutMs: 500,
    deadlineMs: 5_000,
  })
}

async function stop(): Promise<void> {
  await engine.close()
  await simulator.close()
}

// The results that docs/simulator.md states for the example.
describe('the example scenario', () => {
  beforeAll(() => startEngine(readScenario(EXAMPLE_FILE)))
  afterAll(stop)

  test.concurrent.each([
    ['ann@polite.test', 'accepted_email'],
    ['bob.berg@polite.test', 'accepted_email'],
    ['nobody@polite.test', 'rejected_email'],
    ['full.ann@polite.test', 'mailbox_full'],
    ['disabled.ann@polite.test', 'mailbox_disabled'],
    ['anything@everything.test', 'catch_all'],
    ['ann@later.test', 'greylisted'],
    ['ann@blocked.test', 'probe_blocked'],
    ['ann@locked.test', 'accepted_email'],
    ['nobody@locked.test', 'rejected_email'],
    ['ann@slow.test', 'accepted_email'],
    ['ann@scripted.test', 'accepted_email'],
    ['carl@scripted.test', 'mailbox_disabled'],
    ['dora@scripted.test', 'unavailable_smtp'],
    ['ann@hostile.test', 'invalid_smtp'],
    ['ann@backup.test', 'accepted_email'],
    ['ann@dropped.test', 'no_connect'],
    ['ann@takes-no-mail.test', 'does_not_accept_mail'],
    ['ann@web-only.test', 'no_mx_record'],
    ['ann@broken-dns.test', 'dns_error'],
    ['ann@nowhere.test', 'invalid_domain'],
  ])('verifies %s as %s', async (address, reason) => {
    expect((await engine.verify(address)).verdict.reason).toBe(reason)
  })
})

describe('a mailbox is unknown after a TLS failure', () => {
  const LOCKED = { behavior: 'needs-starttls' } as const
  const hosts = {
    'alert.test': { ...LOCKED, rules: [{ on: 'STARTTLS', reply: '220 go', end: 'tls-alert' }] },
    'closed.test': { ...LOCKED, rules: [{ on: 'STARTTLS', reply: '220 go', end: 'close' }] },
    'reset.test': { ...LOCKED, rules: [{ on: 'STARTTLS', reply: '220 go', end: 'reset' }] },
    'garbage.test': {
      ...LOCKED,
      rules: [{ on: 'STARTTLS', raw: '220 go\r\n\0no TLS', end: 'hang' }],
    },
    'refused.test': { ...LOCKED, rules: [{ on: 'STARTTLS', reply: '454 4.7.0 not now' }] },
    'absent.test': { ...LOCKED, starttls: false },
    'broken.test': { ...LOCKED, rules: [{ on: 'RCPT', end: 'reset' }] },
  } satisfies Scenario['hosts']

  beforeAll(() => startEngine({ mailboxes: ['ann'], domains: {}, hosts }))
  afterAll(stop)

  test.concurrent.each(Object.keys(hosts))('at %s', async domain => {
    const { verdict } = await engine.verify(`ann@${domain}`)
    expect(verdict).toMatchObject({ risk: 'unknown' })
  })
})

// RFC 3207 §6: plain text injected after the 220 is meant to be taken for the next replies.
test('plain text injected before TLS ends the session and is not taken for replies', async () => {
  const reply = '220 go\n250-x\n250 PIPELINING\n250 2.1.0 Ok\n550 5.1.1 User unknown'
  const rules = [{ on: 'STARTTLS', reply } as const]
  await startEngine({
    mailboxes: ['ann'],
    domains: {},
    hosts: { 'injected.test': { behavior: 'needs-starttls', rules } },
  })
  expect((await engine.verify('ann@injected.test')).verdict.reason).toBe('probe_blocked')
  await stop()
})

// RSET, MAIL and RCPT all get 250, so every reply after the duplicate seems to fit.
test('addresses of a connection with a duplicate reply are probed again, with correct verdicts', async () => {
  const locals = Array.from({ length: 80 }, (_, n) => `user${n}`)
  const mailboxes = locals.filter((_, n) => n % 3 !== 1)
  const raw = '250 2.1.5 Ok\r\n250 2.1.5 Ok\r\n'
  const rules = [{ on: 'RCPT', to: 'user6', connectionMax: 1, raw } as const]
  await startEngine({
    mailboxes,
    domains: {},
    hosts: { 'shifted.test': { behavior: 'polite', rules } },
  })
  const wrong: string[] = []
  for await (const result of engine.verifyMany(locals.map(local => `${local}@shifted.test`))) {
    const exists = mailboxes.includes(result.email.split('@')[0] ?? '')
    const { reason } = result.verdict
    if (reason !== (exists ? 'accepted_email' : 'rejected_email')) {
      wrong.push(`${result.email}: ${reason}`)
    }
  }
  expect(wrong).toEqual([])
  await stop()
})
