import { describe, expect, test } from 'vitest'
import { openapiDocument } from '../../src/http/document/openapi.ts'
import { addHistory } from '../../src/store/account/history.ts'
import { countUsage } from '../../src/store/account/usage.ts'
import { write } from '../../src/store/database.ts'
import { createWebhook } from '../../src/store/event/webhooks.ts'
import { house } from './house.ts'
import { seedJob } from './jobs/seed.ts'

/** What the first account has: an ID for each kind of path. */
const OWNED: readonly [path: RegExp, id: string][] = [
  [/^\/v1\/(jobs|verify\/bulk)\//, 'job_a'],
  [/^\/v1\/keys\//, 'key_1'],
  [/^\/v1\/webhooks\//, 'wh_a'],
]

describe('what another account has', () => {
  test('is not there, by any path and any method', async () => {
    const { request, addAccount, addKey, app, service } = await owning()
    await addAccount('acc_2')
    const stranger = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const asked = operationsOf(openapiDocument(service, app))
    for (const [method, path] of asked) {
      const response = await request(path, { method, key: stranger, ...bodyFor(method, path) })
      const answer = [method, path, response.status, (await response.json()) as object]
      expect(answer).toEqual([method, path, 404, expect.objectContaining({ code: 'not_found' })])
    }
    // The test sees all of them, or a new kind of path is missing above.
    expect(asked.length).toBeGreaterThanOrEqual(12)
    expect(asked.filter(([, path]) => path.includes('{'))).toEqual([])
    for (const path of ['/v1/jobs/job_a', '/v1/webhooks/wh_a', '/v1/jobs/job_a/download']) {
      expect((await request(path)).status).toBe(200)
    }
  })

  test('is not in any list or number', async () => {
    const { json, addAccount, addKey } = await owning()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const empty = { items: [], next_cursor: null, has_more: false }
    expect((await json('/v1/jobs', { key })).data).toEqual(empty)
    expect((await json('/v1/history', { key })).data).toEqual(empty)
    expect((await json('/v1/webhooks', { key })).data).toEqual({ webhooks: [], total: 0 })
    expect((await json('/v1/keys', { key })).data).toMatchObject({
      ...{ keys: [{ id: 'key_stranger' }], total: 1 },
    })
    expect((await json('/v1/stats', { key })).data).toMatchObject({
      ...{ total: { verifications: 0 }, keys: [] },
    })
    expect((await json('/v1/jobs')).data).toMatchObject({ items: [{ job_id: 'job_a' }] })
    expect((await json('/v1/stats')).data).toMatchObject({ total: { verifications: 3 } })
  })

  test('is not reached by a cursor of it', async () => {
    const { json, addAccount, addKey, database } = await owning()
    await seedJob(database, { id: 'job_b', texts: ['valid@a.example'] })
    const { data } = (await json('/v1/jobs?limit=1')) as { data: { next_cursor: string } }
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const page = await json(`/v1/jobs?cursor=${data.next_cursor}`, { key })
    expect(page.data).toMatchObject({ items: [] })
  })
})

/** A house whose first account has one of everything. */
async function owning() {
  const given = await house()
  const { database, clock } = given
  await seedJob(database, { texts: ['valid@a.example'] })
  const now = clock.now()
  await write(database, async trx => {
    await createWebhook(trx, {
      ...{ id: 'wh_a', accountId: 'acc_1', url: 'https://app.test/', active: true },
      ...{ events: ['batch.completed'], description: null },
      ...{ secret: 'sealed', secretHint: 'LaSw', createdAt: now },
    })
    await addHistory(trx, [
      {
        ...{ id: 'ver_a', account_id: 'acc_1', key_id: 'key_1', email: 'ann@a.test', valid: 1 },
        ...{ deliverable: 1, risk_level: 'low', reason: 'accepted_email', class: 'deliverable' },
        ...{ cached: 0, source: 'single', job_id: null, sandbox: 0, created_at: now },
      },
    ])
    const day = now - (now % 86_400_000)
    const used = { verifications: 3, cached: 0, credits: 3 }
    await countUsage(trx, [
      { account_id: 'acc_1', key_id: 'key_1', day, class: 'deliverable', ...used },
    ])
  })
  return given
}

/** Every operation of the document that names one thing, with the ID of one of the first account. */
function operationsOf({ paths }: { paths?: object }): [method: string, path: string][] {
  return Object.entries(paths ?? {})
    .filter(([path]) => path.includes('{'))
    .flatMap(([path, methods]) => {
      const id = OWNED.find(([kind]) => kind.test(path))?.[1] ?? '{unknown}'
      const known = ['get', 'post', 'put', 'patch', 'delete'].filter(name => name in methods)
      return known.map((name): [string, string] => [
        name.toUpperCase(),
        path.replace(/\{\w+\}/, id),
      ])
    })
}

function bodyFor(method: string, path: string): { body?: object } {
  if (method === 'PUT') return { body: { url: 'https://8.8.8.8/', events: ['batch.failed'] } }
  if (method === 'PATCH' || (method === 'POST' && !path.endsWith('/cancel'))) return { body: {} }
  return {}
}
