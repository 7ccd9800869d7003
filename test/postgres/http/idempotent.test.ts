import { describe, expect, onTestFinished, test } from 'vitest'
import { PLANS, type Plan } from '../../../src/accounts/plan.ts'
import {
  account,
  type ClusterService,
  createClusterService,
} from '../../support/cluster-service.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { tempPostgres } from '../../support/database.ts'

const EMAILS = Array.from({ length: 12 }, (_, n) => `u${n}@a.test`)
const SETTINGS = { ipLimits: { singlePerMinute: 100_000, bulkPerHour: 100_000 } }

/** Two servers on one database, the first of them behind a proxy that can cut it off. */
async function pair(plan = 'enterprise') {
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
    ...{ key, body: { emails: EMAILS } },
    headers: { 'Idempotency-Key': idempotencyKey },
  })

test('the same list at two servers at once becomes one job: the other is told so, or to ask again', async () => {
  const { one, other, key, jobs } = await pair()
  for (let n = 0; n < 10; n++) {
    const asked = [one, other, one, other].map(to => submit(to, key, `key ${n}`))
    const answers = await Promise.all(asked)
    const ids = new Set<unknown>()
    for (const answer of answers) {
      const body = (await answer.json()) as { job_id?: string; code?: string }
      expect([200, 409]).toContain(answer.status)
      if (answer.status === 200) ids.add(body.job_id)
      else expect(body.code).toBe('idempotency_in_progress')
    }
    const again = await submit(other, key, `key ${n}`)
    expect(again.headers.get('Idempotency-Replayed')).toBe('true')
    ids.add(((await again.json()) as { job_id: string }).job_id)
    expect(ids.size).toBe(1)
    expect(await jobs()).toHaveLength(n + 1)
  }
})

test('a list whose commit came about, though its answer was lost, is the same job when it is sent again', async () => {
  const { proxy, one, other, key, jobs, held } = await pair('free')
  const cut = proxy.cutAfterCommit(/replay/)
  const lost = await submit(one, key, 'once')
  await cut
  expect(lost.status).toBe(503)
  for (const to of [one, other]) {
    const again = await submit(to, key, 'once')
    expect([again.status, again.headers.get('Idempotency-Replayed')]).toEqual([200, 'true'])
    const [job, ...more] = await jobs()
    expect(more).toEqual([])
    expect(await again.json()).toMatchObject({ job_id: job?.id })
  }
  expect(await jobs()).toMatchObject([{ state: 'queued' }])
  expect(await held()).toEqual([12])
})

test('a list whose commit did not come about leaves nothing, and is taken when it is sent again', async () => {
  const { proxy, one, key, jobs, held } = await pair('free')
  const cut = proxy.cutBeforeCommit(/replay/)
  expect((await submit(one, key, 'once')).status).toBe(503)
  await cut
  expect(await jobs()).toEqual([])
  const again = await submit(one, key, 'once')
  expect([again.status, again.headers.get('Idempotency-Replayed')]).toEqual([200, null])
  expect(await jobs()).toMatchObject([{ state: 'queued' }])
  expect(await held()).toEqual([12])
})

test('a webhook and a key that were made by a lost answer are not made twice', async () => {
  const { proxy, one, other, key } = await pair()
  const create = (to: ClusterService) =>
    to.request('/v1/keys', {
      ...{ key, body: { name: 'new', scopes: ['jobs:read'] } },
      headers: { 'Idempotency-Key': 'a key' },
    })
  const cut = proxy.cutAfterCommit(/replay/)
  expect((await create(one)).status).toBe(503)
  await cut
  const again = await create(other)
  expect([again.status, again.headers.get('Idempotency-Replayed')]).toEqual([201, 'true'])
  expect(await other.database.db.selectFrom('api_key').select('name').execute()).toHaveLength(2)
})

describe('an address whose commit failed', () => {
  async function lose(when: 'cutAfterCommit' | 'cutBeforeCommit') {
    const { proxy, one, other, key } = await pair('free')
    const free = PLANS.find(({ name }) => name === 'free') as Plan
    // Somebody else waits for an answer meanwhile.
    await one.service.ledger.reserve('acc_1', free, 1)
    const ask = (to: ClusterService) =>
      to.request('/v1/verify/single', {
        ...{ key, body: { email: 'ann@a.test' } },
        headers: { 'Idempotency-Key': 'once' },
      })
    const cut = proxy[when](/replay/)
    expect((await ask(one)).status).toBe(503)
    await cut
    await one.service.ledger.flushed()
    const credit = () =>
      other.database.db.selectFrom('credit').select(['used', 'held']).executeTakeFirst()
    return { credit, again: () => ask(other) }
  }

  test('and came about all the same is paid once, and takes nothing of what others have set aside', async () => {
    const { credit, again } = await lose('cutAfterCommit')
    expect(await credit()).toEqual({ used: 1, held: 1 })
    expect((await again()).headers.get('Idempotency-Replayed')).toBe('true')
    expect(await credit()).toEqual({ used: 1, held: 1 })
  })

  test('and did not come about is paid when it is asked again', async () => {
    const { credit, again } = await lose('cutBeforeCommit')
    expect(await credit()).toEqual({ used: 0, held: 1 })
    expect((await again()).headers.get('Idempotency-Replayed')).toBeNull()
    expect(await credit()).toEqual({ used: 1, held: 1 })
  })
})
