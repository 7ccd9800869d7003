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
import { isUnguessable, knows, recipientOf, toRecipients } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'

describe('a connection that ends too early', () => {
  test.each(MANNERS)(
    'after the first refusal: a new one is opened, and all get their answers: %s',
    async (_, extra) => {
      const home = createTestProber((line, session) => {
        if (!line.startsWith('RCPT')) return extra?.(line)
        session.say('550 5.1.1 No such user')
        return HANG_UP
      })
      const walk = await home.run(people(4))
      expect(sorted(walk.answers())).toEqual(each(people(4), 'rejected/no-mailbox'))
      // With replies missing, the first of a pipelined group is not believed either: it is asked
      // again.
      expect(home.mx.dialled).toHaveLength(extra === undefined ? 5 : 4)
    },
  )

  test('with a 421 half-way: the rest is asked in a new one', async () => {
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

  test('twice without one answer: the rest is told so', async () => {
    const home = createTestProber(line => (line.startsWith('RCPT') ? HANG_UP : undefined))
    const walk = await home.run(people(3))
    expect(walk.answers()).toEqual(each(people(3), 'no-response/closed'))
    expect(home.mx.dialled).toHaveLength(2)
  })

  test('a single address is not asked again', async () => {
    const home = createTestProber(line => (line.startsWith('RCPT') ? HANG_UP : undefined))
    const walk = await home.single('ann@a.test')
    expect(nameOf(walk.only())).toBe('no-response/closed')
    expect(home.mx.dialled).toHaveLength(1)
  })

  test('an acceptance is kept when the connection is lost at the catch-all question', async () => {
    const home = createTestProber(toRecipients(to => (isUnguessable(to) ? null : undefined)))
    const walk = await home.run(['ann@a.test'])
    expect(nameOf(walk.only())).toBe('accepted/recipient')
    expect(walk.only().catchAll).toBeNull()
  })

  test.each(['354 go on', '220 hello', '221 bye', '253 pending'])(
    '%j to RCPT is no answer, and ends the connection',
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
      // Perhaps it was the reply to another command: it is asked once more, without PIPELINING.
      expect(home.mx.dialled).toHaveLength(3)
    },
  )

  test('a command that the server did not understand says nothing, and ends nothing', async () => {
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

describe('TLS that a server demands', () => {
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
    'at %s is given, and the same recipients are asked again',
    async verb => {
      const home = createTestProber(demands(verb))
      const walk = await home.run(people(2))
      expect(walk.answers()).toEqual(each(people(2), 'accepted/recipient'))
      expect(walk.told.map(({ probed }) => probed.tls)).toEqual([true, true])
      expect(home.mx.dialled).toHaveLength(1)
      // The first MAIL after TLS begins anew: no RSET.
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

  test('is remembered: the next conversation begins with it', async () => {
    const home = createTestProber(demands('MAIL'))
    await home.run(['ann@a.test'])
    await home.run(['bob@a.test'])
    expect(home.said()[1]?.slice(0, 2)).toEqual(['STARTTLS', 'MAIL FROM:<>'])
    expect(home.mx.secured).toEqual(['mx.test', 'mx.test'])
  })

  test.each([
    ['by policy', demands('MAIL'), 'never'],
    ['as it is not offered', demands('MAIL', false), 'demanded'],
  ] as const)('and not given %s is a refusal of us', async (_, script, startTls) => {
    const home = createTestProber(script, { world: { startTls } })
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'blocked/tls'))
    expect(home.mx.secured).toEqual([])
    // The demand is the host's: others of the operator are still asked.
    expect(home.prober.rateController('mx.test').tryStart()).toHaveProperty('permit')
  })

  test('and that fails is a refusal of us, not an answer', async () => {
    const home = createTestProber({
      answer: demands('MAIL'),
      secure: () => {
        throw new Error('handshake failure')
      },
    })
    const walk = await home.run(people(2))
    expect(walk.answers()).toEqual(each(people(2), 'blocked/tls'))
  })

  test('at RCPT of some and then refuses leaves the transaction as it was: RSET goes before the next', async () => {
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
    // Once is enough, however many it is demanded for.
    expect(home.mx.lines().filter(line => line === 'STARTTLS')).toHaveLength(1)
  })

  test('and is never content with ends', async () => {
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

describe('the end of our time', () => {
  const hangsAt = (email: string) => toRecipients(to => (to === email ? null : '550 5.1.1 No'))

  test('by abort: what was answered counts, the rest is told that time ran out, and the line is cut', async () => {
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

  test('by abort is no failure of the server that is spoken with', async () => {
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
    'by abort while dialling (single: %s, after %i ms) is a failure of the exchangers only when they had their time',
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

  test('by abort while the DNS is asked is no failure of the exchangers', async () => {
    const home = createTestProber(knows(), { zone: { 'mx.test': { A: 'never' } } })
    for (let i = 0; i < 3; i++) {
      const walk = home.begin(['p00@a.test'], { single: true })
      await home.clock.advance(5_000)
      walk.abort()
      await walk.end()
      expect(walk.only().asked).toBe(true)
    }
  })

  test('by abort in a pause ends the wait', async () => {
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

  test('by abort during QUIT does not wait for the farewell', async () => {
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

  test('by drain: the transaction ends with its answers and QUIT, and nobody else is asked', async () => {
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

  test.each(['abort', 'drain'] as const)('by %s before it began: nobody is dialled', async how => {
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

describe('a fault of ours', () => {
  test('rejects, gives the permit back and closes the connection', async () => {
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
    expect(other.prober.rateController('mx.test').tryStart()).toHaveProperty('permit')
  })
})

const untilAborted = (_: unknown, signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('given up')), { once: true }),
  )
