import { describe, expect, test } from 'vitest'
import type { LearnedReply, Result } from '../../../src/index.ts'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { createTestEngine, isRandomRecipient, mail, toRecipients } from '../../support/engine.ts'
import type { MxScript } from '../../support/mx.ts'
import { isRcpt } from '../../support/recipients.ts'
import type { ZoneEntry } from '../../support/zone.ts'
import { accepting, learnedStore } from './servers.ts'

/** Refusals of missing mailboxes that no rule knows; `{to}` is the recipient. */
const TEXTS = [
  ['Finnish', '550 5.7.1 <{to}> ei asu meillä'],
  ['Hungarian', '550 {to}: ilyen nevű postafiókot nem vezetünk'],
  ['Greek', '554 5.0.0 Η θυρίδα {to} δεν βρέθηκε ποτέ εδώ'],
  ['Thai', '550 ไม่มีกล่องจดหมายชื่อนี้'],
  ['Swahili', '550 5.4.1 Barua haiwezi kufika kwa {to} [a81f93b2c7]'],
] as const

let count = 0

const LIST = ['x1@a.test', 'ann@a.test', 'x2@a.test', 'bob@a.test', 'x3@a.test']

const learnedOf = ({ evidence: { answer } }: Result) =>
  answer?.kind === 'rejected' ? (answer.learned ?? null) : null

describe.each(TEXTS)('a server that answers in %s', (_, text) => {
  const script = accepting(['ann', 'bob'], text)

  test('teaches its words with one connection more, and only once', async () => {
    const home = createTestEngine({ script })
    expect((await home.verify('x1@a.test')).verdict.risk).toBe('unknown')
    expect(home.mx.dialled).toHaveLength(1)
    const ann = await home.verify('ann@a.test')
    expect([ann.verdict.reason, ann.evidence.catchAll]).toEqual(['accepted_email', false])
    expect(home.mx.dialled).toHaveLength(3)
    const [, , second] = home.mx.sessions
    expect(second?.lines.filter(line => line.startsWith('RCPT'))).toEqual([
      'RCPT TO:<ann@a.test>',
      expect.stringMatching(/^RCPT TO:<[a-z][a-z\d]{19}@a\.test>$/),
      'RCPT TO:<ann@a.test>',
    ])
    const missing = await home.verify('x1@a.test')
    expect(missing.verdict).toMatchObject({ reason: 'rejected_email', confidence: 90 })
    expect(learnedOf(missing)).toEqual({ scope: 'domain', domains: 1 })
    expect(await home.reason('bob@a.test')).toBe('accepted_email')
    expect(home.mx.dialled).toHaveLength(5)
  })

  test('gives a list the same results, over one connection and without a wait', async () => {
    const home = createTestEngine({ script })
    const startedAt = home.clock.monotonicNow()
    const results = await home.many(LIST)
    expect(Object.fromEntries(results.map(one => [one.email, one.verdict.reason]))).toEqual({
      'ann@a.test': 'accepted_email',
      'bob@a.test': 'accepted_email',
      'x1@a.test': 'rejected_email',
      'x2@a.test': 'rejected_email',
      'x3@a.test': 'rejected_email',
    })
    expect(home.clock.monotonicNow() - startedAt).toBeLessThan(1_000)
    expect(home.mx.dialled).toHaveLength(1)
    // Besides the list: the random recipient, and an accepted one again.
    expect(home.recipients()).toHaveLength(LIST.length + 2)
    expect(home.recipients().at(-1)).toBe('bob@a.test')
  })

  test('is understood by a later process', async () => {
    const store = learnedStore()
    const before = createTestEngine({ script, engine: { learnedReplies: store } })
    await before.many(LIST)
    const after = createTestEngine({ script, engine: { learnedReplies: store } })
    expect(await after.reason('x9@a.test')).toBe('rejected_email')
    expect(await after.reason('bob@a.test')).toBe('accepted_email')
    expect(after.mx.dialled).toHaveLength(2)
  })
})

