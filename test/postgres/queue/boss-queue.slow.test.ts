import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { SECOND } from '../../../src/platform/clock.ts'
import { queueConformance, RunRecorder } from '../../queue/conformance.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { emptyPostgres, entriesIn, NO_POLLING, openQueue } from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'

queueConformance('on PostgreSQL', async () => {
  // A failed entry is retried only after the others have run, even on a slow machine.
  const timings = { ...FAST_TIMINGS.queue, retryMs: SECOND }
  const queue = await openQueue(await emptyPostgres(), { timings })
  return {
    queue,
    waitMs: 6 * FAST_TIMINGS.queue.beatMs,
    now: () => Date.now(),
    pass: async ms => void (await wait(ms)),
    until: event => event,
    dispose: async () => {},
  }
})

/** The number of scheduled entries. */
const MANY = process.env.EV_TEST_ALL === '1' ? 20_000 : 4_000

describe('the queue on PostgreSQL', () => {
  test('a finished entry leaves no row', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    queue.work('k', async () => 'done', { concurrency: 5 })
    await queue.putAll(
      'k',
      Array.from({ length: 50 }, (_, n) => `key${n}`),
    )
    await waitUntil(async () => (await entriesIn(url)).length === 0)
  })

  test('thousands of scheduled entries do not delay due ones', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url, { timings: NO_POLLING })
    const keys = Array.from({ length: MANY }, (_, n) => `operator${n}.example#0`)
    await queue.putAll('k', keys, Date.now() + 3_600_000)
    const desk = new RunRecorder()
    queue.work('k', desk.handler, { concurrency: 1 })
    // Only a put wakes the worker, which then finds the entry that is due now.
    for (const key of ['new', 'operator7.example#0', `operator${MANY - 1}.example#0`]) {
      await queue.put('k', key)
      await desk.started(key)
      desk.end(key, 'done')
    }
    // The others wait in the process that scheduled them.
    await waitUntil(async () => (await entriesIn(url)).length === 0)
  })

  test('the table of tasks contains only entries that are due', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    const desk = new RunRecorder()
    queue.work('k', desk.handler, { concurrency: 2 })
    await queue.put('k', 'later', Date.now() + 3_600_000)
    await queue.putAll('k', ['put back', 'runs'])
    await desk.count(2)
    desk.end('put back', { dueAt: Date.now() + 3_600_000 })
    const keys = async () => (await entriesIn(url)).map(entry => entry.singleton_key)
    await waitUntil(async () => (await keys()).length === 1)
    expect(await keys()).toEqual(['runs'])
    desk.endAll()
  })

  test('an entry that a handler puts while its queue closes is available to other processes', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    one.work(
      'k',
      async (_, { stopping }) => {
        if (!stopping.aborted) await once(stopping, 'abort')
        await one.put('l', 'next')
        return 'done'
      },
      { concurrency: 1 },
    )
    await one.put('k', 'a')
    await waitUntil(async () => (await entriesIn(url)).some(({ state }) => state === 'active'))
    await one.close()
    const desk = new RunRecorder()
    other.work('l', desk.handler, { concurrency: 1 })
    await desk.started('next')
    desk.endAll()
  })

  test('an entry is run by any worker, even one that starts after it was put', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    await one.put('probe/a', 'x')
    const desk = new RunRecorder()
    const worker = other.work('probe/a', desk.handler, { concurrency: 1 })
    await desk.started('x')
    desk.end('x', { dueAt: Date.now() })
    await desk.started('x', 2)
    desk.end('x', { dueAt: Date.now() })
    await worker.stop()
    one.work('probe/a', desk.handler, { concurrency: 1 })
    await desk.started('x', 3)
    desk.endAll()
  })
})
