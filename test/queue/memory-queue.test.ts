import { describe, expect, test } from 'vitest'
import { type Log, silentLog } from '../../src/platform/log.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import { fakeClock } from '../support/clock.ts'
import { recordingLog } from '../support/log.ts'
import { fc, runs } from '../support/property.ts'
import { queueConformance, RunRecorder } from './conformance.ts'

/** Steps of fake time; an event more than an hour away never happens. */
const STEP_MS = 50
const STEPS_MAX = 72_000

queueConformance('in memory', async () => {
  const clock = fakeClock()
  const queue = createMemoryQueue(clock, silentLog)
  return {
    queue,
    waitMs: 500,
    now: () => clock.now(),
    pass: ms => clock.advance(ms),
    async until(event) {
      let happened = false
      const mark = () => {
        happened = true
      }
      event.then(mark, mark)
      await clock.advance(0)
      for (let step = 0; !happened; step++) {
        if (step === STEPS_MAX) throw new Error('the event does not come')
        await clock.advance(STEP_MS)
      }
      return event
    },
    dispose: async () => {},
  }
})

describe('the in-memory queue', () => {
  test('logs a failed handler with its key and retries it after a second', async () => {
    const clock = fakeClock()
    const logged: unknown[] = []
    const log: Log = { ...silentLog, error: (message, fields) => logged.push([message, fields]) }
    const queue = createMemoryQueue(clock, log)
    const recorder = new RunRecorder()
    queue.work('k', recorder.handler, { concurrency: 1 })
    await queue.put('k', 'a')
    recorder.fail('a')
    await clock.advance(999)
    expect(recorder.order).toEqual(['a'])
    await clock.advance(1)
    expect(recorder.order).toEqual(['a', 'a'])
    expect(logged).toEqual([['task failed; will retry', { key: 'a', error: 'the handler failed' }]])
  })

  test('logs failed handlers of a kind once, and then once a minute', async () => {
    const clock = fakeClock()
    const { log, lines } = recordingLog()
    const queue = createMemoryQueue(clock, log)
    queue.work('k', () => Promise.reject(new Error('disk full')), { concurrency: 2 })
    await queue.putAll('k', ['a', 'b'])
    await clock.advance(60_000)
    expect(lines.map(({ fields }) => fields)).toEqual([
      { key: 'a', error: 'disk full' },
      { key: 'a', error: 'disk full', repeated: 119 },
    ])
  })

  test('runs tasks on time when the wall clock jumps', async () => {
    const clock = fakeClock()
    const queue = createMemoryQueue(clock, silentLog)
    const recorder = new RunRecorder()
    queue.work('k', recorder.handler, { concurrency: 9 })
    await queue.put('k', 'a', clock.now() + 60_000)
    clock.jump(3_600_000)
    await clock.advance(59_999)
    expect(recorder.order).toEqual([])
    clock.jump(-7_200_000)
    await clock.advance(1)
    expect(recorder.order).toEqual(['a'])
  })

  test('runs a task that is enqueued as due now although its timer slept with the machine', async () => {
    const clock = fakeClock()
    const queue = createMemoryQueue(clock, silentLog)
    const recorder = new RunRecorder()
    queue.work('k', recorder.handler, { concurrency: 9 })
    await queue.put('k', 'a', clock.now() + 60_000)
    clock.jump(3_600_000)
    await queue.put('k', 'a')
    await clock.advance(0)
    expect(recorder.order).toEqual(['a'])
  })

  test('leaves no timer after the close that would keep the process alive', async () => {
    const clock = fakeClock()
    const queue = createMemoryQueue(clock, silentLog)
    const recorder = new RunRecorder()
    queue.work('k', recorder.handler, { concurrency: 9 })
    await queue.put('k', 'waits', clock.now() + 60_000)
    await queue.put('k', 'runs')
    await queue.put('k', 'fails')
    const closed = queue.close()
    recorder.end('runs', { dueAt: clock.now() + 60_000 })
    recorder.fail('fails')
    await closed
    await queue.put('k', 'late', clock.now() + 60_000)
    expect(clock.pending).toBe(0)
  })

  test('runs thousands of waiting tasks in order', async () => {
    const clock = fakeClock()
    const queue = createMemoryQueue(clock, silentLog)
    const keys = Array.from({ length: 5_000 }, (_, n) => `key${n}`)
    for (const key of keys) await queue.put('k', key)
    const served: string[] = []
    const handler = async (key: string) => {
      served.push(key)
      return 'done' as const
    }
    queue.work('k', handler, { concurrency: 2 })
    await clock.runAll()
    expect(served).toEqual(keys)
  })

  test('keeps its invariants for any sequence: one run per key, the concurrency limit, nothing early, nothing lost', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), play),
      { numRuns: runs(200) },
    )
  })
})

type Step =
  | { readonly put: number; readonly inMs: number }
  | { readonly end: number; readonly againInMs: number | null }
  | { readonly passMs: number }

const KEYS = 4
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ put: fc.nat(KEYS - 1), inMs: fc.constantFrom(0, 0, 10, 100) }),
  fc.record({ end: fc.nat(KEYS - 1), againInMs: fc.constantFrom(null, null, 0, 30) }),
  fc.record({ passMs: fc.constantFrom(1, 10, 50) }),
)

/** Runs the steps against a model: for each key, the earliest due time requested. */
async function play(steps: readonly Step[], concurrency: number): Promise<void> {
  const clock = fakeClock()
  const queue = createMemoryQueue(clock, silentLog)
  const recorder = new RunRecorder()
  const expectedAt = new Map<string, number>()
  const expectRun = (key: string, at: number) =>
    expectedAt.set(key, Math.min(expectedAt.get(key) ?? at, at))
  const early: string[] = []
  queue.work(
    'k',
    (key, lease) => {
      if (clock.now() < (expectedAt.get(key) ?? Number.POSITIVE_INFINITY)) early.push(key)
      expectedAt.delete(key)
      return recorder.handler(key, lease)
    },
    { concurrency },
  )
  for (const step of steps) {
    if ('passMs' in step) await clock.advance(step.passMs)
    else if ('put' in step) {
      expectRun(`${step.put}`, clock.now() + step.inMs)
      await queue.put('k', `${step.put}`, clock.now() + step.inMs)
    } else if (recorder.running.includes(`${step.end}`)) {
      const { againInMs } = step
      if (againInMs !== null) expectRun(`${step.end}`, clock.now() + againInMs)
      recorder.end(`${step.end}`, againInMs === null ? 'done' : { dueAt: clock.now() + againInMs })
      await clock.advance(0)
    }
  }
  for (let round = 0; round <= 2 * KEYS; round++) {
    for (const key of recorder.running) recorder.end(key, 'done')
    await clock.advance(100)
  }
  expect({ expectedAt: [...expectedAt], running: recorder.running }).toEqual({
    expectedAt: [],
    running: [],
  })
  expect({ early, twiceAtOnce: recorder.twiceAtOnce }).toEqual({ early: [], twiceAtOnce: [] })
  expect(recorder.runningMax).toBeLessThanOrEqual(concurrency)
}
