import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { HANG_UP, playedMx, playSession, refused, scriptedMx } from './mx.ts'

const TO = { ip: '192.0.2.1', port: 25, host: 'mx.example.org' }
const HELLO = 'S: 220 mx.example.org\nC: EHLO probe.test\nS: 250 mx.example.org\n'

describe('a played dialogue', () => {
  test('is done when both sides have sent the expected lines', async () => {
    const { socket, done } = playSession(`${HELLO}C: QUIT\nS: 221 Bye\n`)
    expect(String(await once(socket, 'data'))).toBe('220 mx.example.org\r\n')
    socket.write('EHLO probe.test\r\n')
    expect(String(await once(socket, 'data'))).toBe('250 mx.example.org\r\n')
    socket.write('QUIT\r\n')
    await done
  })

  test('fails at a line that differs, and names it', async () => {
    const { socket, done } = playSession(HELLO)
    socket.resume().write('HELO probe.test\r\n')
    await expect(done).rejects.toThrow(/Line 2 of the dialogue differs[\s\S]*HELO probe\.test/)
  })

  test('fails at a command that is sent before the preceding reply', async () => {
    const { socket, done } = playSession(`${HELLO}C: MAIL FROM:<>\nS: 250 Ok\n`)
    socket.resume().write('EHLO probe.test\r\nMAIL FROM:<>\r\n')
    await expect(done).rejects.toThrow(/too early, at line 3/)
  })

  test('fails when the client disconnects midway', async () => {
    const { socket, done } = playSession(HELLO)
    socket.resume().end()
    await expect(done).rejects.toThrow(/left before line 2/)
  })

  test('accepts consecutive commands in a pipeline', async () => {
    const { socket, done } = playSession('C: MAIL FROM:<>\nC: RSET\nS: 250 a\nS: 250 b\n')
    socket.resume().write('MAIL FROM:<>\r\nRSET\r\n')
    await done
  })

  test('can reset the connection', async () => {
    const { socket } = playSession('S: 220 a\nS: <reset>\n')
    const [error] = await once(socket, 'error')
    expect(error).toMatchObject({ code: 'ECONNRESET' })
  })

  test('rejects a text that is not a dialogue', () => {
    expect(() => playSession('S: 220 a\nX: what\n')).toThrow(/Line 2/)
  })
})

describe('a dial that plays dialogues', () => {
  test('plays one for each connection and refuses further ones', async () => {
    const dial = playedMx('S: 220 a\nS: <close>\n')
    const socket = await dial.connect(TO)
    const ended = once(socket.resume(), 'end')
    await dial.done()
    await ended
    await expect(dial.connect(TO)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect(dial.dialled).toEqual([TO, TO])
  })
})

describe('a scripted server', () => {
  test('sends scripted replies, defaults otherwise, and records the lines', async () => {
    const dial = scriptedMx(line => (line.startsWith('RCPT') ? '550 5.1.1 No' : undefined))
    const socket = await dial.connect(TO)
    let received = ''
    socket.setEncoding('utf8').on('data', text => {
      received += text
    })
    socket.write('MAIL FROM:<>\r\nRCPT TO:<a@b.test>\r\nQUIT\r\n')
    await once(socket, 'end')
    expect(received).toBe(
      '220 mx.example.org ESMTP\r\n250 2.1.0 Ok\r\n550 5.1.1 No\r\n221 2.0.0 Bye\r\n',
    )
    expect(dial.lines()).toEqual(['MAIL FROM:<>', 'RCPT TO:<a@b.test>', 'QUIT'])
  })

  test('can close the connection', async () => {
    const dial = scriptedMx({ answer: () => HANG_UP })
    const socket = await dial.connect(TO)
    socket.resume().write('EHLO probe.test\r\n')
    await once(socket, 'end')
    expect(dial.sessions[0]?.closed).toBe(true)
  })

  test('fakes a TLS handshake, which can fail', async () => {
    const dial = scriptedMx({})
    const socket = await dial.connect(TO)
    expect(await dial.secure(socket, TO.host)).toBe(socket)
    expect(dial.secured).toEqual(['mx.example.org'])
    const broken = scriptedMx({
      secure: () => {
        throw new Error('handshake failure')
      },
    })
    await expect(broken.secure(socket, TO.host)).rejects.toThrow('handshake failure')
  })

  test('can refuse a connection', async () => {
    const dial = scriptedMx({
      connect: to => {
        throw refused(to)
      },
    })
    await expect(dial.connect(TO)).rejects.toThrow(/ECONNREFUSED/)
    expect(dial.sessions).toEqual([])
  })
})
