import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { SharedDeadlines, withDeadline } from '../../src/engine/deadline.ts'
import { abortable } from '../../src/platform/abort.ts'
import { fakeClock } from '../support/clock.ts'
import { drainEventLoop } from '../support/wait.ts'

describe('withDeadline', () => {
  test('aborts after its time limit and not before', async () => {
    const clock = fakeClock()
    const { signal } = withDeadline(clock, 1_000, [])
    await clock.advance(999)
    expect(signal.aborted).toBe(false)
    await clock.advance(1)
    expect(signal.aborted).toBe(true)
  })

  test.each([0, -5])('is aborted at once for a limit of %i ms', limitMs => {
    expect(withDeadline(fakeClock(), limitMs, []).signal.aborted).toBe(true)
  })

  test('never aborts on its own without a time limit', () => {
    const clock = fakeClock()
    const { signal } = withDeadline(clock, null, [undefined])
    expect({ aborted: signal.aborted, timers: clock.pending }).toEqual({
      aborted: false,
      timers: 0,
    })
  })

  test.each([0, 1])('aborts with either of two signals and clears its timer: %i', which => {
    const clock = fakeClock()
    const sources = [new AbortController(), new AbortController()]
    const { signal } = withDeadline(clock, 1_000, [...sources.map(one => one.signal), undefined])
    sources[which]?.abort()
    expect({ aborted: signal.aborted, timers: clock.pending }).toEqual({ aborted: true, timers: 0 })
  })

  test('is aborted at once if a signal is already aborted', () => {
    const clock = fakeClock()
    const { signal } = withDeadline(clock, 1_000, [AbortSignal.abort()])
    expect({ aborted: signal.aborted, timers: clock.pending }).toEqual({ aborted: true, timers: 0 })
  })

  test('does not abort after done, which may be called twice', async () => {
    const clock = fakeClock()
    const source = new AbortController()
    const { signal, done } = withDeadline(clock, 1_000, [source.signal])
    done()
    done()
    source.abort()
    await clock.advance(2_000)
    expect({ aborted: signal.aborted, timers: clock.pending }).toEqual({
      aborted: false,
      timers: 0,
    })
  })

  test('adds one listener to a signal for thousands of deadlines, and all of them abort', () => {
    const clock = fakeClock()
    const source = new AbortController()
    const limits = Array.from({ length: 3_000 }, () => withDeadline(clock, null, [source.signal]))
    for (const { done } of limits.splice(0, 1_000)) done()
    limits.push(...Array.from({ length: 1_000 }, () => withDeadline(clock, null, [source.signal])))
    expect(getEventListeners(source.signal, 'abort')).toHaveLength(1)
    source.abort()
    expect(limits.filter(({ signal }) => !signal.aborted)).toEqual([])
  })
})

describe('abortable', () => {
  test('resolves with the result and leaves no listener on the signal', async () => {
    const { signal } = new AbortController()
    expect(await abortable(Promise.resolve(7), signal)).toBe(7)
    await drainEventLoop()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  test('rejects with the reason of the signal', async () => {
    const source = new AbortController()
    const pending = abortable(new Promise(() => {}), source.signal)
    source.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
  })

  test('rejects with the error of the promise', async () => {
    const { signal } = new AbortController()
    await expect(abortable(Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken')
  })
})

describe('lookups of a list that start within 100 ms', () => {
  const LIMIT_MS = 1_000

  function deadlines() {
    const clock = fakeClock()
    const closing = new AbortController()
    return { clock, closing, shared: new SharedDeadlines(clock, closing.signal, LIMIT_MS) }
  }

  test('share one timer, which ends with the last of them', async () => {
    const { clock, shared } = deadlines()
    const first = shared.acquire(undefined)
    await clock.advance(99)
    const second = shared.acquire(undefined)
    expect({ isShared: second.signal === first.signal, timers: clock.pending }).toEqual({
      isShared: true,
      timers: 1,
    })
    first.done()
    expect(clock.pending).toBe(1)
    second.done()
    expect({ timers: clock.pending, aborted: second.signal.aborted }).toEqual({
      timers: 0,
      aborted: false,
    })
  })

  test('have at most their time limit, and a later one has all of it', async () => {
    const { clock, shared } = deadlines()
    const early = shared.acquire(undefined)
    await clock.advance(100)
    const late = shared.acquire(undefined)
    await clock.advance(LIMIT_MS - 100)
    expect([early.signal.aborted, late.signal.aborted]).toEqual([true, false])
    await clock.advance(100)
    expect(late.signal.aborted).toBe(true)
  })

  test('share none with those of another caller, of an ended group or of an aborted one', () => {
    const { closing, shared } = deadlines()
    const caller = new AbortController()
    const own = shared.acquire(caller.signal)
    const other = shared.acquire(undefined)
    expect(other.signal).not.toBe(own.signal)
    caller.abort()
    expect([own.signal.aborted, other.signal.aborted]).toEqual([true, false])
    other.done()
    const next = shared.acquire(undefined)
    expect(next.signal).not.toBe(other.signal)
    closing.abort()
    expect(next.signal.aborted).toBe(true)
    expect(shared.acquire(undefined).signal).not.toBe(next.signal)
  })
})
