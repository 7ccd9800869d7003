import { afterEach, describe, expect, test } from 'vitest'
import { cachedResolver } from '../../../src/engine/dns/cached-resolver.ts'
import { createCheckedResolver } from '../../../src/engine/dns/checked-resolver.ts'
import { createNodeResolver } from '../../../src/engine/dns/node-resolver.ts'
import type { RecordType } from '../../../src/engine/dns/resolver.ts'
import { ResolverCheck } from '../../../src/engine/dns/resolver-check.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { CHECK_NAMES } from '../../../src/platform/domain-names.ts'
import { type FakeClock, fakeClock, letTimePass } from '../../support/clock.ts'
import { recordingLog } from '../../support/log.ts'
import { type NameServerReply, nameServer } from '../../support/name-server.ts'
import { countedRandom } from '../../support/random.ts'

// Uses a DNS server on loopback with correct or false answers.

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close()
})

const NXDOMAIN = { flags: 3 }
const NODATA = {}
const SERVFAIL = { flags: 2 }

const mx = (name: string): NameServerReply => ({
  answers: [{ type: 'MX', name, ttl: 300, data: { preference: 10, exchange: `mx.${name}` } }],
})
const a = (name: string): NameServerReply => ({ answers: [{ type: 'A', name, data: '192.0.2.1' }] })

type Says = (name: string, type: string) => NameServerReply | Promise<NameServerReply>

/** Names that exist and accept mail: those of the check, and `there.com`. */
const truth: Says = (name, type) => {
  if (![...CHECK_NAMES, 'there.com'].includes(name)) return NXDOMAIN
  return type === 'MX' ? mx(name) : NODATA
}

/** A resolver as the engine builds it; `server.says` can be changed. */
async function checked(says: Says = truth) {
  const server = { says }
  const dns = await nameServer(({ name, type }) => server.says(name, type))
  const clock = fakeClock()
  const { log, lines } = recordingLog()
  const inner = createNodeResolver({ clock, servers: [dns.address] })
  const check = new ResolverCheck({
    resolver: inner,
    names: CHECK_NAMES,
    clock,
    random: countedRandom(),
    log,
  })
  const resolver = cachedResolver(createCheckedResolver(inner, check), { clock })
  check.onChange(() => resolver.clear())
  open.push(dns, inner, check)
  const ask = (name: string, type: RecordType = 'MX') => resolver.resolve(name, type)
  return { server, dns, clock, check, resolver, ask, lines, packets: dns.packets }
}

const CHECK_PACKETS = ['A 00000000000000000001.com', ...CHECK_NAMES.map(name => `MX ${name}`)]
const fault = (detail: string) => ({
  fault: 'server',
  detail: `the DNS server ${detail}, so its answers are not trusted`,
})
const FOUND = { records: [{ preference: 10, host: 'mx.there.com' }], ttlMs: 5 * MINUTE }

