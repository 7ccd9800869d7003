import { describe, expect, test } from 'vitest'
import { cachedResolver } from '../../../src/engine/dns/cached-resolver.ts'
import type { DnsFault, Resolver } from '../../../src/engine/dns/resolver.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

function setUp(entries: Record<string, ZoneEntry>, sizeMax?: number) {
  const dns = zone(entries)
  const clock = fakeClock()
  const resolver = cachedResolver(dns, sizeMax === undefined ? { clock } : { clock, sizeMax })
  return { dns, clock, resolver }
}

/** A resolver whose queries wait until the test answers them. */
function manualResolver() {
  const open: { signal: AbortSignal | undefined; answer: (fault: DnsFault) => void }[] = []
  const resolver: Resolver = {
    resolve: (_name, _type, signal) =>
      new Promise(resolve => {
        open.push({ signal, answer: fault => resolve({ fault }) })
        signal?.addEventListener('abort', () => resolve({ fault: 'timeout' }))
      }),
  }
  return { open, resolver: cachedResolver(resolver, { clock: fakeClock() }) }
}

describe('the cache of answers', () => {
  // The answer, and its TTL.
  test.each<[string, ZoneEntry, number]>([
    ['records', { MX: [[10, 'mx.a.test']] }, 5 * MINUTE],
    ['NXDOMAIN', 'no-name', 5 * MINUTE],
    ['NODATA', {}, 5 * MINUTE],
    ['SERVFAIL', 'server', 10 * SECOND],
    ['a timeout', 'timeout', 10 * SECOND],
  ])('caches an answer for its TTL: %s', async (_, entry, keptMs) => {
    const { dns, clock, resolver } = setUp({ 'a.test': entry })
    const first = await resolver.resolve('a.test', 'MX')
    await clock.advance(keptMs - 1)
    expect(await resolver.resolve('a.test', 'MX')).toEqual(first)
    expect(dns.asked).toEqual(['MX a.test'])
    await clock.advance(2)
    expect(await resolver.resolve('a.test', 'MX')).toEqual(first)
    expect(dns.asked).toEqual(['MX a.test', 'MX a.test'])
  })

  /** A resolver that allows every answer to be cached for `ttlMs`. */
  const withTtl = (inner: Resolver, ttlMs: number): Resolver => ({
    resolve: async (...asked) => ({ ...(await inner.resolve(...asked)), ttlMs }),
  })

  // The TTL of the answer, and how long it is kept.
  test.each<[string, ZoneEntry, ttlMs: number, keptMs: number]>([
    ['records', { A: ['192.0.2.1'] }, 42 * SECOND, 42 * SECOND],
    ['records', { A: ['192.0.2.1'] }, 2 * HOUR, 2 * HOUR],
    ['records, at least 10 s', { A: ['192.0.2.1'] }, 0, 10 * SECOND],
    ['records, at most a day', { A: ['192.0.2.1'] }, 68 * 365 * DAY, DAY],
    ['NXDOMAIN', 'no-name', 42 * SECOND, 42 * SECOND],
    ['NODATA', {}, 42 * SECOND, 42 * SECOND],
    ['NXDOMAIN, at least 10 s', 'no-name', 0, 10 * SECOND],
    ['NODATA, at most an hour', {}, DAY, HOUR],
    ['SERVFAIL, whatever its TTL', 'server', HOUR, 10 * SECOND],
  ])('caches an answer for the TTL of its zone: %s', async (_, entry, ttlMs, keptMs) => {
    const dns = zone({ 'a.test': entry })
    const clock = fakeClock()
    const resolver = cachedResolver(withTtl(dns, ttlMs), { clock })
    await resolver.resolve('a.test', 'A')
    await clock.advance(keptMs - 1)
    await resolver.resolve('a.test', 'A')
    expect(dns.asked).toEqual(['A a.test'])
    await clock.advance(2)
    await resolver.resolve('a.test', 'A')
    expect(dns.asked).toEqual(['A a.test', 'A a.test'])
  })

  test('caches the addresses sent with MX records', async () => {
    const dns = zone({ 'a.test': { MX: [[10, 'mx.a.test']] }, 'old.a.test': { A: ['192.0.2.9'] } })
    const clock = fakeClock()
    const sends = (host: string) => ({
      host,
      type: 'A' as const,
      addresses: ['192.0.2.1'],
      ttlMs: 7 * MINUTE,
    })
    const resolver = cachedResolver(
      {
        async resolve(name, type, signal) {
          const answer = await dns.resolve(name, type, signal)
          if (type !== 'MX' || 'fault' in answer) return answer
          return { ...answer, additional: [sends('mx.a.test'), sends('old.a.test')] }
        },
      },
      { clock },
    )
    await resolver.resolve('old.a.test', 'A')
    await resolver.resolve('a.test', 'MX')
    expect(await resolver.resolve('MX.a.test', 'A')).toEqual({
      records: ['192.0.2.1'],
      ttlMs: 7 * MINUTE,
    })
    // Direct answers take precedence over additional records.
    expect(await resolver.resolve('old.a.test', 'A')).toEqual({ records: ['192.0.2.9'] })
    expect(await resolver.resolve('mx.a.test', 'AAAA')).toEqual({ fault: 'no-name' })
    expect(dns.asked).toEqual(['A old.a.test', 'MX a.test', 'AAAA mx.a.test'])
    await clock.advance(7 * MINUTE + 1)
    expect(await resolver.resolve('mx.a.test', 'A')).toEqual({ fault: 'no-name' })
  })

  test('can be cleared of all answers, or of those without records', async () => {
    const { dns, resolver } = setUp({ 'a.test': { MX: [[10, 'mx.a.test']] }, 'b.test': 'no-name' })
    const askBoth = () =>
      Promise.all([resolver.resolve('a.test', 'MX'), resolver.resolve('b.test', 'MX')])
    await askBoth()
    resolver.clearNegative()
    await askBoth()
    expect(dns.asked).toEqual(['MX a.test', 'MX b.test', 'MX b.test'])
    resolver.clear()
    await askBoth()
    expect(dns.asked.slice(3)).toEqual(['MX a.test', 'MX b.test'])
  })

  test('keeps records that arrive after it was cleared of negative answers', async () => {
    const { dns, resolver } = setUp({ 'a.test': { MX: [[10, 'mx.a.test']] }, 'b.test': 'no-name' })
    const asking = [resolver.resolve('a.test', 'MX'), resolver.resolve('b.test', 'MX')]
    resolver.clearNegative()
    await Promise.all(asking)
    await resolver.resolve('a.test', 'MX')
    await resolver.resolve('b.test', 'MX')
    expect(dns.asked).toEqual(['MX a.test', 'MX b.test', 'MX b.test'])
  })

  test('ignores a change of the wall clock', async () => {
    const { dns, clock, resolver } = setUp({ 'a.test': 'server' })
    await resolver.resolve('a.test', 'MX')
    clock.jump(365 * 24 * 60 * MINUTE)
    await resolver.resolve('a.test', 'MX')
    expect(dns.asked.length).toBe(1)
    clock.jump(-2 * 365 * 24 * 60 * MINUTE)
    await clock.advance(11 * SECOND)
    await resolver.resolve('a.test', 'MX')
    expect(dns.asked.length).toBe(2)
  })

  test('caches each record type separately', async () => {
    const { resolver } = setUp({ 'a.test': { A: ['192.0.2.1'] } })
    expect(await resolver.resolve('a.test', 'AAAA')).toEqual({ fault: 'no-data' })
    expect(await resolver.resolve('a.test', 'A')).toEqual({ records: ['192.0.2.1'] })
  })

  test('ignores case and a trailing dot', async () => {
    const { dns, resolver } = setUp({ 'a.test': { A: ['192.0.2.1'] } })
    for (const name of ['a.test', 'A.Test', 'a.test.']) await resolver.resolve(name, 'A')
    expect(dns.asked).toEqual(['A a.test'])
  })

  test('evicts the least recently used name when full', async () => {
    const { dns, resolver } = setUp({}, 2)
    for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await resolver.resolve(`${name}.test`, 'A')
    expect(dns.asked).toEqual(['A a.test', 'A b.test', 'A c.test', 'A b.test'])
  })
})

