import { describe, expect, test } from 'vitest'
import { breathe } from '../../../src/base/clock.ts'
import { Desk } from '../../queue/conformance.ts'
import { emptyPostgres, entriesIn, openQueue } from '../../support/pg-queue.ts'
import { waitUntil } from '../../support/wait.ts'
import { emptyLedger, ledgerOf, startClerk, twiceAtOnce } from './clerks.ts'

const keysOf = (count: number) => Array.from({ length: count }, (_, n) => `operator${n}|a#0`)

const ROUNDS = 300

describe('processes that share a queue on PostgreSQL', () => {
  test('share the work, and no entry runs twice at once', async () => {
    const url = await emptyLedger()
    const settings = { concurrency: 5, runMs: 20 }
    const clerks = await Promise.all([startClerk(url, settings), startClerk(url, settings)])
    const queue = await openQueue(url)
    const keys = keysOf(100)
    for (let round = 0; round < 3; round++) await queue.putAll('k', keys)
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    const lines = await ledgerOf(url)
    expect(new Set(lines.map(({ key }) => key))).toEqual(new Set(keys))
    for (const { child } of clerks) {
      const share = lines.filter(({ pid }) => pid === child.pid).length / lines.length
      expect(share).toBeGreaterThan(0.2)
    }
    expect(await twiceAtOnce(url)).toEqual([])
    await Promise.all(clerks.map(clerk => clerk.end()))
  })

  test('take over what a process had that was killed, within fifteen seconds', async () => {
    const url = await emptyLedger()
    const dying = await startClerk(url, { concurrency: 5, runMs: 600_000 })
    const queue = await openQueue(url)
    await queue.putAll('k', keysOf(5))
    await waitUntil(async () => (await ledgerOf(url)).length === 5)
    const next = await startClerk(url, { concurrency: 5, runMs: 10 })
    const killedAt = new Date()
    dying.child.kill('SIGKILL')
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect(Date.now() - killedAt.getTime()).toBeLessThan(15_000)
    const lines = await ledgerOf(url)
    const taken = lines.filter(({ pid }) => pid === next.child.pid)
    expect(taken.map(({ key }) => key).toSorted()).toEqual(keysOf(5))
    expect(await twiceAtOnce(url, new Map([[dying.child.pid as number, killedAt]]))).toEqual([])
    await next.end()
  }, 40_000)

  test('one that stood still knows that its lease is lost, and what it says afterwards changes nothing', async () => {
    const url = await emptyLedger()
    const stalled = await startClerk(url, { concurrency: 1, runMs: 1_000 })
    const queue = await openQueue(url)
    await queue.put('k', 'a')
    await waitUntil(async () => (await ledgerOf(url)).length === 1)
    stalled.child.kill('SIGSTOP')
    const desk = new Desk()
    queue.work('k', desk.handler, { concurrency: 1 })
    await desk.begun('a')
    stalled.child.kill('SIGCONT')
    await waitUntil(() => stalled.lost.length > 0)
    await waitUntil(async () => (await ledgerOf(url)).every(({ open }) => !open))
    await stalled.end()
    expect(await entriesIn(url)).toMatchObject([{ singleton_key: 'a', state: 'active' }])
    desk.end('a', 'done')
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect({ lost: stalled.lost, order: desk.order }).toEqual({ lost: ['a'], order: ['a'] })
  }, 40_000)

  test('what one puts wakes the others within half a second', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    const desk = new Desk()
    other.work('k', desk.handler, { concurrency: 20 })
    await one.put('k', 'first')
    await desk.begun('first')
    const waits: number[] = []
    for (let n = 0; n < 5; n++) {
      await one.put('k', `later${n}`, Date.now() + 3_600_000)
      const putAt = performance.now()
      await one.putAll('k', [`new${n}`, `later${n}`])
      await Promise.all([desk.begun(`new${n}`), desk.begun(`later${n}`)])
      waits.push(performance.now() - putAt)
    }
    expect(Math.max(...waits)).toBeLessThan(500)
    desk.endAll()
  })

  test('what another puts runs once more, in whichever moment of the end of its run', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await openQueue(url), await openQueue(url)]
    const puts: Promise<void>[] = []
    let begun = 0
    const handler = async () => {
      const turns = begun++ % 20
      if (begun <= ROUNDS) puts.push(other.put('k', 'a'))
      for (let turn = 0; turn < turns; turn++) await breathe()
      return 'done' as const
    }
    one.work('k', handler, { concurrency: 3 })
    await one.put('k', 'a')
    await waitUntil(() => begun > ROUNDS)
    await Promise.all(puts)
    await waitUntil(async () => (await entriesIn(url)).length === 0)
    expect(begun).toBe(ROUNDS + 1)
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
