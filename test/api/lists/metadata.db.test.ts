import { expect, test } from 'vitest'
import { createUploadService, form } from '../../support/list-form.ts'

const METADATA = { customer: '42', 'campaign.name': 'März “1”' }
const EMAILS = Array.from({ length: 11 }, (_, n) => `user${n}@a.test`)

type Body = Readonly<Record<string, unknown>>

/** A service with an endpoint for all events of jobs. */
async function service() {
  const fixture = await createUploadService({ works: true })
  const { json, request, send, settled } = fixture
  const events = ['batch.completed', 'batch.failed', 'verification.completed']
  await json('/v1/webhooks', { body: { url: 'https://8.8.8.8/hook', events } })
  const ask = {
    instant: (body: Body) =>
      request('/v1/verify/bulk', { body: { emails: ['ann@a.test'], ...body } }),
    bulk: (body: Body) => request('/v1/verify/bulk', { body: { emails: EMAILS, ...body } }),
    batch: (body: Body) => request('/v1/verify/batch', { body: { emails: EMAILS, ...body } }),
    file: ({ metadata }: Body) =>
      send(
        form([
          ['metadata', JSON.stringify(metadata)],
          ['file', { file: 'ann@a.test\n' }],
        ]),
      ),
    single: (body: Body) =>
      request('/v1/verify/single', { body: { email: 'ann@a.test', async: true, ...body } }),
  }
  const submit = async (kind: keyof typeof ask, body: Body) => {
    const response = await settled(ask[kind](body))
    expect([kind, response.status]).toEqual([kind, 200])
    const { job_id, verification_id } = (await response.json()) as Record<string, string>
    return job_id ?? verification_id ?? ''
  }
  const listed = async (query = '') => {
    const { data } = (await json(`/v1/jobs${query}`)) as unknown as { data: { items: Body[] } }
    return data.items
  }
  return { ...fixture, ask, submit, listed }
}

const KINDS = ['instant', 'bulk', 'batch', 'file', 'single'] as const

test.each(KINDS)('metadata of %s is returned with the job and in its event', async kind => {
  const fixture = await service()
  const { submit, json, listed } = fixture
  const id = await submit(kind, { metadata: METADATA })
  expect((await json(`/v1/jobs/${id}`)).metadata).toEqual(METADATA)
  if (kind !== 'single') expect((await listed())[0]?.metadata).toEqual(METADATA)
  if (kind === 'instant') return
  await fixture.finished(id)
  const { data } = (await json('/v1/events')) as unknown as { data: { items: { data: Body }[] } }
  expect(data.items[0]?.data.metadata).toEqual(METADATA)
})

test('a job without metadata has an empty object', async () => {
  const { submit, json } = await service()
  const id = await submit('batch', {})
  expect((await json(`/v1/jobs/${id}`)).metadata).toEqual({})
})

test('jobs are filtered by all given pairs', async () => {
  const { submit, listed, request } = await service()
  const a = await submit('batch', { metadata: { customer: '42', team: 'x & y' } })
  const b = await submit('batch', { metadata: { customer: '42' } })
  await submit('batch', { metadata: { customer: '7' } })
  await submit('batch', {})
  const ids = async (query: string) => (await listed(query)).map(({ job_id }) => job_id).sort()
  expect(await ids('?metadata[customer]=42')).toEqual([a, b].sort())
  expect(await ids('?metadata[customer]=42&metadata[team]=x%20%26%20y')).toEqual([a])
  expect(await ids('?metadata[customer]=4')).toEqual([])
  expect(await ids("?metadata[cust'omer]=42")).toEqual([])
  for (const query of ['?status[a]=queued', '?meta[a]=1', '?metadata=1']) {
    expect([query, (await request(`/v1/jobs${query}`)).status]).toEqual([query, 400])
  }
})

test.each<[string, unknown, RegExp]>([
  ['no object', 'x', /^"metadata" is "x"; it must be an object/],
  ['an array', ['x'], /^"metadata" is \["x"\]; it must be an object/],
  [
    'a number as a value',
    { a: 1 },
    /^"metadata" has 1 under "a"; a value is a string of at most 500/,
  ],
  ['a long value', { a: 'x'.repeat(501) }, /under "a"; a value is a string of at most 500/],
  ['a long key', { ['k'.repeat(41)]: '' }, /a key has 1 to 40 characters/],
  ['an empty key', { '': 'x' }, /a key has 1 to 40 characters/],
  ['a key with a bracket', { 'a]': 'x' }, /a key has 1 to 40 characters and no \[ or \]/],
  ['a NUL', { a: '\0' }, /a value is a string/],
  [
    'too many keys',
    Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, ''])),
    /^"metadata" has 51 keys; the maximum is 50\.$/,
  ],
])('metadata with %s is refused by all operations', async (_, metadata, message) => {
  const { ask, job } = await service()
  for (const kind of KINDS) {
    const response = await ask[kind]({ metadata })
    const body = (await response.json()) as Body
    expect([kind, response.status, body.code]).toEqual([kind, 400, 'invalid_request'])
    expect(body.error).toMatch(message)
  }
  expect(await job()).toBeUndefined()
})

test('the largest metadata fits a form', async () => {
  const { submit, json } = await service()
  const pairs = Array.from({ length: 50 }, (_, n) => [`${n}`.padStart(40, '€'), '€'.repeat(500)])
  const metadata = Object.fromEntries(pairs)
  const id = await submit('file', { metadata })
  expect((await json(`/v1/jobs/${id}`)).metadata).toEqual(metadata)
})

test('a form field that is no JSON is refused', async () => {
  const { upload } = await createUploadService()
  const response = await upload('a@a.test\n', { metadata: 'customer=42' })
  expect(response.status).toBe(400)
  expect(((await response.json()) as Body).error).toMatch(
    /^"metadata" is not valid JSON: unexpected "c"; it must be/,
  )
})

test('metadata of a verification within the request is refused', async () => {
  const { request } = await service()
  const body = { email: 'ann@a.test', metadata: METADATA }
  const response = await request('/v1/verify/single', { body })
  expect(response.status).toBe(400)
  expect(((await response.json()) as Body).error).toMatch(/^"metadata" belongs to a job\./)
})
