import { describe, expect, test } from 'vitest'
import { createTestService, idleWorker } from '../../support/service.ts'

const PATH = '/v1/verify/batch'

describe('POST /v1/verify/batch', () => {
  test('creates a job even for one address, and returns the queued form with links', async () => {
    const { request, worker } = await createTestService()
    const emails = ['a@a.test', 'b@a.test', 'a@a.test']
    const response = await request(PATH, { body: { emails, name: 'March list' } })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { job_id: string }
    const { job_id } = body
    expect(body).toEqual({
      success: true,
      job_id: expect.stringMatching(/^job_/),
      status: 'queued',
      total_emails: 3,
      valid_emails: 3,
      invalid_format_emails: 0,
      no_address: 0,
      estimated_time: '10 seconds',
      message: `Batch queued. Check GET /v1/jobs/${job_id}`,
      duplicates: 1,
      status_url: `https://ev.test/v1/jobs/${job_id}`,
      download_url: `https://ev.test/v1/jobs/${job_id}/download`,
    })
    expect(worker).toMatchObject({ taken: [job_id] })
  })

  test('refuses 50,001 addresses', async () => {
    const { request, database } = await createTestService()
    const emails = Array.from({ length: 50_001 }, (_, n) => `user${n}@a.test`)
    const refused = await request(PATH, { body: { emails } })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'too_many_emails' })
    expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  })

  test('keeps the ID of each item', async () => {
    const { json, database } = await createTestService()
    const items = [
      { email: 'a@a.test', id: 'x-1' },
      { email: 'b@a.test', id: 2 },
      { email: 'c@a.test' },
    ]
    expect(await json(PATH, { body: { items } })).toMatchObject({ total_emails: 3 })
    const rows = await database.db.selectFrom('item').select('cells').orderBy('position').execute()
    expect(rows.map(({ cells }) => cells)).toEqual(['"x-1"', '"2"', null])
  })

  test('verifies each row with deduplicate: false', async () => {
    const { json, database } = await createTestService()
    const emails = ['a@a.test', 'a@a.test']
    expect(await json(PATH, { body: { emails, deduplicate: false } })).toMatchObject({
      duplicates: 0,
    })
    const states = await database.db.selectFrom('item').select('state').execute()
    expect(states).toEqual([{ state: 'queued' }, { state: 'queued' }])
  })

  test('accepts malformed text as a row', async () => {
    const { json } = await createTestService()
    const body = await json(PATH, { body: { emails: ['', '  ', 'nonsense', 'a@a.test'] } })
    expect(body).toMatchObject({ total_emails: 4, valid_emails: 1, invalid_format_emails: 1 })
    expect(body).toMatchObject({ no_address: 2, duplicates: 0 })
  })

  test('reserves no credit for a row without an address', async () => {
    const fixture = await createTestService({ plan: 'free', deps: { worker: idleWorker() } })
    const emails = ['a@a.test', '', 'n/a', '', 'null']
    const { job_id } = await fixture.json(PATH, { body: { emails } })
    const job = await fixture.database.db.selectFrom('job').selectAll().executeTakeFirstOrThrow()
    expect(job).toMatchObject({ id: job_id, total: 5, no_address: 4, malformed: 0, duplicates: 0 })
    expect(job.held).toBe(1)
    const items = await fixture.database.db.selectFrom('item').select(['state', 'text']).execute()
    expect(items.map(({ state }) => state)).toEqual(Array(5).fill('queued'))
  })

  test.each<[string, object, string, RegExp]>([
    ['neither', {}, 'emails_required', /needs "emails"/],
    [
      'both',
      { emails: ['a@a.test'], items: [{ email: 'a@a.test' }] },
      'invalid_request',
      /Give one/,
    ],
    ['no list', { items: {} }, 'emails_required', /needs "items"/],
    ['an empty list', { items: [] }, 'empty_list', /at least one/],
    [
      'an item that is a string',
      { items: ['a@a.test'] },
      'invalid_request',
      /^"items\[0\]" is not an object/,
    ],
    [
      'an item without an address',
      { items: [{ id: '1' }] },
      'invalid_request',
      /^"items\[0\]\.email" is missing/,
    ],
    [
      'an id that is an object',
      { items: [{ email: 'a', id: {} }] },
      'invalid_request',
      /^"items\[0\]\.id" is \{\}/,
    ],
    [
      'an id that is too long',
      { items: [{ email: 'a', id: 'x'.repeat(257) }] },
      'invalid_request',
      /256 characters/,
    ],
    [
      'a name that is a number',
      { emails: ['a@a.test'], name: 7 },
      'invalid_request',
      /"name" is 7; it must be a string of at most 200 characters/,
    ],
    [
      'a name that is too long',
      { emails: ['a@a.test'], name: 'x'.repeat(201) },
      'invalid_request',
      /200 characters/,
    ],
    [
      'deduplicate as text',
      { emails: ['a@a.test'], deduplicate: 'yes' },
      'invalid_request',
      /"deduplicate"/,
    ],
  ])('refuses %s', async (_, body, code, error) => {
    const { request, database } = await createTestService()
    const response = await request(PATH, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code, error: expect.stringMatching(error) })
    expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  })

  test('refuses a body of more than 16 MiB before it reads it', async () => {
    const { request } = await createTestService()
    const response = await request(PATH, { body: `{"emails":["${'x'.repeat(17 * 1024 * 1024)}"]}` })
    expect(response.status).toBe(413)
  })
})

describe('"async": true', () => {
  const path = '/v1/verify/single'

  test('creates a job of one address, and returns its ID', async () => {
    const { request, worker, database, mx } = await createTestService()
    const response = await request(path, { body: { email: 'ann@a.test', async: true } })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { verification_id: string }
    expect(body).toEqual({
      success: true,
      verification_id: expect.stringMatching(/^ver_[a-z0-9]{20}$/),
      status: 'queued',
    })
    const job = await database.db.selectFrom('job').selectAll().executeTakeFirstOrThrow()
    expect(job).toMatchObject({
      id: body.verification_id,
      type: 'single',
      state: 'queued',
      total: 1,
    })
    expect(worker).toMatchObject({ taken: [body.verification_id] })
    expect(mx.lines()).toEqual([])
  })

  test('refuses what cannot be an address, as without async', async () => {
    const { request } = await createTestService()
    const response = await request(path, { body: { email: 'nonsense', async: true } })
    expect(await response.json()).toMatchObject({ code: 'invalid_email' })
  })

  test('cannot be combined with include', async () => {
    const { request } = await createTestService()
    const body = { email: 'ann@a.test', async: true }
    const response = await request(`${path}?include=flags`, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request' })
  })
})