describe('concurrent queries', () => {
  test('a hundred concurrent callers share one query', async () => {
    const { dns, resolver } = setUp({ 'a.test': { MX: [[10, 'mx.a.test']] } })
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => resolver.resolve('a.test', 'MX')),
    )
    expect(dns.asked).toEqual(['MX a.test'])
    expect(new Set(answers).size).toBe(1)
  })

  test('an abort of one caller does not affect the others', async () => {
    const { open, resolver } = manualResolver()
    const leaver = new AbortController()
    const left = resolver.resolve('a.test', 'MX', leaver.signal)
    const stayed = resolver.resolve('a.test', 'MX')
    leaver.abort()
    expect(await left).toEqual({ fault: 'timeout' })
    expect(open[0]?.signal?.aborted).toBe(false)
    open[0]?.answer('no-name')
    expect(await stayed).toEqual({ fault: 'no-name' })
  })

  test('the query is cancelled when all callers have aborted, and the next caller starts another', async () => {
    const { open, resolver } = manualResolver()
    const leavers = [new AbortController(), new AbortController()]
    const left = leavers.map(leaver => resolver.resolve('a.test', 'MX', leaver.signal))
    for (const leaver of leavers) leaver.abort()
    expect(await Promise.all(left)).toEqual([{ fault: 'timeout' }, { fault: 'timeout' }])
    expect(open[0]?.signal?.aborted).toBe(true)
    const next = resolver.resolve('a.test', 'MX')
    open[1]?.answer('no-data')
    expect(await next).toEqual({ fault: 'no-data' })
  })

  test('a cancelled query is not cached as a timeout', async () => {
    const { dns, resolver } = setUp({ 'a.test': { A: 'never' } })
    const leaver = new AbortController()
    const left = resolver.resolve('a.test', 'A', leaver.signal)
    leaver.abort()
    await left
    dns.set('a.test', { A: ['192.0.2.1'] })
    expect(await resolver.resolve('a.test', 'A')).toEqual({ records: ['192.0.2.1'] })
  })

  test('an aborted caller starts no query', async () => {
    const { dns, resolver } = setUp({})
    expect(await resolver.resolve('a.test', 'A', AbortSignal.abort())).toEqual({ fault: 'timeout' })
    expect(dns.asked).toEqual([])
  })

  test('an error of the resolver is not cached and leaves no query in flight', async () => {
    let asked = 0
    const inner: Resolver = {
      async resolve() {
        asked++
        throw new Error('a defect of ours')
      },
    }
    const resolver = cachedResolver(inner, { clock: fakeClock() })
    const both = ['a.test', 'a.test'].map(name => resolver.resolve(name, 'A'))
    for (const result of await Promise.allSettled(both)) expect(result.status).toBe('rejected')
    await expect(resolver.resolve('a.test', 'A')).rejects.toThrow('a defect of ours')
    expect(asked).toBe(2)
  })
})
