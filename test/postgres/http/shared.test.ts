import { expect, test } from 'vitest'
import { PLANS, type Plan } from '../../../src/accounts/plan.ts'
import { register } from '../../../src/cluster/members.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { type Clock, SECOND, systemClock } from '../../../src/platform/clock.ts'
import { createWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { emit } from '../../../src/webhooks/event-store.ts'
import { shiftedClock } from '../../support/clock.ts'
import {
  account,
  type ClusterService,
  createClusterService,
  page,
} from '../../support/cluster-service.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { FORM, form } from '../../support/list-form.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'

/** Starts two servers on one database, as behind a load balancer. */
async function startPair(clock: Clock = systemClock) {
  const url = await tempPostgres()
  const [one, other] = [
    await createClusterService(url, { clock }),
    await createClusterService(url, { clock }),
  ]
  return { url, one, other, key: await account(one.database) }
}

test('allows 64 clients of two servers exactly 100 single verifications per minute together', async () => {
  const { one, other, key } = await startPair()
  const ask = async (n: number) => {
    const to = n % 2 === 0 ? one : other
    return (await to.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })).status
  }
  const client = async (n: number) => {
    const statuses = []
    for (let attempt = 0; attempt < 4; attempt++) statuses.push(await ask(n + attempt))
    return statuses
  }
  const statuses = (await Promise.all(Array.from({ length: 64 }, (_, n) => client(n)))).flat()
  expect(statuses.filter(status => status === 200)).toHaveLength(100)
  expect(statuses.filter(status => status === 429)).toHaveLength(156)
})

test('every server returns the shared state of a limit', async () => {
  const { one, other, key } = await startPair()
  await one.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
  await other.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
  const answer = await one.request('/v1/limits', { key })
  const { data } = (await answer.json()) as {
    data: { limits: { name: string; remaining: number }[] }
  }
  expect(data.limits.find(({ name }) => name === 'ip:single')?.remaining).toBe(98)
})

test('two servers that accept lists concurrently enforce the job and row limits of the account', async () => {
  const url = await tempPostgres()
  const enterprise = PLANS[3] as Plan
  const servers = async (limits: Partial<Plan>) => {
    const settings = {
      plans: new Map([['enterprise', { ...enterprise, ...limits }]]),
      limits: false,
    }
    return [
      await createClusterService(url, { settings }),
      await createClusterService(url, { settings }),
    ]
  }
  const [one, other] = (await servers({ concurrentJobs: 3 })) as [ClusterService, ClusterService]
  const key = await account(one.database)
  const headers = { 'X-EV-Sandbox': 'true' }
  const body = { emails: Array.from({ length: 30 }, (_, n) => `valid${n}@a.test`) }
  const accepted = async (of: readonly ClusterService[]) => {
    const requests = [...of, ...of, ...of, ...of].map(to =>
      to.request('/v1/verify/batch', { key, headers, body }),
    )
    return (await Promise.all(requests)).filter(({ status }) => status === 200).length
  }
  expect(await accepted([one, other])).toBe(3)
  // With 90 rows there is room for two more lists.
  expect(await accepted(await servers({ storedRows: 155 }))).toBe(2)
})

test('rejects a key within a second after another process revoked it', async () => {
  const clock = shiftedClock(systemClock)
  const { url, one, key } = await startPair(clock)
  expect((await one.request('/v1/jobs', { key })).status).toBe(200)
  // As another process does, without notifying this one.
  await ask(url, 'update api_key set revoked_at = 1')
  await ask(url, 'delete from key_secret')
  clock.pass(SECOND)
  expect((await one.request('/v1/jobs', { key })).status).toBe(401)
})

test('a dashboard session is valid at every server, and a sign-out ends it at every server', async () => {
  const { one, other, key } = await startPair()
  const Cookie = await signIn(one, key)
  const usage = await page(other, '/usage', { headers: { Cookie } })
  expect(usage.status).toBe(200)
  const csrf = /<meta name="csrf" content="([^"]+)"/.exec(await usage.text())?.[1] ?? ''
  const body = new URLSearchParams({ _csrf: csrf })
  await page(other, '/sign-out', { method: 'POST', body, headers: { Cookie } })
  const after = await page(one, '/usage', { headers: { Cookie } })
  expect([after.status, after.headers.get('Location')]).toEqual([303, '/sign-in?next=%2Fusage'])
})

