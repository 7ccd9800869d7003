import { describe, expect, test } from 'vitest'
import { DEFAULT_QUEUE_TIMINGS } from '../../../src/queue/queue.ts'
import { RunRecorder } from '../../queue/conformance.ts'
import {
  emptyLedger,
  ledgerOf,
  startCompetingWorker,
  twiceAtOnce,
} from '../../support/competing-workers.ts'
import { entriesIn, openQueue } from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'

// These tests use the timings of production because they check a guarantee in real time.

const keysOf = (count: number) => Array.from({ length: count }, (_, n) => `operator${n}|a#0`)

describe('processes that share a queue on PostgreSQL', () => {
  test('share the work, and no entry runs twice at once', async () => {
    const url = await emptyLedger()
    const settings = { concurrency: 5, runMs: 20 }
    const workers = await Promise.all([
      startCompetingWorker(url, settings),
      startCompetingWorker(url, settings),
    ])
    const queue = await openQueue(url)
    const keys = keysOf(100)
    for (let round = 0; round < 3; round++) await queue.putAll('k', keys)
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    const lines = await ledgerOf(url)
    expect(new Set(lines.map(({ key }) => key))).toEqual(new Set(keys))
    for (const { child } of workers) {
      const share = lines.filter(({ pid }) => pid === child.pid).length / lines.length
      expect(share).toBeGreaterThan(0.2)
    }
    expect(await twiceAtOnce(url)).toEqual([])
    await Promise.all(workers.map(worker => worker.end()))
  })

  test('take over the entries of a killed process within twenty seconds', async () => {
    const url = await emptyLedger()
    const dying = await startCompetingWorker(url, { concurrency: 5, runMs: 600_000 })
    const queue = await openQueue(url, { timings: DEFAULT_QUEUE_TIMINGS })
    await queue.putAll('k', keysOf(5))
    await waitUntil(async () => (await ledgerOf(url)).length === 5)
    const next = await startCompetingWorker(url, { concurrency: 5, runMs: 10 })
    const killedAt = new Date()
    dying.child.kill('SIGKILL')
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect(Date.now() - killedAt.getTime()).toBeLessThan(20_000)
    const lines = await ledgerOf(url)
    const taken = lines.filter(({ pid }) => pid === next.child.pid)
    expect(taken.map(({ key }) => key).toSorted()).toEqual(keysOf(5))
    expect(await twiceAtOnce(url, new Map([[dying.child.pid as number, killedAt]]))).toEqual([])
    await next.end()
  })

  test('notify a stalled process that its lease is lost, and ignore its late result', async () => {
    const url = await emptyLedger()
    const stalled = await startCompetingWorker(url, { concurrency: 1, runMs: 1_000 })
    const queue = await openQueue(url, { timings: DEFAULT_QUEUE_TIMINGS })
    await queue.put('k', 'a')
    await waitUntil(async () => (await ledgerOf(url)).length === 1)
    stalled.child.kill('SIGSTOP')
    const desk = new RunRecorder()
    queue.work('k', desk.handler, { concurrency: 1 })
    await desk.started('a')
    stalled.child.kill('SIGCONT')
    await waitUntil(() => stalled.lost.length > 0)
    await waitUntil(async () => (await ledgerOf(url)).every(({ open }) => !open))
    await stalled.end()
    expect(await entriesIn(url)).toMatchObject([{ singleton_key: 'a', state: 'active' }])
    desk.end('a', 'done')
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect({ lost: stalled.lost, order: desk.order }).toEqual({ lost: ['a'], order: ['a'] })
  })
})
