import { expect, test } from 'vitest'
import { DAY, SECOND } from '../../../src/platform/clock.ts'
import { createHalfwayList, createSimulatedList, SANDBOX } from '../../support/list-service.ts'
import type { createTestService } from '../../support/service.ts'

const TEXTS = ['valid@a.example', 'invalid@a.example', 'risky@a.example', 'valid@a.example']

type Options = Parameters<Awaited<ReturnType<typeof createTestService>>['request']>[1]

/** A service with a completed job, and functions that create and open links. */
async function service() {
  const fixture = await createSimulatedList(TEXTS)
  const { path: job, json, request } = fixture
  const url = `${job}/download_url`
  const create = async (body: object = {}, o: Options = {}) => {
    const { data } = (await json(url, { body, ...o })) as {
      data: { url: string; expires_at: string }
    }
    return { ...data, path: data.url.replace('https://ev.test', '') }
  }
  const open = (path: string, o: Options = {}) => request(path, { key: null, ...o })
  const codeOf = async (path: string, o: Options = {}) => {
    const response = await open(path, o)
    return [response.status, ((await response.json()) as { code: string }).code]
  }
  return { ...fixture, job, url, create, open, codeOf }
}

test.each<[string, object, string]>([
  ['all results as CSV', {}, '?format=csv'],
  [
    'a selection in another format',
    { format: 'ndjson', filter: ['deliverable', 'risky'], raw: true, deduplicate: true },
    '?format=ndjson&filter=deliverable,risky&raw=true&deduplicate=true',
  ],
])('a link returns %s without a key', async (_, body, query) => {
  const { job, create, open, request } = await service()
  const { path, expires_at } = await create(body)
  expect(expires_at).toMatch(/^2026-06-02T12:00:00/)
  const response = await open(path)
  expect(response.status).toBe(200)
  expect(response.headers.get('Cache-Control')).toBe('no-store')
  expect(response.headers.get('Referrer-Policy')).toBe('no-referrer')
  const withKey = await request(`${job}/download${query}`)
  expect(await response.text()).toBe(await withKey.text())
  expect(response.headers.get('Content-Disposition')).toBe(
    withKey.headers.get('Content-Disposition'),
  )
})

test('any change of a link makes it invalid', async () => {
  const { id, create, codeOf, submit, finished } = await service()
  const other = await submit(TEXTS, SANDBOX)
  await finished(other)
  const { path } = await create({ filter: ['deliverable'] })
  const [signed = '', signature = ''] = path.split('&signature=')
  const changed = [
    path.replace(id, other),
    path.replace('filter=deliverable', 'filter=risky'),
    path.replace('&filter=deliverable', ''),
    path.replace(/expires=\d/, 'expires=9'),
    path.replace('key_id=key_1', 'key_id=key_2'),
    path.replace('?', '?raw=true&'),
    `${path}&partial=true`,
    `${path}&signature=x&partial=true`,
    `${signed}&signature=${signature.slice(0, -1)}`,
    `${signed}&signature=${'0'.repeat(64)}`,
    `${signed}&signature=`,
    `${signed.replace('?', `?signature=${signature}&`)}`,
  ]
  for (const one of changed) {
    expect([one, ...(await codeOf(one))]).toEqual([one, 401, 'authentication_error'])
  }
})

test('a link gives nothing but its file', async () => {
  const { job, create, codeOf } = await service()
  const { path } = await create()
  const query = path.slice(path.indexOf('?'))
  for (const other of [job, `${job}/results`, '/v1/jobs']) {
    expect([other, ...(await codeOf(other + query))]).toEqual([
      ...[other, 401, 'authentication_error'],
    ])
  }
})

test('a link ends after 24 hours', async () => {
  const { create, open, codeOf, clock } = await service()
  const { path } = await create()
  await clock.advance(DAY - SECOND)
  expect((await open(path)).status).toBe(200)
  await clock.advance(SECOND)
  expect(await codeOf(path)).toEqual([401, 'key_expired'])
})

