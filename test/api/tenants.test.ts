import { describe, expect, test } from 'vitest'
import { openapiDocument } from '../../src/api/openapi-document.ts'
import { write } from '../../src/db/database.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { seedJob } from '../support/job-rows.ts'
import { addOneOfEverything, WEBHOOK } from '../support/owned-rows.ts'
import { createTestService } from '../support/service.ts'

/** IDs of the first account, one for each kind of path. */
const OWNED: readonly [path: RegExp, id: string][] = [
  [/^\/v1\/(jobs|verify\/bulk)\//, 'job_a'],
  [/^\/v1\/keys\//, 'key_1'],
  [/^\/v1\/people\//, 'per_a'],
  [/^\/v1\/webhooks\//, 'wh_a'],
  [/^\/v1\/feedback\//, 'fbs_a'],
  [/^\/v1\/schedules\//, 'sch_a'],
]

describe('data of another account', () => {
  test('returns 404 for every path and method', async () => {
    const { request, addAccount, addKey, app, service, post, ...ids } = await createOwner()
    const { deliveryId, eventId } = ids
    await addAccount('acc_2')
    const otherKey = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const asked = operationsOf(openapiDocument(service, app), ids)
    for (const [method, path] of asked) {
      const response = await request(path, { method, key: otherKey, ...bodyFor(method, path) })
      expect(post.sent).toEqual([])
      const answer = [method, path, response.status, (await response.json()) as object]
      expect(answer).toEqual([method, path, 404, expect.objectContaining({ code: 'not_found' })])
    }
    // Fails if a new kind of path is missing above.
    expect(asked.length).toBeGreaterThanOrEqual(22)
    expect(asked.filter(([, path]) => path.includes('{'))).toEqual([])
    for (const path of [
      ...['/v1/jobs/job_a', '/v1/webhooks/wh_a', '/v1/jobs/job_a/download'],
      ...['/v1/jobs/job_a/results', '/v1/jobs/job_a/results/1', '/v1/jobs/job_a/breakdown'],
      ...[`/v1/webhooks/wh_a/deliveries/${deliveryId}`, `/v1/events/${eventId}`],
    ]) {
      expect((await request(path)).status).toBe(200)
    }
  })

  test('includes its deliveries', async () => {
    const { request, addAccount, addKey, deliveryId, database } = await createOwner()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    await write(database, trx => createWebhook(trx, { ...WEBHOOK, id: 'wh_b', accountId: 'acc_2' }))
    const one = `/v1/webhooks/wh_b/deliveries/${deliveryId}`
    expect((await request(one, { key })).status).toBe(404)
    expect((await request(`${one}/retry`, { key, method: 'POST' })).status).toBe(404)
    const list = await request('/v1/webhooks/wh_b/deliveries', { key })
    expect(await list.json()).toMatchObject({ data: { items: [] } })
  })

  test('is not in any list or count', async () => {
    const { json, addAccount, addKey } = await createOwner()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const empty = { items: [], next_cursor: null, has_more: false }
    expect((await json('/v1/jobs', { key })).data).toEqual(empty)
    expect((await json('/v1/history', { key })).data).toEqual(empty)
    expect((await json('/v1/events', { key })).data).toEqual(empty)
    expect((await json('/v1/webhooks', { key })).data).toEqual({ webhooks: [], total: 0 })
    expect((await json('/v1/schedules', { key })).data).toEqual(empty)
    expect((await json('/v1/keys', { key })).data).toMatchObject({
      keys: [{ id: 'key_stranger' }],
      total: 1,
    })
    expect((await json('/v1/stats', { key })).data).toMatchObject({
      total: { verifications: 0 },
      keys: [],
    })
    expect((await json('/v1/jobs')).data).toMatchObject({ items: [{ job_id: 'job_a' }] })
    expect((await json('/v1/stats')).data).toMatchObject({ total: { verifications: 3 } })
  })

  test('cannot be reached by its cursor', async () => {
    const { json, addAccount, addKey, database } = await createOwner()
    await seedJob(database, { id: 'job_b', texts: ['valid@a.example'] })
    const { data } = (await json('/v1/jobs?limit=1')) as { data: { next_cursor: string } }
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_stranger' })
    const page = await json(`/v1/jobs?cursor=${data.next_cursor}`, { key })
    expect(page.data).toMatchObject({ items: [] })
  })
})

/** A service whose first account has one of everything. */
async function createOwner() {
  const given = await createTestService()
  const deliveryId = await addOneOfEverything(given)
  const { id } = await given.database.db.selectFrom('event').select('id').executeTakeFirstOrThrow()
  return { ...given, deliveryId, eventId: id }
}

/** Every operation with a path parameter, with an ID of the first account. */
function operationsOf(
  { paths }: { paths?: object },
  ids: { readonly deliveryId: string; readonly eventId: string },
): [method: string, path: string][] {
  return (
    Object.entries(paths ?? {})
      // Only an admin account can use the paths of accounts, and a domain belongs to no account.
      .filter(([path]) => path.includes('{') && !/^\/v1\/(accounts|domains)\//.test(path))
      .flatMap(([path, methods]) => {
        const owned = [...OWNED, [/^\/v1\/events\//, ids.eventId] as const]
        const id = owned.find(([kind]) => kind.test(path))?.[1] ?? '{unknown}'
        const known = ['get', 'post', 'put', 'patch', 'delete'].filter(name => name in methods)
        return known.map((name): [string, string] => [
          name.toUpperCase(),
          path
            .replace('{id}', id)
            .replace('{delivery_id}', ids.deliveryId)
            .replace('{row}', '1')
            // The URL of a source needs no key: the source is one of another provider.
            .replace('{provider}', 'mailgun'),
        ])
      })
  )
}

function bodyFor(method: string, path: string): { body?: object } {
  if (method === 'PUT') return { body: { url: 'https://8.8.8.8/', events: ['batch.failed'] } }
  if (path.endsWith('/recover')) return { body: { since: '2026-01-01T00:00:00Z' } }
  if (method === 'PATCH' || (method === 'POST' && !path.endsWith('/cancel'))) return { body: {} }
  return {}
}
