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

describe('what is remembered of a domain', () => {
  test('is nothing at first, and then what was told', () => {
    const { memory } = clocked()
    expect(memory.get('a.test')).toBeNull()
    memory.set('a.test', true)
    memory.set('b.test', false)
    expect([memory.get('a.test'), memory.get('b.test')]).toEqual([true, false])
  })

  test('is forgotten after a day when it takes everything, after a week when it tells', async () => {
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

describe('the turn to ask', () => {
  test('is one for each domain; who waits gets what was told', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const waiting = [memory.acquire('a.test'), memory.acquire('a.test')]
    turnOf(await memory.acquire('b.test')).drop()
    turn.resolve(true)
    expect(await Promise.all(waiting)).toMatchObject([{ known: true }, { known: true }])
    expect(await memory.acquire('a.test')).toMatchObject({ known: true })
  })

  test('without evidence, who waits is told so, and who comes later may ask', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const waiting = memory.acquire('a.test')
    turn.resolve(null)
    expect(await waiting).toMatchObject({ known: null })
    expect(memory.get('a.test')).toBeNull()
    turnOf(await memory.acquire('a.test'))
  })

  test('handed back unasked goes to one of those who wait', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    const [one, other] = [memory.acquire('a.test'), memory.acquire('a.test')]
    turn.drop()
    turnOf(await one).resolve(false)
    expect(await other).toMatchObject({ known: false })
  })

  test('told in a connection that is not over is remembered when its replies were in step', async () => {
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

  test('is for a single question too while that connection is not over', async () => {
    const { memory } = clocked()
    const turn = turnOf(await memory.acquire('a.test'))
    expect(memory.lock('a.test', true)).toBeNull()
    const waiting = memory.acquire('a.test', undefined, true)
    turn.resolve(true, new Promise(() => {}))
    turnOf(await waiting).resolve(false)
    expect(memory.get('a.test')).toBe(false)
  })

  test('once used does not speak for the next', async () => {
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

  test('at once is for whoever finds nobody asking and nothing known', async () => {
    const { memory } = clocked()
    const turn = memory.lock('a.test')
    expect(turn).not.toBeNull()
    expect(memory.lock('a.test')).toBeNull()
    turn?.resolve(true)
    expect(memory.lock('a.test')).toBeNull()
  })

  test('is waited for no longer than the caller has time', async () => {
    const { memory } = clocked()
    await memory.acquire('a.test')
    const limit = new AbortController()
    const waiting = memory.acquire('a.test', limit.signal)
    limit.abort()
    expect(await waiting).toMatchObject({ known: null })
    expect(await memory.acquire('a.test', limit.signal)).toMatchObject({ known: null })
  })
})

describe('a name that nobody has', () => {
  test('is twenty letters and digits after a letter, and never the same', () => {
    const names = new Set(Array.from({ length: 1_000 }, () => randomLocalPart(systemRandom)))
    expect(names.size).toBe(1_000)
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9]{19}$/)
  })
})
