import { expect, test } from 'vitest'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { seedJob } from '../../support/job-rows.ts'
import { verifyQueued } from '../../support/reverified-job.ts'
import { createTestService, idleWorker } from '../../support/service.ts'

const VALID = 'valid@a.example'
const TIMEOUT = 'timeout@a.example'
const TEXTS = [VALID, TIMEOUT, 'invalid@a.example']
const REVERIFY = '/v1/jobs/job_a/reverify'

type Answer = { readonly job_id: string }

async function createService(seed: Partial<Parameters<typeof seedJob>[1]> = {}) {
  const worker = idleWorker()
  const fixture = await createTestService({ deps: { worker } })
  await seedJob(fixture.database, { texts: TEXTS, ...seed })
  const reverify = async (body: object = {}, path = REVERIFY) =>
    (await fixture.json(path, { body })) as unknown as Answer
  return { ...fixture, worker, reverify }
}

test('a list that is verified again becomes a job, which names the previous one', async () => {
  const { request, json, worker } = await createService({ name: 'March' })
  const body = { only: ['unknown'], metadata: { run: '2' }, webhook_url: 'https://8.8.8.8/' }
  const response = await request(REVERIFY, { body })
  expect(response.status).toBe(201)
  const created = (await response.json()) as Answer & { webhook_id: string }
  expect(created).toMatchObject({
    status: 'queued',
    type: 'batch',
    name: 'March',
    metadata: { run: '2' },
    total_emails: 3,
    processed_emails: 2,
    previous_job_id: 'job_a',
    webhook_secret: expect.stringMatching(/^whsec_/),
  })
  expect(worker.taken).toEqual([created.job_id])
  const { webhook_secret: _, ...rest } = created as { webhook_secret?: string }
  expect(await json(`/v1/jobs/${created.job_id}`)).toMatchObject(rest)
  expect(await json('/v1/jobs/job_a')).not.toHaveProperty('previous_job_id')
})

test('the rows are those that match one of the conditions', async () => {
  const { reverify, clock, json, request } = await createService()
  await clock.advance(3 * DAY)
  const processed = async (body: object) => {
    const { job_id } = await reverify(body)
    return (await json(`/v1/jobs/${job_id}`)).processed_emails
  }
  expect(await processed({})).toBe(0)
  expect((await request(REVERIFY, { body: { older_than_days: 3 } })).status).toBe(400)
  expect(await processed({ older_than_days: 2 })).toBe(0)
  expect(await processed({ only: ['unknown', 'risky'], older_than_days: 5 })).toBe(2)
})

test('an Idempotency-Key creates one job', async () => {
  const { request, json } = await createService()
  const headers = { 'Idempotency-Key': 'once' }
  const [first, second] = [
    await request(REVERIFY, { body: {}, headers }),
    await request(REVERIFY, { body: {}, headers }),
  ]
  expect(second.headers.get('Idempotency-Replayed')).toBe('true')
  expect(await second.json()).toEqual(await first.json())
  const { data } = (await json('/v1/jobs')) as { data: { items: unknown[] } }
  expect(data.items).toHaveLength(2)
})

test.each([
  ['a job in process', { done: 1 }, {}, 409, 'job_not_reverifiable'],
  ['a single address', { type: 'single' as const }, {}, 409, 'job_not_reverifiable'],
  ['no row to verify', {}, { only: ['risky'] }, 400, 'empty_list'],
  ['an unknown class', {}, { only: ['valid'] }, 400, 'invalid_request'],
  ['no class', {}, { only: [] }, 400, 'invalid_request'],
  ['a fraction of a day', {}, { older_than_days: 0.5 }, 400, 'invalid_request'],
  ['ten years and a day', {}, { older_than_days: 3_651 }, 400, 'invalid_request'],
  ['an unknown field', {}, { olderThan: 3 }, 400, 'invalid_request'],
])('%s is refused', async (_, seed, body, status, code) => {
  const { request, worker } = await createService(seed)
  const response = await request(REVERIFY, { body })
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ code })
  expect(worker.taken).toEqual([])
})

test('a key without the scope of lists cannot verify a list again', async () => {
  const { request, addKey } = await createService()
  const key = await addKey({ scopes: ['jobs:read', 'jobs:write'] })
  const response = await request(REVERIFY, { body: {}, key })
  expect(response.status).toBe(403)
})

