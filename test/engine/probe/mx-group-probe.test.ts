import { describe, expect, test } from 'vitest'
import type { MxScript } from '../../support/mx.ts'
import {
  ask,
  createTestProber,
  each,
  LOCK_STEP,
  MANNERS,
  people,
  sorted,
} from '../../support/prober.ts'
import { isRandomRecipient, knows, recipientOf, toRecipients } from '../../support/recipients.ts'
import { startNow } from '../../support/start-now.ts'

describe('one transaction', () => {
  test('leaves in one write with PIPELINING: MAIL and all recipients', async () => {
    const home = createTestProber(knows('p00@a.test'))
    const walk = await home.run(people(3))
    expect(home.writes[0]).toEqual([
      'EHLO probe.test\r\n',
      'MAIL FROM:<>\r\nRCPT TO:<p00@a.test>\r\nRCPT TO:<p01@a.test>\r\nRCPT TO:<p02@a.test>\r\n',
      expect.stringMatching(/^RCPT TO:<[a-z0-9]{20}@a\.test>\r\nQUIT\r\n$/),
    ])
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test accepted/recipient',
      'p01@a.test rejected/no-mailbox',
      'p02@a.test rejected/no-mailbox',
    ])
  })

  test('runs in lock-step without PIPELINING', async () => {
    const home = createTestProber(line => LOCK_STEP(line))
    await home.run(people(2))
    expect(home.writes[0]?.slice(0, 5)).toEqual([
      'EHLO probe.test\r\n',
      'MAIL FROM:<>\r\n',
      'RCPT TO:<p00@a.test>\r\n',
      'RCPT TO:<p01@a.test>\r\n',
      expect.stringMatching(/^RCPT TO:<[a-z]/),
    ])
  })

  test('has one domain; the next one starts with RSET on the same connection, in one write', async () => {
    const home = createTestProber(knows())
    await home.run(['ann@a.test', 'bob@b.test', 'cid@a.test'])
    expect(home.mx.dialled).toHaveLength(1)
    expect(home.writes[0]?.slice(1)).toEqual([
      'MAIL FROM:<>\r\nRCPT TO:<ann@a.test>\r\nRCPT TO:<cid@a.test>\r\n',
      'RSET\r\nMAIL FROM:<>\r\nRCPT TO:<bob@b.test>\r\n',
      'QUIT\r\n',
    ])
  })

  test('has at most the recipients that the operator allows', async () => {
    const home = createTestProber(knows(), { row: { recipientsPerTransaction: 2 } })
    const walk = await home.run(people(5))
    expect(home.said()).toEqual([
      [
        'MAIL FROM:<>',
        'RCPT TO:<p00@a.test>',
        'RCPT TO:<p01@a.test>',
        'RSET',
        'MAIL FROM:<>',
        'RCPT TO:<p02@a.test>',
        'RCPT TO:<p03@a.test>',
        'RSET',
        'MAIL FROM:<>',
        'RCPT TO:<p04@a.test>',
      ],
    ])
    expect(walk.told).toHaveLength(5)
  })

  test('uses the sender of the egress', async () => {
    const home = createTestProber(knows())
    const egress = { ...home.world.egress, mailFrom: 'probe@probe.test' }
    const other = createTestProber(knows(), { world: { egress, clock: home.clock } })
    await other.run(['ann@a.test'])
    expect(home.mx.lines()).toContain('MAIL FROM:<probe@probe.test>')
  })

  test('assigns each reply to its recipient', async () => {
    const home = createTestProber(
      toRecipients(
        to => ({ 'p00@a.test': '550 5.1.1 No', 'p02@a.test': '450 4.2.0 Greylisted, later' })[to],
      ),
    )
    const walk = await home.run(people(4))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test rejected/no-mailbox',
      'p01@a.test accepted/recipient',
      'p02@a.test deferred/greylist',
      'p03@a.test accepted/recipient',
    ])
  })
})

describe('the connection info', () => {
  test('is part of each answer', async () => {
    const home = createTestProber(knows())
    const walk = await home.run(['ann@a.test'])
    expect(walk.only()).toMatchObject({
      egress: 'default',
      host: 'mx.test',
      ip: '192.0.2.1',
      tls: false,
      connectMs: expect.any(Number),
      asked: true,
      dialogue: null,
      catchAll: null,
    })
  })

  test('contains the dialogue on request', async () => {
    const home = createTestProber(knows())
    const walk = await home.run(['ann@a.test'], { dialogue: true })
    expect(walk.only().dialogue).toEqual([
      '* connected to mx.test [192.0.2.1]',
      'S: 220 mx.test ESMTP',
      'C: EHLO probe.test',
      'S: 250 mx.example.org',
      'S: 250 PIPELINING',
      'S: 250 ENHANCEDSTATUSCODES',
      'C: MAIL FROM:<>',
      'C: RCPT TO:<ann@a.test>',
      'S: 250 2.1.0 Ok',
      'S: 550 5.1.1 No such user',
      'C: QUIT',
      'S: 221 2.0.0 Bye',
    ])
  })

  test('contains at most 200 lines', async () => {
    const long = `${Array(99).fill('250-x').join('\n')}\n250 x`
    const home = createTestProber(
      line => (/^(RSET|MAIL)/.test(line) ? long : knows()(line, {} as never)),
      {
        row: { recipientsPerTransaction: 1 },
      },
    )
    const walk = await home.run(people(3), { dialogue: true })
    expect(walk.told.at(-1)?.probed.dialogue).toHaveLength(200)
  })
})

