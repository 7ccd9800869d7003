import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import dnsPacket, { type Answer } from 'dns-packet'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createNodeResolver,
  type NodeResolverOptions,
} from '../../../src/engine/dns/node-resolver.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { type Asked, type NameServer, nameServer } from '../../support/name-server.ts'
import { waitUntil } from '../../support/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close()
})

async function serve(...args: Parameters<typeof nameServer>): Promise<NameServer> {
  const server = await nameServer(...args)
  open.push(server)
  return server
}

function resolverOver(servers: readonly NameServer[], options: Partial<NodeResolverOptions> = {}) {
  const clock = fakeClock()
  const addresses = servers.map(server => server.address)
  const resolver = createNodeResolver({ clock, servers: addresses, ...options })
  open.push(resolver)
  return { clock, resolver }
}

const mxOf = (name: string, ...hosts: string[]): { answers: Answer[] } => ({
  answers: hosts.map((exchange, i) => ({
    type: 'MX',
    name,
    ttl: 60,
    data: { preference: 10 * (i + 1), exchange },
  })),
})
const aliasOf = (name: string, data: string): { answers: Answer[] } => ({
  answers: [{ type: 'CNAME', name, data }],
})
const SOA = {
  mname: 'ns.test',
  rname: 'h.test',
  serial: 1,
  refresh: 1,
  retry: 1,
  expire: 1,
  minimum: 30,
}
const goodMx = ({ name }: Asked) => mxOf(name, 'mx.a.test')
const GOOD = { records: [{ preference: 10, host: 'mx.a.test' }], ttlMs: 60_000 }
/** The ID of the query and the QR bit, then invalid data. */
const garbage = ({ packet }: Asked) =>
  Buffer.from([(packet.id ?? 0) >> 8, (packet.id ?? 0) & 255, 0x80, 0, ...Buffer.from('garbage!')])
/** The MX record of a host, and a TXT record whose data should end beyond the message. */
const cutRecord = ({ packet, name }: Asked) => {
  const { id = 0, questions = [] } = packet
  const data = 'v=spf1 -all'
  const answers: Answer[] = [...mxOf(name, 'mx.a.test').answers, { type: 'TXT', name, data }]
  const bytes = dnsPacket.encode({ type: 'response', id, questions, answers })
  // The length of the data comes before that of its only text.
  bytes.writeUInt16BE(0xffff, bytes.length - data.length - 3)
  return bytes
}
const silence = () => 'silence' as const
const [FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED] = [1, 2, 3, 4, 5].map(flags => ({ flags }))

/** An MX answer whose host has six arbitrary octets as its first label. */
function mxWithLabel(asked: Asked, label: string): Buffer {
  const { id = 0, questions = [] } = asked.packet
  const bytes = dnsPacket.encode({
    type: 'response',
    id,
    questions,
    ...mxOf(asked.name, 'QQQQQQ.test'),
  })
  bytes.write(label, bytes.indexOf('QQQQQQ'), 'latin1')
  return bytes
}

