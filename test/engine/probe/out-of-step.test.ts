import { describe, expect, test } from 'vitest'
import type { ProbeResult } from '../../../src/engine/probe/probe-outcome.ts'
import { HOUR } from '../../../src/platform/clock.ts'
import { HANG_UP, type MxSays, type MxScript } from '../../support/mx.ts'
import { createTestProber, each, LOCK_STEP, people, sorted } from '../../support/prober.ts'
import { sampled } from '../../support/property.ts'
import {
  isRandomRecipient,
  knows,
  recipientOf,
  recipientsOf,
  toRecipients,
} from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'
import {
  type Delivery,
  type FaultyServerOptions,
  faultyServers,
  type ReplyFault,
} from './faulty-server.ts'

const DELIVERIES = ['whole', 'bytes', 'late'] as const
const KINDS = ['lost', 'doubled'] as const
const WAYS = DELIVERIES.flatMap(delivery => KINDS.map(kind => [kind, delivery] as const))
/**
 * More than the replies of any connection here: 20 recipients, in transactions of at least eight.
 */
const REPLIES_MAX = 30
/** The tests of a fault try different thirds of its places in `npm test`. */
const PLACES_SHARE = 3
const FIRST_TO_MAIL = 2

/** Half of them exist, in a non-repeating order. */
const EXISTING = new Set(people(80).filter((_, n) => ((n * n * 7 + n * 3) >> 2) % 2 === 0))
const exists = (recipient: string) => EXISTING.has(recipient)

function createFaultyProber(options: Omit<FaultyServerOptions, 'exists'>) {
  const servers = faultyServers({ exists, ...options })
  return { ...createTestProber({}, { dial: () => servers.dial }), ...servers }
}

type Told = readonly { readonly email: string; readonly probed: ProbeResult }[]

/** The recipients with a wrong answer. */
const wrong = (told: Told) =>
  told.filter(({ email, probed: { answer, catchAll } }) => {
    const isFirm = answer.kind === 'rejected' || (answer.kind === 'accepted' && catchAll !== null)
    return isFirm && (answer.kind !== 'accepted' || catchAll === true) === exists(email)
  })

const right = (told: Told) =>
  told.filter(
    ({ email, probed }) => probed.answer.kind === (exists(email) ? 'accepted' : 'rejected'),
  )

describe.each(WAYS)('a reply that is %s, delivered %s', (kind, delivery) => {
  const all = Array.from({ length: REPLIES_MAX }, (_, at): ReplyFault => ({ kind, at }))

  test('in the first connection of a list causes a retry of all recipients', async () => {
    for (const fault of sampled(all, PLACES_SHARE, 0)) {
      const home = createFaultyProber({ delivery, faultOf: n => (n === 0 ? fault : null) })
      const { told } = await home.run(people(80))
      expect([fault, wrong(told), right(told).length]).toEqual([fault, [], 80])
    }
  })

  test('in every connection of a list causes no wrong answer', async () => {
    for (const fault of sampled(all, PLACES_SHARE, 1)) {
      const home = createFaultyProber({ delivery, faultOf: () => fault })
      const { told } = await home.run(people(80))
      expect([fault, wrong(told), told.length]).toEqual([fault, [], 80])
    }
  })

  test('in every connection without PIPELINING causes no wrong answer', async () => {
    for (const fault of sampled(all, PLACES_SHARE, 2)) {
      const home = createFaultyProber({ delivery, faultOf: () => fault, keywords: ['SIZE'] })
      const { told } = await home.run(people(80))
      expect([fault, wrong(told), told.length]).toEqual([fault, [], 80])
    }
  })

  test.each([true, false])('causes a retry of a single verification: exists %s', async isThere => {
    const email = people(80).find(one => exists(one) === isThere) as string
    for (const fault of all.slice(FIRST_TO_MAIL, FIRST_TO_MAIL + 5)) {
      const home = createFaultyProber({ delivery, faultOf: n => (n === 0 ? fault : null) })
      const { told } = await home.single(email)
      expect([fault, wrong(told), right(told).length]).toEqual([fault, [], 1])
      expect(home.connections.length).toBeLessThanOrEqual(2)
    }
    for (const fault of all.slice(0, FIRST_TO_MAIL + 5)) {
      const home = createFaultyProber({ delivery, faultOf: () => fault })
      const { told } = await home.single(email)
      expect([fault, wrong(told), told.length]).toEqual([fault, [], 1])
    }
  })
})

