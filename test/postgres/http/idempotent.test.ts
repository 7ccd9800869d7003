import { describe, expect, onTestFinished, test } from 'vitest'
import { IP_LIMITS, PLANS, type Plan } from '../../../src/accounts/plan.ts'
import {
  account,
  type ClusterService,
  createClusterService,
} from '../../support/cluster-service.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'

const EMAILS = Array.from({ length: 12 }, (_, n) => `u${n}@a.test`)
const SETTINGS = { ipLimits: { ...IP_LIMITS, singlePerMinute: 100_000, bulkPerHour: 100_000 } }

/** Starts two servers on one database, the first behind a proxy that can cut its connections. */
async function startPair(plan = 'enterprise') {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  const [one, other] = [
    await createClusterService(proxy.url, { settings: SETTINGS }),
    await createClusterService(url, { settings: SETTINGS }),
  ]
  onTestFinished(() => proxy.close())
  const key = await account(other.database, plan)
  const jobs = () => other.database.db.selectFrom('job').select(['id', 'state']).execute()
  const held = async () =>
    (await other.database.db.selectFrom('credit').select('held').execute()).map(row => row.held)
  return { proxy, one, other, key, jobs, held }
}

const submit = (to: ClusterService, key: string, idempotencyKey: string) =>
  to.request('/v1/verify/batch', {
    key,
    body: { emails: EMAILS },
    headers: { 'Idempotency-Key': idempotencyKey },
  })

test('creates one job for a list sent concurrently to two servers; the others get that job or 409', async () => {
  const { one, other, key, jobs } = await startPair()
  for (let n = 0; n < 10; n++) {
    const requests = [one, other, one, other].map(to => submit(to, key, `key ${n}`))
    const responses = await Promise.all(requests)
    const ids = new Set<unknown>()
    for (const response of responses) {
      const body = (await response.json()) as { job_id?: string; code?: string }
      expect([200, 409]).toContain(response.status)
      if (response.status === 200) ids.add(body.job_id)
      else expect(body.code).toBe('idempotency_in_progress')
    }
    const retry = await submit(other, key, `key ${n}`)
    expect(retry.headers.get('Idempotency-Replayed')).toBe('true')
    ids.add(((await retry.json()) as { job_id: string }).job_id)
    expect(ids.size).toBe(1)
    expect(await jobs()).toHaveLength(n + 1)
  }
})

test('returns the same job on retry if the commit succeeded and its answer was lost', async () => {
  const { proxy, one, other, key, jobs, held } = await startPair('free')
  const cut = proxy.cutAfterCommit(/replay/)
  const lost = await submit(one, key, 'once')
  await cut
  expect(lost.status).toBe(503)
  for (const to of [one, other]) {
    const retry = await submit(to, key, 'once')
    expect([retry.status, retry.headers.get('Idempotency-Replayed')]).toEqual([200, 'true'])
    const [job, ...more] = await jobs()
    expect(more).toEqual([])
    expect(await retry.json()).toMatchObject({ job_id: job?.id })
  }
  expect(await jobs()).toMatchObject([{ state: 'queued' }])
  expect(await held()).toEqual([12])
})

test('stores nothing if the commit failed, and accepts the list on retry', async () => {
  const { proxy, one, key, jobs, held } = await startPair('free')
  const cut = proxy.cutBeforeCommit(/replay/)
  expect((await submit(one, key, 'once')).status).toBe(503)
  await cut
  expect(await jobs()).toEqual([])
  const retry = await submit(one, key, 'once')
  expect([retry.status, retry.headers.get('Idempotency-Replayed')]).toEqual([200, null])
  expect(await jobs()).toMatchObject([{ state: 'queued' }])
  expect(await held()).toEqual([12])
})

test('creates a key once if the first response was lost', async () => {
  const { proxy, one, other, key } = await startPair()
  const create = (to: ClusterService) =>
    to.request('/v1/keys', {
      key,
      body: { name: 'new', scopes: ['jobs:read'] },
      headers: { 'Idempotency-Key': 'a key' },
    })
  const cut = proxy.cutAfterCommit(/replay/)
  expect((await create(one)).status).toBe(503)
  await cut
  const retry = await create(other)
  expect([retry.status, retry.headers.get('Idempotency-Replayed')]).toEqual([201, 'true'])
  expect(await other.database.db.selectFrom('api_key').select('name').execute()).toHaveLength(2)
})

describe('a single verification whose commit fails', () => {
  async function loseCommit(when: 'cutAfterCommit' | 'cutBeforeCommit') {
    const { proxy, one, other, key } = await startPair('free')
    const free = PLANS.find(({ name }) => name === 'free') as Plan
    // Another request has a reservation meanwhile.
    await one.service.ledger.reserve('acc_1', free, 1)
    const ask = (to: ClusterService) =>
      to.request('/v1/verify/single', {
        key,
        body: { email: 'ann@a.test' },
        headers: { 'Idempotency-Key': 'once' },
      })
    const cut = proxy[when](/replay/)
    expect((await ask(one)).status).toBe(503)
    await cut
    await one.service.ledger.flushed()
    const credit = () =>
      other.database.db.selectFrom('credit').select(['used', 'held']).executeTakeFirst()
    return { credit, retry: () => ask(other) }
  }

  test('is charged once if the commit took effect, and leaves other reservations unchanged', async () => {
    const { credit, retry } = await loseCommit('cutAfterCommit')
    expect(await credit()).toEqual({ used: 1, held: 1 })
    expect((await retry()).headers.get('Idempotency-Replayed')).toBe('true')
    expect(await credit()).toEqual({ used: 1, held: 1 })
  })

  test('is charged on retry if the commit did not take effect', async () => {
    const { credit, retry } = await loseCommit('cutBeforeCommit')
    expect(await credit()).toEqual({ used: 0, held: 1 })
    expect((await retry()).headers.get('Idempotency-Replayed')).toBeNull()
    expect(await credit()).toEqual({ used: 1, held: 1 })
  })
})
