import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import dnsPacket, { type Answer, type Packet } from 'dns-packet'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type DnsMessageReply, readReply } from '../../../src/engine/dns/message.ts'
import { UdpTransport } from '../../../src/engine/dns/udp-transport.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { type NameServer, nameServer } from '../../support/name-server.ts'

const ASKED = { name: 'a.test', type: 'MX' } as const

/** A response to `MX a.test`; `packet` overrides parts of it. */
const response = (packet: Partial<Packet>): Buffer =>
  dnsPacket.encode({
    type: 'response',
    id: 1,
    flags: dnsPacket.RECURSION_DESIRED | dnsPacket.RECURSION_AVAILABLE,
    questions: [ASKED],
    ...packet,
  })

const mx = (name: string, exchange = 'mx.test'): Answer => ({
  type: 'MX',
  name,
  ttl: 60,
  data: { preference: 10, exchange },
})
const cname = (name: string, data: string, ttl = 60): Answer => ({ type: 'CNAME', name, ttl, data })
const soa = (name: string, ttl = 60, minimum = 60): Answer => ({
  type: 'SOA',
  name,
  ttl,
  data: { mname: 'ns.test', rname: 'admin.test', serial: 1, minimum },
})
const ns = (name: string): Answer => ({ type: 'NS', name, data: 'ns.test' })
const FOUND = { records: [{ preference: 10, host: 'mx.test' }], ttlMs: 60_000 }
/** The aliases from a.test to x1.test, x2.test and so on. */
const chain = (length: number): Answer[] =>
  Array.from({ length }, (_, n) => cname(n === 0 ? 'a.test' : `x${n}.test`, `x${n + 1}.test`))
const withCode = (rcode: number, packet: Partial<Packet> = {}) =>
  response({ ...packet, flags: dnsPacket.RECURSION_AVAILABLE | rcode })

describe('a response', () => {
  test.each<[string, Buffer, ReturnType<typeof readReply>]>([
    ['with a record', response({ answers: [mx('a.test')] }), FOUND],
    [
      'with the addresses of its exchangers, and only of those',
      response({
        answers: [mx('a.test')],
        additionals: [
          { type: 'A', name: 'MX.test', ttl: 300, data: '192.0.2.1' },
          { type: 'A', name: 'mx.test', ttl: 20, data: '192.0.2.2' },
          { type: 'AAAA', name: 'mx.test', ttl: 300, data: '2001:db8::1' },
          { type: 'A', name: 'www.bank.test', data: '192.0.2.66' },
          { type: 'TXT', name: 'mx.test', data: 'no address' },
        ],
      }),
      {
        ...FOUND,
        additional: [
          { host: 'mx.test', type: 'A', addresses: ['192.0.2.1', '192.0.2.2'], ttlMs: 20_000 },
          { host: 'mx.test', type: 'AAAA', addresses: ['2001:db8::1'], ttlMs: 300_000 },
        ],
      },
    ],
    ['whose name differs in case', response({ answers: [mx('A.Test')] }), FOUND],
    [
      'behind two aliases',
      response({
        answers: [cname('a.test', 'b.test'), cname('b.test', 'c.test'), mx('c.test')],
      }),
      FOUND,
    ],
    ['behind 16 aliases', response({ answers: [...chain(16), mx('x16.test')] }), FOUND],
    ['behind 17 aliases', response({ answers: [...chain(17), mx('x17.test')] }), bad()],
    ['with 17 aliases and no record', response({ answers: chain(17) }), bad()],
    [
      'behind an alias that expires first',
      response({ answers: [cname('a.test', 'b.test', 5), mx('b.test')] }),
      { ...FOUND, ttlMs: 5_000 },
    ],
    [
      'with a TTL that has the most significant bit set (RFC 2181 §8)',
      response({ answers: [{ ...mx('a.test'), ttl: 0x8000_0000 } as Answer] }),
      { ...FOUND, ttlMs: 0 },
    ],
    [
      'with an alias that leads nowhere',
      response({ answers: [cname('a.test', 'b.test')] }),
      { ...none(), alias: 'b.test' },
    ],
    [
      'with a loop of aliases',
      response({ answers: [cname('a.test', 'b.test'), cname('b.test', 'a.test')] }),
      bad(),
    ],
    ['with a record of another name', response({ answers: [mx('b.test')] }), bad()],
    ['with a record of another type', response({ answers: [soa('a.test')] }), bad()],
    ['without records', response({}), none()],
    [
      'without records and with a SOA whose MINIMUM is lower than its TTL',
      response({ authorities: [soa('test', 3_600, 30)] }),
      { ...none(), ttlMs: 30_000 },
    ],
    ['that refers to other servers', response({ authorities: [ns('test')] }), bad()],
    [
      'without records, with SOA and NS',
      response({ authorities: [soa('test'), ns('test')] }),
      { ...none(), ttlMs: 60_000 },
    ],
    [
      'NXDOMAIN with a SOA whose TTL is lower than its MINIMUM',
      withCode(3, { authorities: [soa('test', 30, 3_600)] }),
      { ...gone(), ttlMs: 30_000 },
    ],
    ['NXDOMAIN', withCode(3), { code: 'ENOTFOUND' }],
    ['NXDOMAIN behind an alias', withCode(3, { answers: [cname('a.test', 'b.test')] }), gone()],
    ['that is truncated', response({ flags: dnsPacket.TRUNCATED_RESPONSE }), 'truncated'],
    ['to another name', response({ questions: [{ name: 'b.test', type: 'MX' }] }), 'ignored'],
    ['to another type', response({ questions: [{ name: 'a.test', type: 'A' }] }), 'ignored'],
    ['without a question', response({ questions: [] }), 'ignored'],
    [
      'NXDOMAIN for another name',
      withCode(3, { questions: [{ name: 'b', type: 'MX' }] }),
      'ignored',
    ],
    ['REFUSED without a question', withCode(5, { questions: [] }), { code: 'EREFUSED' }],
    [
      'to another kind of query',
      response({ flags: dnsPacket.AUTHORITATIVE_ANSWER | 0x800 }),
      bad(),
    ],
    ['cut short', response({ answers: [mx('a.test')] }).subarray(0, -3), bad()],
  ])('%s', (_, bytes, expected) => {
    expect(readReply(bytes, ASKED)).toEqual(expected)
  })

  test.each([1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])(
    'with the response code %i is a server fault, whatever its records',
    rcode => {
      const full = withCode(rcode, { answers: [mx('a.test')] })
      const cut = response({ flags: dnsPacket.TRUNCATED_RESPONSE | rcode })
      for (const bytes of [withCode(rcode), full, cut]) {
        const reply = readReply(bytes, ASKED)
        expect(reply).toHaveProperty('code')
        expect(['ENODATA', 'ENOTFOUND']).not.toContain((reply as { code: string }).code)
      }
    },
  )
})

