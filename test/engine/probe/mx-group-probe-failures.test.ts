import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { HANG_UP, type MxScript } from '../../support/mx.ts'
import {
  ask,
  createTestProber,
  each,
  MANNERS,
  nameOf,
  people,
  sorted,
} from '../../support/prober.ts'
import { isRandomRecipient, knows, recipientOf, toRecipients } from '../../support/recipients.ts'
import { startNow } from '../../support/start-now.ts'
import { drainEventLoop } from '../../support/wait.ts'

describe('a connection that ends early', () => {
  test.each(MANNERS)(
    'after the first refusal: a new one is opened, and all recipients get an answer: %s',
    async (_, extra) => {
      const home = createTestProber((line, session) => {
        if (!line.startsWith('RCPT')) return extra?.(line)
        session.say('550 5.1.1 No such user')
        return HANG_UP
      })
      const walk = await home.run(people(4))
      expect(sorted(walk.answers())).toEqual(each(people(4), 'rejected/no-mailbox'))
      // With replies missing, the first of a pipelined group is not trusted either and is retried.
      expect(home.mx.dialled).toHaveLength(extra === undefined ? 5 : 4)
    },
  )

  test('by a 421: the remaining recipients use a new connection', async () => {
    const home = createTestProber((line, session) => {
      if (line !== 'RCPT TO:<p02@a.test>' || session.number > 0) return knows()(line, session)
      return '421 4.4.2 closing, try another time'
    })
    const walk = await home.run(people(5))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test rejected/no-mailbox',
      'p01@a.test rejected/no-mailbox',
      'p02@a.test deferred/busy',
      'p03@a.test rejected/no-mailbox',
      'p04@a.test rejected/no-mailbox',
    ])
    expect(home.mx.dialled).toHaveLength(2)
  })

  test('three times without an answer: the remaining recipients get the failure', async () => {
    const home = createTestProber(line => (line.startsWith('RCPT') ? HANG_UP : undefined))
    const walk = await home.run(people(9))
    expect(walk.answers()).toEqual(each(people(9), 'no-response/closed'))
    expect(home.mx.dialled).toHaveLength(3)
  })

  test('is not retried for a single address', async () => {
    const home = createTestProber(line => (line.startsWith('RCPT') ? HANG_UP : undefined))
    const walk = await home.single('ann@a.test')
    expect(nameOf(walk.only())).toBe('no-response/closed')
    expect(home.mx.dialled).toHaveLength(1)
  })

  test('during the catch-all test keeps the acceptance', async () => {
    const home = createTestProber(toRecipients(to => (isRandomRecipient(to) ? null : undefined)))
    const walk = await home.run(['ann@a.test'])
    expect(nameOf(walk.only())).toBe('accepted/recipient')
    expect(walk.only().catchAll).toBeNull()
  })

  test.each(['354 go on', '220 hello', '221 bye', '253 pending'])(
    'by %j to RCPT, which is not a valid reply',
    async said => {
      const home = createTestProber(
        toRecipients(to => (to === 'p00@a.test' ? said : '550 5.1.1 No')),
        {
          row: { recipientsPerTransaction: 1 },
        },
      )
      const walk = await home.run(people(2))
      expect(sorted(walk.answers())).toEqual([
        'p00@a.test no-response/garbage',
        'p01@a.test rejected/no-mailbox',
      ])
      // It may be the reply to another command, so the recipient is retried without PIPELINING.
      expect(home.mx.dialled).toHaveLength(3)
    },
  )

  test('a reply that rejects the command itself is no evidence and does not end the session', async () => {
    const home = createTestProber(
      toRecipients(to => (to === 'p00@a.test' ? '500 what?' : '550 5.1.1 No')),
      {
        row: { recipientsPerTransaction: 1 },
      },
    )
    const walk = await home.run(people(2))
    expect(sorted(walk.answers())).toEqual([
      'p00@a.test no-response/garbage',
      'p01@a.test rejected/no-mailbox',
    ])
    expect(home.mx.dialled).toHaveLength(1)
  })
})