test('a link ends with its job', async () => {
  const { job, create, codeOf, request } = await service()
  const { path } = await create()
  expect((await request(job, { method: 'DELETE' })).status).toBe(204)
  expect(await codeOf(path)).toEqual([404, 'not_found'])
})

test.each(['revoked', 'rotated', 'without the scope'])(
  'a link ends when its key is %s',
  async how => {
    const { create, codeOf, request, addKey } = await service()
    const key = await addKey({ id: 'key_2', scopes: ['jobs:read'] })
    const { path } = await create({}, { key })
    const path2 = '/v1/keys/key_2'
    if (how === 'revoked') await request(path2, { method: 'DELETE' })
    if (how === 'rotated') await request(`${path2}/rotate`, { method: 'POST' })
    if (how === 'without the scope') {
      await request(path2, { method: 'PATCH', body: { scopes: ['account:read'] } })
    }
    const expected =
      how === 'without the scope' ? [403, 'insufficient_scope'] : [401, 'authentication_error']
    expect(await codeOf(path)).toEqual(expected)
  },
)

test('a link works only from the allowed addresses of its key', async () => {
  const { create, open, codeOf, addKey } = await service()
  const key = await addKey({ id: 'key_2', scopes: ['jobs:read'], allowedIps: ['192.0.2.0/24'] })
  const { path } = await create({}, { key })
  expect((await open(path)).status).toBe(200)
  expect(await codeOf(path, { ip: '198.51.100.1' })).toEqual([403, 'ip_restricted'])
})

test('a link signed with another secret of the service is invalid', async () => {
  const { create } = await service()
  const { path } = await create()
  const other = await service()
  Object.assign(other.service.secretBox, { sign: () => '0'.repeat(64) })
  expect(await other.codeOf(path)).toEqual([401, 'authentication_error'])
})

test('the audit log has the creation of a link and each download', async () => {
  const { id, create, open, json } = await service()
  const { path } = await create()
  await (await open(path, { ip: '192.0.2.7' })).text()
  const { data } = (await json('/v1/audit')) as { data: { items: object[] } }
  expect(data.items).toMatchObject([
    { action: 'results.downloaded', actor: 'link', target_id: id, ip: '192.0.2.7' },
    { action: 'results.shared', actor: 'key', target_id: id },
  ])
})

test('a link needs a completed job and the scope jobs:read', async () => {
  const halfway = await createHalfwayList()
  const unfinished = `${halfway.path}/download_url`
  const refused = await halfway.request(unfinished, { method: 'POST' })
  expect([refused.status, await refused.json()]).toEqual([
    409,
    expect.objectContaining({ code: 'job_not_ready' }),
  ])
  const partial = await halfway.json(unfinished, { body: { partial: true } })
  const link = (partial.data as { url: string }).url.replace('https://ev.test', '')
  expect((await halfway.request(link, { key: null })).status).toBe(200)
  const { url, codeOf, addKey, key } = await service()
  const post = { method: 'POST', key }
  const other = await addKey({ id: 'key_2', scopes: ['jobs:write'] })
  expect(await codeOf(url, { ...post, key: other })).toEqual([403, 'insufficient_scope'])
  expect(await codeOf(url, { ...post, body: { filter: [] } })).toEqual([400, 'invalid_request'])
})

test('a link ends with the secret that created it, if that was rotated before', async () => {
  const { create, codeOf, open, request, addKey, clock } = await service()
  const key = await addKey({ id: 'key_r' })
  const rotated = await request('/v1/keys/key_r/rotate', {
    body: { grace_period_seconds: 3_600 },
  })
  expect(rotated.status).toBe(200)
  const old = await create({}, { key })
  expect(old.expires_at).toMatch(/^2026-06-01T13:00:00/)
  const { data } = (await rotated.json()) as { data: { key: string } }
  const current = await create({}, { key: data.key })
  expect(current.expires_at).toMatch(/^2026-06-02T12:00:00/)
  await clock.advance(DAY / 24)
  expect(await codeOf(old.path)).toEqual([401, 'key_expired'])
  expect((await open(current.path)).status).toBe(200)
})
