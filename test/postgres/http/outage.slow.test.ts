import { expect, onTestFinished, test } from 'vitest'
import { IP_LIMITS } from '../../../src/accounts/plan.ts'
import { account, createClusterService } from '../../support/cluster-service.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'

/**
 * A request that waited for a dead connection without a time limit would wait for TCP, some fifteen
 * minutes. With the limit it takes five seconds, and more on a busy machine.
 */
const TIMEOUT_MS = 60_000

test('returns only 503 while PostgreSQL restarts under load, and recovers afterwards', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const one = await createClusterService(await postgres.create('ev'), {
    settings: { ipLimits: { ...IP_LIMITS, singlePerMinute: 1_000_000, bulkPerHour: 1_000_000 } },
  })
  const key = await account(one.database)
  const statuses = new Map<number, number>()
  let isDone = false
  let longestMs = 0
  const client = async () => {
    while (!isDone) {
      const started = performance.now()
      const { status } = await one.request('/v1/verify/single', {
        key,
        body: { email: 'ann@a.test' },
      })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      longestMs = Math.max(longestMs, performance.now() - started)
    }
  }
  const clients = Array.from({ length: 8 }, client)
  for (let n = 0; n < 3; n++) await postgres.restart()
  isDone = true
  await Promise.all(clients)
  expect([...statuses.keys()].filter(status => ![200, 429, 503].includes(status))).toEqual([])
  expect(statuses.get(503)).toBeGreaterThan(0)
  expect(longestMs).toBeLessThan(TIMEOUT_MS)
  // The pool may wait two seconds before it reconnects.
  await waitUntil(async () => (await one.request('/v1/jobs', { key })).status === 200)
})
