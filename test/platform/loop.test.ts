import { expect, onTestFinished, test } from 'vitest'
import { type LoopOptions, loopFailure, startLoop } from '../../src/platform/loop.ts'
import { fakeClock } from '../support/clock.ts'
import { recordingLog } from '../support/log.ts'

/** A loop that runs every second; `runs` has the second of each run. */
function bench(options: Partial<LoopOptions> = {}) {
  const clock = fakeClock()
  const { log, lines } = recordingLog()
  const startedAt = clock.monotonicNow()
  const runs: number[] = []
  const state = { error: null as Error | null, lastsMs: 0 }
  const loop = startLoop({
    failed: loopFailure('the check failed'),
    everyMs: 1_000,
    clock,
    log,
    async run() {
      runs.push((clock.monotonicNow() - startedAt) / 1_000)
      if (state.lastsMs > 0) await new Promise<void>(end => clock.after(state.lastsMs, end))
      if (state.error !== null) throw state.error
    },
    ...options,
  })
  onTestFinished(() => void loop.stop())
  return { clock, lines, runs, state, loop }
}

test('runs immediately, and then each interval after the end of the last run', async () => {
  const { clock, runs, state } = bench()
  state.lastsMs = 500
  await clock.advance(4_500)
  expect(runs).toEqual([0, 1, 2.5, 4])
})

test('starts after an initial delay, and reads its interval before each wait', async () => {
  let waitMs = 0
  const everyMs = () => (waitMs += 1_000)
  const { clock, runs } = bench({ startAfterMs: 500, everyMs })
  await clock.advance(7_000)
  expect(runs).toEqual([0.5, 1.5, 3.5, 6.5])
})

test('runs immediately when woken, and once more when woken during a run', async () => {
  const { clock, runs, state, loop } = bench({ everyMs: 60_000 })
  await clock.advance(3_000)
  state.lastsMs = 1_000
  loop.wake()
  await clock.advance(500)
  loop.wake()
  loop.wake()
  await clock.advance(3_000)
  expect(runs).toEqual([0, 3, 4])
})

test('backs off after failures, and resets after a success', async () => {
  const { clock, runs, state } = bench()
  state.error = new Error('away')
  await clock.advance(15_000)
  expect(runs).toEqual([0, 1, 2, 4, 8, 12])
  state.error = null
  await clock.advance(3_000)
  expect(runs.slice(6)).toEqual([16, 17, 18])
})

test('retries within the given bounds', async () => {
  let runs = 0
  const { clock } = bench({
    everyMs: 3_600_000,
    retryMs: 500,
    retryMaxMs: 1_000,
    run() {
      runs++
      throw new Error('away')
    },
  })
  await clock.advance(2_500)
  expect(runs).toBe(4)
})

test('logs a continuing failure once, then once a minute, and a new one immediately', async () => {
  const { clock, lines, state } = bench()
  state.error = new Error('away')
  await clock.advance(70_000)
  expect(lines).toEqual([
    { level: 'error', message: 'the check failed', fields: { why: 'away' } },
    { level: 'error', message: 'the check failed', fields: { why: 'away', repeated: 16 } },
  ])
  state.error = null
  await clock.advance(5_000)
  state.error = new Error('away')
  await clock.advance(1_000)
  expect(lines).toHaveLength(3)
})

test('waits for its run when stopped, starts no other, and leaves no timer', async () => {
  const { clock, runs, state, loop, lines } = bench()
  state.lastsMs = 700
  state.error = new Error('cut off')
  await clock.advance(1_000)
  let isStopped = false
  const stopped = Promise.all([loop.stop(), loop.stop()]).then(() => {
    isStopped = true
  })
  await clock.advance(600)
  expect(isStopped).toBe(false)
  await clock.advance(100)
  await stopped
  loop.wake()
  await clock.advance(10_000)
  expect([runs, lines, clock.pending]).toEqual([[0, 1], [], 0])
})

test('stops when its signal aborts, and aborts the signal of its run', async () => {
  const owner = new AbortController()
  const signals: AbortSignal[] = []
  const { clock } = bench({
    signal: owner.signal,
    async run(signal) {
      signals.push(signal)
    },
  })
  await clock.advance(1_000)
  owner.abort()
  await clock.advance(10_000)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  expect(clock.pending).toBe(0)
})
