import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../src/platform/clock.ts'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { type MxScript, refused } from '../support/mx.ts'
import { isRandomRecipient, knows, toRecipients } from '../support/recipients.ts'
import type { ZoneEntry } from '../support/zone.ts'

const knowsAnn = knows('ann')
/** Replies to commands that start with a verb; a server that knows ann otherwise. */
const replying =
  (verb: RegExp, reply: string): NonNullable<MxScript['answer']> =>
  (line, session) =>
    verb.test(line) ? reply : knowsAnn(line, session)

const reasonAfter = (script: MxScript, address = 'ann@a.test') =>
  createTestEngine({ script }).reason(address)

describe('a 4xx that asks to retry', () => {
  test.each([
    [
      'by a policy, as iRedMail',
      '451 4.7.1 Recipient address rejected: local policy, try again later',
    ],
    ['in other words', '450 4.7.1 Your host is unknown here. Come back in 5 minutes'],
    ['in another language', '450 4.7.1 Bitte später erneut versuchen (Richtlinie)'],
  ])('is retried by a list: %s', async (_, grey) => {
    let now = () => 0
    const firstAt = new Map<string, number>()
    const script = toRecipients(to => {
      const first = firstAt.get(to) ?? now()
      firstAt.set(to, first)
      if (now() - first < 4 * MINUTE) return grey
      return isRandomRecipient(to) ? '550 5.1.1 No such user' : '250 2.1.5 Ok'
    })
    const { many, clock } = createTestEngine({ script })
    now = clock.monotonicNow
    expect(reasonsOf(await many(['ann@a.test']))).toEqual(['ann@a.test accepted_email'])
  })
})

describe('521 and 556 prove a host without mail only by their words, or alone as a greeting', () => {
  test.each([
    ['521 5.5.1 Protocol error'],
    ['521 5.5.2 mx.a.test Error: bare <LF> received'],
    ['556 remote ip check error.'],
    ['501 5.7.27 Domain in MAIL FROM has null MX record'],
    ['521 5.7.1 Service unavailable; client [192.0.2.9] blocked using a list'],
  ])('not by %s, at any stage', async reply => {
    const reasons = await Promise.all([
      reasonAfter({ greeting: reply }),
      reasonAfter({ answer: replying(/^(?:EHLO|HELO)/, reply) }),
      reasonAfter({ answer: replying(/^MAIL/, reply) }),
      reasonAfter({ answer: replying(/^RCPT/, reply) }),
    ])
    expect(reasons.filter(reason => !/^(?:probe_blocked|invalid_smtp)$/.test(reason))).toEqual([])
  })

  test('by a greeting of 521 with a host name, and by 556 to RCPT', async () => {
    expect(await reasonAfter({ greeting: '521 mx.a.test' })).toBe('does_not_accept_mail')
    const answer = replying(/^RCPT/, '556 5.1.10 Domain does not accept mail')
    expect(await reasonAfter({ answer })).toBe('does_not_accept_mail')
  })
})

test('a limit on unknown users, and a mailbox that may not send, are not dead mailboxes', async () => {
  for (const [reply, reason] of [
    ['550 5.1.1 Excessive number of userid unknowns', 'unavailable_smtp'],
    ['550 5.2.1 Sending of messages is disabled for this account', 'probe_blocked'],
    ['550 <ann@a.test>: Invalid DNS record (MX)', 'probe_blocked'],
  ] as const) {
    expect(await reasonAfter({ answer: replying(/^RCPT/, reply) })).toBe(reason)
  }
})

test('an address whose name is a word of the rules is read as an address', async () => {
  const answer = toRecipients(to => `550 The account (${to.toUpperCase()}), is unknown`)
  const { reason } = createTestEngine({ script: answer, zone: mail('listed.test', '192.0.2.2') })
  expect(await reason('spamhaus@listed.test')).toBe('rejected_email')
})

describe('a reply of lines with different codes has the meaning of the last one', () => {
  test.each([
    ['521 5.7.1 Service unavailable; client [192.0.2.9] blocked using a list', 'probe_blocked'],
    ['550 5.7.1 Service unavailable; client [192.0.2.9] blocked using a list', 'probe_blocked'],
    ['421 4.3.2 All server ports are busy', 'unavailable_smtp'],
    ['220 mx.a.test ESMTP', 'accepted_email'],
  ])('220- and %s', async (last, reason) => {
    const greeting = `220-mx.a.test ESMTP\n${last}`
    expect(await reasonAfter({ greeting, answer: knowsAnn })).toBe(reason)
  })

  test('a refusal of RCPT', async () => {
    const answer = replying(/^RCPT TO:<ann/, '550-5.1.1 Unknown\n554 5.1.1 No such user here')
    expect(await reasonAfter({ answer })).toBe('rejected_email')
  })
})