describe('a UDP transport', () => {
  test('ignores its own query, a short packet and a reply with another ID', async () => {
    const socket = createSocket('udp4').bind(0, '127.0.0.1')
    await once(socket, 'listening')
    onTestFinished(() => void socket.close())
    socket.on('message', (query, { port, address }) => {
      const id = query.readUInt16BE(0)
      const packets = [
        query,
        query.subarray(0, 5),
        response({ id: id ^ 1, answers: [mx('a.test', 'forged.test')] }),
        response({ id, answers: [mx('a.test')] }),
      ]
      for (const packet of packets) socket.send(packet, port, address)
    })
    const server = `127.0.0.1:${socket.address().port}`
    expect(await ask(openTransport(), server, 'a.test')).toEqual(FOUND)
  })

  test('assigns each of many queries its own reply, over several ports', async () => {
    const ports = new Set<number>()
    const server = await open(({ name }, port) => {
      ports.add(port)
      return { answers: [mx(name, `mx.${name}`)] }
    })
    const transport = openTransport()
    const names = Array.from({ length: 1_000 }, (_, n) => `d${n}.test`)
    const hosts: unknown[] = []
    for (let at = 0; at < names.length; at += 100) {
      const replies = names.slice(at, at + 100).map(name => ask(transport, server.address, name))
      hosts.push(...(await Promise.all(replies)))
    }
    expect(hosts).toEqual(
      names.map(name => ({ ...FOUND, records: [{ preference: 10, host: `mx.${name}` }] })),
    )
    // 1,000 queries at 200 per port.
    expect(ports.size).toBeGreaterThanOrEqual(5)
  })

  test('reports a closed port', async () => {
    const server = await open(() => 'silence')
    await server.close()
    expect(await ask(openTransport(), server.address, 'a.test')).toEqual({
      code: 'ECONNREFUSED',
    })
  })

  test('reports a server to which no socket can be connected', async () => {
    const transport = openTransport()
    // A socket without SO_BROADCAST may not connect to it; without a route, no server has one.
    const replies = ['a.test', 'b.test'].map(name => ask(transport, '255.255.255.255:53', name))
    expect(await Promise.all(replies)).toEqual(Array(2).fill({ code: 'ECONNREFUSED' }))
    expect(await ask(transport, '255.255.255.255:53', 'c.test')).toEqual({ code: 'ECONNREFUSED' })
  })

  test('ends open queries when it is closed', async () => {
    const server = await open(() => 'silence')
    const transport = openTransport()
    const reply = ask(transport, server.address, 'a.test')
    await server.arrived(1)
    transport.close()
    expect(await reply).toEqual({ code: 'ECANCELLED' })
  })
})

const ask = (transport: UdpTransport, server: string, name: string) =>
  new Promise<DnsMessageReply>(resolve => void transport.query(server, name, 'MX', resolve))

function none() {
  return { code: 'ENODATA' }
}

function bad() {
  return { code: 'EBADRESP' }
}

function gone() {
  return { code: 'ENOTFOUND' }
}

async function open(...args: Parameters<typeof nameServer>): Promise<NameServer> {
  const server = await nameServer(...args)
  onTestFinished(() => server.close())
  return server
}

function openTransport(): UdpTransport {
  const transport = new UdpTransport(systemRandom, systemClock)
  onTestFinished(() => transport.close())
  return transport
}
