import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { sleep, systemClock, yieldToEventLoop } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'

describe('sleep', () => {
  test('lasts as long as it says', async () => {
    const clock = fakeClock()
    let awake = false
    const sleeping = sleep(clock, 1_000).then(() => {
      awake = true
    })
    await clock.advance(999)
    expect(awake).toBe(false)
    await clock.advance(1)
    await sleeping
  })

  test('ends at once when the signal aborts, and leaves neither timer nor listener', async () => {
    const clock = fakeClock()
    const giveUp = new AbortController()
    const sleeping = sleep(clock, 1_000, giveUp.signal)
    giveUp.abort()
    await sleeping
    expect(clock.pending).toBe(0)
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([])
  })

  test('does not begin when the signal has aborted before', async () => {
    const clock = fakeClock()
    await sleep(clock, 1_000, AbortSignal.abort())
    expect(clock.pending).toBe(0)
  })

  test('that is over hears no more of its signal', async () => {
    const clock = fakeClock()
    const { signal } = new AbortController()
    const sleeping = sleep(clock, 10, signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await clock.advance(10)
    await sleeping
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('the clock of the system', () => {
  test('tells the wall time, and ticks that never go back', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000)
    const [first, second] = [systemClock.monotonicNow(), systemClock.monotonicNow()]
    expect(second).toBeGreaterThanOrEqual(first)
  })

  test('calls once after the time, and not at all when it was cancelled', async () => {
    const calls: string[] = []
    const cancel = systemClock.after(1, () => calls.push('cancelled'))
    cancel()
    await new Promise<void>(resolve => {
      systemClock.after(2, () => {
        calls.push('called')
        resolve()
      })
    })
    expect(calls).toEqual(['called'])
  })

  test('a wait beyond what timers can hold is not one that ends at once', async () => {
    let called = false
    const cancel = systemClock.after(2 ** 40, () => {
      called = true
    })
    // One that Node cuts to 1 ms would be called before this one.
    await new Promise<void>(resolve => void systemClock.after(5, resolve))
    cancel()
    expect(called).toBe(false)
  })
})

test('a breath lets the event loop turn once', async () => {
  let turned = false
  void setImmediate().then(() => {
    turned = true
  })
  await yieldToEventLoop()
  await null
  expect(turned).toBe(true)
})
