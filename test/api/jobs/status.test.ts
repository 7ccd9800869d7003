import { describe, expect, test } from 'vitest'
import { SECOND } from '../../../src/platform/clock.ts'
import { knows, mail, toRecipients } from '../../support/engine.ts'
import { MIXED } from '../../support/job-rows.ts'
import {
  createHalfwayList,
  createSimulatedList,
  failStoring,
  SANDBOX,
} from '../../support/list-service.ts'
import type { MxSession } from '../../support/mx.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const STATUS_KEYS = [
  ...['success', 'job_id', 'status', 'progress', 'total_emails', 'processed_emails'],
  ...['estimated_time', 'created_at', 'started_at', 'error', 'data'],
]

const statusOf = (id: string) => `/v1/verify/bulk/status/${id}`

type TestService = Awaited<ReturnType<typeof createTestService>>

describe('the status of a list', () => {
  test('matches the interface when it is completed, with a row for each address', async () => {
    const { id, json } = await createSimulatedList(MIXED)
    expect(await json(statusOf(id))).toEqual({
      success: true,
      job_id: id,
      status: 'completed',
      progress: 100,
      total_emails: 6,
      processed_emails: 6,
      estimated_time: null,
      error: null,
      created_at: '2026-06-01T12:00:00.000Z',
      started_at: '2026-06-01T12:00:00.000Z',
      sandbox: true,
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
        completed_at: '2026-06-01T12:00:00.050Z',
      },
    })
  })

  test('adds up: total = valid + invalid + unknown + failed = rows', async () => {
    const texts = Array.from({ length: 700 }, (_, n) => `person${n}@a.example`)
    const rows = [...texts, ...MIXED, ...MIXED, 'no address', '']
    const { id, json } = await createSimulatedList(rows)
    const { data } = (await json(statusOf(id))) as unknown as {
      data: { results: { email: string; valid: boolean }[]; summary: Record<string, number> }
    }
    const { total, valid, invalid, unknown, failed } = data.summary as Record<string, number>
    expect(total).toBe(714)
    expect((valid ?? 0) + (invalid ?? 0) + (unknown ?? 0) + (failed ?? 0)).toBe(714)
    expect(data.results.filter(row => row.valid)).toHaveLength(valid ?? -1)
    expect(data.results.map(row => row.email)).toEqual(rows)
  })

  test('has all fields in every state', async () => {
    const expectFields = async ({ json }: TestService, id: string, state: string) => {
      const body = await json(statusOf(id))
      expect(body.status).toBe(state)
      expect(Object.keys(body).filter(name => name !== 'sandbox')).toEqual(STATUS_KEYS)
      expect(Object.keys(body.data as object)).toEqual(['results', 'summary', 'completed_at'])
    }
    const idle = await createTestService()
    await expectFields(idle, await idle.submit(MIXED), 'queued')
    const halfway = await createHalfwayList()
    await expectFields(halfway, halfway.id, 'processing')
    failStoring(halfway)
    await halfway.finish()
    await expectFields(halfway, halfway.id, 'failed')
    const simulated = await createSimulatedList(MIXED)
    await expectFields(simulated, simulated.id, 'completed')
  })

  test('shows the progress of a list, and no results yet, unless partial=true', async () => {
    const { json, id, path } = await createHalfwayList()
    expect(await json(statusOf(id))).toMatchObject({
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
    const { data } = await json(`${statusOf(id)}?partial=true`)
    expect((data as { results: object[] }).results).toEqual([
      expect.objectContaining({ email: 'valid@a.test' }),
      expect.objectContaining({ email: 'risky@a.test' }),
    ])
    expect(await json(`${path}?include=results`)).toMatchObject({
      data: { download_url: null, results: [] },
    })
  })

  test('of a failed list counts rows that were never tried as failed', async () => {
    const { json, id, finish, ...halfway } = await createHalfwayList()
    failStoring(halfway)
    await finish()
    expect(await json(statusOf(id))).toMatchObject({
      success: true,
      status: 'failed',
      progress: 33,
      error: { code: 'server_error', message: 'The job could not be finished' },
      data: {
        results: [],
        summary: { total: 6, valid: 2, invalid: 0, unknown: 0, failed: 4 },
        completed_at: expect.stringMatching(/^2026-06-01T12:00:00/),
      },
    })
  })

  test('has the submitted IDs of rows', async () => {
    const rows = [{ email: 'valid@a.example', id: 'a-1' }, { email: 'risky@a.example' }]
    const { id, json } = await createSimulatedList(rows)
    const { data } = (await json(statusOf(id))) as { data: { results: object[] } }
    expect(data.results[0]).toMatchObject({ id: 'a-1', email: 'valid@a.example' })
    expect(data.results[1]).not.toHaveProperty('id')
  })

  test('keeps the position and class of an erased address, and nothing else', async () => {
    const { id, database, json } = await createSimulatedList(MIXED)
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    const { data } = (await json(statusOf(id))) as unknown as {
      data: { results: { email: string; valid: boolean; erased: boolean }[]; summary: object }
    }
    expect(data.results.map(row => [row.email, row.valid, row.erased])).toEqual([
      ...[true, true, false, false, false, true].map(valid => ['', valid, true]),
    ])
  })

  test.each([
    ['wait=61', /"wait"/],
    ['wait=-1', /"wait"/],
    ['wait=soon', /"wait"/],
    ['partial=yes', /"partial"/],
  ])('rejects %s', async (query, reason) => {
    const { request, submit } = await createTestService()
    const response = await request(`${statusOf(await submit(MIXED))}?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request', error: reason })
  })
})

test('the remaining time is estimated from the recent rate, also in the list of jobs', async () => {
  const gate = Promise.withResolvers<void>()
  const answer = knows('user')
  const script = async (line: string, session: MxSession) => {
    if (session.to.ip === '192.0.2.10') await gate.promise
    return session.to.ip === '192.0.2.11' ? null : answer(line, session)
  }
  const domains = Array.from({ length: 10 }, (_, n) => `d${n}.test`)
  const zone = Object.assign(
    mail('stuck.test', '192.0.2.11'),
    ...domains.map(domain => mail(domain, '192.0.2.10')),
  )
  const { submit, json, clock } = await createTestService({ works: true, engine: { script, zone } })
  const id = await submit([
    ...domains.map(domain => `user@${domain}`),
    ...Array.from({ length: 28 }, (_, n) => `user${n}@stuck.test`),
  ])
  await json(`/v1/jobs/${id}`)
  await clock.advance(9 * SECOND)
  gate.resolve()
  await clock.advance(SECOND)
  expect(await json(statusOf(id))).toMatchObject({ estimated_time: '30 seconds' })
  const estimate = { processed_emails: 10, rate_per_second: 1, seconds_left: 28 }
  expect(await json('/v1/jobs')).toMatchObject({ data: { items: [estimate] } })
})

describe('a job', () => {
  test('is its status without results, with its type and the download URL', async () => {
    const { id, path, json } = await createSimulatedList(MIXED, { name: 'March list' })
    expect(await json(path)).toEqual({
      success: true,
      job_id: id,
      status: 'completed',
      progress: 100,
      total_emails: 6,
      processed_emails: 6,
      estimated_time: null,
      error: null,
      created_at: '2026-06-01T12:00:00.000Z',
      started_at: '2026-06-01T12:00:00.000Z',
      sandbox: true,
      type: 'batch',
      name: 'March list',
      metadata: {},
      data: {
        summary: { total: 6, valid: 3, invalid: 1, unknown: 1, failed: 1 },
        completed_at: '2026-06-01T12:00:00.050Z',
        classes: { deliverable: 1, risky: 2, undeliverable: 1, unknown: 2 },
        no_address: 0,
        download_url: `https://ev.test${path}/download`,
      },
    })
    const { data } = (await json(`${path}?include=results`)) as { data: { results: object[] } }
    expect(data.results).toHaveLength(6)
    expect(data).toHaveProperty('download_url')
  })

  test('of one address is found by its verification_id', async () => {
    const { json, finished } = await createTestService({ works: true })
    const body = { email: 'valid@a.example', async: true }
    const { verification_id } = await json('/v1/verify/single', { body, ...SANDBOX })
    await finished(String(verification_id))
    expect(await json(`/v1/jobs/${verification_id}?include=results`)).toMatchObject({
      status: 'completed',
      type: 'single',
      data: { results: [{ email: 'valid@a.example' }] },
    })
  })
})

