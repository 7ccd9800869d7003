import { describe, expect, test } from 'vitest'
import { DrainMonitor } from '../../../src/jobs/probing/drain-monitor.ts'
import { fakeClock } from '../../support/clock.ts'

function startMonitor() {
  const clock = fakeClock()
  const monitor = new DrainMonitor(clock)
  /** Waits for the next take and records its result. */
  const wait = () => {
    const waited: { result?: boolean } = {}
    void monitor.nextTake().then(result => {
      waited.result = result
    })
    return waited
  }
  return { clock, monitor, wait }
}

describe('routing with full memory', () => {
  test('goes on when items are taken', async () => {
    const { clock, monitor, wait } = startMonitor()
    const [first, second] = [wait(), wait()]
    await clock.advance(99)
    expect([first, second]).toEqual([{}, {}])
    monitor.onTaken(1)
    await clock.advance(0)
    expect([first, second]).toEqual([{ result: true }, { result: true }])
  })

  test('waits in each window as long as 100 items were taken in the one before', async () => {
    const { clock, monitor, wait } = startMonitor()
    wait()
    monitor.onTaken(100)
    const waited = wait()
    await clock.advance(100)
    expect(waited).toEqual({})
    await clock.advance(100)
    expect(waited).toEqual({ result: false })
  })

  test('does not wait for a second after fewer were taken, then tries again', async () => {
    const { clock, monitor, wait } = startMonitor()
    wait()
    monitor.onTaken(99)
    const late = wait()
    await clock.advance(100)
    expect(late).toEqual({ result: false })
    await clock.advance(999)
    expect(await monitor.nextTake()).toBe(false)
    await clock.advance(1)
    const again = wait()
    await clock.advance(99)
    expect(again).toEqual({})
    monitor.onTaken(1)
    await clock.advance(0)
    expect(again).toEqual({ result: true })
  })

  test('counts no items taken before it waited', async () => {
    const { clock, monitor, wait } = startMonitor()
    monitor.onTaken(1_000)
    const waited = wait()
    await clock.advance(100)
    expect(waited).toEqual({ result: false })
  })
})
