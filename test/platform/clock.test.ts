import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sleep, systemClock, yieldToEventLoop } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'

describe('sleep', () => {
  test('lasts for the given time', async () => {
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

  test('ends when the signal aborts, and leaves neither timer nor listener', async () => {
    const clock = fakeClock()
    const giveUp = new AbortController()
    const sleeping = sleep(clock, 1_000, giveUp.signal)
    giveUp.abort()
    await sleeping
    expect(clock.pending).toBe(0)
    expect(getEventListeners(giveUp.signal, 'abort')).toEqual([])
  })

  test('does not start if the signal has already aborted', async () => {
    const clock = fakeClock()
    await sleep(clock, 1_000, AbortSignal.abort())
    expect(clock.pending).toBe(0)
  })

  test('removes its listener when it ends', async () => {
    const clock = fakeClock()
    const { signal } = new AbortController()
    const sleeping = sleep(clock, 10, signal)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await clock.advance(10)
    await sleeping
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('the system clock', () => {
  test('returns the wall time, and a monotonic time', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000)
    const [first, second] = [systemClock.monotonicNow(), systemClock.monotonicNow()]
    expect(second).toBeGreaterThanOrEqual(first)
  })

  test('calls back once after the delay, and never after a cancel', async () => {
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

  test('a delay beyond the range of setTimeout does not end immediately', async () => {
    let called = false
    const cancel = systemClock.after(2 ** 40, () => {
      called = true
    })
    // A delay that Node reduces to 1 ms would fire before this one.
    await new Promise<void>(resolve => void systemClock.after(5, resolve))
    cancel()
    expect(called).toBe(false)
  })

  test('a delay that has passed ends at once, without a warning of Node', async () => {
    const warnings: string[] = []
    const onWarning = ({ name }: Error) => void warnings.push(name)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    await new Promise<void>(resolve => void systemClock.after(-5, resolve))
    expect(warnings).toEqual([])
  })
})

test('yieldToEventLoop lets the event loop turn once', async () => {
  let turned = false
  void setImmediate().then(() => {
    turned = true
  })
  await yieldToEventLoop()
  await null
  expect(turned).toBe(true)
})
