import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EvError } from '../../../src/platform/error.ts'
import {
  createSmtpTransport,
  parseMailServer,
  type SmtpDeps,
} from '../../../src/webhooks/alerts/smtp-transport.ts'
import { testAuthority } from '../../support/certificate.ts'
import { startMailServer } from '../../support/smtp-server.ts'

const MAIL = {
  ...{ to: 'owner@shop.example', subject: 'ev: 3 events', text: 'What to do:\n\n- Look.\n' },
  brief: {},
}
const LOGIN = 'ann@shop:s3cr#t/%'
/** As AUTH PLAIN has it (RFC 4616). */
const AS_SENT = Buffer.from('\0ann@shop\0s3cr#t/%').toString('base64')
const IN_URL = 'ann%40shop:s3cr%23t%2F%25'

const door = (url: string, deps: Partial<SmtpDeps> = {}) => {
  const notify = createSmtpTransport({
    url,
    from: 'ev@example.com',
    ca: testAuthority().cert,
    ...deps,
  })
  onTestFinished(() => notify.close())
  return notify
}

async function faultOf(sending: Promise<void>): Promise<string> {
  const fault = await sending.then(() => null).catch((error: unknown) => error)
  expect(fault).toBeInstanceOf(EvError)
  const { message, cause, stack = '' } = fault as EvError
  expect(cause).toBeUndefined()
  for (const text of [message, stack]) {
    expect(text).not.toMatch(/s3cr|ann@/)
    expect(text).not.toContain(AS_SENT)
  }
  return message
}

describe('a mail', () => {
  test('is plain text from our sender to one recipient, and asks for no automatic answer', async () => {
    const { port, taken } = await startMailServer()
    await door(`smtp://127.0.0.1:${port}`).send(MAIL)
    expect(taken).toMatchObject([{ from: 'ev@example.com', to: ['owner@shop.example'] }])
    const [head = ''] = taken[0]?.source.split('\r\n\r\n') ?? []
    expect(head).toMatch(/^From: ev <ev@example\.com>$/m)
    expect(head).toMatch(/^To: owner@shop\.example$/m)
    expect(head).toMatch(/^Subject: ev: 3 events$/m)
    expect(head).toMatch(/^Auto-Submitted: auto-generated$/m)
    expect(head).toMatch(/^Content-Type: text\/plain/m)
    expect(taken[0]?.source.endsWith('\r\n\r\nWhat to do:\r\n\r\n- Look.\r\n')).toBe(true)
  })

  test('keeps its head, whatever its subject holds', async () => {
    const { port, taken } = await startMailServer()
    const subject = 'ev\r\nBcc: eve@evil.example\r\n\r\nHello'
    await door(`smtp://127.0.0.1:${port}`).send({ ...MAIL, subject })
    expect(taken).toMatchObject([{ to: ['owner@shop.example'] }])
    const [head = ''] = taken[0]?.source.split('\r\n\r\n') ?? []
    expect(head).toMatch(/^Subject: ev Bcc: eve@evil\.example {2}Hello$/m)
    expect(head).not.toMatch(/^(Bcc|Hello)/m)
  })

  test.each([
    'owner@shop.example\r\nBcc: eve@evil.example',
    'owner@shop.example>\r\nRCPT TO:<eve@evil.example',
    'owner@shop.example, eve@evil.example',
    'Owner <owner@shop.example>, <eve@evil.example>',
  ])('goes to nobody where its recipient is no single address: %j', async to => {
    const { port, taken } = await startMailServer()
    await expect(door(`smtp://127.0.0.1:${port}`).send({ ...MAIL, to })).rejects.toThrow()
    expect(taken).toEqual([])
  })

  test('holds no file and no page that its text names', async () => {
    const { port, taken } = await startMailServer()
    const text = { path: '/etc/hostname' } as unknown as string
    await door(`smtp://127.0.0.1:${port}`)
      .send({ ...MAIL, text })
      .catch(() => {})
    expect(taken).toEqual([])
  })
})

