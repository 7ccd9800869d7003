import { expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { knows, mail } from '../../support/engine.ts'
import { createHalfwayList, createSimulatedList, SANDBOX } from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'

const TEXTS = ['ann@a.test', 'bob@b.test', 'zoe@a.test']

type Answer = { readonly job_id: string; readonly [field: string]: unknown }

/** A service with a finished list: a good address, one whose server blocks ev, and a bad one. */
async function createService() {
  const blocking = new Set(['mx.b.test'])
  const service = await createTestService({
    works: true,
    engine: {
      zone: mail('b.test', '192.0.2.2'),
      script: {
        greeting: ({ to }) => (blocking.has(to.host) ? '554 5.7.1 Blocked by SBL' : undefined),
        answer: knows('ann', 'bob'),
      },
    },
  })
  const id = await service.submit(TEXTS, { name: 'March' })
  await service.finished(id)
  const path = `/v1/jobs/${id}/reverify`
  return {
    ...service,
    id,
    path,
    blocking,
    reverify: async (body: object = {}) => (await service.json(path, { body })) as Answer,
  }
}

test('a list that is verified again becomes a job, which names the previous one', async () => {
  const { id, path, request, json, finished } = await createService()
  const body = { only: ['unknown'], metadata: { run: '2' }, webhook_url: 'https://8.8.8.8/' }
  const response = await request(path, { body })
  expect(response.status).toBe(201)
  const created = (await response.json()) as Answer
  expect(created).toMatchObject({
    status: 'queued',
    type: 'batch',
    name: 'March',
    metadata: { run: '2' },
    total_emails: 3,
    processed_emails: 2,
    previous_job_id: id,
    webhook_secret: expect.stringMatching(/^whsec_/),
  })
  await finished(created.job_id)
  expect(await json(`/v1/jobs/${created.job_id}`)).toMatchObject({
    webhook_id: created.webhook_id,
    previous_job_id: id,
  })
  expect(await json(`/v1/jobs/${id}`)).not.toHaveProperty('previous_job_id')
})

test('the rows are those that match one of the conditions', async () => {
  const { reverify, clock, path, request } = await createService()
  await clock.advance(3 * DAY - 1_000)
  expect(await reverify()).toMatchObject({ processed_emails: 0 })
  expect((await request(path, { body: { older_than_days: 3 } })).status).toBe(400)
  expect(await reverify({ older_than_days: 2 })).toMatchObject({ processed_emails: 0 })
  const both = { only: ['unknown', 'risky'], older_than_days: 5 }
  expect(await reverify(both)).toMatchObject({ processed_emails: 2 })
})

test('an Idempotency-Key creates one job', async () => {
  const { path, request, json } = await createService()
  const headers = { 'Idempotency-Key': 'once' }
  const [first, second] = [
    await request(path, { body: {}, headers }),
    await request(path, { body: {}, headers }),
  ]
  expect(second.headers.get('Idempotency-Replayed')).toBe('true')
  expect(await second.json()).toEqual(await first.json())
  const { data } = (await json('/v1/jobs')) as { data: { items: unknown[] } }
  expect(data.items).toHaveLength(2)
})

test.each([
  ['no row to verify', { only: ['risky'] }, 'empty_list'],
  ['an unknown class', { only: ['valid'] }, 'invalid_request'],
  ['no class', { only: [] }, 'invalid_request'],
  ['a fraction of a day', { older_than_days: 0.5 }, 'invalid_request'],
  ['ten years and a day', { older_than_days: 3_651 }, 'invalid_request'],
  ['an unknown field', { olderThan: 3 }, 'invalid_request'],
])('%s is refused', async (_, body, code) => {
  const { path, request, json } = await createService()
  const response = await request(path, { body })
  expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code })])
  expect(await json('/v1/jobs')).toMatchObject({ data: { items: [{ status: 'completed' }] } })
})

test('a list in process and a single address are refused', async () => {
  const { path, request, json } = await createHalfwayList()
  const single = await json('/v1/verify/single', { body: { email: 'valid@a.test', async: true } })
  for (const one of [path, `/v1/jobs/${single.verification_id}`]) {
    const response = await request(`${one}/reverify`, { body: {} })
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({ code: 'job_not_reverifiable' })
  }
})

test('a key without the scope of lists cannot verify a list again', async () => {
  const { path, request, addKey } = await createService()
  const key = await addKey({ scopes: ['jobs:read', 'jobs:write'] })
  const response = await request(path, { body: {}, key })
  expect(response.status).toBe(403)
})