describe('waiting for a job', () => {
  test('ends with the next change', async () => {
    const { path, request, settled, finish } = await createHalfwayList()
    const response = request(`${path}?wait=30`)
    expect(await isSettled(response)).toBe(false)
    await finish()
    const { processed_emails } = (await (await settled(response)).json()) as Record<string, number>
    expect(processed_emails).toBeGreaterThan(2)
  })

  test('ends with the unchanged job when the time is over', async () => {
    const { submit, request, clock } = await createTestService()
    const response = request(`/v1/jobs/${await submit(MIXED)}?wait=3`)
    for (let second = 0; second < 3; second++) {
      expect(await isSettled(response)).toBe(false)
      await clock.advance(1_000)
    }
    expect(await (await response).json()).toMatchObject({ status: 'queued' })
    await clock.advance(LAST_USE_DELAY_MS)
    expect(clock.pending).toBe(0)
  })

  test('ends at once for a finished job', async () => {
    const { id, request } = await createSimulatedList(MIXED)
    const response = await request(`${statusOf(id)}?wait=60`)
    expect(await response.json()).toMatchObject({ progress: 100 })
  })

  test('notices a deletion and the shutdown within a second', async () => {
    const { submit, request, clock, stop } = await createTestService()
    const [a, b] = [await submit(MIXED), await submit(MIXED)]
    const [first, second] = [request(`/v1/jobs/${a}?wait=60`), request(`/v1/jobs/${b}?wait=60`)]
    await isSettled(first)
    await request(`/v1/jobs/${a}`, { method: 'DELETE' })
    await clock.advance(1_000)
    expect((await first).status).toBe(404)
    expect(await isSettled(second)).toBe(false)
    stop()
    await clock.advance(1_000)
    expect((await second).status).toBe(200)
  })

  test('ends when the client disconnects', async () => {
    const { submit, app, key, clock } = await createTestService()
    const disconnecting = new AbortController()
    const response = app.request(
      `/v1/jobs/${await submit(MIXED)}?wait=60`,
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
  test('is listed by operator, and recounted every five seconds', async () => {
    const replies = new Map([
      ['grey.test', '450 4.2.0 Greylisted, try again in 3600 seconds'],
      ['later.test', '421 4.7.0 Too many messages, slow down'],
    ])
    const { submit, json, clock } = await createTestService({
      works: true,
      engine: {
        script: toRecipients(to => replies.get(to.split('@')[1] ?? '')),
        zone: { ...mail('grey.test', '192.0.2.11'), ...mail('later.test', '192.0.2.12') },
      },
    })
    const id = await submit([
      ...['ann@later.test', 'bob@later.test', 'cid@later.test'],
      ...['ann@grey.test', 'bob@grey.test'],
    ])
    const path = `/v1/jobs/${id}`
    expect(await json(path)).not.toHaveProperty('waiting_for')
    await clock.advance(3 * SECOND)
    expect(await json(path)).not.toHaveProperty('waiting_for')
    await clock.advance(3 * SECOND)
    expect(await json(path)).toMatchObject({
      status: 'processing',
      estimated_time: '60 minutes',
      status_detail:
        '3 addresses at later.test: the mail server deferred them. Next attempt at 2026-06-01T12:05:00.000Z.',
      waiting_for: [
        {
          operator: 'later.test',
          emails: 3,
          reason: 'retrying',
          until: '2026-06-01T12:05:00.000Z',
        },
        {
          operator: 'grey.test',
          emails: 2,
          reason: 'retrying',
          until: '2026-06-01T13:00:00.000Z',
        },
      ],
      seconds_left: expect.any(Number),
    })
    const estimate = { estimated_time: '60 minutes' }
    expect(await json(statusOf(id))).toMatchObject(estimate)
    expect(await json('/v1/jobs')).toMatchObject({
      data: { items: [{ ...estimate, waiting_for: [{ emails: 3 }, { emails: 2 }] }] },
    })
  })

  test('is not listed for a finished job', async () => {
    const { path, json } = await createSimulatedList(MIXED)
    const job = await json(path)
    expect(job).not.toHaveProperty('waiting_for')
    expect(job).toMatchObject({ status: 'completed', estimated_time: null })
  })
})
