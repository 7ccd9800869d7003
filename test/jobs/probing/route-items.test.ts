import { expect, test } from 'vitest'
import type { PreparedAddress } from '../../../src/engine/probing/prepare.ts'
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
      return { result: {} } as PreparedAddress
    },
  }
  const never = new AbortController().signal
  const list = {
    id: job.id,
    engine,
    options: {},
    wait: false,
    ended: never,
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
      ...{ database, recorder, stopping: never, routing: new Set([job.id]) },
      priority: { yieldToRequests: async () => void routed.push(0) },
      claims: { keep: () => true, noteStored: () => {} },
      hasCapacity: async () => {},
      onRouted: async () => {},
    },
    list,
  )
  expect(done.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 610 }, (_, n) => n + 1))
  expect(Math.max(...routed)).toBe(25)
})
