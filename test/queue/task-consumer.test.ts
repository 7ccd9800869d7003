import { describe, expect, test } from 'vitest'
import type { LogEvent } from '../../src/platform/log.ts'
import { TaskConsumer } from '../../src/queue/task-consumer.ts'
import { QUEUE_LOG } from '../../src/queue/telemetry.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { fc, runs } from '../support/property.ts'
import { RunRecorder } from './conformance.ts'
import { FakeTaskStore } from './fake-task-store.ts'

/** Consumers of several processes on one store; each second has a heartbeat and a poll. */
function makeFixture(count = 1) {
  const clock = fakeClock()
  const store = new FakeTaskStore(clock)
  const logged: string[] = []
  const consumers = Array.from({ length: count }, () => consumerOf(clock, store, logged))
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      await clock.advance(Math.min(left, 1_000))
      for (const consumer of consumers) {
        consumer.renewClaims()
        consumer.wake()
      }
      await clock.advance(0)
    }
  }
  return { clock, store, logged, consumers, consumer: consumers[0] as TaskConsumer, pass }
}

function consumerOf(clock: FakeClock, store: FakeTaskStore, logged: string[]) {
  const onFault = ({ message }: LogEvent) => void logged.push(message)
  const onFailure = () => onFault(QUEUE_LOG.taskRetried)
  return new TaskConsumer({ store, clock, onFault, onFailure })
}

