import { expect, test } from 'vitest'
import type { RateController } from '../../../src/engine/rate-control/controller.ts'
import { never, pause, permitOf, processes } from '../../support/cluster-rate-state.ts'

/** Counts the open connections, as reported by their holders. */
function createConnectionCounter() {
  let held = 0
  return {
    most: 0,
    times: [] as number[],
    async hold(pace: RateController, ms: number) {
      const permit = await permitOf(pace.start(0, never))
      this.times.push(performance.now())
      this.most = Math.max(this.most, ++held)
      await pause(ms)
      held--
      permit.release()
    },
  }
}

test('eight greedy processes open no more connections than the limits allow', async () => {
  const eight = await processes(8)
  const counter = createConnectionCounter()
  await Promise.all(
    eight.flatMap(one => {
      const pace = one.pace()
      // Three concurrent loops each, as in a real process.
      return [1, 2, 3].map(async loop => {
        for (let n = 0; n < 3; n++) await counter.hold(pace, (loop * n) % 5)
      })
    }),
  )
  expect(counter.times.length).toBe(8 * 3 * 3)
  expect(counter.most).toBe(2)
})

test('the rate and its burst apply across all processes', async () => {
  const four = await processes(4)
  const counter = createConnectionCounter()
  const started = performance.now()
  await Promise.all(
    four.map(async one => {
      const pace = one.pace('mx.test', { sessionsMax: 3, sessionsPerSecond: 100 })
      for (let n = 0; n < 15; n++) await counter.hold(pace, 0)
    }),
  )
  const tookMs = performance.now() - started
  expect(counter.times.length).toBe(60)
  expect(60).toBeLessThanOrEqual(3 + (100 * tookMs) / 1_000)
})