describe('a server with limits of its own', () => {
  const script = accepting(['ann', 'bob'], '550 Ei onnistu')

  test.each<[string, NonNullable<MxScript['answer']>]>([
    [
      'without PIPELINING',
      (line, session) => (line.startsWith('EHLO') ? '250 mx.test' : script(line, session)),
    ],
    [
      'that takes one recipient per transaction',
      (line, session) => {
        const from = session.lines.findLastIndex(one => one.startsWith('MAIL'))
        const isSecond = session.lines.slice(from).filter(isRcpt).length > 1
        return isRcpt(line) && isSecond ? '452 4.5.3 Too many recipients' : script(line, session)
      },
    ],
  ])('%s teaches its words too', async (_, answer) => {
    const home = createTestEngine({ script: answer })
    const results = await home.many(LIST)
    expect(results.map(one => `${one.email} ${one.verdict.reason}`).toSorted()).toEqual([
      'ann@a.test accepted_email',
      'bob@a.test accepted_email',
      'x1@a.test rejected_email',
      'x2@a.test rejected_email',
      'x3@a.test rejected_email',
    ])
  })
})

describe('the second look at a domain', () => {
  const script = accepting(['ann', 'bob'], '550 Ei onnistu')

  test.each<[string, MxScript]>([
    ['is not greeted', { greeting: ({ number }) => (number === 0 ? undefined : null) }],
    ['is refused', { greeting: ({ number }) => (number === 0 ? undefined : '554 Blocked') }],
    [
      'cannot connect',
      {
        connect: () => {
          if (count++ > 0) throw new Error('refused')
        },
      },
    ],
    ['gets 421', { greeting: ({ number }) => (number === 0 ? undefined : '421 Busy') }],
    [
      'hangs',
      {
        answer: (line, session) =>
          session.number > 0 && line.startsWith('RCPT') ? null : script(line, session),
      },
    ],
  ])('that %s leaves the acceptance as it was, within seconds', async (_, how) => {
    for (const isList of [false, true]) {
      count = 0
      const home = createTestEngine({ script: { answer: script, ...how } })
      const startedAt = home.clock.monotonicNow()
      const [result] = isList
        ? await home.many(['ann@a.test'], { wait: false })
        : [await home.verify('ann@a.test')]
      expect(result?.verdict.reason).toBe('low_deliverability')
      if (!isList) expect(home.clock.monotonicNow() - startedAt).toBeLessThan(4_000)
    }
  })

  test('is taken once an hour if it shows nothing', async () => {
    let isBlocking = false
    const home = createTestEngine({
      script: (line, session) =>
        isBlocking && session.number % 2 === 1 && line.startsWith('RCPT')
          ? '451 4.3.0 Try again later'
          : script(line, session),
    })
    isBlocking = true
    const countAfter = async () => {
      await home.verify('ann@a.test', { forceRefresh: true })
      return home.mx.dialled.length
    }
    expect(await countAfter()).toBe(2)
    expect(await countAfter()).toBe(3)
    await home.clock.advance(HOUR)
    isBlocking = false
    expect(await countAfter()).toBe(5)
    expect(await home.reason('x1@a.test')).toBe('rejected_email')
  })

  test('asks two accepted recipients if there are two', async () => {
    const home = createTestEngine({ script })
    await home.many(['ann@a.test', 'bob@a.test'])
    expect(home.mx.dialled).toHaveLength(2)
    const isRandom = (to: string) => (isRandomRecipient(to) ? 'random' : to)
    expect(home.recipients().slice(-3).map(isRandom)).toEqual([
      ...['ann@a.test', 'random', 'bob@a.test'],
    ])
  })
})