describe('a refusal before the reply to the previous recipient, which it names', () => {
  test.each(['whole', 'bytes'] as const)('causes a retry of all recipients: %s', async delivery => {
    const places = Array.from({ length: REPLIES_MAX }, (_, n) => n + FIRST_TO_MAIL + 2)
    for (const at of sampled(places, PLACES_SHARE)) {
      const home = createFaultyProber({
        delivery,
        namesRecipients: true,
        faultOf: n => (n === 0 ? { kind: 'swapped', at } : null),
      })
      const { told } = await home.run(people(80))
      expect([at, wrong(told), right(told).length]).toEqual([at, [], 80])
    }
  })
})

describe('a host whose replies were out of step', () => {
  const delivery: Delivery = 'whole'
  const doubledMail: ReplyFault = { kind: 'doubled', at: FIRST_TO_MAIL }
  const [known] = [...EXISTING] as [string]

  test('gets one command at a time for an hour', async () => {
    const home = createFaultyProber({
      delivery,
      faultOf: (_, isPipelined) => (isPipelined ? doubledMail : null),
    })
    const isPipelined = () =>
      home.connections.map(writes => writes.some(write => /MAIL.*\r\nRCPT/.test(write)))
    await home.single(known)
    expect(isPipelined()).toEqual([true, false])
    await home.single(known)
    expect(isPipelined()).toEqual([true, false, false])
    await home.clock.advance(HOUR + 1)
    await home.single(known)
    expect(isPipelined()).toEqual([true, false, false, true, false])
  })

  test('leaves the catch-all status of its domain unknown', async () => {
    const home = createFaultyProber({
      delivery: 'late',
      faultOf: () => ({ kind: 'doubled', at: 3 }),
    })
    await home.single(known)
    expect(home.prober.catchAll.get('a.test')).toBeNull()
  })

  test('reports the dialogue of the second connection and why PIPELINING is disabled', async () => {
    const home = createFaultyProber({ delivery, faultOf: n => (n === 0 ? doubledMail : null) })
    const walk = await home.single(known, { dialogue: true })
    expect(walk.only().dialogue?.slice(4)).toEqual([
      'S: 250 PIPELINING',
      '* PIPELINING disabled: replies from mx.test were out of step',
      'C: MAIL FROM:<>',
      'S: 250 2.0.0 Ok',
      `C: RCPT TO:<${known}>`,
      'S: 250 2.1.5 Ok',
      expect.stringMatching(/^C: RCPT/),
      'S: 550 5.1.1 No such user',
      'C: QUIT',
      'S: 221 2.0.0 Bye',
    ])
  })
})