describe('a server with a name and a password', () => {
  test.each([
    ['after STARTTLS', 'smtp', false],
    ['by TLS from the first byte', 'smtps', true],
  ])('gets both %s', async (_, scheme, isTls) => {
    const { port, taken, offered } = await startMailServer({ login: LOGIN, isTls })
    await door(`${scheme}://${IN_URL}@127.0.0.1:${port}`).send(MAIL)
    expect(taken).toMatchObject([{ isSecure: true, user: 'ann@shop' }])
    expect(offered).toEqual([LOGIN])
  })

  test('gets neither in the clear', async () => {
    const { port, taken, offered } = await startMailServer({ login: LOGIN, isPlain: true })
    const fault = await faultOf(door(`smtp://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
    expect(fault).toMatch(/^The mail server 127\.0\.0\.1:\d+ did not accept the mail: .*TLS/)
    expect([taken, offered]).toEqual([[], []])
  })

  test.each([
    ['self-signed', 'smtp', false],
    ['unknown-authority', 'smtp', false],
    ['expired', 'smtp', false],
    ['other-name', 'smtp', false],
    ['self-signed', 'smtps', true],
    ['other-name', 'smtps', true],
  ] as const)(
    'gets neither where its certificate is %s (%s)',
    async (certificate, scheme, isTls) => {
      const { port, taken, offered } = await startMailServer({ login: LOGIN, isTls, certificate })
      const fault = await faultOf(door(`${scheme}://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
      expect(fault).toMatch(/did not accept the mail: .*(certificate|altnames)/i)
      expect([taken, offered]).toEqual([[], []])
    },
  )

  test('that does not take them is told without them, even where it repeats them', async () => {
    const { port, taken, offered } = await startMailServer({ login: 'bob:other' })
    const fault = await faultOf(door(`smtp://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
    expect(fault).toBe(
      `The mail server 127.0.0.1:${port} rejected the username and password (535).`,
    )
    expect(offered).toEqual([LOGIN])
    expect(taken).toEqual([])
  })
})

describe('a mail that is not taken', () => {
  test('rejects with what the server said of its recipient, cleaned', async () => {
    const { port } = await startMailServer({
      more: {
        onRcptTo: (_, __, callback) =>
          callback(Object.assign(new Error('No such \u001b[31muser\u202e'), { responseCode: 550 })),
      },
    })
    const fault = await faultOf(door(`smtp://127.0.0.1:${port}`).send(MAIL))
    expect(fault).toMatch(/ did not accept the mail: .*550 No such .*user/)
    expect(fault).not.toMatch(/[\u001b\u202e]/)
  })

  test('rejects where nobody listens', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise(resolve => server.close(resolve))
    expect(await faultOf(door(`smtp://127.0.0.1:${port}`).send(MAIL))).toMatch(/ECONNREFUSED/)
  })

  test('rejects where the server closes in the middle', async () => {
    const port = await listen(socket => void socket.end('220 mail.example ESMTP\r\n'))
    expect(await faultOf(door(`smtp://127.0.0.1:${port}`).send(MAIL))).toMatch(/closed/)
  })
})

describe('a server that never answers', () => {
  const timeouts = { connectMs: 300, greetingMs: 100, socketMs: 100, sendMs: 600 }

  test.each([
    ['with a greeting', () => {}],
    ['after its greeting', (socket: Socket) => void socket.write('220 mail.example ESMTP\r\n')],
    ['for one byte after the other', trickle],
  ])('%s is left after a while', async (_, greet) => {
    const port = await listen(greet)
    const fault = await faultOf(door(`smtp://127.0.0.1:${port}`, { timeouts }).send(MAIL))
    expect(fault).toMatch(/did not accept the mail: .*(time|abort)/i)
  })

  test('is left at once at the end', async () => {
    const reached = Promise.withResolvers<void>()
    const port = await listen(() => reached.resolve())
    const notify = door(`smtp://127.0.0.1:${port}`)
    const fault = faultOf(notify.send(MAIL))
    await reached.promise
    notify.close()
    expect(await fault).toMatch(/did not accept the mail: .*abort/i)
    expect(await faultOf(notify.send(MAIL))).toMatch(/abort/i)
  })
})

test.each([
  ['smtp://mail.example', { port: 25, isTls: false, tls: 'offered', login: null }],
  ['smtp://mail.example:2525', { port: 2525, tls: 'offered' }],
  ['smtp://127.0.0.1', { host: '127.0.0.1', port: 25, tls: 'never' }],
  ['smtp://LOCALHOST', { tls: 'never' }],
  ['smtp://[::1]:26', { host: '::1', port: 26, tls: 'never' }],
  ['smtp://[2001:db8::1]', { host: '2001:db8::1', tls: 'offered' }],
  ['smtp://127.example', { tls: 'offered' }],
  ['smtp://ann:secret@localhost', { port: 587, tls: 'demanded' }],
  ['smtps://mail.example', { port: 465, isTls: true, login: null }],
  [`smtps://${IN_URL}@mail.example`, { login: { user: 'ann@shop', pass: 's3cr#t/%' } }],
])('%s says how the server is spoken with', (url, server) => {
  expect(parseMailServer(url)).toMatchObject(server)
})

/** A server that greets clients so, and does nothing else. */
async function listen(greet: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    greet(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A greeting, and then an answer that gets longer without coming to an end. */
function trickle(socket: Socket): void {
  socket.write('220 mail.example ESMTP\r\n250-')
  const more = setInterval(() => socket.write('x'), 20)
  socket.on('close', () => clearInterval(more))
}