describe('a DNS reply', () => {
  // The reply of the server, the result, and the number of packets.
  test.each<[string, Parameters<typeof nameServer>[0], object, number]>([
    [
      'MX records',
      ({ name }) => mxOf(name, 'mx1.test', 'mx2.test'),
      {
        records: [
          { preference: 10, host: 'mx1.test' },
          { preference: 20, host: 'mx2.test' },
        ],
        ttlMs: 60_000,
      },
      1,
    ],
    [
      'a null MX',
      ({ name }) => mxOf(name, '.'),
      { records: [{ preference: 10, host: '' }], ttlMs: 60_000 },
      1,
    ],
    ['NXDOMAIN', () => ({ ...NXDOMAIN }), { fault: 'no-name' }, 1],
    ['NODATA', () => ({}), { fault: 'no-data' }, 1],
    [
      'an alias with nothing behind it',
      ({ name }) => ({
        answers: [{ type: 'CNAME', name, data: 'b.test' }],
        authorities: [{ type: 'SOA', name: 'test', ttl: 60, data: SOA }],
      }),
      { fault: 'no-data', ttlMs: 30_000 },
      1,
    ],
    ['SERVFAIL, which may pass', () => ({ ...SERVFAIL }), { fault: 'server' }, 3],
    ['REFUSED', () => ({ ...REFUSED }), { fault: 'server' }, 1],
    ['FORMERR', () => ({ ...FORMERR }), { fault: 'server' }, 1],
    ['NOTIMP', () => ({ ...NOTIMP }), { fault: 'server' }, 1],
    ['a response that cannot be decoded', garbage, { fault: 'server' }, 1],
    ['a record that ends beyond the message', cutRecord, { fault: 'server' }, 1],
    [
      'a record cut short',
      asked => mxWithLabel(asked, 'abcdef').subarray(0, -3),
      { fault: 'server' },
      1,
    ],
    [
      'a label that points at itself',
      asked => {
        const bytes = mxWithLabel(asked, 'abcdef')
        const at = bytes.indexOf('abcdef') - 1
        bytes.writeUInt16BE(0xc000 + at, at)
        return bytes
      },
      { fault: 'server' },
      1,
    ],
  ])('%s', async (_, reply, answer, packets) => {
    const server = await serve(reply)
    const { clock, resolver } = resolverOver([server])
    expect(await resolver.resolve('a.test', 'MX')).toEqual(answer)
    expect(server.packets).toEqual(Array(packets).fill('MX a.test'))
    expect(clock.pending).toBe(0)
  })

  test.each<[string, (name: string) => { answers: Answer[] }, object]>([
    ['that has MX records', name => mxOf(name, 'mx.a.test'), GOOD],
    ['without any', () => ({ answers: [] }), { fault: 'no-data' }],
    [
      'in a loop',
      name => aliasOf(name, name === 'b.test' ? 'a.test' : 'b.test'),
      { fault: 'server' },
    ],
  ])(
    'of a server that does not follow an alias is followed to the name %s',
    async (_, atEnd, answer) => {
      const server = await serve(({ name }) =>
        name === 'a.test' ? aliasOf(name, 'b.test') : atEnd(name),
      )
      const { resolver } = resolverOver([server])
      expect(await resolver.resolve('a.test', 'MX')).toEqual(answer)
      expect(server.packets.slice(0, 2)).toEqual(['MX a.test', 'MX b.test'])
      expect(server.packets.length).toBeLessThanOrEqual(5)
    },
  )

  test('has addresses of both families', async () => {
    const server = await serve(({ name, type }) => ({
      answers:
        type === 'A'
          ? [{ type: 'A', name, ttl: 60, data: '192.0.2.1' }]
          : [{ type: 'AAAA', name, ttl: 300, data: '2001:db8::1' }],
    }))
    const { resolver } = resolverOver([server])
    expect(await resolver.resolve('a.test', 'A')).toEqual({
      records: ['192.0.2.1'],
      ttlMs: 60_000,
    })
    expect(await resolver.resolve('a.test', 'AAAA')).toEqual({
      records: ['2001:db8::1'],
      ttlMs: 300_000,
    })
    expect(server.packets).toEqual(['A a.test', 'AAAA a.test'])
  })

  test('has TXT strings joined, and the name of an address', async () => {
    const server = await serve(({ name, type }) => ({
      answers:
        type === 'TXT'
          ? [{ type: 'TXT', name, ttl: 60, data: ['v=spf1 ip4:192.0', '.2.1 -all'] }]
          : [{ type: 'PTR', name, ttl: 60, data: 'probe.test' }],
    }))
    const { resolver } = resolverOver([server])
    expect(await resolver.resolve('a.test', 'TXT')).toEqual({
      records: ['v=spf1 ip4:192.0.2.1 -all'],
      ttlMs: 60_000,
    })
    expect(await resolver.resolve('1.2.0.192.in-addr.arpa', 'PTR')).toEqual({
      records: ['probe.test'],
      ttlMs: 60_000,
    })
    expect(server.packets).toEqual(['TXT a.test', 'PTR 1.2.0.192.in-addr.arpa'])
  })

  test('is limited to 256 of 300 records', async () => {
    const server = await serve(({ name }) => ({
      answers: Array.from(
        { length: 300 },
        (_, i): Answer => ({ type: 'A', name, data: `192.0.${i >> 8}.${i & 255}` }),
      ),
    }))
    const answer = await resolverOver([server]).resolver.resolve('a.test', 'A')
    expect('records' in answer && answer.records.length).toBe(256)
  })

  test('that is too long for UDP, with TCP refused, is a server fault', async () => {
    const server = await serve(() => ({ flags: dnsPacket.TRUNCATED_RESPONSE }))
    const { clock, resolver } = resolverOver([server])
    const answer = resolver.resolve('a.test', 'MX')
    for (let i = 1; i <= 3; i++) {
      await server.arrived(i)
      // TCP is refused at once, and the same server is not retried before the silence timeout.
      await waitUntil(() => clock.pending === 1)
      await clock.advance(1.5 * SECOND)
    }
    expect(await answer).toEqual({ fault: 'server' })
  })

  describe('over TCP, after a truncated reply', () => {
    const askOverTcp = async (overTcp: NonNullable<Parameters<typeof nameServer>[2]>) => {
      const server = await serve(() => ({ flags: dnsPacket.TRUNCATED_RESPONSE }), 0, overTcp)
      const answer = await resolverOver([server]).resolver.resolve('a.test', 'MX')
      return { answer, packets: server.packets }
    }

    test('has the whole answer', async () => {
      const { answer, packets } = await askOverTcp(goodMx)
      expect(answer).toEqual(GOOD)
      expect(packets).toEqual(['MX a.test', 'TCP MX a.test'])
    })

    test.each<[string, Parameters<typeof askOverTcp>[0], object]>([
      ['NXDOMAIN', () => ({ ...NXDOMAIN }), { fault: 'no-name' }],
      ['NODATA', () => ({}), { fault: 'no-data' }],
    ])('accepts %s', async (_, reply, expected) => {
      expect((await askOverTcp(reply)).answer).toEqual(expected)
    })

    test.each([1, 2, 4, 5, 6, 7, 8, 9, 10, 11])(
      'the response code %i is a server fault',
      async rcode => {
        expect((await askOverTcp(() => ({ flags: rcode }))).answer).toEqual({ fault: 'server' })
      },
    )

    test.each<[string, Parameters<typeof askOverTcp>[0]]>([
      [
        'an answer to another question',
        ({ packet }) => ({
          questions: (packet.questions ?? []).map(q => ({ ...q, name: 'b.test' })),
        }),
      ],
      [
        'NXDOMAIN for another question',
        ({ packet }) => ({
          ...NXDOMAIN,
          questions: (packet.questions ?? []).map(q => ({ ...q, name: 'b.test' })),
        }),
      ],
      ['a reply with another ID', ({ packet }) => ({ id: (packet.id ?? 0) ^ 1 })],
      ['a reply that is truncated again', () => ({ flags: dnsPacket.TRUNCATED_RESPONSE })],
      ['garbage', garbage],
      ['the end of the connection', () => 'hang-up'],
    ])('%s is a server fault', async (_, reply) => {
      expect((await askOverTcp(reply)).answer).toEqual({ fault: 'server' })
    })
  })

  test.each([4, 5, 6, 7, 8, 9, 10, 11])(
    'with the response code %i over UDP is a server fault',
    async rcode => {
      const server = await serve(() => ({ flags: rcode }))
      const { resolver } = resolverOver([server])
      expect(await resolver.resolve('a.test', 'MX')).toEqual({ fault: 'server' })
    },
  )

  test.each(['wrong id', 'wrong question'])('with the %s is ignored', async what => {
    const server = await serve(({ packet, name }) => {
      const { id = 0, questions = [] } = packet
      return what === 'wrong id'
        ? { ...mxOf(name, 'mx.evil.test'), id: id ^ 1 }
        : {
            ...mxOf(name, 'mx.evil.test'),
            questions: questions.map(q => ({ ...q, name: 'b.test' })),
          }
    })
    const { clock, resolver } = resolverOver([server])
    const answer = resolver.resolve('a.test', 'MX')
    await server.arrived(1)
    await clock.advance(5 * SECOND)
    expect(await answer).toEqual({ fault: 'timeout' })
    expect(server.packets.length).toBeLessThanOrEqual(5)
  })

  test.each(['a\0b\0cd', 'a\r\nbcd', 'a bcde', 'a.b\\cd', 'a\xe9\xffbcd'])(
    'with the label %j in a host is sanitized',
    async label => {
      const server = await serve(asked => mxWithLabel(asked, label))
      const answer = await resolverOver([server]).resolver.resolve('a.test', 'MX')
      expect('records' in answer && answer.records[0]?.host).toMatch(/^a[\x20-\x7e]+\.test$/)
    },
  )

  test.each([
    ['', 'nothing, which would ask for the root'],
    ['.', 'the root'],
    ['\0.test', 'NUL, which cuts the name'],
    ['a\r\n.test', 'a line break'],
    ['a.test\n', 'a line break at the end'],
    ['a b.test', 'a space'],
    ['a\\.b.test', 'an escape'],
    ['a..test', 'an empty label'],
    ['.a.test', 'an empty first label'],
    ['b\u00fccher.test', 'a U-label'],
    ['\ud800.test', 'half a character'],
    ['192.0.2.1:25', 'a port'],
    [`${'a'.repeat(64)}.test`, 'a label of 64 octets'],
    [`${'a.'.repeat(125)}test`, 'a name of 254 octets'],
    ['a'.repeat(100_000), 'a name without end'],
  ])('is no-name for %j without a query: %s', async name => {
    const server = await serve(goodMx)
    const { resolver } = resolverOver([server])
    expect(await resolver.resolve(name, 'MX')).toEqual({ fault: 'no-name' })
    expect(server.packets).toEqual([])
  })

  test('is queried for a name of 253 octets, with or without its trailing dot', async () => {
    const server = await serve(goodMx)
    const { resolver } = resolverOver([server])
    const name = `${'a.'.repeat(124)}atest`
    expect(await resolver.resolve(name, 'MX')).toEqual(GOOD)
    expect(await resolver.resolve(`${name}.`, 'MX')).toEqual(GOOD)
    expect(server.packets).toEqual([`MX ${name}`, `MX ${name}`])
  })
})