describe('a pipelined group that is cut off', () => {
  /**
   * In the first connection, `unknown` is refused, and this is the reply to the random
   * recipient.
   */
  const cutOff = (says: MxSays) =>
    createTestProber((line, session) => {
      if (session.number > 0) return knows()(line, session)
      return isRandomRecipient(recipientOf(line)) ? says : toRecipients(() => NO)(line, session)
    })

  test.each<[string, MxSays]>([
    ['by a close', HANG_UP],
    ['by 421', '421 4.3.2 closing'],
  ])('%s is retried in lock-step because an earlier reply may be missing', async (_, says) => {
    const home = cutOff(says)
    const walk = await home.single('ann@a.test')
    expect(walk.answers()).toEqual(['ann@a.test rejected/no-mailbox'])
    expect(home.said()).toEqual([
      ['MAIL FROM:<>', 'RCPT TO:<ann@a.test>', expect.stringMatching(/^RCPT/)],
      ['MAIL FROM:<>', 'RCPT TO:<ann@a.test>'],
    ])
  })

  test('after a refused MAIL is a block, as with complete replies', async () => {
    const home = createTestProber((line, session) => {
      if (!line.startsWith('MAIL')) return undefined
      session.say('554 5.7.1 Your address is listed by a blocklist')
      return HANG_UP
    })
    const walk = await home.single('ann@a.test')
    expect(walk.answers()).toEqual(['ann@a.test blocked/blocklist'])
    expect(home.mx.dialled).toHaveLength(1)
  })

  test('keeps the answers of earlier groups', async () => {
    const home = createTestProber(
      (line, session) => {
        if (line === 'RCPT TO:<p03@a.test>' && session.number === 0) return HANG_UP
        return knows()(line, session)
      },
      { row: { recipientsPerTransaction: 2 } },
    )
    const walk = await home.run(people(4))
    expect(sorted(walk.answers())).toEqual(each(people(4), 'rejected/no-mailbox'))
    expect(home.recipients()).toEqual([...people(4), ...people(4).slice(2)])
  })
})

describe('a single verification', () => {
  const TLS_FIRST: NonNullable<MxScript['answer']> = (line, { lines }) => {
    if (line === 'STARTTLS') return '220 go on'
    if (lines.includes('STARTTLS')) return undefined
    if (line.startsWith('EHLO')) return '250-mx.test\n250-PIPELINING\n250 STARTTLS'
    return /^(MAIL|RCPT)/.test(line) ? '530 5.7.0 Must issue a STARTTLS command first' : undefined
  }
  const oneRecipient: MxScript['answer'] = (line, { lines }) => {
    const transaction = lines.slice(lines.lastIndexOf('MAIL FROM:<>'))
    const count = transaction.filter(one => one.startsWith('RCPT')).length
    return line.startsWith('RCPT') && count > 1 ? '452 4.5.3 Too many recipients' : undefined
  }

  // Writes until the answer, including EHLO: after the greeting, each is one round trip.
  test.each<[string, MxScript['answer'], string, number[], number[]]>([
    ['accepted, and the random one too', () => undefined, 'accepted/recipient', [2], [2]],
    ['rejected', knows(), 'rejected/no-mailbox', [2], [2]],
    ['greylisted', toRecipients(() => LATER), 'deferred/greylist', [2], [2]],
    ['accepted where a transaction takes one', oneRecipient, 'accepted/recipient', [2, 3], [2]],
    ['asked for TLS first', TLS_FIRST, 'accepted/recipient', [2, 4], [4]],
  ])('needs a minimum of round trips: %s', async (_, script, answer, first, second) => {
    const home = createTestProber(script as NonNullable<MxScript['answer']>)
    const walk = await home.single('ann@a.test')
    expect(walk.answers()).toEqual([`ann@a.test ${answer}`])
    expect(home.writes.map(({ length }) => length)).toEqual(first)
    await home.single('bob@a.test')
    expect(home.writes.slice(first.length).map(({ length }) => length)).toEqual(second)
  })

  test('reports required but temporarily refused TLS after two connections', async () => {
    const home = createTestProber((line, session) =>
      line === 'STARTTLS'
        ? '454 4.7.0 TLS not available'
        : TLS_FIRST(line, { ...session, lines: [] }),
    )
    const walk = await home.single('ann@a.test')
    expect(walk.only().answer).toMatchObject({ kind: 'deferred', stage: 'starttls' })
    expect(home.mx.dialled).toHaveLength(2)
  })

  test('reports the TLS demand if TLS fails, with the dialogue of both connections', async () => {
    const home = createTestProber({
      answer: TLS_FIRST,
      secure: () => {
        throw new Error('handshake failure')
      },
    })
    const walk = await home.single('ann@a.test', { dialogue: true })
    expect(walk.answers()).toEqual(['ann@a.test blocked/tls'])
    const { dialogue, host, tls } = walk.only()
    expect({ host, tls }).toEqual({ host: 'mx.test', tls: false })
    expect(dialogue).toContain('S: 530 5.7.0 Must issue a STARTTLS command first')
    expect(dialogue?.slice(-2)).toEqual(['C: STARTTLS', 'S: 220 go on'])
  })

  test('needs one more round trip if a refusal makes the catch-all test unnecessary', async () => {
    const home = createTestProber(knows(), { row: { recipientsPerTransaction: 1 } })
    await home.single('ann@a.test')
    expect(home.writes[0]).toEqual([
      'EHLO probe.test\r\n',
      'MAIL FROM:<>\r\nRCPT TO:<ann@a.test>\r\n',
      'QUIT\r\n',
    ])
  })

  test('without PIPELINING does not wait for the reply to QUIT', async () => {
    const home = createTestProber((line, session) =>
      line === 'QUIT' ? null : (LOCK_STEP(line) ?? knows()(line, session)),
    )
    const walk = home.begin(['ann@a.test'], { single: true })
    await drainEventLoop()
    expect(walk.answers()).toEqual(['ann@a.test rejected/no-mailbox'])
    await walk.end()
  })

  test('waits up to half a second for the reply to QUIT', async () => {
    const home = createTestProber((line, session) =>
      line === 'QUIT' ? null : knows()(line, session),
    )
    const walk = home.begin(['ann@a.test'], { single: true })
    await home.clock.advance(499)
    expect(walk.told).toEqual([])
    await home.clock.advance(1)
    expect(walk.answers()).toEqual(['ann@a.test rejected/no-mailbox'])
    await walk.end()
  })
})