describe('a consumer of a shared kind', () => {
  test('writes the puts of one turn together, and those that arrive meanwhile in the next batch', async () => {
    const { consumer, store, clock } = makeFixture()
    let open: (() => void) | undefined
    store.gate = new Promise<void>(resolve => {
      open = resolve
    })
    const puts = [consumer.put(['a'], 0), consumer.put(['b', 'a'], 0)]
    await clock.advance(0)
    puts.push(consumer.put(['c'], 0), consumer.put(['d'], 0))
    open?.()
    await Promise.all(puts)
    expect(store.calls).toEqual(['add a,b', 'add c,d'])
  })

  test('rejects a put that fails, and tries the next one separately', async () => {
    const { consumer, store } = makeFixture()
    store.fault = new Error('away')
    await expect(Promise.all([consumer.put(['a'], 0), consumer.put(['b'], 0)])).rejects.toThrow(
      'away',
    )
    store.fault = null
    await consumer.put(['c'], 0)
    expect(store.keys).toEqual(['c'])
  })

  test('needs no statement for a put of a task that runs here', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 5 })
    await consumer.put(['a'], 0)
    await clock.advance(0)
    const requests = store.calls.length
    await consumer.put(['a'], 0)
    expect(store.calls.length).toBe(requests)
    recorder.end('a', 'done')
    await clock.advance(0)
    expect(recorder.order).toEqual(['a', 'a'])
  })

  test('renews a claim every three seconds, and does not lose it', async () => {
    const { consumer, store, pass } = makeFixture()
    const recorder = new RunRecorder()
    const lost = loseInto(consumer, recorder)
    await consumer.put(['a'], 0)
    await pass(30_000)
    expect(store.calls.filter(call => call === 'touch').length).toBe(10)
    store.expire()
    expect({ lost, order: recorder.order }).toEqual({ lost: [], order: ['a'] })
  })

  test('gives up a claim that it could not renew for nine seconds, before another process can have it', async () => {
    const { consumer, store, clock, pass, logged } = makeFixture()
    const recorder = new RunRecorder()
    const lost = loseInto(consumer, recorder)
    await consumer.put(['a'], 0)
    await clock.advance(0)
    store.fault = new Error('away')
    await pass(8_000)
    expect(lost).toEqual([])
    await pass(1_000)
    expect(lost).toEqual(['a'])
    expect(logged).toContain('claims could not be renewed; will retry')
  })

  test('gives up its claims with the first heartbeat after a suspension', async () => {
    const { consumer, clock } = makeFixture()
    const recorder = new RunRecorder()
    const lost = loseInto(consumer, recorder)
    await consumer.put(['a'], 0)
    await clock.advance(60_000)
    consumer.renewClaims()
    expect(lost).toEqual(['a'])
  })

  test('aborts a run when its claim turns out to belong to another process, and its end changes nothing', async () => {
    const { consumers, store, pass } = makeFixture(2)
    const [one, other] = consumers as [TaskConsumer, TaskConsumer]
    const [ones, others] = [new RunRecorder(), new RunRecorder()]
    const lost = loseInto(one, ones)
    await one.put(['a'], 0)
    await pass(1_000)
    other.work(others.handler, { concurrency: 1 })
    // The worker of the first goes on while the task is given to the second.
    store.takeAway('a')
    other.wake()
    await pass(4_000)
    expect({ lost, others: others.running }).toEqual({ lost: ['a'], others: ['a'] })
    ones.end('a', 'done')
    await pass(1_000)
    expect(store.keys).toEqual(['a'])
    others.end('a', 'done')
    await pass(1_000)
    expect({ keys: store.keys, order: others.order }).toEqual({ keys: [], order: ['a'] })
  })

  test('enqueues a put again at the end of a run whose claim was already lost', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 1 })
    await consumer.put(['a'], 0)
    await clock.advance(0)
    // Another process had it and has finished it, unnoticed here.
    store.takeAway('a')
    const [claim] = await store.claim(1)
    if (claim !== undefined) await store.complete([claim])
    await consumer.put(['a'], 0)
    recorder.end('a', 'done')
    await clock.advance(0)
    expect(recorder.order).toEqual(['a', 'a'])
  })

  test('waits for the old run to end when a lost task is claimed again', async () => {
    const { consumer, store, pass } = makeFixture()
    const recorder = new RunRecorder()
    const lost = loseInto(consumer, recorder)
    await consumer.put(['a'], 0)
    await pass(1_000)
    store.takeAway('a')
    await pass(5_000)
    expect({ lost, order: recorder.order, twice: recorder.twiceAtOnce }).toEqual({
      lost: ['a'],
      order: ['a'],
      twice: [],
    })
    recorder.end('a', 'done')
    await pass(1_000)
    expect(recorder.order).toEqual(['a', 'a'])
    recorder.end('a', 'done')
    await pass(1_000)
    expect(store.keys).toEqual([])
  })

  test('returns tasks at once that are claimed while the worker stops', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    await consumer.put(['a', 'b'], 0)
    let open: (() => void) | undefined
    store.gate = new Promise<void>(resolve => {
      open = resolve
    })
    const worker = consumer.work(recorder.handler, { concurrency: 2 })
    await clock.advance(0)
    const stopping = worker.stop()
    open?.()
    await stopping
    expect(recorder.order).toEqual([])
    expect((await store.claim(9)).map(({ key }) => key)).toEqual(['a', 'b'])
  })

  test('retries a failed claim once a second', async () => {
    const { consumer, store, logged, pass } = makeFixture()
    const recorder = new RunRecorder()
    await consumer.put(['a'], 0)
    store.fault = new Error('away')
    consumer.work(recorder.handler, { concurrency: 1 })
    for (let n = 0; n < 50; n++) consumer.wake()
    await pass(5_000)
    expect(store.calls.filter(call => call === 'claim').length).toBeLessThanOrEqual(6)
    expect(new Set(logged)).toEqual(new Set(['tasks could not be claimed; will retry']))
    store.fault = null
    await pass(2_000)
    expect(recorder.order).toEqual(['a'])
  })

  test('retries a failed completion until it succeeds, with its slot free meanwhile', async () => {
    const { consumer, store, clock, pass } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 1 })
    await consumer.put(['a', 'b'], 0)
    await clock.advance(0)
    store.fault = new Error('away')
    recorder.end('a', { dueAt: clock.now() + 4_000 })
    await pass(3_000)
    store.fault = null
    await pass(2_000)
    expect(recorder.order).toEqual(['a', 'b'])
    recorder.end('b', 'done')
    await pass(2_000)
    expect(recorder.order).toEqual(['a', 'b', 'a'])
  })

  test('does not wait for an unavailable database when it stops', async () => {
    const { consumer, store, clock, logged } = makeFixture()
    const recorder = new RunRecorder()
    const worker = consumer.work(recorder.handler, { concurrency: 2 })
    await consumer.put(['a'], 0)
    await clock.advance(0)
    store.fault = new Error('away')
    const stopping = worker.stop()
    recorder.end('a', 'done')
    await stopping
    expect(logged).toEqual(['task completion could not be written; will retry'])
    expect(clock.pending).toBe(0)
  })

  test('holds a task until it is due and adds it to the store then', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 9 })
    await consumer.put(['a', 'b'], 3_600_000)
    await consumer.put(['a'], 300)
    await clock.advance(299)
    expect({ keys: store.keys, order: recorder.order }).toEqual({ keys: [], order: [] })
    await clock.advance(1)
    expect({ order: recorder.order, pending: clock.pending }).toEqual({ order: ['a'], pending: 1 })
  })

  test('runs a held task once if it is enqueued as due now', async () => {
    const { consumer, clock } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 9 })
    await consumer.put(['a'], 5_000)
    await consumer.put(['a'], 0)
    await clock.advance(0)
    recorder.end('a', 'done')
    await clock.advance(10_000)
    expect(recorder.order).toEqual(['a'])
  })

  test('adds a task that became due while the database was unavailable once it is back', async () => {
    const { consumer, store, clock, logged } = makeFixture()
    await consumer.put(['a'], 1_000)
    store.fault = new Error('away')
    await clock.advance(5_000)
    store.fault = null
    await clock.advance(1_000)
    expect({ keys: store.keys, logged: new Set(logged) }).toEqual({
      keys: ['a'],
      logged: new Set(['task could not be re-enqueued; will retry']),
    })
  })

  test('drops held tasks on stop, and puts with a later time after it', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    const worker = consumer.work(recorder.handler, { concurrency: 1 })
    await consumer.put(['a'], 0)
    await consumer.put(['b'], 5_000)
    await clock.advance(0)
    const stopping = worker.stop()
    recorder.end('a', { dueAt: clock.now() + 1_000 })
    await stopping
    expect({ keys: store.keys, pending: clock.pending }).toEqual({ keys: [], pending: 0 })
  })

  test('drops a put of a task that another process runs, and takes one that comes after the run', async () => {
    const { consumers, store, clock } = makeFixture(2)
    const [one, other] = consumers as [TaskConsumer, TaskConsumer]
    const recorder = new RunRecorder()
    one.work(recorder.handler, { concurrency: 1 })
    await one.put(['a'], 0)
    await clock.advance(0)
    await other.put(['a'], 0)
    recorder.end('a', 'done')
    await clock.advance(10_000)
    expect({ order: recorder.order, keys: store.keys }).toEqual({ order: ['a'], keys: [] })
    await other.put(['a'], 0)
    one.wake()
    await clock.advance(0)
    expect(recorder.order).toEqual(['a', 'a'])
    recorder.end('a', 'done')
  })

  test('keeps the claim of a task that is due again at once for a minute while no other waits', async () => {
    const { consumer, store, clock } = makeFixture()
    const recorder = new RunRecorder()
    consumer.work(recorder.handler, { concurrency: 2 })
    await consumer.put(['a'], 0)
    await clock.advance(0)
    const again = async () => {
      recorder.end('a', { dueAt: clock.now() })
      await clock.advance(0)
    }
    store.calls.length = 0
    for (let n = 0; n < 5; n++) await again()
    expect({ runs: recorder.order.length, calls: store.calls }).toEqual({ runs: 6, calls: [] })
    await clock.advance(60_000)
    await again()
    expect(store.calls).toEqual(['complete a', 'add a', 'claim'])
  })

  test('keeps its invariants for any sequence: one run per key, nothing early, nothing lost', async () => {
    await fc.assert(fc.asyncProperty(fc.array(STEP, { maxLength: 60 }), play), {
      numRuns: runs(200),
    })
  })
})

