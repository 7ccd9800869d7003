import { describe, expect, test } from 'vitest'
import type { PreparedAddress } from '../../../src/engine/probing/prepare.ts'
import type { RoutedItems } from '../../../src/jobs/probing/probe-scheduler.ts'
import { routeItems } from '../../../src/jobs/probing/route-items.ts'
import type { ResultWriter } from '../../../src/jobs/results/result-writer.ts'
import { type ActiveJob, PositionSet } from '../../../src/jobs/worker/active-jobs.ts'
import { queuedJob } from '../../support/database.ts'

test('routes at most 25 items per turn of the event loop', async () => {
  const { database, job } = await queuedJob(Array.from({ length: 610 }, (_, n) => `t${n}`))
  const routed: number[] = []
  const engine = {
    resolverCheck: null,
    async routeOne() {
      routed.push((routed.pop() ?? 0) + 1)
      return { result: { evidence: { address: {} } } } as PreparedAddress
    },
  }
  const never = new AbortController().signal
  const list = {
    id: job.id,
    engine,
    options: {},
    wait: false,
    ended: never,
    finishing: never,
    kept: new PositionSet(610),
  } as unknown as ActiveJob
  const done: number[] = []
  const recorder = {
    settled: async () => {},
    add: async (_: string, { results = [] }) => {
      done.push(...results.map(({ position }) => position))
    },
  } as unknown as ResultWriter
  await routeItems(
    {
      database,
      recorder,
      stopping: never,
      routing: new Set([job.id]),
      priority: { yieldToRequests: async () => void routed.push(0) },
      claims: { hasRoomFor: () => true, keep: () => null, noteStored: () => {} },
      nextRoom: async () => true,
      onRouted: async () => {},
    },
    list,
  )
  expect(done.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 610 }, (_, n) => n + 1))
  expect(Math.max(...routed)).toBe(25)
})

