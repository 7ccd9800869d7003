import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { failJob, startJob } from '../../../src/jobs/job-state.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { MIXED, seedFiledJob, seedJob } from '../../support/job-rows.ts'
import { REFUSAL } from '../../support/prober.ts'
import { createTestService, idleWorker } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const STATUS_KEYS = [
  ...['success', 'job_id', 'status', 'progress', 'total_emails', 'processed_emails'],
  ...['estimated_time', 'created_at', 'started_at', 'error', 'data'],
]

describe('the status of a list', () => {
  test('matches the interface when it is completed, with a row for each address', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    expect(await json('/v1/verify/bulk/status/job_a')).toEqual({
      success: true,
      job_id: 'job_a',
      status: 'completed',
      progress: 100,
      total_emails: 6,
      processed_emails: 6,
      estimated_time: null,
      error: null,
      created_at: '2026-06-01T12:00:00.000Z',
      started_at: '2026-06-01T12:00:00.000Z',
      data: {
        results: [
          item('valid@a.example', true, true, 'low', 'accepted_email'),
          item('risky@a.example', true, false, 'medium', 'low_deliverability'),
          item('invalid@a.example', false, false, 'high', 'rejected_email'),
          item('timeout@a.example', false, false, 'unknown', 'timeout'),
          item('error-server@a.example', false, false, 'unknown', 'unexpected_error'),
          item('role@a.example', true, true, 'medium', 'role_account'),
        ],
        summary: { total: 6, valid: 3, invalid: 1, unknown: 1, failed: 1 },
        completed_at: '2026-06-01T12:00:00.000Z',
      },
    })
  })

  test('adds up: total = valid + invalid + unknown + failed = rows', async () => {
    const { database, json } = await createTestService()
    const texts = Array.from({ length: 700 }, (_, n) => `person${n}@a.example`)
    await seedJob(database, { texts: [...texts, ...MIXED, ...MIXED, 'no address', ''] })
    const { data } = (await json('/v1/verify/bulk/status/job_a')) as unknown as {
      data: { results: { email: string; valid: boolean }[]; summary: Record<string, number> }
    }
    const { total, valid, invalid, unknown, failed } = data.summary as Record<string, number>
    expect(data.results).toHaveLength(714)
    expect(total).toBe(714)
    expect((valid ?? 0) + (invalid ?? 0) + (unknown ?? 0) + (failed ?? 0)).toBe(714)
    expect(data.results.filter(row => row.valid)).toHaveLength(valid ?? -1)
    expect(data.results.map(row => row.email)).toEqual([
      ...[...texts, ...MIXED, ...MIXED, 'no address', ''],
    ])
  })

  test('has all fields in every state', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { id: 'job_queued', texts: MIXED, done: 0 })
    await seedJob(database, { id: 'job_processing', texts: MIXED, done: 3 })
    await seedJob(database, { id: 'job_failed', texts: MIXED, done: 2 })
    await write(database, trx => failJob(trx, 'job_failed', 'server_error', database.clock.now()))
    await seedJob(database, { id: 'job_completed', texts: MIXED })
    for (const state of ['queued', 'processing', 'failed', 'completed']) {
      const body = await json(`/v1/verify/bulk/status/job_${state}`)
      expect(body.status).toBe(state)
      expect(Object.keys(body)).toEqual(STATUS_KEYS)
      expect(Object.keys(body.data as object)).toEqual(['results', 'summary', 'completed_at'])
    }
  })

  test('shows the progress of a list, and no results yet', async () => {
    const { database, json, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    await clock.advance(MINUTE)
    expect(await json('/v1/verify/bulk/status/job_a')).toMatchObject({
      status: 'processing',
      progress: 33,
      processed_emails: 2,
      error: null,
      estimated_time: '10 seconds',
      data: {
        results: [],
        summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 0 },
        completed_at: null,
      },
    })
  })

  test('estimates the time from the recent rate, also in the list of jobs', async () => {
    const { database, json, clock } = await createTestService()
    const texts = Array.from({ length: 40 }, (_, n) => `person${n}@a.example`)
    await seedJob(database, { texts, done: 2 })
    // As after a stop of the service: the time since the start says nothing about the rate.
    await clock.advance(DAY)
    await json('/v1/verify/bulk/status/job_a')
    await clock.advance(10 * SECOND)
    await database.db.updateTable('job').set({ done: 4 }).execute()
    const estimate = { estimated_time: '3 minutes' }
    expect(await json('/v1/verify/bulk/status/job_a')).toMatchObject(estimate)
    expect(await json('/v1/jobs')).toMatchObject({ data: { items: [estimate] } })
  })

  test('of a failed list counts rows that were never tried as failed', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    await write(database, trx => failJob(trx, 'job_a', 'server_error', database.clock.now()))
    expect(await json('/v1/verify/bulk/status/job_a')).toMatchObject({
      success: true,
      status: 'failed',
      progress: 33,
      error: { code: 'server_error', message: 'The job could not be finished' },
      data: {
        results: [],
        summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 4 },
        completed_at: '2026-06-01T12:00:00.000Z',
      },
    })
  })

  test('has a progress of 100 only if it is completed', async () => {
    const { database, json } = await createTestService()
    const texts = Array.from({ length: 1_000 }, (_, n) => `valid${n}@a.example`)
    await seedJob(database, { texts, done: 999 })
    expect(await json('/v1/jobs/job_a')).toMatchObject({ progress: 99 })
  })

  test('shows existing results with partial=true', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const { data } = await json('/v1/verify/bulk/status/job_a?partial=true')
    expect(data).toMatchObject({
      results: [{ email: 'valid@a.example' }, { email: 'risky@a.example' }],
    })
    expect((data as { results: object[] }).results).toHaveLength(2)
  })

  test('has the submitted IDs of rows', async () => {
    const { database, json } = await createTestService()
    const cells = ['a-1', null]
    await seedJob(database, { texts: ['valid@a.example', 'risky@a.example'], cells })
    const { data } = (await json('/v1/verify/bulk/status/job_a')) as { data: { results: object[] } }
    expect(data.results[0]).toMatchObject({ id: 'a-1', email: 'valid@a.example' })
    expect(data.results[1]).not.toHaveProperty('id')
  })

  test('keeps the position and class of an erased address, and nothing else', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    const { data } = (await json('/v1/verify/bulk/status/job_a')) as unknown as {
      data: { results: { email: string; valid: boolean; erased: boolean }[]; summary: object }
    }
    expect(data.results.map(row => [row.email, row.valid, row.erased])).toEqual([
      ...[true, true, false, false, false, true].map(valid => ['', valid, true]),
    ])
  })

  test('of the sandbox says so', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, sandbox: true })
    expect(await json('/v1/verify/bulk/status/job_a')).toMatchObject({ sandbox: true })
  })

  test.each([
    ['wait=61', /"wait"/],
    ['wait=-1', /"wait"/],
    ['wait=soon', /"wait"/],
    ['partial=yes', /"partial"/],
  ])('rejects %s', async (query, reason) => {
    const { request, database } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const response = await request(`/v1/verify/bulk/status/job_a?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request', error: reason })
  })
})

describe('a job', () => {
  test('is its status without results, with its type and the download URL', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, type: 'bulk', name: 'March list' })
    expect(await json('/v1/jobs/job_a')).toEqual({
      success: true,
      job_id: 'job_a',
      status: 'completed',
      progress: 100,
      total_emails: 6,
      processed_emails: 6,
      estimated_time: null,
      error: null,
      created_at: '2026-06-01T12:00:00.000Z',
      started_at: '2026-06-01T12:00:00.000Z',
      type: 'bulk',
      name: 'March list',
      metadata: {},
      data: {
        summary: { total: 6, valid: 3, invalid: 1, unknown: 1, failed: 1 },
        completed_at: '2026-06-01T12:00:00.000Z',
        classes: { deliverable: 1, risky: 2, undeliverable: 1, unknown: 2 },
        no_address: 0,
        download_url: 'https://ev.test/v1/jobs/job_a/download',
      },
    })
  })

  test('has its results with include=results', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const { data } = (await json('/v1/jobs/job_a?include=results')) as {
      data: { results: object[] }
    }
    expect(data.results).toHaveLength(6)
    expect(data).toHaveProperty('download_url')
  })

  test('that is not completed has no download URL', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 0 })
    const body = await json('/v1/jobs/job_a?include=results')
    expect(body).toMatchObject({ started_at: null, data: { download_url: null, results: [] } })
  })

  test('of one address is found by its verification_id', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { id: 'ver_1', texts: ['valid@a.example'], type: 'single' })
    expect(await json('/v1/jobs/ver_1?include=results')).toMatchObject({
      status: 'completed',
      type: 'single',
      data: { results: [{ email: 'valid@a.example' }] },
    })
  })
})

describe('waiting for a job', () => {
  test('ends with the next change', async () => {
    const committed = Promise.withResolvers<null>()
    const worker = { ...idleWorker(), changed: () => committed.promise }
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 0 })
    const response = request('/v1/jobs/job_a?wait=30')
    expect(await isSettled(response)).toBe(false)
    const { clock } = database
    await write(database, trx => failJob(trx, 'job_a', 'server_error', clock.now()))
    committed.resolve(null)
    expect(await (await response).json()).toMatchObject({ status: 'failed' })
  })

  test('ends with the unchanged job when the time is over', async () => {
    const { database, request, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 0 })
    const response = request('/v1/jobs/job_a?wait=3')
    for (let second = 0; second < 3; second++) {
      expect(await isSettled(response)).toBe(false)
      await clock.advance(1_000)
    }
    expect(await (await response).json()).toMatchObject({ status: 'queued' })
    await clock.advance(LAST_USE_DELAY_MS)
    expect(clock.pending).toBe(0)
  })

  test('ends at once for a finished job', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    expect(await json('/v1/verify/bulk/status/job_a?wait=60')).toMatchObject({ progress: 100 })
  })

  test('notices changes by another process and the shutdown within a second', async () => {
    const { database, request, clock, stop } = await createTestService()
    await seedJob(database, { id: 'job_a', texts: MIXED, done: 0 })
    await seedJob(database, { id: 'job_b', texts: MIXED, done: 0 })
    const [first, second] = [request('/v1/jobs/job_a?wait=60'), request('/v1/jobs/job_b?wait=60')]
    await isSettled(first)
    await deleteJob(database, 'job_a')
    await clock.advance(1_000)
    expect((await first).status).toBe(404)
    expect(await isSettled(second)).toBe(false)
    stop()
    await clock.advance(1_000)
    expect((await second).status).toBe(200)
  })

  test('ends when the client disconnects', async () => {
    const { database, app, key, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 0 })
    const disconnecting = new AbortController()
    const response = app.request(
      '/v1/jobs/job_a?wait=60',
      { headers: { Authorization: `Bearer ${key}` }, signal: disconnecting.signal },
      { incoming: { socket: { remoteAddress: '192.0.2.1' } } },
    )
    expect(await isSettled(response)).toBe(false)
    disconnecting.abort()
    await response
    await clock.advance(LAST_USE_DELAY_MS)
    expect(clock.pending).toBe(0)
  })
})

/** The last use of a key is written by its own timer. */
const LAST_USE_DELAY_MS = 20_000

const item = (
  email: string,
  valid: boolean,
  deliverable: boolean,
  risk_level: string,
  reason: string,
) => ({
  email,
  valid,
  deliverable,
  risk_level,
  reason,
  cached: false,
  class: CLASS[reason],
  action: ACTION[reason],
})

const ACTION: Readonly<Record<string, string>> = {
  accepted_email: 'send',
  role_account: 'send_with_care',
  low_deliverability: 'send_with_care',
  rejected_email: 'suppress',
  timeout: 'retry_later',
  unexpected_error: 'retry_later',
}

const CLASS: Readonly<Record<string, string>> = {
  accepted_email: 'deliverable',
  role_account: 'risky',
  low_deliverability: 'risky',
  rejected_email: 'undeliverable',
  timeout: 'unknown',
  unexpected_error: 'unknown',
}

/** Whether a promise is settled after all pending work. */
async function isSettled(promise: Promise<unknown> | unknown): Promise<boolean> {
  let settled = false
  void Promise.resolve(promise).then(
    () => {
      settled = true
    },
    () => {},
  )
  await drainEventLoop()
  return settled
}

describe('what a job waits for', () => {
  test('is listed by operator: a pause, a retry, and the rate', async () => {
    const { service, database, json, clock } = await createTestService()
    const { engine } = service
    await seedFiledJob(database, 'job_a', ['slow', 'slow', 'slow', 'grey', 'grey', 'quick'])
    await startJob(database, 'job_a')
    engine.rateController('slow', engine.egresses[0] as string).throttled(10 * MINUTE)
    const greylisted = database.db
      .updateTable('item')
      .set({ due_at: clock.now() + HOUR, egress: engine.egresses[0] as string })
    await greylisted.where('operator', '=', 'grey').execute()
    expect(await json('/v1/jobs/job_a')).toMatchObject({
      status: 'processing',
      estimated_time: '60 minutes',
      status_detail:
        '3 addresses at slow: the provider asked to slow down. Next attempt at 2026-06-01T12:10:00.000Z.',
      waiting_for: [
        {
          operator: 'slow',
          emails: 3,
          reason: 'throttled',
          until: '2026-06-01T12:10:00.000Z',
        },
        {
          operator: 'grey',
          emails: 2,
          reason: 'retrying',
          until: '2026-06-01T13:00:00.000Z',
        },
        {
          operator: 'quick',
          emails: 1,
          reason: 'rate_limited',
          until: null,
          detail: '1 address at quick: they are probed at the rate that the provider accepts.',
        },
      ],
      rate_per_second: null,
      seconds_left: 3_600,
    })
    const estimate = { estimated_time: '60 minutes' }
    expect(await json('/v1/verify/bulk/status/job_a')).toMatchObject(estimate)
    expect(await json('/v1/jobs')).toMatchObject({
      data: { items: [{ ...estimate, seconds_left: 3_600, waiting_for: [{ emails: 3 }, {}, {}] }] },
    })
  })

  test('is recounted every five seconds, however often it is requested', async () => {
    const { database, json, clock } = await createTestService()
    await seedFiledJob(database, 'job_a', ['a.test'])
    await startJob(database, 'job_a')
    const reasonNow = async () => {
      const { waiting_for } = await json('/v1/jobs/job_a')
      return (waiting_for as { reason: string }[])[0]?.reason
    }
    expect(await reasonNow()).toBe('rate_limited')
    await database.db
      .updateTable('item')
      .set({ due_at: clock.now() + HOUR })
      .execute()
    await clock.advance(3 * SECOND)
    expect(await reasonNow()).toBe('rate_limited')
    await clock.advance(3 * SECOND)
    expect(await reasonNow()).toBe('postponed')
  })

  test('includes an operator that blocks us', async () => {
    const { service, database, json } = await createTestService()
    const { engine } = service
    await seedFiledJob(database, 'job_a', ['slow'])
    await startJob(database, 'job_a')
    engine.rateController('slow', engine.egresses[0] as string).refused(REFUSAL)
    const { waiting_for } = await json('/v1/jobs/job_a')
    expect(waiting_for).toMatchObject([{ operator: 'slow', emails: 1, reason: 'refused' }])
  })

  test('is not listed for a finished job', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const job = await json('/v1/jobs/job_a')
    expect(job).not.toHaveProperty('waiting_for')
    expect(job).toMatchObject({ status: 'completed', estimated_time: null })
  })
})