/** Starts a worker and returns the keys whose leases were lost. */
function loseInto(consumer: TaskConsumer, recorder: RunRecorder): string[] {
  const keys: string[] = []
  consumer.work(
    (key, lease) => {
      lease.lost.addEventListener('abort', () => void keys.push(key))
      return recorder.handler(key, lease)
    },
    { concurrency: 5 },
  )
  return keys
}

type Step =
  | { readonly put: number; readonly by: number; readonly inMs: number }
  | { readonly end: number; readonly againInMs: number | null }
  | { readonly away: boolean }
  | { readonly passMs: number }

const KEYS = 3
const CONSUMERS = 2
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    put: fc.nat(KEYS - 1),
    by: fc.nat(CONSUMERS - 1),
    inMs: fc.constantFrom(0, 0, 10, 3_000),
  }),
  fc.record({ end: fc.nat(KEYS - 1), againInMs: fc.constantFrom(null, null, 0, 30) }),
  fc.record({ away: fc.boolean() }),
  fc.record({ passMs: fc.constantFrom(1, 10, 1_000, 1_000) }),
)

/**
 * Runs the steps against a model: for each key, the earliest due time requested since its last run,
 * and all times ever requested, because each may cause a run.
 */
async function play(steps: readonly Step[]): Promise<void> {
  const { consumers, store, clock, pass } = makeFixture(CONSUMERS)
  const recorder = new RunRecorder()
  const expectedAt = new Map<string, number>()
  const requests = new Map<string, number[]>()
  const expectRun = (key: string, at: number) => {
    expectedAt.set(key, Math.min(expectedAt.get(key) ?? at, at))
    requests.set(key, [...(requests.get(key) ?? []), at])
  }
  const nextOf = (key: string) => {
    const dueAt = expectedAt.get(key)
    return dueAt === undefined ? 'done' : { dueAt }
  }
  const early: string[] = []
  /** A failed put is retried. */
  const failed: (() => Promise<void> | undefined)[] = []
  for (const consumer of consumers) {
    consumer.work(
      (key, lease) => {
        if (requests.get(key)?.every(at => clock.now() < at)) early.push(key)
        if (clock.now() >= (expectedAt.get(key) ?? 0)) expectedAt.delete(key)
        return recorder.handler(key, lease)
      },
      { concurrency: 2 },
    )
  }
  for (const step of steps) {
    if ('passMs' in step) await (step.passMs < 1_000 ? clock.advance(step.passMs) : pass(1_000))
    else if ('away' in step) store.fault = step.away ? new Error('away') : null
    else if ('put' in step) {
      const at = clock.now() + step.inMs
      // The work of a put is stored before the put.
      expectRun(`${step.put}`, at)
      await consumers[step.by]?.put([`${step.put}`], step.inMs).catch(() => {
        failed.push(() => consumers[step.by]?.put([`${step.put}`], Math.max(0, at - clock.now())))
      })
    } else if (recorder.running.includes(`${step.end}`)) {
      const { end, againInMs } = step
      if (againInMs !== null) expectRun(`${end}`, clock.now() + againInMs)
      recorder.end(`${end}`, againInMs === null ? 'done' : nextOf(`${end}`))
      await clock.advance(0)
    }
  }
  store.fault = null
  for (const again of failed) await again()
  for (let round = 0; round < 4 * KEYS; round++) {
    for (const key of recorder.running) recorder.end(key, 'done')
    // A put of a task that the other process runs is dropped: a poll finds its work.
    for (const [key, at] of expectedAt) {
      await consumers[0]?.put([key], Math.max(0, at - clock.now()))
    }
    await pass(1_000)
  }
  expect({ expectedAt: [...expectedAt], running: recorder.running }).toEqual({
    expectedAt: [],
    running: [],
  })
  expect({ early, twiceAtOnce: recorder.twiceAtOnce }).toEqual({ early: [], twiceAtOnce: [] })
  expect(store.keys).toEqual([])
}