describe('timeouts and faults', () => {
  test('an unresponsive server takes the whole deadline and five packets', async () => {
    const server = await serve(silence)
    const { clock, resolver } = resolverOver([server])
    const answer = resolver.resolve('a.test', 'MX')
    for (let i = 1; i <= 4; i++) {
      await server.arrived(i)
      await clock.advance(SECOND)
    }
    await server.arrived(5)
    await clock.advance(999)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    expect(await answer).toEqual({ fault: 'timeout' })
    expect(server.packets.length).toBe(5)
    expect(clock.pending).toBe(0)
  })

  test('the deadline is configurable', async () => {
    const server = await serve(silence)
    const { clock, resolver } = resolverOver([server], { timeoutMs: 300 })
    const answer = resolver.resolve('a.test', 'MX')
    await server.arrived(1)
    await clock.advance(300)
    expect(await answer).toEqual({ fault: 'timeout' })
  })

  test('an answer to the last packet of a query of which four were lost counts', async () => {
    let packets = 0
    const server = await serve(asked => (++packets < 5 ? silence() : goodMx(asked)))
    const { clock, resolver } = resolverOver([server])
    const answer = resolver.resolve('a.test', 'MX')
    for (let i = 1; i <= 4; i++) {
      await server.arrived(i)
      await clock.advance(SECOND)
    }
    expect(await answer).toEqual(GOOD)
  })

  // No reply reaches a socket with an address that the machine has no longer.
  test('after a change of the network only the first packet is lost', async () => {
    const [ports, lost] = [new Set<number>(), new Set<number>()]
    const server = await serve((asked, port) => {
      ports.add(port)
      return lost.has(port) ? silence() : goodMx(asked)
    })
    const { clock, resolver } = resolverOver([server])
    const resolveMany = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => resolver.resolve(`d${i}.test`, 'MX')))
    await resolveMany(20)
    for (const port of ports) lost.add(port)
    const answer = resolver.resolve('a.test', 'MX')
    await server.arrived(21)
    await clock.advance(SECOND)
    expect(await answer).toEqual(GOOD)
    expect(await resolveMany(20)).toEqual(Array(20).fill(GOOD))
    expect(server.packets).toHaveLength(20 + 2 + 20)
  })

  test('the second server is tried a second after a dead first one, and comes first from then on', async () => {
    const [dead, alive] = [await serve(silence), await serve(goodMx)]
    const { clock, resolver } = resolverOver([dead, alive])
    const answer = resolver.resolve('a.test', 'MX')
    await dead.arrived(1)
    await clock.advance(SECOND)
    expect(await answer).toEqual(GOOD)
    expect(await resolver.resolve('b.test', 'MX')).toEqual(GOOD)
    expect(dead.packets).toEqual(['MX a.test'])
    await clock.advance(29 * SECOND)
    expect(await resolver.resolve('b.test', 'MX')).toEqual(GOOD)
    expect(dead.packets).toEqual(['MX a.test'])
    await clock.advance(SECOND)
    resolver.resolve('c.test', 'MX')
    await dead.arrived(2)
    expect(dead.packets).toEqual(['MX a.test', 'MX c.test'])
  })

  test('a late answer of the first server is used', async () => {
    const late = Promise.withResolvers<void>()
    const slow = await serve(async asked => {
      await late.promise
      return goodMx(asked)
    })
    const dead = await serve(silence)
    const { clock, resolver } = resolverOver([slow, dead])
    const answer = resolver.resolve('a.test', 'MX')
    await slow.arrived(1)
    await clock.advance(1.5 * SECOND)
    await dead.arrived(1)
    late.resolve()
    expect(await answer).toEqual(GOOD)
  })

  test('the next server is tried at once after a fault', async () => {
    const [bad, good] = [await serve(() => ({ ...REFUSED })), await serve(goodMx)]
    expect(await resolverOver([bad, good]).resolver.resolve('a.test', 'MX')).toEqual(GOOD)
  })

  test('a temporary SERVFAIL is retried', async () => {
    let asked = 0
    const server = await serve(question => (++asked < 3 ? { ...SERVFAIL } : goodMx(question)))
    expect(await resolverOver([server]).resolver.resolve('a.test', 'MX')).toEqual(GOOD)
  })

  test('a negative answer of one server takes precedence over the fault of another', async () => {
    const servers = [await serve(() => ({ ...SERVFAIL })), await serve(() => ({ ...NXDOMAIN }))]
    expect(await resolverOver(servers).resolver.resolve('a.test', 'MX')).toEqual({
      fault: 'no-name',
    })
  })

  test('reports the fault if one server fails and the other does not reply', async () => {
    const [failing, dead] = [await serve(() => ({ ...REFUSED })), await serve(silence)]
    const { clock, resolver } = resolverOver([failing, dead])
    const answer = resolver.resolve('a.test', 'MX')
    await dead.arrived(1)
    await clock.advance(5 * SECOND)
    expect(await answer).toEqual({ fault: 'server' })
  })

  test('each of five servers is tried once', async () => {
    const servers = await Promise.all([1, 2, 3, 4].map(() => serve(() => ({ ...REFUSED }))))
    servers.push(await serve(goodMx))
    expect(await resolverOver(servers).resolver.resolve('a.test', 'MX')).toEqual(GOOD)
    expect(servers.map(server => server.packets.length)).toEqual([1, 1, 1, 1, 1])
  })

  test('a restarting server is retried', async () => {
    const before = await serve(goodMx)
    await before.close()
    const { clock, resolver } = resolverOver([before])
    const answer = resolver.resolve('a.test', 'MX')
    await waitUntil(() => clock.pending === 1)
    await serve(goodMx, Number(before.address.split(':')[1]))
    await clock.advance(1.5 * SECOND)
    expect(await answer).toEqual(GOOD)
  })

  test('a server that stays down is a server fault', async () => {
    const down = await serve(goodMx)
    await down.close()
    const { clock, resolver } = resolverOver([down])
    let answer: unknown = null
    resolver.resolve('a.test', 'MX').then(said => {
      answer = said
    })
    while (answer === null) await clock.advance(100)
    expect(answer).toEqual({ fault: 'server' })
  })

  test('seven of eight queries are answered if each packet fails with a probability of one half', async () => {
    // The same packets fail in each run.
    let seed = 7
    const server = await serve(asked => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed > 2 ** 30 ? { ...SERVFAIL } : goodMx(asked)
    })
    const { resolver } = resolverOver([server])
    const questions = 100
    let answered = 0
    for (let i = 0; i < questions; i++) {
      if ('records' in (await resolver.resolve(`n${i}.test`, 'MX'))) answered++
    }
    expect(answered).toBeGreaterThan(0.8 * questions)
    expect(server.packets.length).toBeLessThan(2 * questions)
  })
})