test('a request to the sandbox does not verify a live list', async () => {
  const { request, addKey } = await createService()
  const headers = { 'X-EV-Sandbox': 'true' }
  expect((await request(REVERIFY, { body: {}, headers })).status).toBe(404)
  const key = await addKey({ kind: 'test' })
  expect((await request(REVERIFY, { body: {}, key })).status).toBe(404)
})

test('a simulated list is simulated again', async () => {
  const { reverify, database } = await createService({ sandbox: true })
  const { job_id } = await reverify()
  expect(await readJob(database, job_id)).toMatchObject({ sandbox: 1, held: 0 })
})

test('a cancelled list is verified again as far as it has no result', async () => {
  const { reverify, database, json } = await createService({ done: 2 })
  await cancelJob(database, 'job_a')
  const { job_id } = await reverify({ only: ['unknown'] })
  expect(await json(`/v1/jobs/${job_id}`)).toMatchObject({ total_emails: 3, processed_emails: 1 })
})

test('changes have the counts of all rows, and pages of the changed ones', async () => {
  const { reverify, database, json, clock } = await createService()
  await clock.advance(DAY)
  const { job_id } = await reverify()
  const path = `/v1/jobs/${job_id}/changes`
  const none = { items: [], next_cursor: null, has_more: false }
  expect(await json(path)).toEqual({
    success: true,
    data: { previous_job_id: 'job_a', verified: 0, changed: 0, counts: [], ...none },
  })
  await verifyQueued(database, job_id, { as: { [TIMEOUT]: VALID, [VALID]: TIMEOUT } })
  const counts = [
    { from: 'deliverable', to: 'unknown', count: 1 },
    { from: 'undeliverable', to: 'undeliverable', count: 1 },
    { from: 'unknown', to: 'deliverable', count: 1 },
  ]
  const first = (await json(`${path}?limit=1`)) as { data: { next_cursor: string } }
  expect(first.data).toEqual({
    previous_job_id: 'job_a',
    verified: 3,
    changed: 2,
    counts,
    items: [
      {
        row: 1,
        email: VALID,
        before: {
          class: 'deliverable',
          reason: 'accepted_email',
          checked_at: '2026-06-01T12:00:00.000Z',
        },
        after: { class: 'unknown', reason: 'timeout', checked_at: '2026-06-02T12:00:00.000Z' },
      },
    ],
    next_cursor: expect.any(String),
    has_more: true,
  })
  expect(await json(`${path}?limit=1&cursor=${first.data.next_cursor}`)).toMatchObject({
    data: { counts, items: [{ row: 2, email: TIMEOUT }], has_more: false },
  })
  expect(await json(`${path}?from=unknown&to=deliverable,risky`)).toMatchObject({
    data: { counts, items: [{ row: 2 }], has_more: false },
  })
  expect((await json(`${path}?cursor=x`)).code).toBe('invalid_request')
  expect(await json('/v1/jobs/job_a/changes')).toEqual({
    success: true,
    data: { previous_job_id: null, verified: 0, changed: 0, counts: [], ...none },
  })
})

test('downloads have the class and the reason before', async () => {
  const { reverify, database, request } = await createService()
  const { job_id } = await reverify({ only: ['unknown'] })
  await verifyQueued(database, job_id, { as: { [TIMEOUT]: VALID } })
  const download = async (query: string) =>
    (await request(`/v1/jobs/${job_id}/download?${query}`)).text()
  const [header, kept, verified] = (await download('format=csv')).split('\r\n')
  expect(header).toMatch(/,simulated,checked_by,previous_class,previous_reason$/)
  expect(kept).toMatch(/,true,sandbox,,$/)
  expect(verified).toMatch(/,true,sandbox,unknown,timeout$/)
  const lines = (await download('format=ndjson')).trim().split('\n')
  const rows = lines.map(line => JSON.parse(line) as Record<string, unknown>)
  expect(rows[0]).not.toHaveProperty('previous_class')
  expect(rows[1]).toMatchObject({ previous_class: 'unknown', previous_reason: 'timeout' })
  const before = await (await request('/v1/jobs/job_a/download')).text()
  expect(before).not.toContain('previous')
})

test('the events of the job name the previous one', async () => {
  const { reverify, database, json } = await createService()
  await json('/v1/webhooks', { body: { url: 'https://8.8.8.8/', events: ['batch.completed'] } })
  const { job_id } = await reverify()
  await verifyQueued(database, job_id)
  const event = await database.db.selectFrom('event').select('body').executeTakeFirstOrThrow()
  expect(JSON.parse(event.body)).toMatchObject({
    event: 'batch.completed',
    data: { job_id, previous_job_id: 'job_a' },
  })
})
