import { describe, expect, test } from 'vitest'
import type { PreparedAddress } from '../../../src/engine/probe/prepare.ts'
import type { RoutedItems } from '../../../src/jobs/probing/probe-scheduler.ts'
import { routeItems } from '../../../src/jobs/probing/route-items.ts'
import type { ResultWriter } from '../../../src/jobs/results/result-writer.ts'
import type { ActiveJob } from '../../../src/jobs/worker/active-jobs.ts'
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
    } as unknown as ActiveJob
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
      onRouted: async (_: ActiveJob, { operator, stored, isComplete }: RoutedItems) =>
        void ready.push(`${operator} ${stored} ${isComplete}`),
      ...o,
    }
    await routeItems(work, list)
    return { calls, ready, changes }
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

  test('stores the items with their operators', async () => {
    const { changes } = await route(['a@x.test', 'b@x.test'])
    const routed = [
      { position: 1, operator: 'x.test' },
      { position: 2, operator: 'x.test' },
    ]
    expect(changes).toMatchObject([{ results: [], routed }])
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
      recorder: {
        settled: async () => {},
        add: async (_: string, { routed = [] }) => {
          perTurn.push((perTurn.pop() ?? 0) + routed.length)
        },
      } as unknown as ResultWriter,
    })
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(25)
    expect(perTurn.reduce((sum, count) => sum + count)).toBe(200)
  })
})