describe('what a session does not teach', () => {
  test.each([
    ['a 4xx', '450 4.7.1 Ei onnistu'],
    ['a text about the client', '550 5.7.1 Your IP address is on a block list'],
    ['a text about the sender', '550 5.1.8 Sender address rejected: Domain not found'],
    ['a text about the rate', '550 Too many messages, slow down'],
    ['a text about TLS', '530 5.7.0 Must issue a STARTTLS command first'],
    ['a code about the client', '550 5.7.25 Ei onnistu'],
    ['a text about spam', '550 Viesti on spam'],
    ['a code without words', '554 5.7.1 17'],
    ['a text that is too long', `550 ${'ei onnistu '.repeat(60)}`],
  ])('%s', async (_, text) => {
    const home = createTestEngine({ script: accepting(['ann', 'bob'], text) })
    const store = learnedStore()
    const again = createTestEngine({
      script: accepting(['ann', 'bob'], text),
      engine: { learnedReplies: store },
    })
    await home.verify('ann@a.test')
    // No second look: it asks as often as before.
    expect(home.mx.dialled).toHaveLength(1)
    for (const { email, verdict } of await again.many(LIST)) {
      if (email.startsWith('x')) expect(verdict.risk).toBe('unknown')
    }
    expect(store.all).toEqual([])
  })

  test('the refusal of a domain that accepts the random recipient', async () => {
    const script = toRecipients(to => (to.startsWith('x') ? '550 Ei onnistu' : '250 2.1.5 Ok'))
    const home = createTestEngine({ script })
    const reasons = (await home.many(LIST)).map(one => `${one.email} ${one.verdict.reason}`)
    expect(reasons.toSorted()).toEqual([
      'ann@a.test catch_all',
      'bob@a.test catch_all',
      'x1@a.test probe_blocked',
      'x2@a.test probe_blocked',
      'x3@a.test probe_blocked',
    ])
  })

  test('replies that are out of step with the commands', async () => {
    const store = learnedStore()
    // A second reply to each MAIL: RCPT gets the reply to the command before it.
    const script = (line: string) => {
      if (line.startsWith('MAIL')) return '250 2.1.0 Ok\n250 2.1.0 Ok'
      return line.startsWith('RCPT TO:<x') || isRandomRecipient(line.slice(9, -1))
        ? '550 Ei onnistu'
        : undefined
    }
    const home = createTestEngine({ script, engine: { learnedReplies: store } })
    for (const { verdict } of await home.many(LIST)) {
      expect(verdict.reason).not.toBe('rejected_email')
    }
    expect(store.all).toEqual([])
  })

  test('a text that the operator also says before RCPT', async () => {
    let isBlocked = true
    const reply = accepting(['ann', 'bob'], '550 5.7.1 Ei onnistu')
    const home = createTestEngine({
      script: {
        greeting: () => (isBlocked ? '554 Ei onnistu' : undefined),
        answer: reply,
      },
    })
    expect(await home.reason('ann@a.test')).toBe('probe_blocked')
    isBlocked = false
    await home.clock.advance(DAY / 12)
    expect(await home.reason('ann@a.test')).toBe('low_deliverability')
    expect(await home.reason('x1@a.test')).toBe('probe_blocked')
  })
})

describe('a recipient that was accepted earlier', () => {
  const script = accepting(['ann', 'bob'], '550 Ei onnistu')

  test('is asked after a single one, which a block would refuse too', async () => {
    const home = createTestEngine({ script })
    await home.verify('ann@a.test')
    await home.verify('x1@a.test')
    expect(home.recipients().slice(-2)).toEqual(['x1@a.test', 'ann@a.test'])
    // Another user may have verified it.
    const { evidence } = await home.verify('x2@a.test', { include: ['dialogue'] })
    expect(evidence.dialogue?.join('\n')).not.toContain('ann@a.test')
    expect(evidence.answer?.kind).toBe('rejected')
  })

  test('is asked in the spelling of the DNS', async () => {
    const home = createTestEngine({ script, zone: mail('xn--bcher-kva.test', '192.0.2.5') })
    expect(await home.reason('ann@bücher.test')).toBe('accepted_email')
    expect(await home.reason('x1@bücher.test')).toBe('rejected_email')
    expect(home.recipients().at(-1)).toBe('ann@xn--bcher-kva.test')
  })

  test('shows both connections of a second look in its dialogue', async () => {
    const home = createTestEngine({ script })
    const { evidence } = await home.verify('ann@a.test', { include: ['dialogue'] })
    const lines = evidence.dialogue?.filter(line => line === 'C: RCPT TO:<ann@a.test>')
    expect(lines).toHaveLength(3)
  })
})

describe('numbers in a text', () => {
  const numbered = (next: (to: string) => number) =>
    toRecipients(to =>
      to.startsWith('ann') || to.startsWith('bob')
        ? '250 2.1.5 Ok'
        : `550 Ei onnistu (${next(to)})`,
    )

  test('that differ between random recipients are not error codes', async () => {
    let count = 100
    const script = numbered(() => count++)
    const home = createTestEngine({ script })
    expect(await home.reason('ann@a.test')).toBe('accepted_email')
    expect(await home.reason('x1@a.test')).toBe('rejected_email')
    const list = createTestEngine({ script })
    const missing = (await list.many(LIST)).filter(({ email }) => email.startsWith('x'))
    expect(missing.map(({ verdict }) => verdict.reason)).toEqual(Array(3).fill('rejected_email'))
    expect(list.mx.dialled).toHaveLength(2)
  })

  test('that are the same for all random recipients are error codes', async () => {
    const home = createTestEngine({
      script: numbered(to => (to.startsWith('blocked') ? 17 : 12)),
    })
    expect(await home.reason('ann@a.test')).toBe('accepted_email')
    expect(await home.reason('blocked1@a.test')).toBe('probe_blocked')
    expect(await home.reason('x1@a.test')).toBe('rejected_email')
  })
})