describe('a trustworthy resolver', () => {
  test('is checked once, in parallel with the first query, and its negative answers are returned', async () => {
    const { ask, packets, lines } = await checked()
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
    expect(packets.toSorted()).toEqual(['MX a.com', ...CHECK_PACKETS].toSorted())
    expect(await ask('b.com')).toEqual({ fault: 'no-name' })
    expect(await ask('there.com', 'A')).toEqual({ fault: 'no-data' })
    expect(packets).toHaveLength(1 + 4 + 2)
    expect(lines).toEqual([])
  })

  test('shares one check among a hundred callers', async () => {
    const { ask, packets } = await checked()
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(`${i}.com`)))
    expect(answers.every(answer => 'fault' in answer && answer.fault === 'no-name')).toBe(true)
    expect(packets).toHaveLength(104)
  })

  test('does not delay records or a name without AAAA records by the check', async () => {
    const { ask, server, dns } = await checked((name, type) =>
      name === 'there.com' ? truth(name, type) : 'silence',
    )
    expect(await ask('there.com')).toEqual(FOUND)
    expect(await ask('there.com', 'AAAA')).toEqual({ fault: 'no-data' })
    await dns.arrived(6)
    server.says = truth
  })

  test('is checked again after ten minutes and after twenty consecutive domains without mail', async () => {
    const { ask, clock, packets } = await checked()
    // The first query runs in parallel with the first check, which covers it.
    for (let i = 0; i <= 20; i++) await ask(`${i}.com`)
    expect(packets).toHaveLength(21 + 4)
    await ask('21.com')
    expect(packets).toHaveLength(22 + 8)
    for (let i = 22; i < 42; i++) {
      await ask(`${i}.com`)
      await ask('there.com')
      await clock.advance(SECOND)
    }
    // Records in between reset the count.
    expect(packets).toHaveLength(22 + 8 + 20 + 1)
    await clock.advance(10 * MINUTE)
    await ask('a.com')
    expect(packets).toHaveLength(22 + 8 + 20 + 1 + 5)
  })

  test('is checked again after twenty domains without MX records, although they have addresses', async () => {
    const { server, check, ask } = await checked()
    await check.result()
    server.says = (name, type) => (type === 'A' && name.startsWith('real') ? a(name) : NXDOMAIN)
    for (let i = 0; i < 20; i++) {
      expect(await ask(`real${i}.com`)).toEqual({ fault: 'no-name' })
      await ask(`real${i}.com`, 'A')
    }
    expect(await ask('other.com')).toEqual(fault('says that gmail.com does not exist'))
  })

  test('returns special-use names without a check', async () => {
    const { ask, packets } = await checked(() => NXDOMAIN)
    for (const name of ['a.test', 'b.example', 'printer.local', 'mx.corp.internal', 'c.onion']) {
      expect(await ask(name)).toEqual({ fault: 'no-name' })
    }
    expect(packets).toHaveLength(5)
  })

  test('passes if two of the three names and the random one are not answered', async () => {
    const { ask } = await checked((name, type) =>
      name === 'yahoo.com' || name === 'a.com' ? truth(name, type) : SERVFAIL,
    )
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
  })

  test.each([
    ['SERVFAIL', 2],
    ['REFUSED', 5],
  ])(
    'is trusted if every name that must exist is answered %s, and checked again soon',
    async (_, flags) => {
      const { ask, check, lines } = await checked((name, type) =>
        CHECK_NAMES.includes(name) ? { flags } : truth(name, type),
      )
      expect(await ask('a.com')).toEqual({ fault: 'no-name' })
      expect(check.failure).toBeNull()
      expect(check.dueInMs).toBe(30_000)
      expect(lines).toEqual([])
    },
  )
})

