import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { CATCH_ALL_TTL_MS, CatchAllCache } from '../../../src/engine/probe/catch-all.ts'
import {
  type CatchAllStore,
  DOMAINS_MAX,
  type KnownCatchAll,
} from '../../../src/engine/probe/shared-catch-all.ts'
import { DAY, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

type FakeStore = CatchAllStore & {
  readonly known: Map<string, KnownCatchAll>
  readonly questions: (readonly string[])[]
  /** Overrides the stored results. */
  answer: (() => Promise<ReadonlyMap<string, KnownCatchAll>>) | null
}

/** A shared store that records its queries. */
function shared() {
  const known = new Map<string, KnownCatchAll>()
  const store: FakeStore = {
    known,
    questions: [],
    answer: null,
    async get(domains: readonly string[]) {
      store.questions.push(domains)
      if (store.answer !== null) return store.answer()
      return new Map([...known].filter(([domain]) => domains.includes(domain)))
    },
    set: (domain: string, found: KnownCatchAll) => void known.set(domain, found),
  }
  const clock = fakeClock()
  return { clock, store, memory: new CatchAllCache(clock, store) }
}

const YES = { catchAll: true, keepMs: DAY }

test('a result is shared with its time to live', () => {
  const { store, memory } = shared()
  memory.set('all.test', true)
  memory.lock('tells.test')?.resolve(false)
  memory.lock('unsure.test')?.resolve(null)
  expect([...store.known]).toEqual([
    ['all.test', { catchAll: true, keepMs: CATCH_ALL_TTL_MS.yes }],
    ['tells.test', { catchAll: false, keepMs: CATCH_ALL_TTL_MS.no }],
  ])
})

test('a shared result is loaded while it is valid', async () => {
  const { clock, store, memory } = shared()
  store.known.set('all.test', { catchAll: true, keepMs: 3 * SECOND })
  await memory.load(['all.test', 'new.test'])
  expect([memory.get('all.test'), memory.get('new.test')]).toEqual([true, null])
  await clock.advance(3 * SECOND + 1)
  expect(memory.get('all.test')).toBeNull()
  expect(store.known.size).toBe(1)
})

test('concurrent sessions share one query, with each domain once', async () => {
  const { store, memory } = shared()
  await Promise.all([
    memory.load(['a.test', 'b.test']),
    memory.load(['b.test', 'c.test']),
    memory.load(['d.test']),
  ])
  expect(store.questions).toEqual([['a.test', 'b.test', 'c.test', 'd.test']])
})

test('a domain that is known or was just loaded is not loaded again', async () => {
  const { clock, store, memory } = shared()
  memory.set('known.test', false)
  await memory.load(['new.test', 'known.test', 'new.test'])
  expect(memory.load(['new.test', 'known.test'])).toBeNull()
  expect(store.questions).toEqual([['new.test']])
  await clock.advance(10 * SECOND + 1)
  await memory.load(['new.test'])
  expect(store.questions).toHaveLength(2)
})

test('a query has at most the maximum number of domains', async () => {
  const { store, memory } = shared()
  await memory.load(Array.from({ length: DOMAINS_MAX + 1 }, (_, n) => `d${n}.test`))
  expect(store.questions.map(({ length }) => length)).toEqual([DOMAINS_MAX, 1])
})

test('a store that fails delays no session and is not queried for a while', async () => {
  const { clock, store, memory } = shared()
  store.answer = () => Promise.reject(new Error('the database is away'))
  await memory.load(['a.test'])
  await memory.load(['b.test'])
  expect(store.questions).toEqual([['a.test']])
  store.answer = null
  store.known.set('c.test', YES)
  await clock.advance(10 * SECOND)
  await memory.load(['c.test'])
  expect(memory.get('c.test')).toBe(true)
})

test('a slow store delays a session by at most one second, and its late result is used', async () => {
  const { clock, store, memory } = shared()
  const late = Promise.withResolvers<ReadonlyMap<string, KnownCatchAll>>()
  store.answer = () => late.promise
  let isDone = false
  void memory.load(['a.test'])?.then(() => {
    isDone = true
  })
  await clock.advance(SECOND - 1)
  expect(isDone).toBe(false)
  await clock.advance(1)
  await setImmediate()
  expect(isDone).toBe(true)
  late.resolve(new Map([['a.test', YES]]))
  await setImmediate()
  expect(memory.get('a.test')).toBe(true)
  expect(clock.pending).toBe(0)
})

test('a cache without a store loads nothing', () => {
  expect(new CatchAllCache(fakeClock()).load(['a.test'])).toBeNull()
})