describe('routing', () => {
  const never = new AbortController().signal

  /** Routes a list with an engine that records its lookups; each domain is its own operator. */
  async function route(
    texts: readonly string[],
    o: Partial<Parameters<typeof routeItems>[0]> = {},
    isSandbox = false,
  ) {
    const { database, job } = await queuedJob(texts)
    const calls: string[] = []
    const engine = {
      resolverCheck: null,
      isSandbox,
      async routeOne(text: string) {
        calls.push(text)
        const domain = text.slice(text.indexOf('@') + 1)
        const operator = { name: domain === 'hosted.test' ? 'host.test' : domain }
        const exchangers = [{ operator }]
        const address = { domain: { ascii: domain } }
        return { task: { text, operator, exchangers, address, route: {} } }
      },
    }
    const list = {
      id: job.id,
      engine,
      options: {},
      wait: false,
      ended: never,
      finishing: never,
    } as object
    const active = { ...list, kept: new PositionSet(texts.length) } as ActiveJob
    const ready: string[] = []
    const changes: unknown[] = []
    const recorder = {
      settled: async () => {},
      add: async (_: string, change: object) => void changes.push(change),
    } as unknown as ResultWriter
    const work = {
      database,
      recorder,
      stopping: never,
      routing: new Set([job.id]),
      priority: null,
      claims: { hasRoomFor: () => true, keep: () => null, noteStored: () => {} },
      nextRoom: async () => true,
      onRouted: async (_: ActiveJob, { operator, stored, isComplete }: RoutedItems) =>
        void ready.push(`${operator} ${stored} ${isComplete}`),
      ...o,
    }
    await routeItems(work, active)
    return { calls, ready, changes, work, active }
  }

  test('takes the items of a domain together, wherever they are in the list', async () => {
    const texts = ['a@x.test', 'b@x.test', 'a@y.test', 'b@y.test', 'c@x.test']
    const { ready } = await route(texts)
    expect(ready).toEqual(['x.test 3 true', 'y.test 2 true'])
  })

  test('keeps the list order in a sandbox, which looks up no domain', async () => {
    const texts = ['a@x.test', 'a@y.test', 'b@x.test', 'b@y.test']
    expect((await route(texts, {}, true)).calls).toEqual(texts)
  })

  test('reports the operator of a single domain as complete after its last item', async () => {
    const texts = Array.from({ length: 60 }, (_, n) => `u${n}@x.test`)
    const { ready } = await route([...texts, 'a@hosted.test'])
    expect(ready.toSorted()).toEqual([
      ...['host.test 1 false', 'x.test 10 true', 'x.test 25 false', 'x.test 25 false'],
    ])
  })

  test('stores what does not fit into memory, and skips what does in a second pass', async () => {
    const stored: string[] = []
    const { changes, work, active, calls } = await route(['a@x.test', 'b@x.test', 'c@x.test'], {
      claims: {
        hasRoomFor: () => true,
        keep: (list, { position }) => {
          if (position === 3) return null
          list.kept.add(position)
          return 0
        },
        noteStored: operator => void stored.push(operator),
      },
    })
    expect(changes).toMatchObject([{ results: [], routed: [{ position: 3, operator: 'x.test' }] }])
    expect(stored).toEqual(['x.test'])
    calls.length = 0
    await routeItems(work, active)
    expect(calls).toEqual(['c@x.test'])
  })

  test('starts at most 25 items per turn, also if many have the same domain', async () => {
    const perTurn: number[] = [0]
    const texts = Array.from({ length: 200 }, (_, n) => `u${n}@d${n % 10}.test`)
    await route(texts, {
      priority: {
        async yieldToRequests() {
          await new Promise(setImmediate)
          perTurn.push(0)
        },
      },
      claims: {
        hasRoomFor: () => true,
        keep: () => {
          perTurn.push((perTurn.pop() ?? 0) + 1)
          return 1
        },
        noteStored: () => {},
      },
    })
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(25)
    expect(perTurn.reduce((sum, count) => sum + count)).toBe(200)
  })

  /** Keeps at most `max` items; `take` takes them all, as connections do. */
  function memory(max: number) {
    const kept: number[] = []
    const stored: string[] = []
    let onTake: (hasTaken: boolean) => void = () => {}
    const work: Partial<Parameters<typeof routeItems>[0]> = {
      claims: {
        hasRoomFor: count => kept.length + count <= max,
        keep(_, { position }) {
          if (kept.length >= max) return null
          kept.push(position)
          return 0
        },
        noteStored: operator => void stored.push(operator),
      },
      nextRoom: () =>
        new Promise(resolve => {
          onTake = resolve
        }),
    }
    const take = (hasTaken = true) => {
      const taken = hasTaken ? kept.splice(0) : []
      onTake(hasTaken)
      return taken
    }
    return { work, kept, stored, take }
  }
  const drain = async () => {
    for (let n = 0; n < 20; n++) await new Promise(setImmediate)
  }

  test('waits for room, also with domains that were looked up before memory was full', async () => {
    const { work, stored, take } = memory(2)
    const texts = ['a@x.test', 'a@y.test', 'b@x.test', 'b@y.test', 'a@z.test']
    const running = route(texts, work)
    await drain()
    expect(take()).toEqual([1, 3])
    await drain()
    expect(take()).toEqual([2, 4])
    await running
    expect(stored).toEqual([])
  })

  test('keeps and stores nothing after a stop during the wait for room', async () => {
    const { work, kept, stored, take } = memory(1)
    const stopping = new AbortController()
    const running = route(['a@x.test', 'a@y.test'], { ...work, stopping: stopping.signal })
    await drain()
    stopping.abort()
    expect(take()).toEqual([1])
    await running
    expect([kept, stored]).toEqual([[], []])
  })

  test('stores items if those in memory wait for slow operators', async () => {
    const { work, kept, stored, take } = memory(2)
    const running = route(['a@x.test', 'b@x.test', 'a@y.test'], work)
    await drain()
    take(false)
    await running
    expect(kept).toEqual([1, 2])
    expect(stored).toEqual(['y.test'])
  })

  test('fills memory with one domain after the other', async () => {
    const { work, take } = memory(60)
    const texts = Array.from({ length: 120 }, (_, n) => `u${n}@${n % 2 === 0 ? 'x' : 'y'}.test`)
    const running = route(texts, work)
    await drain()
    expect(take()).toEqual(Array.from({ length: 60 }, (_, n) => 2 * n + 1))
    await running
  })
})
