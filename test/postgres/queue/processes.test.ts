import { describe, expect, test } from 'vitest'
import { systemClock, yieldToEventLoop } from '../../../src/platform/clock.ts'
import type { Queue } from '../../../src/queue/queue.ts'
import { Desk } from '../../queue/conformance.ts'
import { stallingClock } from '../../support/clock.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import {
  emptyPostgres,
  entriesIn,
  loseHeartbeat,
  NEVER_LOOKING,
  openQueue,
} from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'

// Each queue has connections and workers of its own, as that of another process has.

const keysOf = (count: number) => Array.from({ length: count }, (_, n) => `operator${n}|a#0`)

/** Five in each of the moments that are tried. */
const ROUNDS = process.env.EV_TEST_ALL === '1' ? 300 : 100

/** Claims are kept often, so that a lost one is soon noticed. */
const KEEPING = { ...FAST_TIMINGS.queue, touchMs: 20 }

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
          // No worker can take all of the work: each holds its entries until the other has some.
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

  test('take over an entry whose worker was not heard of, which then knows its lease is lost', async () => {
    const url = await emptyPostgres()
    const clock = stallingClock(systemClock)
    const stalled = await openQueue(url, { clock, timings: KEEPING })
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
    const desk = new Desk()
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

  test('what one puts wakes the others at once', async () => {
    const url = await emptyPostgres()
    const one = await openQueue(url)
    const other = await openQueue(url, { timings: NEVER_LOOKING })
    const desk = new Desk()
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

  test('what another puts is found by the recheck, in whichever moment of the end of its run', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    const puts: Promise<void>[] = []
    let [started, filed] = [0, 0]
    const handler = async () => {
      const turns = started++ % 20
      filed = 0
      const file = async () => {
        for (let turn = 0; turn < started % 7; turn++) await yieldToEventLoop()
        filed++
        await other.put('k', 'a')
      }
      if (started <= ROUNDS) puts.push(file())
      for (let turn = 0; turn < turns; turn++) await yieldToEventLoop()
      return 'done' as const
    }
    const recheck = async () => (filed > 0 ? ({ dueAt: Date.now() } as const) : 'done')
    one.work('k', handler, { concurrency: 3, recheck })
    await one.put('k', 'a')
    await waitUntil(() => started > ROUNDS)
    await Promise.all(puts)
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    // What was accepted right after the end may be found by the recheck as well.
    expect(started).toBeLessThanOrEqual(2 * ROUNDS)
  })

  test('many may start at once, each with the kinds of all', async () => {
    const url = await emptyPostgres()
    const queues = await Promise.all(Array.from({ length: 6 }, () => openQueue(url)))
    const kinds = ['route', 'deliver', 'probe/a']
    await Promise.all(
      queues.flatMap(queue => kinds.map(kind => queue.putAll(kind, ['x', 'y', 'z']))),
    )
    expect((await entriesIn(url)).length).toBe(9)
  })
})
