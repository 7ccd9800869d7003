import { expect, test } from 'vitest'
import { localCache } from '../../src/engine/batched-cache.ts'
import type { CachedAnswer, ResultCache } from '../../src/engine/result-cache.ts'
import { DAY, MINUTE } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'

const ANN = 'ann@a.test'
const BOB = 'bob@a.test'

/** A shared cache that records its reads. */
function services() {
  const clock = fakeClock()
  const known = new Map<string, CachedAnswer>()
  const reads: (readonly string[])[] = []
  const shared: ResultCache = {
    async get(keys) {
      reads.push(keys)
      return new Map([...known].filter(([key]) => keys.includes(key)))
    },
    async set(entries) {
      for (const [key, answer] of entries) known.set(key, answer)
    },
  }
  const answerOf = (kind: 'accepted' | 'rejected' | 'deferred', ageMs = 0): CachedAnswer =>
    ({ probed: { answer: { kind } }, at: clock.now() - ageMs }) as unknown as CachedAnswer
  return { clock, known, reads, shared, answerOf, cache: localCache(shared, clock) }
}

test('serves a read locally for a minute, then reads the shared cache again', async () => {
  const { cache, known, reads, clock, answerOf } = services()
  known.set(ANN, answerOf('accepted'))
  const first = await cache.get([ANN])
  expect(await cache.get([ANN])).toEqual(first)
  await clock.advance(MINUTE - 1)
  expect((await cache.get([ANN])).get(ANN)).toBe(first.get(ANN))
  expect(reads).toEqual([[ANN]])
  // Written by another process meanwhile.
  known.set(ANN, answerOf('rejected'))
  await clock.advance(1)
  expect((await cache.get([ANN])).get(ANN)?.probed.answer.kind).toBe('rejected')
  expect(reads).toEqual([[ANN], [ANN]])
})

test('reads only locally missing keys from the shared cache', async () => {
  const { cache, known, reads, answerOf } = services()
  known.set(ANN, answerOf('accepted')).set(BOB, answerOf('rejected'))
  await cache.get([ANN])
  const both = await cache.get([ANN, BOB])
  expect([...both.keys()]).toEqual([ANN, BOB])
  expect(reads).toEqual([[ANN], [BOB]])
})

test('does not cache misses, as another process may write the entry', async () => {
  const { cache, reads } = services()
  expect((await cache.get([ANN])).size).toBe(0)
  await cache.get([ANN])
  expect(reads).toHaveLength(2)
})

test('serves its own writes before the shared write is done, and even if it fails', async () => {
  const { shared, reads, clock, answerOf } = services()
  const failing = { ...shared, set: () => Promise.reject(new Error('failing')) }
  const cache = localCache(failing, clock)
  await expect(cache.set(new Map([[ANN, answerOf('rejected')]]))).rejects.toThrow('failing')
  expect((await cache.get([ANN])).get(ANN)?.probed.answer.kind).toBe('rejected')
  expect(reads).toEqual([])
})

test('does not keep answers that say nothing about the address', async () => {
  const { cache, reads, answerOf } = services()
  await cache.set(new Map([[ANN, answerOf('deferred')]]))
  await cache.get([ANN])
  expect(reads).toEqual([[ANN]])
})

test('reads a stale answer from the shared cache, as another process may have refreshed it', async () => {
  const { cache, known, reads, clock, answerOf } = services()
  known.set(ANN, answerOf('accepted', DAY - MINUTE / 2))
  await cache.get([ANN])
  await clock.advance(MINUTE / 2 - 1)
  await cache.get([ANN])
  expect(reads).toHaveLength(1)
  await clock.advance(1)
  await cache.get([ANN])
  expect(reads).toHaveLength(2)
})
