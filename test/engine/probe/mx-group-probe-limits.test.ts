import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { HostHealth } from '../../../src/engine/probe/host-health.ts'
import { onUnknownRecipient } from '../../../src/engine/rate-control/rules.ts'
import { type Clock, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { type MxScript, refused } from '../../support/mx.ts'
import { ask, createTestProber, each, people, ROW, sorted } from '../../support/prober.ts'
import { knows, toRecipients } from '../../support/recipients.ts'
import { fakeSharedRates } from '../../support/shared-rate-state.ts'

describe('a block', () => {
  const LISTED = '554 5.7.1 Your address is listed by a blocklist'

  test.each([
    ['greeting', { greeting: LISTED }],
    ['EHLO', { answer: (line: string) => (/^(?:EHLO|HELO)/.test(line) ? LISTED : undefined) }],
    ['MAIL', { answer: (line: string) => (line.startsWith('MAIL') ? LISTED : undefined) }],
  ] as [string, MxScript][])(
    'at %s applies to all remaining recipients, without further dials',
    async (_, script) => {
      const home = createTestProber(script)
      const walk = await home.run(people(3))
      expect(walk.answers()).toEqual(each(people(3), 'blocked/blocklist'))
      expect(walk.told.every(({ probed }) => probed.asked)).toBe(true)
      expect(home.mx.dialled).toHaveLength(1)
      const later = await home.run([ask('zoe@z.test', ['other.test'])])
      expect(later.answers()).toEqual(['zoe@z.test blocked/blocklist'])
      expect(later.only().asked).toBe(false)
      expect(home.mx.dialled).toHaveLength(1)
    },
  )

  test('counts for half an hour', async () => {
    let listed = true
    const home = createTestProber({
      greeting: () => (listed ? LISTED : undefined),
      answer: knows(),
    })
    await home.run(['ann@a.test'])
    listed = false
    await home.clock.advance(29 * MINUTE)
    expect((await home.run(['ann@a.test'])).answers()).toEqual(['ann@a.test blocked/blocklist'])
    await home.clock.advance(MINUTE)
    expect((await home.run(['ann@a.test'])).answers()).toEqual(['ann@a.test rejected/no-mailbox'])
  })

  test('of one recipient concerns this recipient only', async () => {
    const home = createTestProber(
      toRecipients(to => (to === 'p01@a.test' ? LISTED : '550 5.1.1 No')),
    )
    const walk = await home.run(people(3))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test rejected/no-mailbox',
      'p01@a.test blocked/blocklist',
      'p02@a.test rejected/no-mailbox',
    ])
  })

  test('of two recipients does not yet block the operator', async () => {
    const home = createTestProber(toRecipients(to => (to < 'p02' ? LISTED : '550 5.1.1 No')))
    await home.run(people(4))
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(true)
  })

  test('of one recipient is not a success and does not reset the pause', async () => {
    let said = '421 4.7.0 You talk too fast'
    const home = createTestProber(line => (line.startsWith('RCPT') ? said : undefined))
    await home.run(['ann@a.test'])
    await home.clock.advance(5 * MINUTE)
    said = LISTED
    await home.run(['ann@a.test'])
    home.prober.rateController('mx.test').throttled(null)
    expect(home.prober.rateController('mx.test').readyInMs).toBe(10 * MINUTE)
  })

  test('of three consecutive recipients blocks the domain, and its others are not probed', async () => {
    const home = createTestProber(
      toRecipients(to => (to === 'p00@a.test' ? undefined : LISTED)),
      {
        row: { recipientsPerTransaction: 5 },
      },
    )
    const walk = await home.run(people(8))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test accepted/recipient',
      ...each(people(8).slice(1), 'blocked/blocklist'),
    ])
    expect(home.recipients()).toEqual(people(5))
    const later = await home.run(['zoe@a.test'])
    expect(later.answers()).toEqual(['zoe@a.test blocked/blocklist'])
    expect(later.only().asked).toBe(false)
    expect((await home.run(['zoe@b.test'])).only().asked).toBe(true)
  })

  test.each([
    ['our address', LISTED],
    ['our name', '550 5.7.25 The IP address sending this message does not have a PTR record'],
  ])('because of %s at three consecutive domains blocks the operator', async (_, refusal) => {
    const home = createTestProber(toRecipients(() => refusal))
    const domains = ['b.test', 'c.test', 'd.test', 'e.test'].map(domain => `ann@${domain}`)
    const walk = await home.run(domains)
    expect(home.recipients()).toEqual(domains.slice(0, 3))
    expect(walk.told.map(({ probed }) => probed.asked)).toEqual([true, true, true, false])
    expect(home.prober.rateController('mx.test').isRefused).toBe(true)
  })

  test('at several domains with an answer in between does not block the operator', async () => {
    const home = createTestProber(
      toRecipients(to => (to.endsWith('@d.test') ? '550 5.1.1 No such user' : LISTED)),
    )
    const domains = ['b.test', 'c.test', 'd.test', 'e.test', 'f.test'].map(name => `ann@${name}`)
    await home.run(domains)
    expect(home.recipients()).toEqual(domains)
    expect(home.prober.rateController('mx.test').isRefused).toBe(false)
  })

  test('by policy blocks the operator after three domains with three recipients each', async () => {
    const policy = '550 5.7.1 Denied by a policy of ours'
    const home = createTestProber(toRecipients(() => policy))
    const domains = ['b.test', 'c.test', 'd.test', 'e.test']
    await home.run(domains.flatMap(domain => people(2, domain)))
    expect(home.prober.rateController('mx.test').isRefused).toBe(false)
    await home.run(domains.flatMap(domain => people(1, domain)))
    expect(home.prober.rateController('mx.test').isRefused).toBe(true)
  })

  test('that requires authentication never blocks the operator', async () => {
    const home = createTestProber(toRecipients(() => '530 5.7.0 Authentication required'))
    for (const domain of ['b.test', 'c.test', 'd.test']) await home.run(people(4, domain))
    expect(home.prober.rateController('mx.test').isRefused).toBe(false)
    expect((await home.run(['zoe@b.test'])).only().asked).toBe(false)
    expect((await home.run(['zoe@e.test'])).only().asked).toBe(true)
  })

  test('three times with another answer in between does not block the operator', async () => {
    const home = createTestProber(
      toRecipients(to => (to === 'p02@a.test' ? '550 5.1.1 No' : LISTED)),
    )
    await home.run(people(5).slice(0, 4))
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(true)
  })
})