test('a request to the sandbox does not verify a live list', async () => {
  const { path, request, addKey } = await createService()
  expect((await request(path, { body: {}, ...SANDBOX })).status).toBe(404)
  const key = await addKey({ kind: 'test' })
  expect((await request(path, { body: {}, key })).status).toBe(404)
})

test('a simulated list is simulated again, without credits', async () => {
  const { path, json, credits } = await createSimulatedList(TEXTS, {}, { plan: 'free' })
  expect(await json(`${path}/reverify`, { body: {} })).toMatchObject({ sandbox: true })
  expect(await credits()).toEqual({ used: 0, held: 0 })
})

test('a cancelled list is verified again as far as it has no result', async () => {
  const { path, request, json } = await createHalfwayList()
  await request(`${path}/cancel`, { method: 'POST' })
  const body = { only: ['unknown'] }
  expect(await json(`${path}/reverify`, { body })).toMatchObject({
    total_emails: 6,
    processed_emails: 2,
  })
})

test('changes have the counts of all rows, and pages of the changed ones', async () => {
  const { id, reverify, blocking, json, clock, finished } = await createService()
  await clock.advance(DAY)
  blocking.clear()
  blocking.add('mx.a.test')
  const { job_id } = await reverify()
  const path = `/v1/jobs/${job_id}/changes`
  const none = { items: [], next_cursor: null, has_more: false }
  await finished(job_id)
  const counts = [
    { from: 'deliverable', to: 'unknown', count: 1 },
    { from: 'undeliverable', to: 'unknown', count: 1 },
    { from: 'unknown', to: 'deliverable', count: 1 },
  ]
  const first = (await json(`${path}?limit=1`)) as { data: { next_cursor: string } }
  expect(first.data).toEqual({
    previous_job_id: id,
    verified: 3,
    changed: 3,
    counts,
    items: [
      {
        row: 1,
        email: 'ann@a.test',
        before: {
          class: 'deliverable',
          reason: 'accepted_email',
          checked_at: expect.stringMatching(/^2026-06-01T12:00:/),
        },
        after: {
          class: 'unknown',
          reason: 'probe_blocked',
          checked_at: expect.stringMatching(/^2026-06-02T12:00:/),
        },
      },
    ],
    next_cursor: expect.any(String),
    has_more: true,
  })
  expect(await json(`${path}?limit=1&cursor=${first.data.next_cursor}`)).toMatchObject({
    data: { counts, items: [{ row: 2, email: 'bob@b.test' }], has_more: true },
  })
  expect(await json(`${path}?from=unknown&to=deliverable,risky`)).toMatchObject({
    data: { counts, items: [{ row: 2 }], has_more: false },
  })
  expect((await json(`${path}?cursor=x`)).code).toBe('invalid_request')
  expect(await json(`/v1/jobs/${id}/changes`)).toEqual({
    success: true,
    data: { previous_job_id: null, verified: 0, changed: 0, counts: [], ...none },
  })
})

test('changes of a list in process are those so far', async () => {
  const { path, id, json } = await createHalfwayList()
  await json(`${path}/cancel`, { method: 'POST' })
  const { job_id } = await json(`${path}/reverify`, { body: { only: ['unknown'] } })
  expect(await json(`/v1/jobs/${job_id}/changes`)).toMatchObject({
    data: { previous_job_id: id, verified: 0, changed: 0, counts: [], items: [] },
  })
})

test('downloads have the class and the reason before, and events the previous job', async () => {
  const { id, reverify, blocking, request, clock, finished, json } = await createService()
  const hook = { url: 'https://8.8.8.8/', events: ['batch.completed'] }
  await json('/v1/webhooks', { body: hook })
  blocking.clear()
  await clock.advance(DAY)
  const { job_id } = await reverify({ only: ['unknown'] })
  await finished(job_id)
  const download = async (query: string) =>
    (await request(`/v1/jobs/${job_id}/download?${query}`)).text()
  const [header, kept, verified] = (await download('format=csv')).split('\r\n')
  expect(header).toMatch(/,previous_class,previous_reason$/)
  expect(kept).toMatch(/,,$/)
  expect(verified).toMatch(/,deliverable,.*,unknown,probe_blocked$/)
  const lines = (await download('format=ndjson')).trim().split('\n')
  const rows = lines.map(line => JSON.parse(line) as Record<string, unknown>)
  expect(rows[0]).not.toHaveProperty('previous_class')
  expect(rows[1]).toMatchObject({ previous_class: 'unknown', previous_reason: 'probe_blocked' })
  const before = await (await request(`/v1/jobs/${id}/download`)).text()
  expect(before).not.toContain('previous')
  expect(await json('/v1/events')).toMatchObject({
    data: { items: [{ event: 'batch.completed', data: { job_id, previous_job_id: id } }] },
  })
})
