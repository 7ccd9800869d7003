import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { SECOND } from '../../../src/platform/clock.ts'
import { Desk, queueConformance } from '../../queue/conformance.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { emptyPostgres, entriesIn, NEVER_LOOKING, openQueue } from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'

queueConformance('on PostgreSQL', async () => {
  // What failed is tried again only after the others have had their turn, however slow they are.
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

/** Entries that wait. */
const MANY = process.env.EV_TEST_ALL === '1' ? 20_000 : 4_000

describe('the queue on PostgreSQL', () => {
  test('what is done with leaves nothing behind', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    queue.work('k', async () => 'done', { concurrency: 5 })
    await queue.putAll(
      'k',
      Array.from({ length: 50 }, (_, n) => `key${n}`),
    )
    await waitUntil(async () => (await entriesIn(url)).length === 0)
  })

  test('thousands that wait for later hold up nobody, and are counted', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url, { timings: NEVER_LOOKING })
    const watching = await openQueue(url)
    const keys = Array.from({ length: MANY }, (_, n) => `operator${n}.example#0`)
    await queue.putAll('k', keys, Date.now() + 3_600_000)
    const desk = new Desk()
    queue.work('k', desk.handler, { concurrency: 1 })
    // A put alone wakes the worker, and it finds what is due now.
    for (const key of ['new', 'operator7.example#0', `operator${MANY - 1}.example#0`]) {
      await queue.put('k', key)
      await desk.started(key)
      desk.end(key, 'done')
    }
    // They wait in the process that was told of them.
    expect(queue.status().waiting).toBe(MANY - 2)
    await waitUntil(() => watching.status().waiting === 0 && watching.status().running === 0)
    await queue.put('k', 'runs')
    await waitUntil(() => watching.status().running === 1)
    desk.endAll()
  })

  test('the table of tasks has what is due now alone', async () => {
    const url = await emptyPostgres()
    const queue = await openQueue(url)
    const desk = new Desk()
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

  test('what is put by work that ends while the queue closes is there for others', async () => {
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
    const desk = new Desk()
    other.work('l', desk.handler, { concurrency: 1 })
    await desk.started('next')
    desk.endAll()
  })

  test('what another process put is seen to by whoever works, whenever it begins', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    await one.put('probe/a', 'x')
    const desk = new Desk()
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