describe('TLS that a server requires', () => {
  const demands =
    (verb: string, offered = true): NonNullable<MxScript['answer']> =>
    (line, { lines }) => {
      const secured = lines.includes('STARTTLS')
      if (line === 'STARTTLS') return '220 go on'
      if (line.startsWith('EHLO')) {
        return `250-mx.test\n250-PIPELINING\n250 ${offered && !secured ? 'STARTTLS' : 'SIZE'}`
      }
      return line.startsWith(verb) && !secured
        ? '530 5.7.0 Must issue a STARTTLS command first'
        : undefined
    }

  test.each(['MAIL', 'RCPT'])(
    'at %s is started, and the same recipients are retried',
    async verb => {
      const home = createTestProber(demands(verb))
      const walk = await home.run(people(2))
      expect(walk.answers()).toEqual(each(people(2), 'accepted/recipient'))
      expect(walk.told.map(({ probed }) => probed.tls)).toEqual([true, true])
      expect(home.mx.dialled).toHaveLength(1)
      // TLS resets the session, so the first MAIL after it needs no RSET.
      expect(home.said()[0]).toEqual([
        'MAIL FROM:<>',
        ...people(2).map(email => `RCPT TO:<${email}>`),
        'STARTTLS',
        'MAIL FROM:<>',
        ...people(2).map(email => `RCPT TO:<${email}>`),
        expect.stringMatching(/^RCPT/),
      ])
      expect(home.mx.lines().filter(line => line.startsWith('EHLO'))).toHaveLength(2)
    },
  )

  test('is cached: the next session starts with it', async () => {
    const home = createTestProber(demands('MAIL'))
    await home.run(['ann@a.test'])
    await home.run(['bob@a.test'])
    expect(home.said()[1]?.slice(0, 2)).toEqual(['STARTTLS', 'MAIL FROM:<>'])
    expect(home.mx.secured).toEqual(['mx.test', 'mx.test'])
  })

  test.each([
    ['by policy', demands('MAIL'), 'never'],
    ['as it is not offered', demands('MAIL', false), 'demanded'],
  ] as const)('but that is unavailable (%s) is a block', async (_, script, startTls) => {
    const home = createTestProber(script, { world: { startTls } })
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'blocked/tls'))
    expect(home.mx.secured).toEqual([])
    // The demand concerns this host; others of the operator are still probed.
    expect(startNow(home.prober.rateController('mx.test'))).toHaveProperty('permit')
  })

  test('but that fails is a block, not an answer about the mailbox', async () => {
    const home = createTestProber({
      answer: demands('MAIL'),
      secure: () => {
        throw new Error('handshake failure')
      },
    })
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'blocked/tls'))
  })

  test('at RCPT but then refuses keeps the transaction: RSET precedes the next one', async () => {
    const demanding = people(8).filter((_, i) => i < 2)
    let open = false
    const home = createTestProber(line => {
      if (line.startsWith('EHLO')) return '250-mx.test\n250-PIPELINING\n250 STARTTLS'
      if (line === 'STARTTLS') return '502 5.5.1 Not for you'
      if (line === 'RSET') open = false
      if (line.startsWith('MAIL')) {
        if (open) return '503 5.5.1 Nested MAIL command'
        open = true
      }
      return demanding.includes(recipientOf(line))
        ? '530 5.7.0 Must issue a STARTTLS command first'
        : undefined
    })
    const walk = await home.run(people(12))
    const told = walk.answers().filter(answer => answer.endsWith('blocked/tls'))
    expect(sorted(told)).toEqual(each(demanding, 'blocked/tls'))
    const accepted = walk.answers().filter(answer => answer.endsWith('accepted/recipient'))
    expect(accepted).toHaveLength(10)
    expect(home.mx.dialled).toHaveLength(1)
    // STARTTLS is tried once, however many replies demand it.
    expect(home.mx.lines().filter(line => line === 'STARTTLS')).toHaveLength(1)
  })

  test('and requires again afterwards ends the session', async () => {
    const home = createTestProber(line => {
      if (line === 'STARTTLS') return '220 go on'
      if (line.startsWith('EHLO')) return '250-mx.test\n250 STARTTLS'
      return line.startsWith('MAIL') ? '530 5.7.0 Must issue a STARTTLS command first' : undefined
    })
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'blocked/tls'))
    expect(home.mx.secured).toEqual(['mx.test'])
  })
})

