import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { MIXED } from '../../support/job-rows.ts'
import {
  createHalfwayList,
  createSimulatedList,
  HALFWAY,
  SANDBOX,
} from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'

const POST = { method: 'POST' }
const DELETE = { method: 'DELETE' }

describe('cancelling a job', () => {
  test('cancels it, stops the work, returns its unused credits and the job', async () => {
    const list = await createHalfwayList({}, { plan: 'free' })
    const { path, id, request, mx, clock } = list
    expect(await list.credits()).toEqual({ used: 2, held: 4 })
    const response = await request(`${path}/cancel`, POST)
    expect(response.status).toBe(200)
    const cancelled = (await response.json()) as object
    expect(cancelled).toMatchObject({
      success: true,
      job_id: id,
      status: 'cancelled',
      progress: 33,
      error: null,
      data: {
        summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 4 },
        completed_at: expect.stringMatching(/^2026-06-01T12:00:00/),
        download_url: null,
      },
    })
    expect(await list.credits()).toEqual({ used: 2, held: 0 })
    const again = await request(`${path}/cancel`, POST)
    expect([again.status, await again.json()]).toEqual([200, cancelled])
    const { length } = mx.lines()
    await list.finish()
    await clock.advance(MINUTE)
    expect(mx.lines()).toHaveLength(length)
  })

  test('that is completed is refused', async () => {
    const { path, request } = await createSimulatedList(MIXED)
    const response = await request(`${path}/cancel`, POST)
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
    const { path, id, request, json } = await createHalfwayList()
    const response = await request(`${path}/finish`, POST)
    expect(response.status).toBe(200)
    const first = (await response.json()) as object
    expect(first).toMatchObject({
      success: true,
      job_id: id,
      status: 'processing',
      processed_emails: 2,
      finish_requested_at: expect.stringMatching(/^2026-06-01T12:00:00/),
    })
    expect(await (await request(`${path}/finish`, POST)).json()).toMatchObject({
      finish_requested_at: (first as Record<string, unknown>).finish_requested_at,
    })
    expect(await json('/v1/audit?action=job.finished')).toMatchObject({
      data: { items: [{ action: 'job.finished', actor: 'key', target_id: id }] },
    })
  })

  test('returns a completed job unchanged, and refuses a cancelled one', async () => {
    const { path, submit, request, json } = await createSimulatedList(MIXED)
    const before = await json(path)
    expect(await (await request(`${path}/finish`, POST)).json()).toEqual(before)
    const other = `/v1/jobs/${await submit(HALFWAY)}`
    await request(`${other}/cancel`, POST)
    const refused = await request(`${other}/finish`, POST)
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({
      code: 'job_not_finishable',
      error: 'The job has been cancelled. Resume it first with POST /v1/jobs/{id}/resume.',
    })
  })

  test('needs the scope jobs:write, and a job of the account', async () => {
    const { submit, request, addKey } = await createTestService()
    const path = `/v1/jobs/${await submit(MIXED)}/finish`
    const key = await addKey({ scopes: ['jobs:read'] })
    expect((await request(path, { ...POST, key })).status).toBe(403)
    expect((await request('/v1/jobs/job_x/finish', POST)).status).toBe(404)
  })
})

describe('deleting a job', () => {
  test('deletes it with its addresses', async () => {
    const { path, request, database } = await createSimulatedList(MIXED)
    const response = await request(path, DELETE)
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    expect((await request(path)).status).toBe(404)
    expect(await database.db.selectFrom('item').selectAll().execute()).toEqual([])
    expect((await request(path, DELETE)).status).toBe(404)
  })

  test('deletes its rows of the history and nothing else; statistics remain', async () => {
    const { json, request, ledger, clock, settled } = await createTestService()
    await json('/v1/verify/bulk', { body: { emails: ['ann@a.test'] } })
    await clock.advance(5)
    const { job_id } = await json('/v1/verify/bulk', { body: { emails: ['bob@a.test', 'x'] } })
    await settled(ledger.flushed())
    const [stats, history] = [await json('/v1/stats'), await emailsOf(json)]
    expect(history.toSorted()).toEqual(['ann@a.test', 'bob@a.test', 'x'])
    expect((await request(`/v1/jobs/${job_id}`, DELETE)).status).toBe(204)
    expect(await emailsOf(json)).toEqual(['ann@a.test'])
    expect(await json('/v1/stats')).toEqual(stats)
  })

  test('that is running cancels it first', async () => {
    const list = await createHalfwayList({}, { plan: 'free' })
    const { path, request, mx, clock } = list
    expect((await request(path, DELETE)).status).toBe(204)
    expect(await list.credits()).toEqual({ used: 2, held: 0 })
    expect((await request(path)).status).toBe(404)
    const { length } = mx.lines()
    await clock.advance(MINUTE)
    expect(mx.lines()).toHaveLength(length)
  })
})

describe('the list of jobs', () => {
  test('is sorted newest first, in pages, each job once', async () => {
    const { submit, json, clock } = await createTestService()
    const ids: string[] = []
    for (let n = 1; n <= 5; n++) {
      ids.push(await submit(['valid@a.example']))
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
    expect(seen).toEqual(ids.toReversed())
  })

  test('filters by state and separates the sandbox', async () => {
    const { id: stuck, submit, finished, json } = await createHalfwayList()
    const done = await submit(['valid@a.test'])
    await finished(done)
    const simulated = await submit(['valid@a.example'], SANDBOX)
    await finished(simulated)
    await json('/v1/verify/single', { body: { email: 'valid@a.test', async: true } })
    const ids = async (path: string, headers = {}) =>
      ((await json(path, { headers })) as { data: Page }).data.items.map(job => job.job_id)
    expect(await ids('/v1/jobs?status=processing')).toEqual([stuck])
    expect(await ids('/v1/jobs?status=completed')).toEqual([done])
    expect(await ids('/v1/jobs?status=failed')).toEqual([])
    expect(await ids('/v1/jobs', SANDBOX.headers)).toEqual([simulated])
    const all = '/v1/jobs?include_sandbox=true'
    expect((await ids(all)).toSorted()).toEqual([done, stuck, simulated].toSorted())
    expect(await ids(`${all}&status=completed`)).toHaveLength(2)
    expect(await ids('/v1/jobs?include_sandbox=false')).toHaveLength(2)
    expect(await ids(all, SANDBOX.headers)).toEqual([simulated])
  })

  test('has the fields of each job, without results', async () => {
    const { path, json } = await createSimulatedList(MIXED, { name: 'March list' })
    const { success: _, ...alone } = await json(path)
    const { data } = (await json('/v1/jobs', SANDBOX)) as { data: Page }
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
