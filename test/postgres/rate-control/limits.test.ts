import { expect, test } from 'vitest'
import type { RateController } from '../../../src/engine/rate-control/controller.ts'
import { never, pause, permitOf, processes } from '../../support/cluster-rate-state.ts'

/** Who holds connections, told by nobody but those who hold them. */
function ledger() {
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

test('eight processes that want all they can get hold no more connections than the row allows', async () => {
  const eight = await processes(8)
  const book = ledger()
  await Promise.all(
    eight.flatMap(one => {
      const pace = one.pace()
      // Three hands each, as a process has several.
      return [1, 2, 3].map(async hand => {
        for (let n = 0; n < 3; n++) await book.hold(pace, (hand * n) % 5)
      })
    }),
  )
  expect(book.times.length).toBe(8 * 3 * 3)
  expect(book.most).toBe(2)
})

test('the rate and its burst hold over all processes', async () => {
  const four = await processes(4)
  const book = ledger()
  const started = performance.now()
  await Promise.all(
    four.map(async one => {
      const pace = one.pace('mx.test', { sessionsMax: 3, sessionsPerSecond: 100 })
      for (let n = 0; n < 15; n++) await book.hold(pace, 0)
    }),
  )
  const tookMs = performance.now() - started
  expect(book.times.length).toBe(60)
  expect(60).toBeLessThanOrEqual(3 + (100 * tookMs) / 1_000)
})