describe('a server that throttles', () => {
  const SLOW = '421 4.7.0 You talk too fast'

  test.each([
    ['greeting', { greeting: SLOW }],
    ['EHLO', { answer: (line: string) => (line.startsWith('EHLO') ? SLOW : undefined) }],
    ['MAIL', { answer: (line: string) => (line.startsWith('MAIL') ? SLOW : undefined) }],
    ['RCPT', { answer: (line: string) => (line.startsWith('RCPT') ? SLOW : undefined) }],
  ] as [string, MxScript][])('at %s is paused for five minutes, then ten', async (_, script) => {
    const home = createTestProber(script)
    const walk = await home.run(people(3))
    expect(walk.answers()).toEqual(each(people(3), 'deferred/rate'))
    expect(home.mx.dialled).toHaveLength(1)
    const held = await home.run(['zoe@a.test'])
    expect(held.only()).toMatchObject({ asked: false, answer: { kind: 'deferred', why: 'rate' } })
    await home.clock.advance(5 * MINUTE)
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(true)
    await home.clock.advance(9 * MINUTE)
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(false)
    await home.clock.advance(MINUTE)
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(true)
  })

  test('at one recipient ends the session after the answers, without a catch-all test', async () => {
    const home = createTestProber(
      toRecipients(to => (to === 'p01@a.test' ? '450 4.7.1 Throttled, slow down' : undefined)),
      {
        row: { recipientsPerTransaction: 2 },
      },
    )
    const walk = await home.run(people(4))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test accepted/recipient',
      ...each(people(4).slice(1), 'deferred/rate'),
    ])
    expect(home.recipients()).toEqual(people(2))
  })

  test('gives the deferred recipients the length of the pause', async () => {
    const home = createTestProber({ greeting: SLOW })
    await home.run(['ann@a.test'])
    const { answer } = (await home.run(['zoe@a.test'])).only()
    expect(answer).toMatchObject({ kind: 'deferred', why: 'rate' })
    const waitMs = answer.kind === 'deferred' ? (answer.retryAfterMs ?? 0) : 0
    expect(waitMs).toBeGreaterThan(4 * MINUTE)
    expect(waitMs).toBeLessThanOrEqual(5 * MINUTE)
    expect(waitMs % SECOND).toBe(0)
  })
})