/** `count` domains with a server each, of one operator, and the domain `new.test` at another one. */
function hosted(count: number, hostOf: (n: number) => string, ipOf: (n: number) => string) {
  const entries: Record<string, ZoneEntry> = {}
  for (const n of Array.from({ length: count + 1 }, (_, n) => n)) {
    const domain = n === count ? 'new.test' : `d${n}.test`
    entries[domain] = { MX: [[10, hostOf(n)]] }
    entries[hostOf(n)] = { A: [ipOf(n)] }
  }
  return entries
}

describe('what an operator teaches', () => {
  const sameOperator = (n: number) => `mx${n}.op.test`
  const ip = (n: number) => `192.0.2.${n + 10}`

  async function reasonAfter(count: number, text: string, zone?: Record<string, ZoneEntry>) {
    const home = createTestEngine({
      script: accepting(['ann'], text),
      zone: zone ?? hosted(count, sameOperator, ip),
    })
    for (let n = 0; n < count; n++) {
      expect(await home.reason(`ann@d${n}.test`)).toBe('accepted_email')
    }
    const result = await home.verify('x1@new.test')
    return { reason: result.verdict.reason, confidence: result.verdict.confidence, result }
  }

  test('three domains decide where the only recipient does not exist', async () => {
    const { result, ...verdict } = await reasonAfter(3, '550 Ei onnistu {to}')
    expect(verdict).toEqual({ reason: 'rejected_email', confidence: 85 })
    expect(learnedOf(result)).toEqual({ scope: 'operator', domains: 3 })
  })

  test.each<[string, number, string]>([
    ['two domains', 2, '550 Ei onnistu {to}'],
    ['a text that says no more than "denied"', 4, '550 Access denied'],
    ['a text with a code of policy', 4, '550 5.7.1 Ei onnistu {to}'],
  ])('%s do not', async (_, count, text) => {
    expect(await reasonAfter(count, text)).toMatchObject({ reason: 'probe_blocked' })
  })

  test('later domains need no second look', async () => {
    const home = createTestEngine({
      script: accepting(['ann'], '550 Ei onnistu {to}'),
      zone: hosted(5, sameOperator, ip),
    })
    for (const n of [0, 1, 2]) await home.verify(`ann@d${n}.test`)
    expect(home.mx.dialled).toHaveLength(6)
    for (const n of [3, 4]) expect(await home.reason(`ann@d${n}.test`)).toBe('accepted_email')
    expect(home.mx.dialled).toHaveLength(8)
  })

  test('subdomains of one domain count once', async () => {
    const entries: Record<string, ZoneEntry> = { 'mx.op.test': { A: ['192.0.2.9'] } }
    const domains = ['a.one.test', 'b.one.test', 'c.one.test', 'new.test']
    for (const domain of domains) entries[domain] = { MX: [[10, 'mx.op.test']] }
    const home = createTestEngine({
      script: accepting(['ann'], '550 Ei onnistu {to}'),
      zone: entries,
    })
    for (const domain of domains.slice(0, 3)) await home.verify(`ann@${domain}`)
    expect(await home.reason('x1@new.test')).toBe('probe_blocked')
  })

  test('one domain that gives the text to accepted recipients too takes it back', async () => {
    let isBlocking = false
    const reply = accepting(['ann'], '550 Ei onnistu {to}')
    const home = createTestEngine({
      script: (line, session) =>
        isBlocking && line.includes('ann@d0.test')
          ? '550 Ei onnistu ann@d0.test'
          : reply(line, session),
      zone: hosted(3, sameOperator, ip),
    })
    for (const n of [0, 1, 2]) await home.verify(`ann@d${n}.test`)
    isBlocking = true
    expect(await home.reason('ann@d0.test', { forceRefresh: true })).toBe('probe_blocked')
    expect(await home.reason('x1@new.test')).toBe('probe_blocked')
  })
})

