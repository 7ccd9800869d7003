import { describe, expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../../src/accounts/credits/credit-store.ts'
import { periodStart } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { findJob } from '../../../src/jobs/job-store.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { createTestService, idleWorker } from '../../support/service.ts'

const POST = { method: 'POST' }
const DELETE = { method: 'DELETE' }

describe('cancelling a job', () => {
  test('cancels it, notifies the worker, and returns the job', async () => {
    const worker = idleWorker()
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 2 })
    const response = await request('/v1/jobs/job_a/cancel', POST)
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      success: true,
      job_id: 'job_a',
      status: 'cancelled',
      progress: 33,
      error: null,
      data: {
        summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 4 },
        completed_at: '2026-06-01T12:00:00.000Z',
        download_url: null,
      },
    })
    expect(worker.dropped).toEqual(['job_a'])
    expect(await findJob(database, 'job_a')).toMatchObject({ state: 'cancelled' })
  })

  test('returns its unused credits', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 0 })
    const period = periodStart(database.clock.now())
    await holdFor(database, period, 6)
    expect(await readCredit(database, 'acc_1', period)).toMatchObject({ held: 6 })
    await request('/v1/jobs/job_a/cancel', POST)
    expect(await readCredit(database, 'acc_1', period)).toMatchObject({ held: 0, used: 0 })
  })

  test('a second time returns it unchanged', async () => {
    const worker = idleWorker()
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 0 })
    const first = await (await request('/v1/jobs/job_a/cancel', POST)).json()
    const again = await request('/v1/jobs/job_a/cancel', POST)
    expect(again.status).toBe(200)
    expect(await again.json()).toEqual(first)
    expect(worker.dropped).toEqual(['job_a'])
  })

  test('that is completed is refused', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const response = await request('/v1/jobs/job_a/cancel', POST)
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({
      success: false,
      code: 'job_not_cancellable',
      error: 'The job is already completed.',
    })
  })
})

describe('finishing a job', () => {
  test('records the request with its origin, and returns the job', async () => {
    const { database, request, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const response = await request('/v1/jobs/job_a/finish', POST)
    expect(response.status).toBe(200)
    const first = await response.json()
    expect(first).toMatchObject({
      success: true,
      job_id: 'job_a',
      status: 'processing',
      processed_emails: 2,
      finish_requested_at: '2026-06-01T12:00:00.000Z',
    })
    expect(await (await request('/v1/jobs/job_a/finish', POST)).json()).toEqual(first)
    expect(await json('/v1/audit?action=job.finished')).toMatchObject({
      data: { items: [{ action: 'job.finished', actor: 'key', target_id: 'job_a' }] },
    })
  })

  test('returns a completed job unchanged, and refuses a cancelled one', async () => {
    const { database, request, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const before = await json('/v1/jobs/job_a')
    expect(await (await request('/v1/jobs/job_a/finish', POST)).json()).toEqual(before)
    await seedJob(database, { id: 'job_b', texts: MIXED, done: 1 })
    await request('/v1/jobs/job_b/cancel', POST)
    const refused = await request('/v1/jobs/job_b/finish', POST)
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({
      code: 'job_not_finishable',
      error: 'The job has been cancelled. Resume it first with POST /v1/jobs/{id}/resume.',
    })
  })

  test('needs the scope jobs:write, and a job of the account', async () => {
    const { database, request, addKey } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const key = await addKey({ scopes: ['jobs:read'] })
    expect((await request('/v1/jobs/job_a/finish', { ...POST, key })).status).toBe(403)
    expect((await request('/v1/jobs/job_x/finish', POST)).status).toBe(404)
  })
})

describe('deleting a job', () => {
  test('deletes it with its addresses', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const response = await request('/v1/jobs/job_a', DELETE)
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    expect((await request('/v1/jobs/job_a')).status).toBe(404)
    expect(await database.db.selectFrom('item').selectAll().execute()).toEqual([])
    expect((await request('/v1/jobs/job_a', DELETE)).status).toBe(404)
  })

  test('deletes its rows of the history and nothing else; statistics remain', async () => {
    const { database, json, request, ledger, clock, settled } = await createTestService()
    const before = await json('/v1/verify/bulk', { body: { emails: ['ann@a.test'] } })
    await clock.advance(5)
    const { job_id } = await json('/v1/verify/bulk', { body: { emails: ['bob@a.test', 'x'] } })
    await settled(ledger.flushed())
    const [stats, history] = [await json('/v1/stats'), await emailsOf(json)]
    expect(history.toSorted()).toEqual(['ann@a.test', 'bob@a.test', 'x'])
    expect((await request(`/v1/jobs/${job_id}`, DELETE)).status).toBe(204)
    expect(await emailsOf(json)).toEqual(['ann@a.test'])
    expect(await json('/v1/stats')).toEqual(stats)
    const rows = await database.db.selectFrom('verification').select('job_id').execute()
    expect(rows).toEqual([{ job_id: before.job_id }])
  })

  test('that is running cancels it first', async () => {
    const worker = idleWorker()
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 2 })
    const period = periodStart(database.clock.now())
    await holdFor(database, period, 4)
    expect((await request('/v1/jobs/job_a', DELETE)).status).toBe(204)
    expect(worker.dropped).toEqual(['job_a'])
    expect(await readCredit(database, 'acc_1', period)).toMatchObject({ held: 0 })
    expect(await findJob(database, 'job_a')).toBeNull()
  })
})

