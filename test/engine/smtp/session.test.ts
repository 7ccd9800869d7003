import type { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { Session } from '../../../src/engine/smtp/session.ts'
import { playedMx } from '../../support/mx.ts'
import { codeOf, greeted, replyOf, sameSocket, TIMES, talk, turns } from './talk.ts'

describe('a complete session', () => {
  test('is the dialogue of RFC 5321 appendix D, without the message', async () => {
    const dial = playedMx('polite.smtp')
    const socket = await dial.connect({ ip: '192.0.2.1', port: 25, host: 'mx.test' })
    const session = new Session(socket, { clock: talk().clock, ...TIMES })
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

  test('is passed to the listener line by line', async () => {
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

describe('command order', () => {
  test('nothing is sent before the greeting', async () => {
    const { session, writes, say } = talk()
    void session.greeting()
    void session.ehlo('probe.test')
    await turns()
    expect(writes).toEqual([])
    await say('220 mx.test')
    expect(writes).toEqual(['EHLO probe.test\r\n'])
  })

  test('without PIPELINING each command waits for the reply to the previous one', async () => {
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

  test('the next command waits for the end of a multiline reply', async () => {
    const { session, writes, say } = await greeted()
    void session.mail('')
    void session.rcpt('a@a.test')
    await turns()
    await say('250-a')
    expect(writes).toHaveLength(1)
    await say('250 b')
    expect(writes).toHaveLength(2)
  })

  test('with PIPELINING, MAIL and its recipients leave in one write, and replies are matched in order', async () => {
    const { session, writes, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    expect(writes).toEqual(['MAIL FROM:<>\r\nRCPT TO:<a@a.test>\r\nRCPT TO:<b@a.test>\r\n'])
    await say('250 a', '250 b', '550 c')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 250, 550])
  })

  test('PIPELINING is used only if EHLO lists it, in any case', async () => {
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

  test('commands issued before the reply to EHLO are not pipelined', async () => {
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

  test('MAIL has SMTPUTF8 only on request', async () => {
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
  test.each([500, 501, 502, 503, 504, 530, 550, 554])(
    'a server that replies %i gets HELO',
    async code => {
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
    },
  )

  test.each([421, 450, 521, 221])('a server that replies %i gets no HELO', async code => {
    const { session, writes, say } = talk()
    void session.greeting()
    await say('220 mx.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say(`${code} no`)
    expect(codeOf(await ehlo)).toBe(code)
    expect(writes).toHaveLength(1)
  })

  test('a server that lists extensions before it refuses gets no HELO', async () => {
    const { session, writes, say } = talk()
    void session.greeting()
    await say('220 mx.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say('250-mx.test\r\n250-SIZE\r\n550 no')
    expect(codeOf(await ehlo)).toBe(550)
    expect(writes).toHaveLength(1)
  })

  test.each([
    ['the reply to EHLO, if that gives a reason', '554 5.7.1 blocked', '503 bad sequence', 554],
    ['the reply to HELO, if EHLO is unknown', '502 unknown', '554 5.7.1 blocked', 554],
  ])('a server that refuses HELO too has %s', async (_, toEhlo, toHelo, code) => {
    const { session, say } = talk()
    void session.greeting()
    await say('220 mx.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say(toEhlo)
    await say(toHelo)
    const reply = await ehlo
    expect([codeOf(reply), 'text' in reply && reply.text]).toEqual([code, 'blocked'])
  })

  test('a server that refuses EHLO and closes has the reply to EHLO', async () => {
    const { session, say, server } = talk()
    void session.greeting()
    await say('220 mx.test')
    const ehlo = session.ehlo('probe.test')
    await turns()
    await say('554 5.7.1 blocked')
    server.end()
    expect(codeOf(await ehlo)).toBe(554)
  })

  test('a second EHLO replaces the capabilities', async () => {
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

  test('resets the session state', async () => {
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
    // STARTTLS is not offered again.
    expect(session.offersStartTls).toBe(false)
  })

  test.each([
    ['a whole reply', '250 PIPELINING\r\n'],
    ['half a reply', '250-PIPELIN'],
    ['what is no SMTP', 'what\r\n'],
    ['a 421', '421 bye\r\n'],
    ['an endless line', 'x'.repeat(70_000)],
  ])('plain text injected after the 220 ends the session: %s', async (_, injected) => {
    const { session, server } = await greeted(all)
    const started = session.starttls(sameSocket)
    await turns()
    server.write(`220 go on\r\n${injected}`)
    expect(await started).toMatchObject({ broken: 'garbage' })
    expect(session.usable).toBe(false)
    expect(await session.ehlo('probe.test')).toMatchObject({ broken: 'garbage' })
  })

  test('discards plain text during the handshake', async () => {
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

  test('if refused, leaves the session in clear text with its capabilities', async () => {
    const { session, say } = await greeted(all)
    const started = session.starttls(() => Promise.reject(new Error('not called')))
    await turns()
    await say('454 4.7.0 not now')
    expect(codeOf(await started)).toBe(454)
    expect([session.usable, session.secured, session.pipelining]).toEqual([true, false, true])
  })

  test('a failed handshake ends the session with a TLS failure', async () => {
    const { session, say } = await greeted(all)
    const started = session.starttls(() => Promise.reject(new Error('handshake failure')))
    await turns()
    await say('220 go on')
    expect(await started).toEqual({ broken: 'tls', stage: 'starttls', detail: 'handshake failure' })
    expect(session.usable).toBe(false)
    expect(session.secured).toBe(false)
    await session.quit()
  })

  test('a stalled handshake ends after the reply timeout as a TLS failure', async () => {
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

  test('a handshake without an end does not delay QUIT', async () => {
    const { session, clock, say } = await greeted(all)
    void session.starttls(() => new Promise<Duplex>(() => {}))
    await turns()
    await say('220 go on')
    await clock.advance(TIMES.replyTimeoutMs)
    await session.quit()
    expect(session.usable).toBe(false)
  })

  test('a handshake that completes after the timeout is closed', async () => {
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

describe('QUIT', () => {
  test('is sent, and resolves when the server has closed', async () => {
    const { session, server, writes, wire, say, clock } = await greeted(['PIPELINING'])
    let done = false
    void session.quit().then(() => {
      done = true
    })
    await turns()
    expect(writes).toEqual(['QUIT\r\n'])
    await say('221 Bye')
    // Our side closes after the last reply of the server; the peer closes later.
    expect(wire.ended).toBe(true)
    expect(done).toBe(false)
    server.end()
    await turns()
    expect(done).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('resolves within two seconds without a reply', async () => {
    const { session, clock, socket } = await greeted()
    const quit = session.quit()
    await clock.advance(1_999)
    expect(socket.destroyed).toBe(false)
    await clock.advance(1)
    await quit
    expect(socket.destroyed).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('resolves within two seconds if the server does not close after 221', async () => {
    const { session, clock, say, socket } = await greeted()
    const quit = session.quit()
    await turns()
    await say('221 Bye')
    await clock.advance(2_000)
    await quit
    expect(socket.destroyed).toBe(true)
  })

  test.each(['550 no', 'what', '421 bye', '221 a\r\n221 b'])(
    '%j to it makes no difference',
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

  test('is not sent in a broken session, and may be called again', async () => {
    const { session, writes } = await greeted()
    session.close()
    await session.quit()
    await session.quit()
    expect(writes).toEqual([])
  })

  test('is interrupted by close', async () => {
    const { session, socket } = await greeted()
    const quit = session.quit()
    await turns()
    session.close()
    await quit
    expect(socket.destroyed).toBe(true)
  })
})