describe('consecutive unknown users', () => {
  const row = { unknownStreakMax: 3 }

  test('end the session at the limit, before any further recipient', async () => {
    const home = createTestProber(knows(), { row })
    const walk = await home.run(people(5))
    expect(home.recipients()).toEqual(people(3))
    expect(sorted(walk.answers())).toEqual([
      ...each(people(3), 'rejected/no-mailbox'),
      ...each(people(5).slice(3), 'deferred/rate'),
    ])
    expect(walk.told.filter(({ probed }) => probed.asked)).toHaveLength(3)
  })

  test('cause a pause, after which probing continues', async () => {
    const home = createTestProber(knows(), { row })
    await home.run(people(5), { timeoutMs: MINUTE })
    expect(home.mx.dialled).toHaveLength(2)
    expect(home.recipients()).toEqual(people(5))
  })

  test('are counted from zero after a known user', async () => {
    const home = createTestProber(knows('p02@a.test', 'p05@a.test'), { row })
    const walk = await home.run(people(8).map(email => ask(email, ['mx.test'], false)))
    expect(walk.told.every(({ probed }) => probed.asked)).toBe(true)
    expect(home.mx.dialled).toHaveLength(1)
  })

  test('cause a longer pause each time, until a known user is found', async () => {
    const home = createTestProber(knows('real@a.test'), { row })
    const pauseAfter = async (emails: readonly string[]) => {
      await home.run(emails.map(email => ask(email, ['mx.test'], false)))
      const pauseMs = home.prober.rateController('mx.test').readyInMs
      await home.clock.advance(pauseMs)
      return Math.round(pauseMs / SECOND)
    }
    expect(await pauseAfter(people(4))).toBe(10)
    expect(await pauseAfter(people(4))).toBe(20)
    await home.run([ask('real@a.test', ['mx.test'], false)])
    expect(await pauseAfter(people(4))).toBe(10)
  })

  test('count across the chunks of a list', async () => {
    const home = createTestProber(knows(), { row })
    await home.run(people(3))
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(false)
  })

  test('up to whose limit several processes have counted together are followed by one more, and a pause', async () => {
    const share = (clock: Clock) => {
      const states = fakeSharedRates(clock)
      const { note } = states.open({ operator: 'mx.test', egress: 'default' }, { ...ROW, ...row })
      for (let n = 0; n < row.unknownStreakMax; n++) note(onUnknownRecipient)
      return states
    }
    const home = createTestProber(knows(), { row, share })
    const walk = await home.run(people(5))
    expect(home.recipients()).toEqual(people(1))
    expect(sorted(walk.answers())).toEqual([
      ...each(people(1), 'rejected/no-mailbox'),
      ...each(people(5).slice(1), 'deferred/rate'),
    ])
  })

  test('of single verifications cause no pause', async () => {
    const home = createTestProber(knows(), { row })
    for (const person of people(4)) await home.single(person)
    expect((await home.run(['zoe@a.test'])).only().asked).toBe(true)
  })
})

