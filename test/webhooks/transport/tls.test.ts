import { describe, expect, test } from 'vitest'
import { openReceiver, openTransport, sendOne } from '../../support/https-post.ts'
import { zone } from '../../support/zone.ts'

describe('TLS', () => {
  test.each([
    ['self-signed', /has a self-signed certificate/],
    ['expired', /has a certificate that has expired\.$/],
    ['not-yet-valid', /has a certificate that is not valid yet\.$/],
    ['other-name', /has a certificate for another name\.$/],
    ['unknown-authority', /has a certificate from an unknown CA/],
  ] as const)('a certificate that is %s is rejected, and nothing is sent', async (kind, says) => {
    const { receiver, sending } = await sendOne({ certificate: kind })
    const { answer, fault, faultCode } = await sending
    expect([answer, faultCode, fault]).toEqual([null, 'tls_error', expect.stringMatching(says)])
    expect(fault).toContain(`127.0.0.1 port ${receiver.port} `)
    expect(receiver.received).toEqual([])
  })

  test('1.1 is rejected', async () => {
    const { receiver, sending } = await sendOne({ tls: 'TLSv1.1' })
    expect((await sending).fault).toMatch(/TLS 1\.2 or later is required\.$/)
    expect(receiver.received).toEqual([])
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is supported', async tls => {
    const { sending } = await sendOne({ tls })
    expect(await sending).toMatchObject({ answer: { status: 200 } })
  })

  test('is required from a server with plain HTTP, and nothing is sent', async () => {
    const { receiver, sending } = await sendOne({ tls: 'none' })
    expect((await sending).fault).toMatch(/does not speak TLS on this port\.$/)
    expect(receiver.received).toEqual([])
  })

  test('is not used for a plain HTTP URL, which is allowed to loopback', async () => {
    const receiver = await openReceiver({ tls: 'none' })
    const url = (host: string) => `http://${host}:${receiver.port}/`
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(await openTransport().to(url(host))).toMatchObject({ answer: { status: 200 } })
    }
    const refused = { answer: null, faultCode: 'invalid_url' }
    expect(await openTransport({ allowed: [] }).to(url('127.0.0.1'))).toMatchObject(refused)
    expect(await openTransport().to(url('hook.example'))).toMatchObject(refused)
    expect(receiver.received).toHaveLength(2)
  })

  test('a certificate is verified against the address if the URL has one', async () => {
    const receiver = await openReceiver()
    const right = await openTransport().to(`https://127.0.0.1:${receiver.port}/`)
    expect(right).toMatchObject({ answer: { status: 200 } })
    expect(receiver.received.at(-1)?.serverName).toBeNull()
    const other = await openReceiver({ certificate: 'other-name' })
    const wrong = await openTransport().to(`https://127.0.0.1:${other.port}/`)
    expect(wrong.fault).toMatch(/certificate for another name/)
  })

  test('a certificate is verified against the name in the URL, not against what it resolves to', async () => {
    const receiver = await openReceiver({ name: 'hook.example' })
    const resolver = zone({ 'other.example': { A: ['127.0.0.1'] } })
    const { fault } = await openTransport({ resolver }).to(
      `https://other.example:${receiver.port}/`,
    )
    expect(fault).toMatch(/certificate for another name/)
  })

  test.each(['hook.example.', 'HOOK.Example', 'localhost', 'LOCALHOST.', 'bücher.example'])(
    'the name %s is normalized as in certificates',
    async written => {
      const { hostname } = new URL(`https://${written}`)
      const name = hostname.replace(/\.$/, '')
      const receiver = await openReceiver({ name })
      const resolver = zone({ [name]: { A: ['127.0.0.1'] } })
      const receipt = await openTransport({ resolver }).to(`https://${written}:${receiver.port}/`)
      expect(receipt).toMatchObject({ answer: { status: 200 } })
      expect(receiver.received[0]?.serverName).toBe(name)
    },
  )
})