test.each([
  ['in a list', false],
  ['of a single verification', true],
])('a surplus reply before a 421 to the last recipient decides nothing: %s', async (_, single) => {
  const known = knows('p01', 'p03')
  const home = createTestProber((line, session) => {
    if (session.number > 0) return known(line, session)
    if (line.startsWith('MAIL')) return '250 2.1.0 Ok\n250 2.1.0 Ok'
    if (line === 'QUIT') return null
    const isLast = recipientsOf(session.lines).length === (single ? 2 : 4)
    return isLast ? '421 4.7.0 Too many errors' : known(line, session)
  })
  if (single) {
    const walk = await home.single('p00@a.test')
    expect(walk.answers()).toEqual(['p00@a.test rejected/no-mailbox'])
  } else {
    const walk = await home.run(people(4))
    expect(walk.answers().toSorted()).toEqual([
      'p00@a.test rejected/no-mailbox',
      'p01@a.test accepted/recipient',
      'p02@a.test rejected/no-mailbox',
      'p03@a.test accepted/recipient',
    ])
  }
})

describe('a reply to QUIT', () => {
  test.each([
    ['421 4.3.0 closing', 'pipelined', 2],
    ['421 4.3.0 closing', 'in lock-step', 1],
    ['250 2.0.0 Bye', 'pipelined', 2],
    ['250 2.0.0 Bye', 'in lock-step', 1],
  ])('%j: %s, and the connections that a list needs', async (reply, manner, connections) => {
    const home = createTestProber((line, session) => {
      if (line !== 'QUIT')
        return (manner === 'pipelined' ? undefined : LOCK_STEP(line)) ?? knows()(line, session)
      session.say(reply)
      return HANG_UP
    })
    const walk = await home.run(people(3))
    expect(walk.answers()).toEqual(each(people(3), 'rejected/no-mailbox'))
    expect(home.mx.dialled).toHaveLength(connections)
  })

  test('that is missing delays a list by two seconds', async () => {
    const home = createTestProber((line, session) =>
      line === 'QUIT' ? null : knows()(line, session),
    )
    const walk = home.begin(people(3))
    await home.clock.advance(1_999)
    expect(walk.told).toEqual([])
    await home.clock.advance(1)
    expect(walk.answers()).toEqual(each(people(3), 'rejected/no-mailbox'))
    await walk.end()
  })
})

const NO = '550 5.1.1 No such user'
const LATER = '450 4.2.0 Greylisted, try again'
