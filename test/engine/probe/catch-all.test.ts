import { describe, expect, test } from 'vitest'
import {
  CatchAllCache,
  type CatchAllLock,
  randomLocalPart,
} from '../../../src/engine/probe/catch-all.ts'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { fakeClock } from '../../support/clock.ts'

const turnOf = (turn: CatchAllLock) => {
  if ('known' in turn) throw new Error('no turn')
  return turn
}
const clocked = () => {
  const clock = fakeClock()
  return { clock, memory: new CatchAllCache(clock) }
}

describe('the cached result of a domain', () => {
  test('is empty at first, then the last result', () => {
    const { memory } = clocked()
    expect(memory.get('a.test')).toBeNull()
    memory.set('a.test', true)
    memory.set('b.test', false)
    expect([memory.get('a.test'), memory.get('b.test')]).toEqual([true, false])
  })

  test('expires after a day for a catch-all, after a week for other domains', async () => {
    const { memory, clock } = clocked()
    memory.set('a.test', true)
    memory.set('b.test', false)
    await clock.advance(24 * HOUR - 1)
    expect(memory.get('a.test')).toBe(true)
    await clock.advance(2)
    expect(memory.get('a.test')).toBeNull()
    await clock.advance(6 * DAY - 2)
    expect(memory.get('b.test')).toBe(false)
    await clock.advance(2)
    expect(memory.get('b.test')).toBeNull()
  })
})

describe('the lock of a domain', () => {
  test('is exclusive, and waiting sessions get the result', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const waiting = [memory.acquire('a.test'), memory.acquire('a.test')]
    turnOf(await memory.acquire('b.test')).drop()
    turn.resolve(true)
    expect(await Promise.all(waiting)).toMatchObject([{ known: true }, { known: true }])
    expect(await memory.acquire('a.test')).toMatchObject({ known: true })
  })

  test('without evidence gives waiting sessions no result, and a later one may test', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const waiting = memory.acquire('a.test')
    turn.resolve(null)
    expect(await waiting).toMatchObject({ known: null })
    expect(memory.get('a.test')).toBeNull()
    turnOf(await memory.acquire('a.test'))
  })

  test('that was dropped goes to a waiting session', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const [one, other] = [memory.acquire('a.test'), memory.acquire('a.test')]
    turn.drop()
    turnOf(await one).resolve(false)
    expect(await other).toMatchObject({ known: false })
  })

  test('resolved in an open connection is cached once its replies are in step', async () => {
    for (const inStep of [true, false]) {
      const { memory } = clocked()
      const connection = Promise.withResolvers<boolean>()
      const turn = turnOf(await memory.acquire('a.test'))
      const waiting = memory.acquire('a.test')
      turn.resolve(true, connection.promise)
      expect(await waiting).toEqual({ known: true, inStep: connection.promise })
      expect(await memory.acquire('a.test')).toEqual({ known: true, inStep: connection.promise })
      expect([memory.lock('a.test'), memory.get('a.test')]).toEqual([null, null])
      connection.resolve(inStep)
      await connection.promise
      expect(memory.get('a.test')).toBe(inStep ? true : null)
      expect(memory.lock('a.test') === null).toBe(inStep)
    }
  })

  test('is available to a single verification while that connection is open', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    expect(memory.lock('a.test', true)).toBeNull()
    const waiting = memory.acquire('a.test', undefined, true)
    turn.resolve(true, new Promise(() => {}))
    turnOf(await waiting).resolve(false)
    expect(memory.get('a.test')).toBe(false)
  })

  test('has no effect after it was resolved', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    turn.resolve(null)
    const next = turnOf(await memory.acquire('a.test'))
    turn.resolve(true)
    turn.drop()
    expect(memory.get('a.test')).toBeNull()
    next.resolve(false)
    expect(memory.get('a.test')).toBe(false)
  })

  test('is returned at once only if the domain is neither known nor being tested', async () => {
    const { memory } = clocked()
    const turn = memory.lock('a.test')
    expect(turn).not.toBeNull()
    expect(memory.lock('a.test')).toBeNull()
    turn?.resolve(true)
    expect(memory.lock('a.test')).toBeNull()
  })

  test('is awaited until the deadline of the caller', async () => {
    const { memory } = clocked()
    await memory.acquire('a.test')
    const limit = new AbortController()
    const waiting = memory.acquire('a.test', limit.signal)
    limit.abort()
    expect(await waiting).toMatchObject({ known: null })
    expect(await memory.acquire('a.test', limit.signal)).toMatchObject({ known: null })
  })
})

describe('the random local part', () => {
  test('has twenty letters and digits, starts with a letter, and never repeats', () => {
    const names = new Set(Array.from({ length: 1_000 }, () => randomLocalPart(systemRandom)))
    expect(names.size).toBe(1_000)
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9]{19}$/)
  })
})