describe('recipients in one connection', () => {
  const row = { recipientsPerSession: 3 }
  const rcpts = (lines: readonly string[]) => lines.filter(line => line.startsWith('RCPT')).length

  test('are limited by the table, the random one included; a new connection takes the rest', async () => {
    const home = createTestProber({}, { row })
    const walk = await home.run(people(8))
    expect(home.said().map(rcpts)).toEqual([3, 3, 3])
    expect(home.recipients().filter(isRandomRecipient)).toHaveLength(1)
    expect(walk.told).toHaveLength(8)
    expect(home.mx.sessions.every(({ closed }) => closed)).toBe(true)
  })

  test('leave room for the random one while the domain is not tested', async () => {
    const home = createTestProber(knows(), { row })
    await home.run(people(8))
    expect(home.said().map(rcpts)).toEqual([2, 2, 2, 2])
  })

  test('count even if the reply is inconclusive', async () => {
    const home = createTestProber(
      toRecipients(() => '503 5.5.1 Bad sequence of commands'),
      { row },
    )
    const walk = await home.run(people(5).map(email => ask(email, ['mx.test'], false)))
    expect(home.said().map(rcpts)).toEqual([3, 2])
    expect(sorted(walk.answers())).toEqual(each(people(5), 'no-response/garbage'))
  })

  test('are two if the table says one: the random one is the second', async () => {
    const home = createTestProber({}, { row: { recipientsPerSession: 1 } })
    await home.run(people(2))
    expect(home.said().map(rcpts)).toEqual([2, 1])
  })

  test('one connection of an MX group is closed before the next one opens', async () => {
    const open: number[] = []
    const home = createTestProber(
      {
        answer: knows(),
        connect: () => {
          open.push(home.mx.sessions.filter(({ closed }) => !closed).length)
        },
      },
      { row: { recipientsPerSession: 1 } },
    )
    await home.run(people(4))
    expect(open).toEqual([0, 0, 0, 0])
  })

  test('a connection starts no new transaction after half of its time limit', async () => {
    const home = createTestProber(knows(), { row: { recipientsPerTransaction: 1 } })
    // Each transaction takes ten seconds of the sixty.
    const script: MxScript = {
      answer: async (line, session) => {
        if (line.startsWith('MAIL'))
          await new Promise<void>(resolve => home.clock.after(10_000, resolve))
        return knows()(line, session)
      },
    }
    const other = createTestProber(script, {
      row: { recipientsPerTransaction: 1 },
      world: { clock: home.clock },
    })
    const walk = other.begin(people(4))
    for (let i = 0; i < 1_000 && !walk.finished; i++) await home.clock.advance(100)
    expect(walk.told).toHaveLength(4)
    expect(other.said().map(lines => lines.filter(line => line.startsWith('RCPT')).length)).toEqual(
      [3, 1],
    )
  })
})

