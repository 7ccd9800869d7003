import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EvError } from '../../src/platform/error.ts'
import {
  createSmtpTransport,
  parseMailServer,
  type SmtpDeps,
} from '../../src/webhooks/smtp-transport.ts'
import { testAuthority } from '../support/certificate.ts'
import { startMailServer } from '../support/smtp-server.ts'

const MAIL = {
  to: 'owner@shop.example',
  subject: 'ev: 3 events',
  text: 'What to do:\n\n- Look.\n',
  brief: {},
}
const LOGIN = 'ann@shop:s3cr#t/%'
/** Encoded as in AUTH PLAIN (RFC 4616). */
const AS_SENT = Buffer.from('\0ann@shop\0s3cr#t/%').toString('base64')
const IN_URL = 'ann%40shop:s3cr%23t%2F%25'

const openTransport = (url: string, deps: Partial<SmtpDeps> = {}) => {
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
  test('is plain text from one sender to one recipient, and suppresses automatic replies', async () => {
    const { port, taken } = await startMailServer()
    await openTransport(`smtp://127.0.0.1:${port}`).send(MAIL)
    expect(taken).toMatchObject([{ from: 'ev@example.com', to: ['owner@shop.example'] }])
    const [head = ''] = taken[0]?.source.split('\r\n\r\n') ?? []
    expect(head).toMatch(/^From: ev <ev@example\.com>$/m)
    expect(head).toMatch(/^To: owner@shop\.example$/m)
    expect(head).toMatch(/^Subject: ev: 3 events$/m)
    expect(head).toMatch(/^Auto-Submitted: auto-generated$/m)
    expect(head).toMatch(/^Content-Type: text\/plain/m)
    expect(taken[0]?.source.endsWith('\r\n\r\nWhat to do:\r\n\r\n- Look.\r\n')).toBe(true)
  })

  test('has the given Message-ID', async () => {
    const { port, taken } = await startMailServer()
    const transport = openTransport(`smtp://127.0.0.1:${port}`)
    await transport.send({ ...MAIL, messageId: '<job_a.1@ev.example>' })
    expect(taken[0]?.source).toMatch(/^Message-ID: <job_a\.1@ev\.example>$/im)
  })

  test('keeps its header intact, whatever the subject contains', async () => {
    const { port, taken } = await startMailServer()
    const subject = 'ev\r\nBcc: eve@evil.example\r\n\r\nHello'
    await openTransport(`smtp://127.0.0.1:${port}`).send({ ...MAIL, subject })
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
  ])('is not sent to an invalid recipient: %j', async to => {
    const { port, taken } = await startMailServer()
    await expect(openTransport(`smtp://127.0.0.1:${port}`).send({ ...MAIL, to })).rejects.toThrow()
    expect(taken).toEqual([])
  })

  test('includes no file and no page that its text names', async () => {
    const { port, taken } = await startMailServer()
    const text = { path: '/etc/hostname' } as unknown as string
    await openTransport(`smtp://127.0.0.1:${port}`)
      .send({ ...MAIL, text })
      .catch(() => {})
    expect(taken).toEqual([])
  })
})

describe('a server with username and password', () => {
  test.each([
    ['after STARTTLS', 'smtp', false],
    ['over implicit TLS', 'smtps', true],
  ])('gets both %s', async (_, scheme, isTls) => {
    const { port, taken, offered } = await startMailServer({ login: LOGIN, isTls })
    await openTransport(`${scheme}://${IN_URL}@127.0.0.1:${port}`).send(MAIL)
    expect(taken).toMatchObject([{ isSecure: true, user: 'ann@shop' }])
    expect(offered).toEqual([LOGIN])
  })

  test('gets neither without encryption', async () => {
    const { port, taken, offered } = await startMailServer({ login: LOGIN, isPlain: true })
    const fault = await faultOf(openTransport(`smtp://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
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
  ] as const)('gets neither if its certificate is %s (%s)', async (certificate, scheme, isTls) => {
    const { port, taken, offered } = await startMailServer({ login: LOGIN, isTls, certificate })
    const fault = await faultOf(openTransport(`${scheme}://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
    expect(fault).toMatch(/did not accept the mail: .*(certificate|altnames)/i)
    expect([taken, offered]).toEqual([[], []])
  })

  test('that rejects them is reported without them, even if it repeats them', async () => {
    const { port, taken, offered } = await startMailServer({ login: 'bob:other' })
    const fault = await faultOf(openTransport(`smtp://${IN_URL}@127.0.0.1:${port}`).send(MAIL))
    expect(fault).toBe(
      `The mail server 127.0.0.1:${port} rejected the username and password (535).`,
    )
    expect(offered).toEqual([LOGIN])
    expect(taken).toEqual([])
  })
})

describe('a mail that is not accepted', () => {
  test('rejects with the sanitized reply of the server about the recipient', async () => {
    const { port } = await startMailServer({
      more: {
        onRcptTo: (_, __, callback) =>
          callback(Object.assign(new Error('No such \u001b[31muser\u202e'), { responseCode: 550 })),
      },
    })
    const fault = await faultOf(openTransport(`smtp://127.0.0.1:${port}`).send(MAIL))
    expect(fault).toMatch(/ did not accept the mail: .*550 No such .*user/)
    expect(fault).not.toMatch(/[\u001b\u202e]/)
  })

  test('rejects if no server listens', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise(resolve => server.close(resolve))
    expect(await faultOf(openTransport(`smtp://127.0.0.1:${port}`).send(MAIL))).toMatch(
      /connection refused/,
    )
  })

  test('rejects if the server closes the connection midway', async () => {
    const port = await listen(socket => void socket.end('220 mail.example ESMTP\r\n'))
    expect(await faultOf(openTransport(`smtp://127.0.0.1:${port}`).send(MAIL))).toMatch(/closed/)
  })
})

describe('a server that never responds', () => {
  const timeouts = { connectMs: 300, greetingMs: 100, socketMs: 100, sendMs: 600 }

  test.each([
    ['before the greeting', () => {}],
    ['after its greeting', (socket: Socket) => void socket.write('220 mail.example ESMTP\r\n')],
    ['with one byte at a time', trickle],
  ])('%s is abandoned after a timeout', async (_, greet) => {
    const port = await listen(greet)
    const fault = await faultOf(openTransport(`smtp://127.0.0.1:${port}`, { timeouts }).send(MAIL))
    expect(fault).toMatch(/did not accept the mail: .*(time|abort)/i)
  })

  test('is abandoned at once at shutdown', async () => {
    const reached = Promise.withResolvers<void>()
    const port = await listen(() => reached.resolve())
    const notify = openTransport(`smtp://127.0.0.1:${port}`)
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
])('%s selects the connection settings', (url, server) => {
  expect(parseMailServer(url)).toMatchObject(server)
})

/** A server that sends this greeting and nothing else. */
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

/** A greeting, and then a reply that never ends. */
function trickle(socket: Socket): void {
  socket.write('220 mail.example ESMTP\r\n250-')
  const more = setInterval(() => socket.write('x'), 20)
  socket.on('close', () => clearInterval(more))
}