describe('the list of jobs', () => {
  test('is sorted newest first, in pages, each job once', async () => {
    const { database, json, clock } = await createTestService()
    for (let n = 1; n <= 5; n++) {
      await seedJob(database, { id: `job_${n}`, texts: ['valid@a.example'] })
      // Some share a timestamp.
      if (n % 2 === 0) await clock.advance(1)
    }
    const seen: string[] = []
    let path = '/v1/jobs?limit=2'
    for (let pages = 0; pages < 3; pages++) {
      const { data } = (await json(path)) as { data: Page }
      seen.push(...data.items.map(job => job.job_id))
      expect(data.has_more).toBe(pages < 2)
      expect(data.next_cursor === null).toBe(pages === 2)
      path = `/v1/jobs?limit=2&cursor=${data.next_cursor}`
    }
    expect(seen).toEqual(['job_5', 'job_4', 'job_3', 'job_2', 'job_1'])
  })

  test('filters by state and separates the sandbox', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { id: 'job_done', texts: ['valid@a.example'] })
    await seedJob(database, { id: 'job_new', texts: ['valid@a.example'], done: 0 })
    await seedJob(database, { id: 'job_sbx_1', texts: ['valid@a.example'], sandbox: true })
    await seedJob(database, { id: 'ver_1', texts: ['valid@a.example'], type: 'single' })
    const ids = async (path: string, headers = {}) =>
      ((await json(path, { headers })) as { data: Page }).data.items.map(job => job.job_id)
    expect(await ids('/v1/jobs?status=queued')).toEqual(['job_new'])
    expect(await ids('/v1/jobs?status=completed')).toEqual(['job_done'])
    expect(await ids('/v1/jobs?status=failed')).toEqual([])
    expect(await ids('/v1/jobs', { 'X-EV-Sandbox': 'true' })).toEqual(['job_sbx_1'])
    const all = '/v1/jobs?include_sandbox=true'
    expect((await ids(all)).toSorted()).toEqual(['job_done', 'job_new', 'job_sbx_1'])
    expect(await ids(`${all}&status=completed`)).toHaveLength(2)
    expect(await ids('/v1/jobs?include_sandbox=false')).toHaveLength(2)
    expect(await ids(all, { 'X-EV-Sandbox': 'true' })).toEqual(['job_sbx_1'])
  })

  test('has the fields of each job, without results', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, name: 'March list' })
    const { success: _, ...alone } = await json('/v1/jobs/job_a')
    const { data } = (await json('/v1/jobs')) as { data: Page }
    expect(data).toEqual({ items: [alone], next_cursor: null, has_more: false })
  })

  test.each(['limit=0', 'limit=201', 'limit=all', 'status=loading', 'cursor=x', 'cursor=e30'])(
    'rejects %s',
    async query => {
      const { request } = await createTestService()
      const response = await request(`/v1/jobs?${query}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'invalid_request' })
    },
  )
})

async function emailsOf(json: (path: string) => Promise<unknown>): Promise<string[]> {
  const { data } = (await json('/v1/history')) as { data: { items: { email: string }[] } }
  return data.items.map(({ email }) => email)
}

type Page = { items: { job_id: string }[]; next_cursor: string | null; has_more: boolean }

/** Reserves credits for the job, like its submission. */
const holdFor = (database: Database, period: number, amount: number) =>
  write(database, async trx => {
    await reserveCredits(trx, { accountId: 'acc_1', period, amount, limit: null })
    await trx.updateTable('job').set({ held: amount, credit_period: period }).execute()
  })
