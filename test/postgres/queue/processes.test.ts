import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import type { Queue } from '../../../src/queue/queue.ts'
import { RunRecorder } from '../../queue/conformance.ts'
import { stallingClock } from '../../support/clock.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import {
  emptyPostgres,
  entriesIn,
  loseHeartbeat,
  NO_POLLING,
  openQueue,
} from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'

// Each queue has its own connections and workers, like that of another process.

const keysOf = (count: number) => Array.from({ length: count }, (_, n) => `operator${n}|a#0`)

/** Claims are renewed often, so a lost one is noticed soon. */
const FREQUENT_RENEWAL = { ...FAST_TIMINGS.queue, touchMs: 20 }

describe('queues that share a PostgreSQL', () => {
  test('share the work, and no entry runs twice at once', async () => {
    const url = await emptyPostgres()
    const putting = await openQueue(url)
    const keys = keysOf(60)
    const running = new Set<string>()
    const twiceAtOnce: string[] = []
    const runs = [0, 0]
    const work = (queue: Queue, n: number) =>
      queue.work(
        'k',
        async key => {
          if (running.has(key)) twiceAtOnce.push(key)
          running.add(key)
          runs[n] = (runs[n] ?? 0) + 1
          // No worker can take all entries: each holds its own until the other has some.
          if (runs.some(count => count < 5)) await waitUntil(() => runs.every(count => count >= 5))
          running.delete(key)
          return 'done'
        },
        { concurrency: 5 },
      )
    for (const [n, queue] of [await openQueue(url), await openQueue(url)].entries()) work(queue, n)
    for (let round = 0; round < 3; round++) await putting.putAll('k', keys)
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect(twiceAtOnce).toEqual([])
    expect(Math.min(...runs)).toBeGreaterThanOrEqual(5)
  })

  test('take over an entry without a heartbeat, and notify its worker that the lease is lost', async () => {
    const url = await emptyPostgres()
    const clock = stallingClock(systemClock)
    const stalled = await openQueue(url, { clock, timings: FREQUENT_RENEWAL })
    const next = await openQueue(url)
    const lost: string[] = []
    const end = Promise.withResolvers<void>()
    stalled.work(
      'k',
      async (key, lease) => {
        lease.lost.addEventListener('abort', () => lost.push(key))
        await end.promise
        return 'done'
      },
      { concurrency: 1 },
    )
    await next.put('k', 'a')
    await waitUntil(async () => (await entriesIn(url)).some(({ state }) => state === 'active'))
    const desk = new RunRecorder()
    next.work('k', desk.handler, { concurrency: 1 })
    clock.stall()
    await loseHeartbeat(url, 'a')
    await desk.started('a')
    clock.resume()
    await waitUntil(() => lost.length === 1)
    end.resolve()
    await stalled.close()
    expect(await entriesIn(url)).toMatchObject([{ singleton_key: 'a', state: 'active' }])
    desk.end('a', 'done')
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect({ lost, order: desk.order }).toEqual({ lost: ['a'], order: ['a'] })
  })

  test('a put by one wakes the others at once', async () => {
    const url = await emptyPostgres()
    const one = await openQueue(url)
    const other = await openQueue(url, { timings: NO_POLLING })
    const desk = new RunRecorder()
    other.work('k', desk.handler, { concurrency: 20 })
    await one.put('k', 'first')
    await desk.started('first')
    for (let n = 0; n < 5; n++) {
      await one.put('k', `later${n}`, Date.now() + 3_600_000)
      await one.putAll('k', [`new${n}`, `later${n}`])
      await Promise.all([desk.started(`new${n}`), desk.started(`later${n}`)])
    }
    expect(desk.order).toHaveLength(11)
    desk.endAll()
  })

  test('many can start at once with the same kinds', async () => {
    const url = await emptyPostgres()
    const queues = await Promise.all(Array.from({ length: 6 }, () => openQueue(url)))
    const kinds = ['list', 'deliver', 'other/a']
    await Promise.all(
      queues.flatMap(queue => kinds.map(kind => queue.putAll(kind, ['x', 'y', 'z']))),
    )
    expect((await entriesIn(url)).length).toBe(9)
  })
})