test('a list can be previewed on one server and started on another', async () => {
  const { one, other, key } = await startPair()
  const Cookie = await signIn(one, key)
  const csrf = /<meta name="csrf" content="([^"]+)"/.exec(
    await (await page(one, '/usage', { headers: { Cookie } })).text(),
  )?.[1]
  const headers = {
    Cookie,
    'X-CSRF-Token': csrf ?? '',
    'HX-Request': 'true',
    'Content-Type': FORM,
  }
  const body = form([['file', { file: 'ann@a.test\n' }]]) as Uint8Array<ArrayBuffer>
  const preview = await page(one, '/lists/new?dry_run=true', { method: 'POST', body, headers })
  expect([preview.status, await preview.text()]).toEqual([200, expect.stringContaining('>Start<')])
  const started = await page(other, '/lists/new', { method: 'POST', body, headers })
  expect(started.headers.get('HX-Redirect')).toMatch(/^\/lists\/job_/)
})

test('a client that waits for a job at one server gets the changes that another server makes', async () => {
  const { one, other, key } = await startPair()
  await seedJob(one.database, { texts: MIXED, done: 0 })
  const wait = async () =>
    (await other.request('/v1/jobs/job_a?wait=30', { key })).json() as Promise<{ status: string }>
  const waiting = wait()
  const stream = await other.request('/v1/jobs/job_a/events', { key })
  await giveResults(one.database, 'job_a', MIXED.length)
  // Each wait returns at a change; completion is the last one.
  let job = await waiting
  while (job.status !== 'completed') job = await wait()
  expect(job).toMatchObject({ status: 'completed', progress: 100 })
  expect(await stream.text()).toMatch(/event: end\ndata: .*"status":"completed"/)
})

test('the metrics of each server count the members by role', async () => {
  const { one, other } = await startPair()
  for (const [id, role] of [
    ['a', 'serve'],
    ['b', 'serve'],
    ['c', 'worker'],
  ] as const) {
    await register(one.database, { id, role, name: id, version: '1.2.3', egresses: ['default'] })
  }
  const text = await (await other.request('/metrics', { ip: '127.0.0.1' })).text()
  expect(text).toContain('ev_members{role="serve"} 2')
  expect(text).toContain('ev_members{role="worker"} 1')
})

/** Signs in and returns the session cookie. */
async function signIn(to: ClusterService, key: string): Promise<string> {
  const answer = await page(to, '/sign-in', { method: 'POST', body: new URLSearchParams({ key }) })
  return (answer.headers.get('Set-Cookie') ?? '').replace(/;.*$/s, '')
}

test('a long recovery of deliveries at one server does not block writes at another', async () => {
  const { url, one, other, key } = await startPair()
  const [now, random] = [one.service.clock.now(), one.service.random]
  await write(one.database, async trx => {
    await createWebhook(trx, {
      id: 'wh_a',
      accountId: 'acc_1',
      url: 'https://hook.test/ev',
      active: true,
      events: ['quota.warning'] as const,
      description: null,
      createdAt: now,
      secret: 'sealed',
      secretHint: 'LaSw',
    })
    const event = { accountId: 'acc_1', kind: 'quota.warning' as const, data: {}, sandbox: false }
    await emit(trx, { ...event, now, dueAt: now, random })
  })
  await ask(url, "update delivery set state = 'failed'")
  const gate = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  // The recovery meets a row that another transaction has locked.
  const holding = (other.database.reader as Database['db']).transaction().execute(async trx => {
    await trx.selectFrom('delivery').select('id').forUpdate().execute()
    locked.resolve()
    await gate.promise
  })
  await locked.promise
  const body = { since: new Date(now - 60_000).toISOString() }
  const recovery = one.request('/v1/webhooks/wh_a/recover', { key, body })
  await waitUntil(async () => {
    const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    return (await ask(url, waiting)).length > 0
  })
  const created = await other.request('/v1/keys', {
    key,
    body: { name: 'new', scopes: ['jobs:read'] },
  })
  gate.resolve()
  await holding
  expect(created.status).toBe(201)
  expect(await (await recovery).json()).toMatchObject({ data: { recovered: 1 } })
})