describe('a server that refuses EHLO', () => {
  test.each([500, 501, 502, 503, 504, 530, 550, 554])('with %i is greeted by HELO', async code => {
    expect(await reasonAfter({ answer: replying(/^EHLO/, `${code} 5.5.1 No`) })).toBe(
      'accepted_email',
    )
  })

  test.each([
    ['with HELO too', replying(/^(?:EHLO|HELO)/, '554 5.7.1 You are blocked')],
    ['with 521', replying(/^EHLO/, '521 5.7.1 You are blocked')],
    ['in its last line', replying(/^EHLO/, '250-mx.a.test\n250-SIZE\n550 5.7.1 You are blocked')],
  ])('%s blocks', async (_, answer) => {
    expect(await reasonAfter({ answer })).toBe('probe_blocked')
  })
})

test('a failed verification of the recipient is not one of the sender', async () => {
  const verified = (what: string) =>
    toRecipients(to => `550-Verification failed for <${to}>\n550-Unrouteable address\n550 ${what}`)
  expect(await reasonAfter({ answer: verified('Recipient verify failed') })).toBe('rejected_email')
  expect(await reasonAfter({ answer: verified('Sender verify failed') })).toBe('probe_blocked')
})

test.each([
  ['<check@probe.test>: no such user', 'probe_blocked'],
  ['<probe.test>: host not found', 'probe_blocked'],
  ['<ann@a.test>: no such user (from <check@probe.test>)', 'rejected_email'],
])(
  'a rejection that names the sender or the HELO name alone is about us: %s',
  async (text, reason) => {
    const mailFrom = 'check@probe.test'
    const script = toRecipients(() => `550 5.1.1 ${text}`)
    const engine = createTestEngine({ script, engine: { mailFrom } })
    expect(await engine.reason('ann@a.test')).toBe(reason)
  },
)

describe.each<[string, string, number]>([
  ['backup MX of the same operator', 'mx2.a.test', 20],
  ['backup MX of another operator', 'mx2.backup.test', 20],
  ['second MX of the same operator', 'mx2.a.test', 10],
  ['second MX of another operator', 'mx2.backup.test', 10],
  ['first MX of the same operator, with the same preference', 'mx0.a.test', 10],
  ['first MX of another operator, with the same preference', 'mx0.backup.test', 10],
])('a %s that does not serve the domain', (_, second, preference) => {
  const engineWith = (other: MxScript, entry: ZoneEntry = { A: ['192.0.2.1'] }) =>
    createTestEngine({
      zone: {
        'a.test': {
          MX: [
            [10, 'mx1.a.test'],
            [preference, second],
          ],
        },
        'mx1.a.test': entry,
        [second]: { A: ['192.0.2.2'] },
      },
      script: {
        ...other,
        answer: (line, session) =>
          session.to.host === second && line.startsWith('RCPT')
            ? '554 5.7.1 Relay access denied'
            : (other.answer ?? knowsAnn)(line, session),
      },
    })

  test.each<[string, string, MxScript, ZoneEntry?]>([
    [
      'refuses connections',
      'no_connect',
      {
        connect: to => {
          if (to.host !== second) throw refused(to)
        },
      },
    ],
    [
      'blocks us',
      'probe_blocked',
      {
        greeting: ({ to }) =>
          to.host === second ? undefined : '554 5.7.1 Your address is listed by a blocklist',
      },
    ],
    ['has no address that the DNS returns', 'dns_error', {}, 'server'],
    ['has no address', 'rejected_email', {}, {}],
    [
      'does not serve it either',
      'rejected_email',
      { answer: replying(/^RCPT/, '550 Relaying denied') },
    ],
    ['answers', 'accepted_email', {}],
  ])('decides only if the other host cannot: it %s, %s', async (_, reason, script, entry) => {
    expect(await engineWith(script, entry).reason('ann@a.test')).toBe(reason)
    const { many, recipients } = engineWith(script, entry)
    const listed = await many(['ann@a.test'], { wait: false })
    expect(listed.map(({ verdict }) => verdict.reason)).toEqual([reason])
    // With the random recipient.
    expect(recipients().length).toBeLessThanOrEqual(3)
  })

  test('is asked about few rows of a list', async () => {
    const { many, recipients } = engineWith({
      connect: to => {
        if (to.host !== second) throw refused(to)
      },
    })
    await many(Array.from({ length: 100 }, (_, n) => `ann${n}@a.test`))
    // Two connections may start before the first refusal arrives.
    expect(recipients().length).toBeLessThanOrEqual(40)
  })
})
