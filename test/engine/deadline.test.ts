import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { withDeadline } from '../../src/engine/deadline.ts'
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