describe('a full transaction', () => {
  /** Accepts `max` recipients per transaction. */
  const full = (max: number, extra?: (line: string) => string | undefined): MxScript => {
    let taken = 0
    return {
      answer: line => {
        if (line.startsWith('MAIL')) taken = 0
        if (line.startsWith('RCPT') && ++taken > max) return '452 4.5.3 Too many recipients'
        return extra?.(line)
      },
    }
  }

  test.each(MANNERS)(
    'is reduced to the limit of the host, and every recipient gets an answer: %s',
    async (_, extra) => {
      const home = createTestProber(full(2, extra))
      const walk = await home.run(people(5))
      expect(sorted(walk.answers())).toEqual(each(people(5), 'accepted/recipient'))
      expect(home.mx.dialled).toHaveLength(1)
      // The catch-all test did not fit either and had its own transaction.
      expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual(Array(5).fill(true))
      // All five were sent once before the host named its limit; then two at a time.
      const firsts = home.recipients().filter(to => !isRandomRecipient(to))
      expect(firsts).toEqual([...people(5), ...people(5).slice(2)])
    },
  )

  test.each(MANNERS)(
    'of one recipient runs the catch-all test in its own transaction: %s',
    async (_, extra) => {
      const home = createTestProber(full(1, extra))
      const walk = await home.run(people(2))
      expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual([true, true])
      expect(home.recipients().filter(isRandomRecipient)).toHaveLength(1)
    },
  )

  test.each(MANNERS)(
    'of a single verification runs the catch-all test in its own transaction: %s',
    async (_, extra) => {
      const home = createTestProber(full(1, extra))
      const walk = await home.single('ann@a.test')
      expect(walk.only().catchAll).toBe(true)
    },
  )

  test('an operator that accepts one recipient per transaction gets no more', async () => {
    const home = createTestProber(full(1), { row: { recipientsPerTransaction: 1 } })
    const walk = await home.run(people(2))
    expect(home.said()[0]?.map(line => line.split(' ')[0])).toEqual(
      'MAIL RCPT RSET MAIL RCPT RSET MAIL RCPT'.split(' '),
    )
    expect(sorted(walk.answers())).toEqual(each(people(2), 'accepted/recipient'))
    expect(walk.told.map(({ probed }) => probed.catchAll)).toEqual([true, true])
  })

  test('that accepts no recipient at all is reported as deferred', async () => {
    const home = createTestProber(full(0))
    const walk = await home.run(['ann@a.test'])
    expect(walk.answers()).toEqual(['ann@a.test deferred/too-many'])
  })

  test('of a full connection continues on a new one', async () => {
    const home = createTestProber({
      answer: (line, { lines }) =>
        line.startsWith('RCPT') && lines.filter(one => one.startsWith('RCPT')).length > 2
          ? '452 4.5.3 Too many recipients'
          : undefined,
    })
    const walk = await home.run(people(4).map(email => ask(email, ['mx.test'], false)))
    expect(sorted(walk.answers())).toEqual(each(people(4), 'accepted/recipient'))
    expect(home.mx.dialled).toHaveLength(2)
  })
})

describe('a host that accepts one transaction per connection', () => {
  const outlookLike = (line: string, { lines }: { lines: string[] }) => {
    if (!lines.includes('RSET')) return undefined
    return line.startsWith('QUIT')
      ? undefined
      : line === 'RSET'
        ? '554 5.5.0 no'
        : '503 5.5.1 Bad sequence'
  }

  test.each(MANNERS)(
    'gets a new connection for each and does not count as blocking: %s',
    async (_, extra) => {
      const home = createTestProber(
        (line, session) =>
          outlookLike(line, session) ?? extra?.(line) ?? knows('p00@a.test')(line, session),
        { row: { recipientsPerTransaction: 1 } },
      )
      const walk = await home.run(people(3).map(email => ask(email, ['mx.test'], false)))
      expect(sorted(walk.answers())).toEqual([
        'p00@a.test accepted/recipient',
        'p01@a.test rejected/no-mailbox',
        'p02@a.test rejected/no-mailbox',
      ])
      expect(home.mx.dialled).toHaveLength(3)
      expect(startNow(home.prober.rateController('mx.test'))).toHaveProperty('permit')
    },
  )
})

test('a host whose connection is full at the second MAIL gets a new one', async () => {
  const home = createTestProber(
    (line, session) =>
      line.startsWith('MAIL') && session.lines.includes('RSET')
        ? '452 4.5.3 Too many recipients in this session'
        : knows()(line, session),
    { row: { recipientsPerTransaction: 1 } },
  )
  const walk = await home.run(people(3))
  expect(walk.answers()).toEqual(each(people(3), 'rejected/no-mailbox'))
  expect(home.mx.dialled).toHaveLength(3)
})

describe('SMTPUTF8', () => {
  const email = 'jörg@a.test'
  const offered = (line: string) =>
    line.startsWith('EHLO') ? '250-mx.test\n250-PIPELINING\n250 SMTPUTF8' : undefined

  test('is sent with MAIL if offered, for these recipients only', async () => {
    const home = createTestProber(offered)
    await home.run([email, 'ann@a.test'])
    expect(home.said()[0]?.filter(line => !isRandomRecipient(recipientOf(line)))).toEqual([
      'MAIL FROM:<> SMTPUTF8',
      'RCPT TO:<jörg@a.test>',
      'RSET',
      'MAIL FROM:<>',
      'RCPT TO:<ann@a.test>',
    ])
  })

  test('is required: without it, only the other recipients are probed', async () => {
    const home = createTestProber(() => undefined)
    const walk = await home.run([email, 'ann@a.test'])
    expect(walk.answers()).toEqual([
      `${email} no-response/smtputf8`,
      'ann@a.test accepted/recipient',
    ])
    expect(home.recipients().filter(to => !isRandomRecipient(to))).toEqual(['ann@a.test'])
  })

  test('is not needed for a domain, which is sent as A-labels', async () => {
    const home = createTestProber(knows())
    await home.run(['ann@bücher.test'])
    expect(home.said()[0]).toEqual(['MAIL FROM:<>', 'RCPT TO:<ann@xn--bcher-kva.test>'])
  })

  test('a recipient that the server does not support is resolved once', async () => {
    const home = createTestProber(toRecipients(() => '553 5.6.7 not ASCII'))
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'no-response/smtputf8'))
    expect(home.recipients()).toEqual(people(2))
  })
})
