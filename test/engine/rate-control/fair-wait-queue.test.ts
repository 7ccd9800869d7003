import { describe, expect, test } from 'vitest'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import { type RateLimits } from '../../../src/engine/rate-control/limit-table.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'
import { ROW } from '../../support/prober.ts'
import { drainEventLoop } from '../../support/wait.ts'

const never = new AbortController().signal

/** A pace, and the order in which those who wait are let in; each leaves again at once. */
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

describe('where lists and single questions wait for one operator', () => {
  test('the single ones go first, as somebody waits for them', async () => {
    const { clock, order, wait, pace } = queue({})
    const first = pace.tryStart()
    for (const name of ['list 1', 'list 2']) void wait(name, false)
    for (const name of ['single 1', 'single 2']) void wait(name, true)
    await drainEventLoop()
    if ('permit' in first) first.permit.release()
    for (let s = 0; s < 8; s++) await clock.advance(SECOND)
    expect(order).toEqual(['single 1', 'single 2', 'list 1', 'list 2'])
  })

  test('a list is let in after three of them, however many there are', async () => {
    const { clock, order, wait } = queue({})
    void wait('before', false)
    for (let n = 1; n <= 2; n++) void wait(`list ${n}`, false)
    for (let n = 1; n <= 7; n++) void wait(`single ${n}`, true)
    for (let s = 0; s < 20; s++) await clock.advance(SECOND)
    expect(order.map(name => name[0]).join('')).toBe('bssslsssls')
  })

  test('one that gives up keeps nobody waiting', async () => {
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

  test('a connection is wanted back when somebody waits and lists have them all', async () => {
    const { clock, pace } = queue({ sessionsMax: 2, sessionsPerSecond: 1_000 })
    const permits = [pace.tryStart(), pace.tryStart()]
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
