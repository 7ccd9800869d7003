import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createIpPolicy } from '../../../src/engine/smtp/dial-policy.ts'
import { validateUrl } from '../../../src/outbound/url-policy.ts'
import { withFreePort } from '../../support/free-port.ts'
import { openReceiver, openTransport } from '../../support/https-post.ts'
import { zone } from '../../support/zone.ts'

const HAS_IPV6 = Object.values(networkInterfaces()).some(list =>
  list?.some(({ address }) => address === '::1'),
)

/** Listens on one port of the addresses that must not be dialed, and counts connections. */
const countingServers = () => withFreePort(openCountingServers)

async function openCountingServers(
  port: number,
): Promise<{ port: number; readonly connections: number }> {
  const receiver = await openReceiver({ ip: '127.0.0.2', port, name: 'inside.example' })
  let connections = 0
  for (const ip of ['127.0.0.1', '127.0.0.3', ...(HAS_IPV6 ? ['::1'] : [])]) {
    const server: Server = createServer(socket => {
      connections += 1
      socket.destroy()
    })
    onTestFinished(() => void server.close())
    server.listen(port, ip)
    await once(server, 'listening')
  }
  return {
    port,
    get connections() {
      return connections + receiver.connections.opened
    },
  }
}

describe('no connection is made', () => {
  test.each([
    ['127.0.0.2', 'loopback'],
    ['127.2', 'short'],
    ['2130706434', 'one number'],
    ['0x7f.0.0.2', 'hexadecimal'],
    ['0x7f000002', 'hexadecimal, one number'],
    ['0177.0.0.2', 'octal'],
    ['127.0.0.2.', 'with the dot of the root'],
    ['１２７.０.０.２', 'full-width digits'],
    ['127。0。0。2', 'ideographic full stops'],
    ['0', 'this network'],
    ['[::1]', 'IPv6 loopback'],
    ['[::]', 'IPv6 unspecified'],
    ['[::ffff:127.0.0.2]', 'mapped'],
    ['[::ffff:7f00:2]', 'mapped, hexadecimal'],
    ['[::127.0.0.2]', 'compatible'],
    ['[64:ff9b::7f00:2]', 'NAT64'],
    ['[64:ff9b:1::7f00:2]', 'local NAT64'],
    ['[2002:7f00:2::]', '6to4'],
    ['[fe80::1]', 'link-local'],
    ['localhost', 'this machine'],
    ['localhost.', 'this machine, with the dot of the root'],
    ['a.LOCALHOST', 'below this machine'],
    ['inside.example', 'a name of an inner address'],
    ['mixed.example', 'a name of an outer and an inner address'],
    ['six.example', 'a name of an inner IPv6 address'],
  ])('at %s (%s)', async host => {
    const servers = await countingServers()
    const resolver = zone({
      'inside.example': { A: ['127.0.0.2'] },
      'mixed.example': { A: ['8.8.8.8', '127.0.0.2'] },
      'six.example': { A: ['8.8.8.8'], AAAA: ['::1'] },
    })
    const post = openTransport({ resolver, allowed: [] })
    const url = `https://${host}:${servers.port}/`
    expect(await post.to(url)).toMatchObject({
      answer: null,
      faultCode: 'address_not_public',
      fault: expect.stringMatching(/is not public\.$/),
    })
    const mayDial = createIpPolicy([])
    expect(await validateUrl(url, { resolver, mayDial })).toMatch(/is not public\.$/)
    expect(servers.connections).toBe(0)
  })

  test.each([
    ['https://127.0.0.1:25/', /Port 25 /],
    ['https://127.0.0.1:22/', /Port 22 /],
    ['https://127.0.0.1:6379/', /Port 6379 /],
    ['https://ann:secret@127.0.0.1/', /password/],
    ['https://127.0.0.1/#a', /fragment/],
    ['http://8.8.8.8:8081/', /begin with https/],
    ['http://127.0.0.1/', /Port 80 /],
    ['file:///etc/passwd', /begin with https/],
    ['https://[fe80::1%25lo]/', /not a URL/],
    ['https://127.0.0.1/a\r\nHost: b', /control/],
    ['https://nobody.example/', /has no address in the DNS/],
    ['https://broken.example/', /could not be looked up/],
  ])('for %s, though its address is allowed', async (url, says) => {
    const resolver = zone({ 'broken.example': { A: ['127.0.0.1'], AAAA: 'server' } })
    const receipt = await openTransport({ resolver }).to(url)
    const faultCode = url.endsWith('.example/') ? 'dns_error' : 'invalid_url'
    expect(receipt).toMatchObject({
      answer: null,
      faultCode,
      fault: expect.stringMatching(says),
    })
  })

  test('to forbidden addresses beside allowed ones', async () => {
    const servers = await countingServers()
    const receiver = await openReceiver()
    const resolver = zone({ 'hook.example': { A: ['127.0.0.1', '127.0.0.2'] } })
    const post = openTransport({ resolver, allowed: ['127.0.0.1'] })
    const { fault } = await post.to(`https://hook.example:${receiver.port}/`)
    expect(fault).toBe('The name hook.example has an address that is not public.')
    expect((await post.to(`https://127.0.0.2:${servers.port}/`)).fault).toMatch(/not public/)
    expect((await post.to(`https://[::1]:${servers.port}/`)).fault).toMatch(/not public/)
    expect([servers.connections, receiver.connections.opened]).toEqual([0, 0])
  })

  test('to a name that was public when it was saved', async () => {
    const servers = await countingServers()
    const resolver = zone({ 'hook.example': { A: ['8.8.8.8'] } })
    const url = `https://hook.example:${servers.port}/`
    expect(await validateUrl(url, { resolver, mayDial: createIpPolicy([]) })).toBeNull()
    resolver.set('hook.example', { A: ['127.0.0.2'] })
    expect((await openTransport({ resolver, allowed: [] }).to(url)).fault).toMatch(/not public/)
    expect(servers.connections).toBe(0)
  })
})

describe('the checked address is the one that is dialed', () => {
  test('the name is resolved once per connection', async () => {
    const [receiver, servers] = await withFreePort(async port => [
      await openReceiver({ port }),
      await openReceiver({ ip: '127.0.0.2', port }),
    ])
    const resolver = zone({ 'hook.example': { A: ['127.0.0.1'] } })
    const asked = resolver.resolve
    // A second query would return another address.
    resolver.resolve = async (name, type, signal) => {
      const answer = await asked(name, type, signal)
      if (type === 'AAAA') resolver.set('hook.example', { A: ['127.0.0.2'] })
      return answer
    }
    expect(await openTransport({ resolver }).to(receiver.url)).toMatchObject({
      answer: { status: 200 },
    })
    expect(resolver.asked).toEqual(['A hook.example', 'AAAA hook.example'])
    expect(servers.connections.opened).toBe(0)
  })

  test.runIf(HAS_IPV6)('an allowed IPv6 address is dialed', async () => {
    const receiver = await openReceiver({ ip: '::1' })
    const post = openTransport({
      allowed: ['::1'],
      resolver: zone({ 'hook.example': { AAAA: ['::1'] } }),
    })
    expect(await post.to(receiver.url)).toMatchObject({ answer: { status: 200 } })
    const literal = await post.to(`https://[::1]:${receiver.port}/`)
    expect(literal).toMatchObject({ answer: { status: 200 } })
  })
})