describe('what a server software teaches', () => {
  const ownOperator = (n: number) => `mx.o${n}.test`
  const SUBNETS = ['192.0.2', '198.51.100', '203.0.113']
  const spread = (n: number) => `${SUBNETS[n % 3]}.${n + 1}`

  test.each<[string, (n: number) => string, (n: number) => string, string | undefined, string]>([
    [
      'five domains of five operators decide',
      ownOperator,
      spread,
      '220 mx ESMTP Postfix',
      'rejected_email',
    ],
    [
      'one subnet does not',
      ownOperator,
      n => `192.0.2.${n + 1}`,
      '220 mx ESMTP Postfix',
      'probe_blocked',
    ],
    [
      'two operators do not',
      n => (n === 5 ? 'mx.own.test' : `mx${n}.o${n % 2}.test`),
      ...([spread, '220 mx ESMTP Postfix', 'probe_blocked'] as const),
    ],
    ['software that is not named does not', ownOperator, spread, undefined, 'probe_blocked'],
  ])('%s', async (_, hostOf, ipOf, greeting, reason) => {
    const home = createTestEngine({
      script: {
        answer: accepting(['ann'], '550 Ei onnistu {to}'),
        ...(greeting === undefined ? {} : { greeting }),
      },
      zone: hosted(5, hostOf, ipOf),
      engine: { allowRanges: SUBNETS.map(subnet => `${subnet}.0/24`) },
    })
    for (let n = 0; n < 5; n++) await home.verify(`ann@d${n}.test`)
    const result = await home.verify('x1@new.test')
    expect(result.verdict.reason).toBe(reason)
    if (reason === 'rejected_email')
      expect(learnedOf(result)).toEqual({ scope: 'software', domains: 5 })
  })
})

describe('the memory', () => {
  test('keeps twenty texts of a domain that has one for each recipient', async () => {
    const store = learnedStore()
    const zone = Object.assign(
      {},
      ...Array.from({ length: 25 }, (_, n) => mail(`d${n}.evil.test`, '192.0.2.66')),
    )
    let count = 0
    const words = 'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda my ny xi'.split(
      ' ',
    )
    const script = toRecipients(to =>
      to.startsWith('ann') ? '250 2.1.5 Ok' : `550 ${words[count++ % words.length]} ei onnistu`,
    )
    const home = createTestEngine({ script, zone, engine: { learnedReplies: store } })
    for (let n = 0; n < 25; n++) await home.verify(`ann@d${n}.evil.test`)
    expect(new Set(store.all.map(({ domain }) => domain)).size).toBe(25)
    const reasonLater = (email: string, text: string) =>
      createTestEngine({
        script: accepting([], text),
        zone,
        engine: { learnedReplies: store },
      }).reason(email)
    // The second word of each domain is that of its second look.
    expect(await reasonLater('x1@d0.evil.test', '550 beta ei onnistu')).toBe('probe_blocked')
    expect(await reasonLater('x1@d24.evil.test', '550 theta ei onnistu')).toBe('rejected_email')
  })

  test('does not delay or fail a verification if it cannot be read', async () => {
    const home = createTestEngine({
      script: accepting(['ann'], '550 Ei onnistu'),
      engine: {
        learnedReplies: { load: () => Promise.reject(new Error('locked')), put() {} },
      },
    })
    expect(await home.reason('ann@a.test')).toBe('accepted_email')
    expect(home.loggedErrors.join()).toContain(
      'learned replies could not be read {"error":"locked"}',
    )
  })

  test('forgets a text after half a year', async () => {
    const at = 0
    const known: LearnedReply = {
      domain: 'a.test',
      reply: '550 ei onnistu',
      operator: 'a.test',
      software: null,
      subnet: '192.0.2.0/24',
      isRefuted: false,
      at,
    }
    const script = accepting([], '550 Ei onnistu')
    const reasonAt = async (days: number) => {
      const store = learnedStore()
      const home = createTestEngine({ script, engine: { learnedReplies: store } })
      store.all.push({ ...known, at: home.clock.now() - days * DAY })
      return home.reason('x1@a.test')
    }
    expect(await reasonAt(179)).toBe('rejected_email')
    expect(await reasonAt(181)).toBe('probe_blocked')
  })
})