describe('a resolver with false answers', () => {
  test.each<[string, Says, string]>([
    ['NXDOMAIN for everything', () => NXDOMAIN, 'says that gmail.com does not exist'],
    ['NODATA for everything', () => NODATA, 'says that gmail.com accepts no mail'],
    [
      'NXDOMAIN for gmail.com alone',
      (name, type) => (name === 'gmail.com' ? NXDOMAIN : truth(name, type)),
      'says that gmail.com does not exist',
    ],
    [
      'an address for every name',
      (name, type) => (type === 'A' ? a(name) : truth(name, type)),
      'returns an address for a name that does not exist',
    ],
  ])('with %s is not trusted, which is logged once', async (_, says, detail) => {
    const { ask, lines, check } = await checked(says)
    expect(await ask('a.com')).toEqual(fault(detail))
    expect(await ask('b.com')).toEqual(fault(detail))
    expect(check.failure?.detail).toBe(fault(detail).detail)
    expect(lines.map(({ level, message }) => [level, message.split('.')[0]])).toEqual([
      ['warn', expect.stringContaining('DNS check failed: the DNS server')],
    ])
  })

  test('with NXDOMAIN for gmail.com alone still returns the records of other names', async () => {
    const { ask } = await checked((name, type) =>
      name === 'gmail.com' ? NXDOMAIN : truth(name, type),
    )
    expect(await ask('gmail.com')).toEqual(fault('says that gmail.com does not exist'))
    expect(await ask('there.com')).toEqual(FOUND)
  })

  test('that invents addresses is not trusted at all, including its earlier answers', async () => {
    const { ask, server, check } = await checked((_, type) =>
      type === 'MX' ? truth('there.com', type) : a('x'),
    )
    const gate = Promise.withResolvers<void>()
    server.says = (name, type) => (type === 'MX' ? mx(name) : gate.promise.then(() => a(name)))
    // The check is not over yet.
    expect(await ask('there.com')).toEqual(FOUND)
    gate.resolve()
    expect((await check.result())?.kind).toBe('invented')
    const detail = 'returns an address for a name that does not exist'
    expect(await ask('there.com')).toEqual(fault(detail))
    expect(await ask('there.com', 'A')).toEqual(fault(detail))
  })

  test('is checked every 30 seconds, and trusted as soon as it passes', async () => {
    const { ask, server, clock, packets, lines } = await checked(() => NXDOMAIN)
    expect(await ask('a.com')).toMatchObject({ fault: 'server' })
    server.says = truth
    await clock.advance(29 * SECOND)
    // Answers in the meantime are not trusted and not cached.
    expect(await ask('a.com')).toMatchObject({ fault: 'server' })
    expect(packets).toHaveLength(5 + 1)
    await clock.advance(SECOND)
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
    expect(packets).toHaveLength(6 + 5)
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('is noticed later by a negative answer for a name that must exist', async () => {
    const { ask, server } = await checked()
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
    server.says = () => NXDOMAIN
    expect(await ask('gmail.com')).toEqual(fault('says that gmail.com does not exist'))
    // The earlier negative answers are cleared.
    expect(await ask('a.com')).toMatchObject({ fault: 'server' })
  })

  test('is noticed later after at most twenty domains without mail', async () => {
    const { ask, server, check } = await checked()
    expect(await check.result()).toBeNull()
    server.says = () => NXDOMAIN
    const answers = []
    for (let i = 0; i < 100; i++) answers.push(await ask(`${i}.com`))
    expect(answers.filter(answer => 'fault' in answer && answer.fault === 'no-name')).toHaveLength(
      20,
    )
    expect(answers.at(20)).toEqual(fault('says that gmail.com does not exist'))
  })

  test('an abort ends the wait for the check', async () => {
    const { resolver, dns } = await checked((name, type) =>
      name === 'a.com' ? truth(name, type) : 'silence',
    )
    const caller = new AbortController()
    const answer = resolver.resolve('a.com', 'MX', caller.signal)
    await dns.arrived(5)
    caller.abort()
    expect(await answer).toEqual({ fault: 'timeout' })
  })
})

describe('a resolver that answers no query', () => {
  const SILENT = { fault: 'server', detail: 'the DNS server answers no query' }
  const silence: Says = () => 'silence'

  /** Moves the clock on until the promise settles. */
  async function settled<T>(clock: FakeClock, run: Promise<T>): Promise<T> {
    let isSettled = false
    const done = run.finally(() => {
      isSettled = true
    })
    await letTimePass(clock, () => isSettled, { stepMs: 50, maxMs: MINUTE, skips: false })
    return done
  }

  test('is found by a check after a lookup failed, and trusted again with its next answer', async () => {
    const { ask, server, clock, check, lines } = await checked()
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
    server.says = silence
    expect(await settled(clock, ask('b.com'))).toEqual({ fault: 'timeout' })
    expect(await settled(clock, check.isSilent())).toBe(true)
    expect(await settled(clock, ask('c.com'))).toEqual(SILENT)
    server.says = truth
    expect(await ask('there.com')).toEqual(FOUND)
    expect(check.failure).toBeNull()
    expect(await ask('d.com')).toEqual({ fault: 'no-name' })
    expect(lines.map(({ level, message }) => [level, message.split('.')[0]])).toEqual([
      ['warn', 'DNS check failed: the DNS server answers no query'],
      ['info', expect.stringContaining('The DNS server passes the check again')],
    ])
  })

  test('is found if it refuses or fails at once', async () => {
    const { ask, clock, check } = await checked(() => SERVFAIL)
    const answers = Array.from({ length: 50 }, (_, i) => ask(`${i}.com`))
    expect(await settled(clock, Promise.all(answers))).toEqual(Array(50).fill({ fault: 'server' }))
    expect(await settled(clock, check.isSilent())).toBe(true)
  })

  test('is found although its check started before it fell silent', async () => {
    const { ask, server, clock, check } = await checked((name, type) =>
      name === 'there.com' ? truth(name, type) : 'silence',
    )
    expect(await ask('there.com')).toEqual(FOUND)
    server.says = silence
    await settled(clock, ask('b.com'))
    expect(await settled(clock, check.isSilent())).toBe(true)
  })

  test('is asked again every 30 seconds', async () => {
    const { ask, server, clock, check } = await checked(silence)
    await settled(clock, ask('a.com'))
    await settled(clock, check.isSilent())
    const { made } = check
    const caller = new AbortController()
    await settled(clock, check.nextResult(caller.signal))
    expect([check.made, check.failure?.kind]).toEqual([made + 1, 'silent'])
    server.says = truth
    expect(await settled(clock, check.nextResult(caller.signal))).toBeNull()
  })

  test('is not one whose other answers arrive', async () => {
    const { ask, clock, check, packets } = await checked((name, type) =>
      name === 'dead.com' ? SERVFAIL : truth(name, type),
    )
    await check.result()
    expect(await ask('dead.com')).toEqual({ fault: 'server' })
    const isSilent = check.isSilent()
    expect(await ask('a.com')).toEqual({ fault: 'no-name' })
    expect(await isSilent).toBe(false)
    // Four of the first check, three attempts for dead.com.
    expect(packets).toHaveLength(4 + 3 + 1)
    expect(clock.pending).toBe(0)
  })

  test('is not one that passes the check, which is not repeated for each failed lookup', async () => {
    const { ask, clock, check } = await checked((name, type) =>
      name.startsWith('dead') ? SERVFAIL : truth(name, type),
    )
    await check.result()
    for (let i = 0; i < 5; i++) {
      expect(await settled(clock, ask(`dead${i}.com`))).toEqual({ fault: 'server' })
      expect(await settled(clock, check.isSilent())).toBe(false)
    }
    expect(check.made).toBe(2)
    await clock.advance(30 * SECOND)
    await ask('dead9.com')
    expect(await settled(clock, check.isSilent())).toBe(false)
    expect(check.made).toBe(3)
  })

  test('is not one of a private network that answers for a domain of its own', async () => {
    const { ask, server, clock, check, lines } = await checked((name, type) =>
      name === 'there.com' ? truth(name, type) : SERVFAIL,
    )
    expect(await settled(clock, ask('gone.com'))).toEqual({ fault: 'server' })
    expect(await settled(clock, check.isSilent())).toBe(true)
    expect(await ask('there.com')).toEqual(FOUND)
    expect(check.failure).toBeNull()
    server.says = truth
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('an aborted lookup and the end of the engine start no check', async () => {
    const { resolver, clock, check, dns } = await checked(silence)
    const caller = new AbortController()
    const answer = resolver.resolve('a.com', 'MX', caller.signal)
    await dns.arrived(5)
    caller.abort()
    expect(await answer).toEqual({ fault: 'timeout' })
    expect(check.isInDoubt).toBe(false)
    await settled(clock, resolver.resolve('b.com', 'MX'))
    check.close()
    expect(await check.isSilent()).toBe(false)
  })
})
