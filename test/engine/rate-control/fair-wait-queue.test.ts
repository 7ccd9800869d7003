import { describe, expect, test } from 'vitest'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import type { RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { ROW } from '../../support/prober.ts'
import { startNow } from '../../support/start-now.ts'
import { drainEventLoop } from '../../support/wait.ts'

const never = new AbortController().signal

/** A controller, and the order in which waiters get a permit; each releases it at once. */
function queue(row: Partial<RateLimits>) {
  const clock = fakeClock()
  const pace = new RateController({ ...ROW, sessionsMax: 1, sessionsPerSecond: 1, ...row }, clock)
  const order: string[] = []
  const wait = async (name: string, single: boolean, signal = never) => {
    const start = await pace.start(0, signal, single)
    if (!('permit' in start)) return
    order.push(name)
    start.permit.release()
  }
  return { clock, pace, order, wait }
}

describe('lists and single verifications that wait for one operator', () => {
  test('single verifications go first', async () => {
    const { clock, order, wait, pace } = queue({})
    const first = startNow(pace)
    for (const name of ['list 1', 'list 2']) void wait(name, false)
    for (const name of ['single 1', 'single 2']) void wait(name, true)
    await drainEventLoop()
    if ('permit' in first) first.permit.release()
    for (let s = 0; s < 8; s++) await clock.advance(SECOND)
    expect(order).toEqual(['single 1', 'single 2', 'list 1', 'list 2'])
  })

  test('a list proceeds after three of them, however many there are', async () => {
    const { clock, order, wait } = queue({})
    void wait('before', false)
    for (let n = 1; n <= 2; n++) void wait(`list ${n}`, false)
    for (let n = 1; n <= 7; n++) void wait(`single ${n}`, true)
    for (let s = 0; s < 20; s++) await clock.advance(SECOND)
    expect(order.map(name => name[0]).join('')).toBe('bssslsssls')
  })

  test('an aborted request blocks no other', async () => {
    const { clock, order, wait } = queue({})
    void wait('before', false)
    const timeout = new AbortController()
    void wait('single', true, timeout.signal)
    void wait('list', false)
    await drainEventLoop()
    timeout.abort()
    for (let s = 0; s < 3; s++) await clock.advance(SECOND)
    expect(order).toEqual(['before', 'list'])
  })

  test('a thousand requests that give up one after the other do not each wake all others', async () => {
    const clock = fakeClock()
    let timers = 0
    const after: typeof clock.after = (delayMs, callback) => {
      timers++
      return clock.after(delayMs, callback)
    }
    const pace = new RateController({ ...ROW, sessionsMax: 1 }, { ...clock, after })
    const held = startNow(pace)
    const requests = Array.from({ length: 1_000 }, () => new AbortController())
    const starts = requests.map(({ signal }) => pace.start(0, signal, true))
    await drainEventLoop()
    timers = 0
    for (const request of requests) {
      request.abort()
      await Promise.resolve()
    }
    const given = await Promise.all(starts)
    expect(given.filter(start => 'permit' in start)).toEqual([])
    expect(timers).toBeLessThan(100)
    expect(held).toHaveProperty('permit')
  })

  test('a connection is requested if a single verification waits and lists hold all', async () => {
    const { clock, pace } = queue({ sessionsMax: 2, sessionsPerSecond: 1_000 })
    const permits = [startNow(pace), startNow(pace)]
    void pace.start(0, never, false)
    expect(pace.isRequested).toBe(false)
    const single = pace.start(0, never, true)
    expect(pace.isRequested).toBe(true)
    const [permit] = permits
    if (permit !== undefined && 'permit' in permit) permit.permit.release()
    await clock.advance(10)
    expect(await single).toHaveProperty('permit')
    expect(pace.isRequested).toBe(false)
  })
})
