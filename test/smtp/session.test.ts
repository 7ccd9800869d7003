import type { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EvError } from '../../src/base/error.ts'
import type { Reply } from '../../src/smtp/reply.ts'
import { type Broken, isBroken, Session } from '../../src/smtp/session.ts'
import { playedMx } from '../fake/mx.ts'
import { breakOff, greeted, replyOf, TIMES, talk, turns } from './talk.ts'

const codeOf = (outcome: Reply | Broken) => (isBroken(outcome) ? outcome.broken : outcome.code)
const sameSocket = async (socket: Duplex) => socket

describe('a whole conversation', () => {
  test('is the dialogue of RFC 5321 appendix D, without the letter', async () => {
    const dial = playedMx('polite.smtp')
    const socket = await dial.connect({ ip: '192.0.2.1', port: 25, host: 'mx.test' })
    const { session } = { session: new Session(socket, { clock: talk().clock, ...TIMES }) }
    expect(codeOf(await session.greeting())).toBe(220)
    expect(codeOf(await session.ehlo('probe.test'))).toBe(250)
    expect(codeOf(await session.mail(''))).toBe(250)
    expect(codeOf(await session.rcpt('ann@a.test'))).toBe(250)
    expect(codeOf(await session.rcpt('bob@a.test'))).toBe(550)
    expect(codeOf(await session.rset())).toBe(250)
    await session.quit()
    await dial.done()
    expect(session.usable).toBe(false)
  })

  test('is told to the listener line by line', async () => {
    const lines: string[] = []
    const { session, say } = talk({ listener: line => lines.push(line) })
    void session.greeting()
    await say('220 mx.test')
    void session.ehlo('probe.test')
    await turns()
    await say('250-mx.test', '250 SIZE')
    void session.mail('me@probe.test')
    await turns()
    await say('550 5.7.1 No')
    expect(lines).toEqual([
      'S: 220 mx.test',
      'C: EHLO probe.test',
      'S: 250 mx.test',
      'S: 250 SIZE',
      'C: MAIL FROM:<me@probe.test>',
      'S: 550 5.7.1 No',
    ])
  })
})

describe('what leaves, and when', () => {
  test('nothing is said before the greeting', async () => {
    const { session, writes, say } = talk()
    void session.greeting()
    void session.ehlo('probe.test')
    await turns()
    expect(writes).toEqual([])
    await say('220 mx.test')
    expect(writes).toEqual(['EHLO probe.test\r\n'])
  })

  test('without PIPELINING each command waits for the reply to the one before', async () => {
    const { session, writes, say } = await greeted()
    const outcomes = Promise.all([session.mail(''), session.rcpt('a@a.test'), session.rset()])
    await turns()
    expect(writes).toEqual(['MAIL FROM:<>\r\n'])
    await say('250 a')
    expect(writes.slice(1)).toEqual(['RCPT TO:<a@a.test>\r\n'])
    await say('550 b')
    expect(writes.slice(2)).toEqual(['RSET\r\n'])
    await say('250 c')
    expect((await outcomes).map(codeOf)).toEqual([250, 550, 250])
  })

  test('a reply of several lines is one reply: the next command waits for its end', async () => {
    const { session, writes, say } = await greeted()
    void session.mail('')
    void session.rcpt('a@a.test')
    await turns()
    await say('250-a')
    expect(writes).toHaveLength(1)
    await say('250 b')
    expect(writes).toHaveLength(2)
  })

  test('with PIPELINING, MAIL and its recipients leave in one write, and replies come in order', async () => {
    const { session, writes, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    expect(writes).toEqual(['MAIL FROM:<>\r\nRCPT TO:<a@a.test>\r\nRCPT TO:<b@a.test>\r\n'])
    await say('250 a', '250 b', '550 c')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 250, 550])
  })

  test('PIPELINING counts only when EHLO lists it, in whatever case', async () => {
    expect((await greeted(['pipelining'])).session.pipelining).toBe(true)
    expect((await greeted(['XPIPELINING', 'SIZE PIPELINING'])).session.pipelining).toBe(false)
    const named = talk()
    void named.session.greeting()
    await named.say('220 x')
    void named.session.ehlo('probe.test')
    await turns()
    await named.say('250 PIPELINING')
    // The first line is the name of the server.
    expect(named.session.pipelining).toBe(false)
  })

  test('what is given before EHLO was answered is not pipelined, even if EHLO lists it', async () => {
    const { session, writes, say } = talk()
    void session.greeting()
    await say('220 mx.test')
    void session.ehlo('probe.test')
    void session.mail('')
    void session.rcpt('a@a.test')
    await turns()
    expect(writes).toEqual(['EHLO probe.test\r\n'])
    await say(...replyOf('mx.test', 'PIPELINING'))
    expect(writes).toEqual(['EHLO probe.test\r\n', 'MAIL FROM:<>\r\n'])
  })

  test.each(['EHLO', 'STARTTLS'])('%s never shares a write', async verb => {
    const { session, writes } = await greeted(['PIPELINING', 'STARTTLS'])
    void session.rset()
    void (verb === 'EHLO' ? session.ehlo('probe.test') : session.starttls(sameSocket))
    void session.mail('')
    await turns()
    expect(writes).toEqual(['RSET\r\n'])
  })

  test('MAIL says SMTPUTF8 when asked to, and not else', async () => {
    const { session, writes, say } = await greeted(['SMTPUTF8', 'PIPELINING'])
    expect(session.offersSmtpUtf8).toBe(true)
    void session.mail('me@probe.test', { smtpUtf8: true })
    void session.rcpt('jörg@a.test')
    await turns()
    expect(Buffer.from(writes.join(''), 'latin1').toString()).toBe(
      'MAIL FROM:<me@probe.test> SMTPUTF8\r\nRCPT TO:<jörg@a.test>\r\n',
    )
    await say('250 a', '250 b')
    void session.mail('')
    await turns()
    expect(writes.at(-1)).toBe('MAIL FROM:<>\r\n')
  })
})

