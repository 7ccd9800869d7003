import { describe, expect, test } from 'vitest'
import { type CachedAnswer, processCache, type ResultCache } from '../../src/engine/result-cache.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import { drainEventLoop } from '../support/wait.ts'

/** The network of test engines, which dial addresses of a range that is not public. */
const TEST_NETWORK = JSON.stringify({ dns: [], smtpPort: 25, allowRanges: ['192.0.2.0/24'] })

const ann = (recipients: readonly string[]) => recipients.filter(to => to.startsWith('ann@')).length

describe('a custom result cache', () => {
  const probed: CachedAnswer['probed'] = {
    answer: { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply: reply(250) },
    catchAll: false,
    host: 'mx.a.test',
    ip: '192.0.2.1',
    tls: false,
    connectMs: 12,
    asked: true,
  }
  const holding = (at: number): ResultCache => ({
    get: async keys => new Map(keys.map(key => [key, { probed, at, network: TEST_NETWORK }])),
    set: async () => {},
  })

  test('serves the engine without an SMTP session', async () => {
    const now = fakeClock().now()
    const { verify, mx } = createTestEngine({ engine: { resultCache: holding(now - HOUR) } })
    expect(await verify('ann@a.test')).toMatchObject({
      verdict: { reason: 'accepted_email' },
      cached: true,
      checkedAt: now - HOUR,
    })
    expect(mx.dialled).toEqual([])
  })

  test('does not serve answers of another network, and marks those that it stores', async () => {
    const stored: CachedAnswer[] = []
    const foreign: ResultCache = {
      get: async keys => new Map(keys.map(key => [key, { probed, at: fakeClock().now() }])),
      set: async entries => void stored.push(...entries.values()),
    }
    const { verify } = createTestEngine({ engine: { resultCache: foreign } })
    expect(await verify('nobody@a.test')).toMatchObject({
      verdict: { reason: 'rejected_email' },
      cached: false,
    })
    expect(stored).toMatchObject([{ network: TEST_NETWORK }])
  })

  test('does not serve entries beyond the longest retention', async () => {
    const now = fakeClock().now()
    const { verify } = createTestEngine({ engine: { resultCache: holding(now - 8 * DAY) } })
    expect((await verify('nobody@a.test')).verdict.reason).toBe('rejected_email')
  })

  test('refreshes an entry from the future in the background, as the clock was set back', async () => {
    const now = fakeClock().now()
    const { verify, recipients } = createTestEngine({ engine: { resultCache: holding(now + DAY) } })
    expect((await verify('ann@a.test')).cached).toBe(true)
    await drainEventLoop()
    expect(ann(recipients())).toBe(1)
  })

  test.each<[string, ResultCache]>([
    [
      'that fails',
      {
        get: () => Promise.reject(new Error('disk full')),
        set: () => Promise.reject(new Error('disk full')),
      },
    ],
    [
      'that throws',
      {
        get: () => {
          throw new Error('disk full')
        },
        set: () => {
          throw new Error('disk full')
        },
      },
    ],
    [
      'that holds nonsense',
      {
        get: async keys => JSON.parse(`[["${keys[0]}", {"at": 0}]]`),
        set: async () => {},
      },
    ],
  ])('%s counts as empty and breaks nothing', async (_, resultCache) => {
    const { verify, many, loggedErrors } = createTestEngine({ engine: { resultCache } })
    expect((await verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    const results = await many(['ann@a.test', 'nobody@a.test', 'no address'])
    expect(results.map(({ verdict }) => verdict.reason).toSorted()).toEqual([
      ...['accepted_email', 'invalid_email', 'rejected_email'],
    ])
    expect(loggedErrors.length).toBeGreaterThan(0)
  })

  test('may be closed with the engine: it is not read again, and a read in flight may fail', async () => {
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<never>()
    let reads = 0
    const resultCache: ResultCache = {
      get: () => {
        reads++
        asked.resolve()
        return answer.promise
      },
      set: async () => {},
    }
    const { engine, many, loggedErrors } = createTestEngine({ engine: { resultCache } })
    const list = many(Array.from({ length: 1_200 }, (_, i) => `user${i}@a.test`))
    await asked.promise
    const closed = engine.close()
    answer.reject(new Error('closed'))
    await Promise.allSettled([list, closed])
    await drainEventLoop()
    expect([reads, loggedErrors]).toEqual([1, []])
  })

  test('is read in batches for the addresses of a list', async () => {
    const questions: number[] = []
    const resultCache: ResultCache = {
      get: async keys => {
        questions.push(keys.length)
        return new Map()
      },
      set: async () => {},
    }
    const { many } = createTestEngine({ engine: { resultCache } })
    const texts = Array.from({ length: 300 }, (_, i) => `user${i}@a.test`)
    expect(await many(texts)).toHaveLength(300)
    expect(questions.reduce((sum, keys) => sum + keys, 0)).toBe(300)
    expect(questions.length).toBeLessThanOrEqual(3)
  })
})

describe('the cache of a process', () => {
  test('deletes expired entries', async () => {
    const clock = fakeClock()
    const cache = processCache(clock)
    const probed = {
      answer: { kind: 'rejected', why: 'no-mailbox', stage: 'rcpt', reply: reply(550) },
      catchAll: null,
      host: null,
      ip: null,
      tls: false,
      connectMs: null,
      asked: true,
    } as const
    await cache.set(new Map([['ann@a.test', { probed, at: clock.now() }]]))
    expect((await cache.get(['ann@a.test', 'bob@a.test'])).size).toBe(1)
    await clock.advance(6 * HOUR + 1)
    expect((await cache.get(['ann@a.test'])).size).toBe(0)
  })

  test('stores only definite answers', async () => {
    const clock = fakeClock()
    const cache = processCache(clock)
    const answer = { kind: 'no-response', why: 'timeout', stage: 'rcpt', detail: '' } as const
    const probed = { answer, catchAll: null, host: null, ip: null, tls: false }
    const entry = { probed: { ...probed, connectMs: null, asked: true }, at: clock.now() }
    await cache.set(new Map([['ann@a.test', entry]]))
    expect((await cache.get(['ann@a.test'])).size).toBe(0)
  })
})

function reply(code: number) {
  return { code, enhanced: null, text: 'as the case may be' }
}
