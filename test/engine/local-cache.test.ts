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
  const asked: (readonly string[])[] = []
  const shared: ResultCache = {
    async get(keys) {
      asked.push(keys)
      return new Map([...known].filter(([key]) => keys.includes(key)))
    },
    async set(entries) {
      for (const [key, remembered] of entries) known.set(key, remembered)
    },
  }
  const answerOf = (kind: 'accepted' | 'rejected' | 'deferred', ageMs = 0): CachedAnswer =>
    ({ probed: { answer: { kind } }, at: clock.now() - ageMs }) as unknown as CachedAnswer
  return { clock, known, asked, shared, answerOf, memory: localCache(shared, clock) }
}

test('serves a read locally for a minute, then reads the shared cache again', async () => {
  const { memory, known, asked, clock, answerOf } = services()
  known.set(ANN, answerOf('accepted'))
  const first = await memory.get([ANN])
  expect(await memory.get([ANN])).toEqual(first)
  await clock.advance(MINUTE)
  expect((await memory.get([ANN])).get(ANN)).toBe(first.get(ANN))
  expect(asked).toEqual([[ANN]])
  // Written by another process meanwhile.
  known.set(ANN, answerOf('rejected'))
  await clock.advance(1)
  expect((await memory.get([ANN])).get(ANN)?.probed.answer.kind).toBe('rejected')
  expect(asked).toEqual([[ANN], [ANN]])
})

test('reads only locally missing keys from the shared cache', async () => {
  const { memory, known, asked, answerOf } = services()
  known.set(ANN, answerOf('accepted')).set(BOB, answerOf('rejected'))
  await memory.get([ANN])
  const both = await memory.get([ANN, BOB])
  expect([...both.keys()]).toEqual([ANN, BOB])
  expect(asked).toEqual([[ANN], [BOB]])
})

test('does not cache misses, as another process may write the entry', async () => {
  const { memory, asked } = services()
  expect((await memory.get([ANN])).size).toBe(0)
  await memory.get([ANN])
  expect(asked).toHaveLength(2)
})

test('serves its own writes before the shared write is done, and even if it fails', async () => {
  const { shared, asked, clock, answerOf } = services()
  const away = { ...shared, set: () => Promise.reject(new Error('away')) }
  const memory = localCache(away, clock)
  await expect(memory.set(new Map([[ANN, answerOf('rejected')]]))).rejects.toThrow('away')
  expect((await memory.get([ANN])).get(ANN)?.probed.answer.kind).toBe('rejected')
  expect(asked).toEqual([])
})

test('does not keep answers that say nothing about the address', async () => {
  const { memory, asked, answerOf } = services()
  await memory.set(new Map([[ANN, answerOf('deferred')]]))
  await memory.get([ANN])
  expect(asked).toEqual([[ANN]])
})

test('reads a stale answer from the shared cache, as another process may have refreshed it', async () => {
  const { memory, known, asked, clock, answerOf } = services()
  known.set(ANN, answerOf('accepted', DAY - MINUTE / 2))
  await memory.get([ANN])
  await clock.advance(MINUTE / 2 - 1)
  await memory.get([ANN])
  expect(asked).toHaveLength(1)
  await clock.advance(1)
  await memory.get([ANN])
  expect(asked).toHaveLength(2)
})