describe('many queries', () => {
  test('200 of 250 concurrent queries are in flight, and all are answered', async () => {
    const gate = Promise.withResolvers<void>()
    const server = await serve(async asked => {
      await gate.promise
      return goodMx(asked)
    })
    const { resolver } = resolverOver([server])
    const answers = Array.from({ length: 250 }, (_, i) => resolver.resolve(`n${i}.test`, 'MX'))
    await server.arrived(200)
    for (let i = 0; i < 20; i++) await setImmediate()
    expect(server.packets.length).toBe(200)
    gate.resolve()
    expect(await Promise.all(answers)).toEqual(Array(250).fill(GOOD))
    expect(new Set(server.packets).size).toBe(250)
  })

  test('more are in flight once the first ones are answered', async () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let arrived = 0
    const server = await serve(async asked => {
      await (arrived++ < 200 ? first : second).promise
      return goodMx(asked)
    })
    const { resolver } = resolverOver([server])
    const answers = Array.from({ length: 450 }, (_, i) => resolver.resolve(`n${i}.test`, 'MX'))
    await server.arrived(200)
    first.resolve()
    await server.arrived(425)
    for (let i = 0; i < 20; i++) await setImmediate()
    expect(server.packets.length).toBe(425)
    second.resolve()
    expect(await Promise.all(answers)).toEqual(Array(450).fill(GOOD))
  })

  test('fewer are in flight after a packet was lost', async () => {
    const names = new Set<string>()
    const server = await serve(asked => {
      if (names.has(asked.name)) return goodMx(asked)
      names.add(asked.name)
      return 'silence'
    })
    const { clock, resolver } = resolverOver([server])
    const answers = Array.from({ length: 350 }, (_, i) => resolver.resolve(`n${i}.test`, 'MX'))
    await server.arrived(200)
    await clock.advance(1.5 * SECOND)
    await server.arrived(200 + 200 + 100)
    for (let i = 0; i < 20; i++) await setImmediate()
    expect(server.packets.length).toBe(500)
    await clock.advance(1.5 * SECOND)
    await server.arrived(500 + 100 + 50)
    await clock.advance(1.5 * SECOND)
    expect(await Promise.all(answers)).toEqual(Array(350).fill(GOOD))
  })

  test('all are answered by a server that refuses what is above its limit', async () => {
    let inFlight = 0
    let refused = 0
    const server: NameServer = await serve(async asked => {
      if (inFlight === 150) {
        refused++
        return { ...REFUSED }
      }
      inFlight++
      while (server.packets.length < 200) await setImmediate()
      for (let turn = 0; turn < 5; turn++) await setImmediate()
      inFlight--
      return goodMx(asked)
    })
    const { resolver } = resolverOver([server])
    const answers = Array.from({ length: 2_000 }, (_, i) => resolver.resolve(`n${i}.test`, 'MX'))
    expect(await Promise.all(answers)).toEqual(Array(2_000).fill(GOOD))
    expect(server.packets.length).toBe(2_000 + refused)
    // Of the first 200 queries, 50 exceed the limit. More do when the limit of ev has grown again.
    expect(refused).toBeGreaterThanOrEqual(50)
    expect(refused).toBeLessThan(200)
  })

  test('a server that refuses all is asked at most six times for each', async () => {
    const server = await serve(() => ({ ...REFUSED }))
    const { resolver } = resolverOver([server])
    const answers = Array.from({ length: 500 }, (_, i) => resolver.resolve(`n${i}.test`, 'MX'))
    expect(await Promise.all(answers)).toEqual(Array(500).fill({ fault: 'server' }))
    const times = Map.groupBy(server.packets, packet => packet)
    expect(Math.max(...[...times.values()].map(all => all.length))).toBeLessThanOrEqual(6)
    expect(server.packets.length).toBeLessThan(1_000)
  })

  test('a refused query whose caller is gone is not sent again', async () => {
    const gate = Promise.withResolvers<void>()
    const server = await serve(async () => {
      await gate.promise
      return { ...REFUSED }
    })
    const { resolver } = resolverOver([server])
    const caller = new AbortController()
    const answers = Array.from({ length: 20 }, (_, i) =>
      resolver.resolve(`n${i}.test`, 'MX', caller.signal),
    )
    await server.arrived(20)
    caller.abort()
    gate.resolve()
    expect(await Promise.all(answers)).toEqual(Array(20).fill({ fault: 'timeout' }))
    expect(server.packets.length).toBe(20)
  })

  test('an abort ends a query in flight at once', async () => {
    const server = await serve(silence)
    const { clock, resolver } = resolverOver([server])
    const caller = new AbortController()
    const answer = resolver.resolve('a.test', 'MX', caller.signal)
    await server.arrived(1)
    caller.abort()
    expect(await answer).toEqual({ fault: 'timeout' })
    expect(clock.pending).toBe(0)
  })

  test('an abort ends a waiting query, which is never sent', async () => {
    const gate = Promise.withResolvers<void>()
    const server = await serve(async asked => {
      await gate.promise
      return goodMx(asked)
    })
    const { resolver } = resolverOver([server], { inFlightMax: 1 })
    const caller = new AbortController()
    const first = resolver.resolve('first.test', 'MX')
    const gone = resolver.resolve('gone.test', 'MX', caller.signal)
    const last = resolver.resolve('last.test', 'MX')
    await server.arrived(1)
    caller.abort()
    expect(await gone).toEqual({ fault: 'timeout' })
    gate.resolve()
    expect(await Promise.all([first, last])).toEqual([GOOD, GOOD])
    expect(server.packets).toEqual(['MX first.test', 'MX last.test'])
  })

  test('an aborted caller sends no query', async () => {
    const server = await serve(goodMx)
    const { resolver } = resolverOver([server])
    expect(await resolver.resolve('a.test', 'MX', AbortSignal.abort())).toEqual({
      fault: 'timeout',
    })
    expect(server.packets).toEqual([])
  })

  test('a signal of many queries keeps no listener', async () => {
    const server = await serve(goodMx)
    const { resolver } = resolverOver([server])
    const { signal } = new AbortController()
    await Promise.all([1, 2, 3].map(i => resolver.resolve(`n${i}.test`, 'MX', signal)))
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('close ends open and waiting queries, and no query is sent afterwards', async () => {
    const server = await serve(silence)
    const { clock, resolver } = resolverOver([server], { inFlightMax: 1 })
    const answers = [resolver.resolve('a.test', 'MX'), resolver.resolve('b.test', 'MX')]
    await server.arrived(1)
    resolver.close()
    resolver.close()
    expect(await Promise.all(answers)).toEqual([{ fault: 'timeout' }, { fault: 'timeout' }])
    expect(await resolver.resolve('c.test', 'MX')).toEqual({ fault: 'timeout' })
    expect(server.packets).toEqual(['MX a.test'])
    expect(clock.pending).toBe(0)
  })
})

describe('the servers', () => {
  test('a change of the system servers takes effect within 5 s', async () => {
    const [before, after] = [await serve(goodMx), await serve(goodMx)]
    let system = [before.address]
    const { clock, resolver } = resolverOver([], { systemServers: () => system })
    await resolver.resolve('a.test', 'MX')
    system = [after.address]
    await clock.advance(5 * SECOND)
    await resolver.resolve('b.test', 'MX')
    expect([before.packets, after.packets]).toEqual([['MX a.test'], ['MX b.test']])
  })

  test('default to those of the system', () => {
    expect(() => resolverOver([])).not.toThrow()
  })

  test.each([
    '192.0.2.53',
    '192.0.2.53:5353',
    '2001:db8::53',
    '[2001:db8::53]',
    '[2001:db8::53]:5353',
    '::1',
  ])('%s is valid', text => {
    expect(() => createNodeResolver({ clock: fakeClock(), servers: [text] })).not.toThrow()
  })

  test.each([
    ['', 'nothing'],
    ['ns.test', 'a name'],
    ['localhost:53', 'a name'],
    ['192.0.2', 'three bytes'],
    ['192.0.2.256', 'a byte too large'],
    ['192.0.2.53:', 'no port'],
    ['192.0.2.53:0', 'port 0'],
    ['[2001:db8::53]:0', 'port 0'],
    ['192.0.2.53:65536', 'a port too large'],
    ['192.0.2.53:x', 'no number'],
    ['192.0.2.53:-1', 'a negative port'],
    ['192.0.2.53,192.0.2.54', 'two in one'],
    [' 192.0.2.53', 'a space'],
    ['udp://192.0.2.53', 'a URL'],
    ['fe80::1%eth0', 'a zone, which node:dns would drop'],
    ['[2001:db8::53', 'one bracket'],
  ])('%j is invalid: %s', text => {
    expect(() => createNodeResolver({ clock: fakeClock(), servers: [text] })).toThrow(
      expect.objectContaining({
        code: 'bad_config',
        message: expect.stringContaining('is not a valid DNS server'),
      }),
    )
  })
})