describe('deadlines and shutdown', () => {
  const hangsAt = (email: string) => toRecipients(to => (to === email ? null : '550 5.1.1 No'))

  test('abort keeps the answers, fails the rest with a timeout and closes the connection', async () => {
    const home = createTestProber(hangsAt('p01@a.test'), { row: { recipientsPerTransaction: 1 } })
    const walk = home.begin(people(3))
    await home.clock.advance(1_000)
    await drainEventLoop()
    expect(walk.answers()).toEqual([])
    walk.abort()
    await drainEventLoop()
    expect(walk.finished).toBe(true)
    expect(walk.answers()[0]).toBe('p00@a.test rejected/no-mailbox')
    expect(walk.answers().slice(1)).toEqual(each(people(3).slice(1), 'no-response/timeout'))
    expect(home.mx.sessions.map(({ closed }) => closed)).toEqual([true])
    expect(home.clock.pending).toBe(0)
  })

  test('abort does not mark the connected host as failed', async () => {
    const home = createTestProber(toRecipients(() => null))
    for (let i = 0; i < 3; i++) {
      const walk = home.begin(['p00@a.test'], { single: true })
      await home.clock.advance(1_000)
      walk.abort()
      await walk.end()
      expect(walk.only().asked).toBe(true)
    }
  })

  test.each([
    [true, 2_999, [true, true, true]],
    [false, 2_999, [true, true, true]],
    [true, 3_000, [true, true, false]],
    [false, 3_000, [true, true, false]],
  ])(
    'abort during a dial (single: %s, after %i ms) marks the MX group as failed only after the response timeout',
    async (single, ms, asked) => {
      const home = createTestProber(knows(), { dial: near => ({ ...near, connect: untilAborted }) })
      for (const wasAsked of asked) {
        const walk = home.begin(['p00@a.test'], { single })
        await home.clock.advance(ms)
        walk.abort()
        await walk.end()
        expect(walk.only().asked).toBe(wasAsked)
      }
      expect(home.clock.pending).toBe(0)
    },
  )

  test('abort during a DNS lookup does not mark the MX group as failed', async () => {
    const home = createTestProber(knows(), { zone: { 'mx.test': { A: 'never' } } })
    for (let i = 0; i < 3; i++) {
      const walk = home.begin(['p00@a.test'], { single: true })
      await home.clock.advance(5_000)
      walk.abort()
      await walk.end()
      expect(walk.only().asked).toBe(true)
    }
  })

  test('abort ends the wait for a pause', async () => {
    const home = createTestProber({ greeting: '421 4.7.0 You talk too fast' })
    await home.run(['ann@a.test'])
    const walk = home.begin(['zoe@a.test'], { timeoutMs: 60 * MINUTE })
    await drainEventLoop()
    expect(walk.finished).toBe(false)
    walk.abort()
    await drainEventLoop()
    expect(walk.only()).toMatchObject({
      asked: false,
      answer: { kind: 'no-response', why: 'timeout' },
    })
    expect(home.clock.pending).toBe(0)
  })

  test('abort during QUIT does not wait for the reply', async () => {
    const home = createTestProber(line => (line === 'QUIT' ? null : knows()(line, {} as never)))
    const walk = home.begin(['ann@a.test'])
    await drainEventLoop()
    await drainEventLoop()
    expect(walk.finished).toBe(false)
    walk.abort()
    await drainEventLoop()
    expect(walk.finished).toBe(true)
    expect(walk.answers()).toEqual(['ann@a.test rejected/no-mailbox'])
  })

  test('drain finishes the transaction, sends QUIT and probes no other recipient', async () => {
    const home = createTestProber(
      (line, session) => {
        if (line === 'RCPT TO:<p01@a.test>') walk.drain()
        return knows()(line, session)
      },
      { row: { recipientsPerTransaction: 2 } },
    )
    const walk = home.begin(people(5))
    await walk.end()
    expect(home.recipients()).toEqual(people(2))
    expect(home.mx.lines().at(-1)).toBe('QUIT')
    expect(sorted(walk.answers())).toEqual([
      ...each(people(2), 'rejected/no-mailbox'),
      ...each(people(5).slice(2), 'no-response/timeout'),
    ])
    expect(walk.told.map(({ probed }) => probed.asked)).toEqual([true, true, false, false, false])
  })

  test.each(['abort', 'drain'] as const)('%s before the start dials no host', async how => {
    const home = createTestProber(knows())
    const walk = home.begin([ask('ann@a.test'), ask('bob@b.test', ['other.test'])], {
      [how === 'abort' ? 'signal' : 'drain']: AbortSignal.abort(),
    })
    await walk.end()
    expect(sorted(walk.answers())).toEqual([
      'ann@a.test no-response/timeout',
      'bob@b.test no-response/timeout',
    ])
    expect(home.mx.dialled).toEqual([])
  })
})

describe('an internal error', () => {
  test('rejects, releases the permit and closes the connection', async () => {
    const home = createTestProber(knows(), { row: { sessionsMax: 1 } })
    const egress = { ...home.world.egress, helo: 'bad\nname' }
    const other = createTestProber(knows(), {
      row: { sessionsMax: 1 },
      world: { ...home.world, egress },
    })
    await expect(other.run(['ann@a.test'])).rejects.toThrow(/control character/)
    expect(home.mx.lines()).toEqual([])
    expect(home.mx.sessions[0]?.closed).toBe(true)
    await home.clock.advance(10_000)
    expect(startNow(other.prober.rateController('mx.test'))).toHaveProperty('permit')
  })
})

const untilAborted = (_: unknown, signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('given up')), { once: true }),
  )