describe('MX hosts that are down', () => {
  const down: MxScript = {
    connect: to => {
      throw refused(to)
    },
  }

  test('are dialed twice and then skipped for a minute', async () => {
    const home = createTestProber(down)
    const walk = await home.run(people(3))
    expect(walk.answers()).toEqual(each(people(3), 'no-response/connect'))
    expect(home.mx.dialled).toHaveLength(2)
    const later = await home.run(['zoe@a.test'])
    expect(later.only()).toMatchObject({
      asked: false,
      answer: { kind: 'no-response', why: 'connect' },
    })
    await home.clock.advance(59 * SECOND)
    await home.run(['zoe@a.test'])
    expect(home.mx.dialled).toHaveLength(2)
    await home.clock.advance(2 * SECOND)
    await home.run(['zoe@a.test'])
    expect(home.mx.dialled.length).toBeGreaterThan(2)
  })

  test('do not affect other MX hosts of the operator', async () => {
    const home = createTestProber(down, { zone: { 'other.test': { A: ['192.0.2.2'] } } })
    await home.run(people(1))
    const dialled = home.mx.dialled.length
    await home.run([ask('zoe@z.test', ['other.test'])])
    expect(home.mx.dialled.length).toBeGreaterThan(dialled)
  })

  test('count as up after the first answer', async () => {
    let isDown = true
    const home = createTestProber({
      answer: knows(),
      connect: to => {
        if (isDown) throw refused(to)
      },
    })
    await home.single('ann@a.test')
    isDown = false
    await home.single('ann@a.test')
    isDown = true
    await home.single('ann@a.test')
    isDown = false
    // One failure, an answer, one failure: never two in a row.
    expect((await home.single('ann@a.test')).only().asked).toBe(true)
  })

  test('do not count as up after an answer without a probe', async () => {
    const home = createTestProber(down)
    const pace = home.prober.rateController('mx.test')
    await home.single('ann@a.test')
    pace.refused({
      kind: 'blocked',
      why: 'blocklist',
      stage: 'greeting',
      reply: { code: 554, enhanced: null, text: 'listed' },
    })
    expect((await home.single('ann@a.test')).only().asked).toBe(false)
    pace.succeeded()
    await home.single('ann@a.test')
    // Two failures in a row.
    expect((await home.single('ann@a.test')).only().asked).toBe(false)
  })

  test.each([
    ['no address', { zone: { 'mx.test': 'no-data' } }, 'no-response/no-address'],
    [
      'no address that may be dialled',
      { world: { isPublic: () => false } },
      'no-response/not-public',
    ],
  ] as const)('because they have %s are looked up once for a list', async (_, options, name) => {
    const home = createTestProber({}, options)
    const walk = await home.run(people(3))
    expect(walk.answers()).toEqual(each(people(3), name))
    expect(home.zone.asked).toEqual(['A mx.test', 'AAAA mx.test'])
  })
})

test('gives up on a host that is dialed again and again because what was learned about it is lost', async () => {
  vi.spyOn(HostHealth.prototype, 'requiresTls').mockReturnValue(true)
  onTestFinished(() => void vi.restoreAllMocks())
  const home = createTestProber({
    answer(line) {
      if (line.startsWith('EHLO')) return '250-mx.test\n250 STARTTLS'
      return line === 'STARTTLS' ? '220 Go ahead' : undefined
    },
    secure: () => {
      throw new Error('handshake failure')
    },
    connect() {
      if (home.mx.dialled.length > 100) throw new Error('too many dials')
    },
  })
  const run = await home.run(['ann@a.test'])
  expect(run.answers()).toEqual(['ann@a.test no-response/tls'])
  expect(home.mx.dialled).toHaveLength(12)
})
