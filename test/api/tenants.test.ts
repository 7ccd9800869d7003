import { describe, expect, test } from 'vitest'
import { addOneOfEverything, type OwnedIds } from '../support/owned-rows.ts'
import { createTestService } from '../support/service.ts'

/** IDs of the first account, one for each kind of path. */
const ownedIds = (ids: OwnedIds): readonly [path: RegExp, id: string][] => [
  [/^\/v1\/(jobs|verify\/bulk)\//, ids.job],
  [/^\/v1\/keys\//, 'key_1'],
  [/^\/v1\/people\//, ids.person],
  [/^\/v1\/webhooks\//, ids.webhook],
  [/^\/v1\/feedback\//, ids.source],
  [/^\/v1\/schedules\//, ids.schedule],
  [/^\/v1\/events\//, ids.event],
]

describe('data of another account', () => {
  test('returns 404 for every path and method', async () => {
    const { request, json, stranger: key, post, ids } = await createOwner()
    const asked = operationsOf(await json('/openapi.json'), ids)
    for (const [method, path] of asked) {
      const response = await request(path, { method, key, ...bodyFor(method, path) })
      expect(post.sent).toEqual([])
      const answer = [method, path, response.status, (await response.json()) as object]
      expect(answer).toEqual([method, path, 404, expect.objectContaining({ code: 'not_found' })])
    }
    // Fails if a new kind of path is missing above.
    expect(asked.length).toBeGreaterThanOrEqual(22)
    expect(asked.filter(([, path]) => path.includes('{'))).toEqual([])
    const job = `/v1/jobs/${ids.job}`
    for (const path of [
      ...[job, `/v1/webhooks/${ids.webhook}`, `${job}/download`],
      ...[`${job}/results`, `${job}/results/1`, `${job}/breakdown`],
      ...[`/v1/webhooks/${ids.webhook}/deliveries/${ids.delivery}`, `/v1/events/${ids.event}`],
    ]) {
      expect((await request(path)).status).toBe(200)
    }
  })

  test('includes its deliveries', async () => {
    const { request, json, stranger: key, ids } = await createOwner()
    const body = { url: 'https://8.8.8.8/', events: ['batch.completed'] }
    const { data } = (await json('/v1/webhooks', { body, key })) as { data: { id: string } }
    const deliveries = `/v1/webhooks/${data.id}/deliveries`
    const one = `${deliveries}/${ids.delivery}`
    expect((await request(one, { key })).status).toBe(404)
    expect((await request(`${one}/retry`, { key, method: 'POST' })).status).toBe(404)
    expect(await json(deliveries, { key })).toMatchObject({ data: { items: [] } })
  })

  test('is not in any list or count', async () => {
    const { json, stranger: key, ids } = await createOwner()
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
    expect((await json('/v1/jobs')).data).toMatchObject({ items: [{ job_id: ids.job }] })
    expect((await json('/v1/stats')).data).toMatchObject({ total: { verifications: 1 } })
  })

  test('cannot be reached by its cursor', async () => {
    const { json, submit, stranger: key } = await createOwner()
    await submit(['ann@a.test'])
    const { data } = (await json('/v1/jobs?limit=1')) as { data: { next_cursor: string } }
    const page = await json(`/v1/jobs?cursor=${data.next_cursor}`, { key })
    expect(page.data).toMatchObject({ items: [] })
  })
})

/** A service whose first account has one of everything, and a key of another account. */
async function createOwner() {
  const service = await createTestService({ works: true })
  const ids = await addOneOfEverything(service)
  await service.addAccount('acc_2')
  const stranger = await service.addKey({ accountId: 'acc_2', id: 'key_stranger' })
  return { ...service, ids, stranger }
}

/** Every operation with a path parameter, with an ID of the first account. */
function operationsOf(
  { paths }: { readonly paths?: unknown },
  ids: OwnedIds,
): [method: string, path: string][] {
  return (
    Object.entries(paths as Record<string, object>)
      // Only an admin account can use the paths of accounts, and a domain belongs to no account.
      .filter(([path]) => path.includes('{') && !/^\/v1\/(accounts|domains)\//.test(path))
      .flatMap(([path, methods]) => {
        const id = ownedIds(ids).find(([kind]) => kind.test(path))?.[1] ?? '{unknown}'
        const known = ['get', 'post', 'put', 'patch', 'delete'].filter(name => name in methods)
        return known.map((name): [string, string] => [
          name.toUpperCase(),
          path
            .replace('{id}', id)
            .replace('{delivery_id}', ids.delivery)
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