describe('EHLO', () => {
  test.each([500, 502, 504])('a server that says %i to it gets HELO', async code => {
    const { session, writes, say } = talk()
    void session.greeting()
    await say('220 old.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say(`${code} what?`)
    expect(writes).toEqual(['EHLO probe.test\r\n', 'HELO probe.test\r\n'])
    await say('250 old.test')
    expect(codeOf(await ehlo)).toBe(250)
    expect(session.pipelining).toBe(false)
  })

  test.each([421, 450, 550, 554, 221])('a server that says %i to it does not', async code => {
    const { session, writes, say } = talk()
    void session.greeting()
    await say('220 mx.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say(`${code} no`)
    expect(codeOf(await ehlo)).toBe(code)
    expect(writes).toHaveLength(1)
  })

  test('a second EHLO forgets what the first one told', async () => {
    const { session, say } = await greeted(['PIPELINING', 'SMTPUTF8', 'STARTTLS'])
    void session.ehlo('probe.test')
    await turns()
    await say('250 mx.test')
    expect([session.pipelining, session.offersSmtpUtf8, session.offersStartTls]).toEqual([
      false,
      false,
      false,
    ])
  })

  test('a keyword may have parameters, or the "=" of old servers', async () => {
    expect((await greeted(['STARTTLS x'])).session.offersStartTls).toBe(true)
    expect((await greeted(['SMTPUTF8=y'])).session.offersSmtpUtf8).toBe(true)
  })
})

describe('STARTTLS', () => {
  const all = ['PIPELINING', 'SMTPUTF8', 'STARTTLS']

  test('forgets all that was said before it', async () => {
    const { session, say } = await greeted(all)
    const started = session.starttls(sameSocket)
    await turns()
    await say('220 go on')
    expect(codeOf(await started)).toBe(220)
    expect(session.secured).toBe(true)
    expect(session.pipelining).toBe(false)
    expect(session.offersSmtpUtf8).toBe(false)
    void session.ehlo('probe.test')
    await turns()
    await say(...replyOf('mx.test', ...all))
    expect(session.pipelining).toBe(true)
    // Once is enough.
    expect(session.offersStartTls).toBe(false)
  })

  test.each([
    ['a whole reply', '250 PIPELINING\r\n'],
    ['half a reply', '250-PIPELIN'],
    ['what is no SMTP', 'what\r\n'],
    ['a 421', '421 bye\r\n'],
    ['an endless line', 'x'.repeat(70_000)],
  ])('throws away plain text injected after the 220: %s', async (_, injected) => {
    const { session, server, say } = await greeted(all)
    const started = session.starttls(sameSocket)
    await turns()
    server.write(`220 go on\r\n${injected}`)
    expect(codeOf(await started)).toBe(220)
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say('250 mx.test')
    expect(await ehlo).toEqual({ code: 250, enhanced: null, text: 'mx.test' })
    expect(session.usable).toBe(true)
  })

  test('throws away plain text that comes while the handshake goes on', async () => {
    const { session, say, socket } = await greeted(all)
    const handshake = Promise.withResolvers<Duplex>()
    const started = session.starttls(() => handshake.promise)
    await turns()
    await say('220 go on')
    await say('250 injected')
    handshake.resolve(socket)
    expect(codeOf(await started)).toBe(220)
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say('250 mx.test')
    expect(await ehlo).toMatchObject({ text: 'mx.test' })
  })

  test('refused, the conversation goes on in clear with what it had', async () => {
    const { session, say } = await greeted(all)
    const started = session.starttls(() => Promise.reject(new Error('not called')))
    await turns()
    await say('454 4.7.0 not now')
    expect(codeOf(await started)).toBe(454)
    expect([session.usable, session.secured, session.pipelining]).toEqual([true, false, true])
  })

  test('a failed handshake ends the session, and says so', async () => {
    const { session, say } = await greeted(all)
    const started = session.starttls(() => Promise.reject(new Error('handshake failure')))
    await turns()
    await say('220 go on')
    expect(await started).toEqual({ broken: 'tls', stage: 'starttls', detail: 'handshake failure' })
    expect(session.usable).toBe(false)
    expect(session.secured).toBe(false)
    await session.quit()
  })

  test('a handshake that stalls ends with the time for a reply, as a failure of TLS', async () => {
    const { session, socket, clock, say } = await greeted(all)
    const handshake = new Promise<Duplex>((_, reject) =>
      socket.once('close', () => reject(new Error('closed'))),
    )
    const started = session.starttls(() => handshake)
    await turns()
    await say('220 go on')
    await clock.advance(TIMES.replyTimeoutMs - 1)
    expect(session.usable).toBe(true)
    await clock.advance(1)
    expect(await started).toMatchObject({ broken: 'tls', stage: 'starttls' })
    await session.quit()
    expect(clock.pending).toBe(0)
  })

  test('a handshake that is never heard of again does not hold up the farewell', async () => {
    const { session, clock, say } = await greeted(all)
    void session.starttls(() => new Promise<Duplex>(() => {}))
    await turns()
    await say('220 go on')
    await clock.advance(TIMES.replyTimeoutMs)
    await session.quit()
    expect(session.usable).toBe(false)
  })

  test('TLS that arrives after we gave up is closed', async () => {
    const { session, say } = await greeted(all)
    const other = talk()
    const handshake = Promise.withResolvers<Duplex>()
    const started = session.starttls(() => handshake.promise)
    await turns()
    await say('220 go on')
    session.close()
    handshake.resolve(other.socket)
    expect(codeOf(await started)).toBe('timeout')
    expect(other.socket.destroyed).toBe(true)
    await session.quit()
  })
})

describe('trouble', () => {
  const stages = ['greeting', 'ehlo', 'starttls', 'mail', 'rcpt', 'rset'] as const
  type Stage = (typeof stages)[number]

  /** A session that waits for the reply of `stage`. */
  async function waitingAt(stage: Stage) {
    const all = stage === 'greeting' || stage === 'ehlo' ? talk() : await greeted(['STARTTLS'])
    const { session, say } = all
    if (stage === 'ehlo') {
      void session.greeting()
      await say('220 mx.test')
    }
    const outcome = {
      greeting: () => session.greeting(),
      ehlo: () => session.ehlo('probe.test'),
      starttls: () => session.starttls(sameSocket),
      mail: () => session.mail(''),
      rcpt: () => session.rcpt('a@a.test'),
      rset: () => session.rset(),
    }[stage]()
    await turns()
    return { ...all, outcome }
  }

  async function staysBroken(session: Session) {
    expect(session.usable).toBe(false)
    expect(isBroken(await session.greeting())).toBe(true)
    expect(isBroken(await session.ehlo('probe.test'))).toBe(true)
    expect(isBroken(await session.starttls(sameSocket))).toBe(true)
    expect(await session.mail('')).toMatchObject({ stage: 'mail' })
    expect(await session.rcpt('a@a.test')).toMatchObject({ stage: 'rcpt' })
    expect(await session.rset()).toMatchObject({ stage: 'rset' })
    await session.quit()
    expect(session.usable).toBe(false)
  }

  test.each(stages)('421 to %s is told, and the session is over', async stage => {
    const { session, outcome, say, socket, clock } = await waitingAt(stage)
    await say('421 4.3.2 closing down')
    expect(await outcome).toMatchObject({ code: 421, enhanced: '4.3.2' })
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('a RST at %s ends the session', async stage => {
    const { session, outcome, socket, clock } = await waitingAt(stage)
    breakOff(socket)
    expect(await outcome).toEqual({ broken: 'closed', stage, detail: 'read ECONNRESET' })
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('a FIN at %s, which may be half a close, ends the session', async stage => {
    const { session, outcome, server, socket, clock } = await waitingAt(stage)
    server.end()
    expect(await outcome).toMatchObject({ broken: 'closed', stage })
    await turns()
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('silence at %s ends with its time', async stage => {
    const { session, outcome, clock, socket } = await waitingAt(stage)
    const limitMs = stage === 'greeting' ? TIMES.greetingTimeoutMs : TIMES.replyTimeoutMs
    await clock.advance(limitMs - 1)
    expect(session.usable).toBe(true)
    await clock.advance(1)
    expect(await outcome).toMatchObject({ broken: 'timeout', stage })
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('half a reply and a FIN at %s is no reply', async stage => {
    const { outcome, server } = await waitingAt(stage)
    server.end('250 Ok')
    expect(await outcome).toMatchObject({ broken: 'closed', stage })
  })

  test.each(stages)('what is no SMTP at %s ends the session', async stage => {
    const { session, outcome, say } = await waitingAt(stage)
    await say('2500 Ok')
    expect(await outcome).toMatchObject({ broken: 'garbage', stage })
    await staysBroken(session)
  })

  test('a greeting that comes after its time is not heard', async () => {
    const { session, outcome, clock, server } = await waitingAt('greeting')
    await clock.advance(TIMES.greetingTimeoutMs)
    server.write('220 mx.test\r\n')
    await turns()
    expect(codeOf(await outcome)).toBe('timeout')
    await staysBroken(session)
  })

  test('a greeting of a patient server is waited for', async () => {
    const { outcome, clock, say } = await waitingAt('greeting')
    await clock.advance(29_000)
    await say('220 mx.test')
    expect(codeOf(await outcome)).toBe(220)
  })

  test('one byte a second ends with the time for the whole reply', async () => {
    const { session, outcome, clock, server } = await waitingAt('rcpt')
    for (const byte of '250 accepted for you alone') {
      server.write(byte)
      await turns()
      await clock.advance(1_000)
    }
    expect(await outcome).toMatchObject({ broken: 'timeout', stage: 'rcpt' })
    await staysBroken(session)
  })

  test('each pipelined reply has its own time, which begins with the reply before', async () => {
    const { session, clock, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    await clock.advance(15_000)
    await say('250 a')
    await clock.advance(15_000)
    await say('250 b')
    await clock.advance(20_000)
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 250, 'timeout'])
  })

  test('the whole conversation has its time, however lively it is', async () => {
    const { session, clock, say, socket } = await greeted()
    for (let i = 0; i < 5; i++) {
      const reset = session.rset()
      await clock.advance(10_000)
      await say('250 Ok')
      expect(codeOf(await reset)).toBe(250)
    }
    const last = session.rset()
    await clock.advance(10_000)
    expect(await last).toMatchObject({ broken: 'timeout', stage: 'rset' })
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
  })

  test('an endless reply is cut, and not read on', async () => {
    const { session, outcome, server } = await waitingAt('ehlo')
    server.write('250-x\r\n'.repeat(50_000))
    expect(await outcome).toMatchObject({ broken: 'garbage', stage: 'ehlo' })
    await staysBroken(session)
  })

  test('an endless line is cut', async () => {
    const { outcome, server } = await waitingAt('greeting')
    server.write('x'.repeat(100_000))
    expect(await outcome).toMatchObject({ broken: 'garbage', stage: 'greeting' })
  })

  test('a conversation may not make us read more than 64 KiB and 4 KiB for each command', async () => {
    const { session, say } = await greeted()
    // 32 lines of 1,000 octets: legal each time, but nobody needs so much.
    const long = [...Array(31).fill(`250-${'x'.repeat(994)}`), `250 ${'x'.repeat(994)}`]
    let read = 0
    for (let i = 0; i < 10 && session.usable; i++) {
      const reset = session.rset()
      await turns()
      await say(...long)
      if (!isBroken(await reset)) read += 32_000
    }
    expect(session.usable).toBe(false)
    expect(read).toBeLessThan(65_536 + 10 * 4_096)
    expect(read).toBeGreaterThan(0)
  })

  test('a reply that nobody asked for ends the session', async () => {
    const { session, say } = await greeted()
    await say('250 Ok')
    expect(await session.mail('')).toMatchObject({ broken: 'garbage' })
    await staysBroken(session)
  })

  test('421 that nobody asked for is a close', async () => {
    const { session, say } = await greeted()
    await say('421 idle too long')
    expect(await session.mail('')).toMatchObject({ broken: 'closed' })
  })

  test('a second reply in one packet is never the answer to a command that had not left yet', async () => {
    const { session, writes, say } = await greeted()
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    // The recipients wait in our queue: nobody can have accepted them.
    await say('250 2.1.0 Ok', '250 2.1.5 Ok', '250 2.1.5 Ok')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 'garbage', 'garbage'])
    expect(writes).toEqual(['MAIL FROM:<>\r\n'])
  })

  test('a third reply to two pipelined commands ends the session', async () => {
    const { session, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test')]
    await turns()
    await say('250 a', '550 b', '250 c')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 550])
    expect(session.usable).toBe(false)
  })

  test('421 among pipelined replies leaves the rest without one', async () => {
    const { session, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    await say('250 a', '421 b', '250 c')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 421, 'closed'])
  })

  test('a command given after trouble does not leave', async () => {
    const { session, writes, server } = await greeted(['PIPELINING'])
    const outcome = session.mail('')
    session.close()
    expect(codeOf(await outcome)).toBe('timeout')
    await turns()
    expect(writes).toEqual([])
    expect(server.writableEnded).toBe(false)
  })

  test('a connection that died before anybody listened is a closed one', async () => {
    const { socket, clock } = talk()
    socket.destroy()
    await turns()
    const session = new Session(socket, { clock, ...TIMES })
    expect(await session.greeting()).toMatchObject({ broken: 'closed', stage: 'greeting' })
    await session.quit()
  })

  test('an error after the end is nobody’s business', async () => {
    const { session, socket } = await greeted()
    session.close()
    socket.emit('error', new Error('late'))
    expect(await session.rset()).toMatchObject({ broken: 'timeout' })
  })
})

describe('QUIT', () => {
  test('is said, and done when the server has closed', async () => {
    const { session, server, writes, wire, say, clock } = await greeted(['PIPELINING'])
    let done = false
    void session.quit().then(() => {
      done = true
    })
    await turns()
    expect(writes).toEqual(['QUIT\r\n'])
    await say('221 Bye')
    // Our side is closed with the last word of the server; the other end goes when it likes.
    expect(wire.ended).toBe(true)
    expect(done).toBe(false)
    server.end()
    await turns()
    expect(done).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('is done within two seconds when the server says nothing', async () => {
    const { session, clock, socket } = await greeted()
    const quit = session.quit()
    await clock.advance(1_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    await quit
    expect(socket.destroyed).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('is done within two seconds when the server says 221 and stays', async () => {
    const { session, clock, say, socket } = await greeted()
    const quit = session.quit()
    await turns()
    await say('221 Bye')
    await clock.advance(2_000)
    await quit
    expect(socket.destroyed).toBe(true)
  })

  test.each(['550 no', 'what', '421 bye', '221 a\r\n221 b'])(
    '%j to it changes nothing',
    async said => {
      const { session, server, say } = await greeted()
      const quit = session.quit()
      await turns()
      await say(said)
      server.end()
      await quit
      expect(session.usable).toBe(false)
    },
  )

  test('goes unsaid in a broken session, and may be called again', async () => {
    const { session, writes } = await greeted()
    session.close()
    await session.quit()
    await session.quit()
    expect(writes).toEqual([])
  })

  test('is cut short by close', async () => {
    const { session, socket } = await greeted()
    const quit = session.quit()
    await turns()
    session.close()
    await quit
    expect(socket.destroyed).toBe(true)
  })
})

describe('injection', () => {
  const give: Record<string, (session: Session, text: string) => Promise<unknown>> = {
    ehlo: (session, text) => session.ehlo(text),
    mail: (session, text) => session.mail(text),
    rcpt: (session, text) => session.rcpt(text),
  }
  const attempt = async (command: string, session: Session, text: string): Promise<unknown> => {
    try {
      return await give[command]?.(session, text)
    } catch (error) {
      return error
    }
  }

  describe.each(['ehlo', 'mail', 'rcpt'])('by %s', command => {
    test.each([
      ['a\r\nDATA'],
      ['a\nDATA'],
      ['a\rDATA'],
      ['a\0b'],
      ['a\x1b[2J'],
      ['a\tb'],
      ['a\x7fb'],
      ['"a\r\n b"@a.test'],
      [`${'a'.repeat(1_000)}@a.test`],
      ['я'.repeat(500)],
    ])('%j is stopped, and nothing leaves', async text => {
      const { session, writes } = await greeted()
      const thrown = await attempt(command, session, text)
      await turns()
      expect(thrown).toBeInstanceOf(EvError)
      expect(thrown).toMatchObject({ code: 'internal' })
      expect(writes).toEqual([])
    })

    test('characters that a narrower encoding folds into CR LF leave as their UTF-8', async () => {
      const { session, writes } = await greeted()
      void attempt(command, session, '\u010d\u010aDATA')
      await turns()
      const bytes = Buffer.from(writes.join(''), 'latin1')
      expect(bytes.includes('\u010d\u010aDATA')).toBe(true)
      expect([...bytes].filter(byte => byte === 0x0d || byte === 0x0a)).toHaveLength(2)
      expect(bytes.subarray(-2).toString()).toBe('\r\n')
    })
  })

  test('a command of 1,000 octets leaves, one of 1,001 does not', async () => {
    const { session, writes } = await greeted()
    void session.rcpt('x'.repeat(1_000 - 'RCPT TO:<>'.length))
    await turns()
    expect(writes.join('')).toHaveLength(1_002)
    expect(() => session.rcpt('x'.repeat(1_001 - 'RCPT TO:<>'.length))).toThrow(EvError)
  })

  test('whatever the names are, only our verbs leave, one a line, without a control character', async () => {
    const nasty = fc.constantFrom(
      '\r\n',
      '\n',
      '\r',
      '\0',
      '\u010a',
      '\u010d',
      '\u2028',
      '\u0085',
      '\ud800',
      '\x1b',
      '\x7f',
      '>',
      '> SIZE=1',
      'DATA',
      '\r\n.\r\n',
      'x'.repeat(990),
    )
    const name = fc
      .array(fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 12 }), fc.emailAddress()), {
        maxLength: 4,
      })
      .map(parts => parts.join(''))
    const step = fc.tuple(fc.constantFrom('ehlo', 'mail', 'rcpt', 'rset', 'starttls', 'quit'), name)
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 6 }),
        fc.boolean(),
        async (steps, pipelining) => {
          const { session, server, writes } = talk()
          const verbs: string[] = []
          let rest = ''
          server.write('220 mx.test\r\n')
          server.on('data', (bytes: Buffer) => {
            const lines = (rest + bytes.toString('latin1')).split('\r\n')
            rest = lines.pop() ?? ''
            verbs.push(...lines)
            for (const line of lines) {
              if (line.startsWith('EHLO') && pipelining) server.write('250-x\r\n250 PIPELINING\r\n')
              else server.write(line === 'STARTTLS' ? '220 x\r\n' : '250 x\r\n')
              if (line === 'QUIT') server.end()
            }
          })
          const outcomes = [session.greeting()] as Promise<unknown>[]
          for (const [command, text] of steps) {
            if (command === 'rset') outcomes.push(session.rset())
            else if (command === 'quit') outcomes.push(session.quit())
            else if (command === 'starttls') await session.starttls(sameSocket)
            else outcomes.push(attempt(command, session, text))
          }
          await Promise.all(outcomes)
          await turns()
          const bytes = writes.join('')
          expect(bytes === '' || bytes.endsWith('\r\n')).toBe(true)
          expect(rest).toBe('')
          for (const line of verbs) {
            expect(line).toMatch(
              /^(?:EHLO .*|HELO .*|STARTTLS|MAIL FROM:<.*>|RCPT TO:<.*>|RSET|QUIT)$/s,
            )
            expect(line).not.toMatch(/[\x00-\x1f\x7f]/)
            expect(line.length).toBeLessThanOrEqual(1_000)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
