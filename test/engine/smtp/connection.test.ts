import { describe, expect, test } from 'vitest'
import { isFailure } from '../../../src/engine/smtp/connection.ts'
import { Session } from '../../../src/engine/smtp/session.ts'
import { EvError } from '../../../src/platform/error.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'
import { breakOff, codeOf, greeted, sameSocket, TIMES, talk, turns } from './talk.ts'

describe('failures', () => {
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
    expect(isFailure(await session.greeting())).toBe(true)
    expect(isFailure(await session.ehlo('probe.test'))).toBe(true)
    expect(isFailure(await session.starttls(sameSocket))).toBe(true)
    expect(await session.mail('')).toMatchObject({ stage: 'mail' })
    expect(await session.rcpt('a@a.test')).toMatchObject({ stage: 'rcpt' })
    expect(await session.rset()).toMatchObject({ stage: 'rset' })
    await session.quit()
    expect(session.usable).toBe(false)
  }

  test.each(stages)('421 to %s is returned and ends the session', async stage => {
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
    expect(await outcome).toEqual({ broken: 'closed', stage, detail: 'connection reset' })
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('a FIN at %s, even half-closed, ends the session', async stage => {
    const { session, outcome, server, socket, clock } = await waitingAt(stage)
    server.end()
    expect(await outcome).toMatchObject({ broken: 'closed', stage })
    await turns()
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(stages)('silence at %s ends with a timeout', async stage => {
    const { session, outcome, clock, socket } = await waitingAt(stage)
    const limitMs = stage === 'greeting' ? TIMES.greetingTimeoutMs : TIMES.replyTimeoutMs
    await clock.advance(limitMs - 1)
    expect(session.usable).toBe(true)
    await clock.advance(1)
    expect(await outcome).toMatchObject({ broken: 'timeout', stage })
    // After EHLO, QUIT is sent and the server has two seconds to close.
    const hearsQuit = stage === 'mail' || stage === 'rcpt'
    expect(socket.destroyed).toBe(!hearsQuit)
    await clock.advance(2_000)
    expect(socket.destroyed).toBe(true)
    await staysBroken(session)
    expect(clock.pending).toBe(0)
  })

  test.each(['mail', 'rcpt'] as const)('silence at %s ends with QUIT', async stage => {
    const { session, outcome, clock, server, socket, writes } = await waitingAt(stage)
    writes.length = 0
    await clock.advance(TIMES.replyTimeoutMs)
    await turns()
    expect(writes).toEqual(['QUIT\r\n'])
    // The late reply is ignored.
    server.write('250 2.1.5 Ok\r\n221 2.0.0 Bye\r\n')
    server.end()
    await turns()
    expect(await outcome).toMatchObject({ broken: 'timeout', stage })
    await staysBroken(session)
    await session.quit()
    expect(socket.destroyed).toBe(true)
    expect(writes).toEqual(['QUIT\r\n'])
    expect(clock.pending).toBe(0)
  })

  test('a server that floods after QUIT is disconnected', async () => {
    const { clock, server, socket } = await waitingAt('rcpt')
    await clock.advance(TIMES.replyTimeoutMs)
    for (let line = 0; line < 200; line++) server.write(`250-${'x'.repeat(1_000)}\r\n`)
    await turns()
    expect(socket.destroyed).toBe(true)
  })

  test.each(stages)('a partial reply and a FIN at %s is not a reply', async stage => {
    const { outcome, server } = await waitingAt(stage)
    server.end('250 Ok')
    expect(await outcome).toMatchObject({ broken: 'closed', stage })
  })

  test.each(stages)('data that is not SMTP at %s ends the session', async stage => {
    const { session, outcome, say } = await waitingAt(stage)
    await say('2500 Ok')
    expect(await outcome).toMatchObject({ broken: 'garbage', stage })
    await staysBroken(session)
  })

  test('a greeting after its timeout is ignored', async () => {
    const { session, outcome, clock, server } = await waitingAt('greeting')
    await clock.advance(TIMES.greetingTimeoutMs)
    server.write('220 mx.test\r\n')
    await turns()
    expect(codeOf(await outcome)).toBe('timeout')
    await staysBroken(session)
  })

  test('a delayed greeting is awaited', async () => {
    const { outcome, clock, say } = await waitingAt('greeting')
    await clock.advance(29_000)
    await say('220 mx.test')
    expect(codeOf(await outcome)).toBe(220)
  })

  test('one byte per second ends with the timeout of the complete reply', async () => {
    const { session, outcome, clock, server } = await waitingAt('rcpt')
    for (const byte of '250 accepted for you alone') {
      server.write(byte)
      await turns()
      await clock.advance(1_000)
    }
    expect(await outcome).toMatchObject({ broken: 'timeout', stage: 'rcpt' })
    await staysBroken(session)
  })

  test('each pipelined reply has its own timeout, which starts at the previous reply', async () => {
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

  test('the session has a time limit, however active it is', async () => {
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

  test('an endless reply ends the session', async () => {
    const { session, outcome, server } = await waitingAt('ehlo')
    server.write('250-x\r\n'.repeat(50_000))
    expect(await outcome).toMatchObject({ broken: 'garbage', stage: 'ehlo' })
    await staysBroken(session)
  })

  test('an endless line ends the session', async () => {
    const { outcome, server } = await waitingAt('greeting')
    server.write('x'.repeat(100_000))
    expect(await outcome).toMatchObject({ broken: 'garbage', stage: 'greeting' })
  })

  test('a session reads at most 128 KiB and 4 KiB per command', async () => {
    const { session, say } = await greeted()
    // 32 lines of 1,000 octets: each is legal, but the total exceeds the limit.
    const long = [...Array(31).fill(`250-${'x'.repeat(994)}`), `250 ${'x'.repeat(994)}`]
    let read = 0
    for (let i = 0; i < 10 && session.usable; i++) {
      const reset = session.rset()
      await turns()
      await say(...long)
      if (!isFailure(await reset)) read += 32_000
    }
    expect(session.usable).toBe(false)
    expect(read).toBeLessThan(131_072 + 10 * 4_096)
    expect(read).toBeGreaterThan(0)
  })

  test('an unsolicited reply ends the session', async () => {
    const { session, say } = await greeted()
    await say('250 Ok')
    expect(await session.mail('')).toMatchObject({ broken: 'garbage' })
    await staysBroken(session)
  })

  test('an unsolicited 421 is a close', async () => {
    const { session, say } = await greeted()
    await say('421 idle too long')
    expect(await session.mail('')).toMatchObject({ broken: 'closed' })
  })

  test('a 421 that arrives before EHLO answers it', async () => {
    const { session, say } = talk()
    const greeting = session.greeting()
    await say('220 mx.test ESMTP', '421 4.7.0 Error: too many new TLS sessions')
    await greeting
    expect(await session.ehlo('probe.test')).toMatchObject({ code: 421, enhanced: '4.7.0' })
    await staysBroken(session)
  })

  test('a second reply in one packet is never matched with a command sent later', async () => {
    const { session, writes, say } = await greeted()
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    // The recipients are still queued, so no reply can belong to them.
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

  test('421 among pipelined replies leaves the other commands without a reply', async () => {
    const { session, say } = await greeted(['PIPELINING'])
    const outcomes = [session.mail(''), session.rcpt('a@a.test'), session.rcpt('b@a.test')]
    await turns()
    await say('250 a', '421 b', '250 c')
    expect((await Promise.all(outcomes)).map(codeOf)).toEqual([250, 421, 'closed'])
  })

  test('a command after a failure is not sent', async () => {
    const { session, writes, server } = await greeted(['PIPELINING'])
    const outcome = session.mail('')
    session.close()
    expect(codeOf(await outcome)).toBe('timeout')
    await turns()
    expect(writes).toEqual([])
    expect(server.writableEnded).toBe(false)
  })

  test('a connection that closed before the session started is reported as closed', async () => {
    const { socket, clock } = talk()
    socket.destroy()
    await turns()
    const session = new Session(socket, { clock, ...TIMES })
    expect(await session.greeting()).toMatchObject({ broken: 'closed', stage: 'greeting' })
    await session.quit()
  })

  test('an error after the end is ignored', async () => {
    const { session, socket } = await greeted()
    session.close()
    socket.emit('error', new Error('late'))
    expect(await session.rset()).toMatchObject({ broken: 'timeout' })
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
    ])('%j is rejected, and nothing is sent', async text => {
      const { session, writes } = await greeted()
      const thrown = await attempt(command, session, text)
      await turns()
      expect(thrown).toBeInstanceOf(EvError)
      expect(thrown).toMatchObject({ code: 'internal' })
      expect(writes).toEqual([])
    })

    test('characters that a narrower encoding folds into CR LF are sent as UTF-8', async () => {
      const { session, writes } = await greeted()
      void attempt(command, session, '\u010d\u010aDATA')
      await turns()
      const bytes = Buffer.from(writes.join(''), 'latin1')
      expect(bytes.includes('\u010d\u010aDATA')).toBe(true)
      expect([...bytes].filter(byte => byte === 0x0d || byte === 0x0a)).toHaveLength(2)
      expect(bytes.subarray(-2).toString()).toBe('\r\n')
    })
  })

  test('a command has at most 1,000 octets', async () => {
    const { session, writes } = await greeted()
    void session.rcpt('x'.repeat(1_000 - 'RCPT TO:<>'.length))
    await turns()
    expect(writes.join('')).toHaveLength(1_002)
    expect(() => session.rcpt('x'.repeat(1_001 - 'RCPT TO:<>'.length))).toThrow(EvError)
  })

  test('for any names, only known verbs are sent, one per line, without control characters', async () => {
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
      .array(fc.oneof(nasty, fc.string({ unit: anyCharacter, maxLength: 12 }), fc.emailAddress()), {
        maxLength: 4,
      })
      .map(deps => deps.join(''))
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
      { numRuns: runs(500) },
    )
  })
})
