import { describe, expect, test } from 'vitest'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { MIXED } from '../../support/job-rows.ts'
import {
  createHalfwayList,
  createSimulatedList,
  failStoring,
  SANDBOX,
} from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'

const POST = { method: 'POST' }

/** A list that was cancelled halfway. */
async function createCancelledList(...options: Parameters<typeof createHalfwayList>) {
  const list = await createHalfwayList(...options)
  await list.json(`${list.path}/cancel`, POST)
  return { ...list, resume: `${list.path}/resume` }
}

describe('resuming a job', () => {
  test('that was cancelled continues it to its end, and returns the job', async () => {
    const { path, resume, id, request, json, finish } = await createCancelledList()
    const response = await request(resume, POST)
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      success: true,
      job_id: id,
      status: 'processing',
      processed_emails: 2,
      data: { summary: { total: 6, valid: 2, failed: 0 }, completed_at: null },
    })
    await finish()
    expect(await json(path)).toMatchObject({ status: 'completed', processed_emails: 6 })
  })

  test('that failed removes its error', async () => {
    const { path, json, finish, ...halfway } = await createHalfwayList()
    failStoring(halfway)
    await finish()
    expect(await json(path)).toMatchObject({ error: { code: 'server_error' } })
    expect(await json(`${path}/resume`, POST)).toMatchObject({ status: 'processing', error: null })
  })

  test('does not count the time in which it was stopped', async () => {
    const { path, json, clock } = await createHalfwayList()
    await clock.advance(MINUTE / 2)
    await json(`${path}/cancel`, POST)
    await clock.advance(DAY)
    await json(`${path}/resume`, POST)
    const { started_at } = await json(path)
    expect(started_at).toMatch(/^2026-06-02T12:00:00/)
  })

  test.each(['queued', 'processing', 'completed'])('that is %s is refused', async state => {
    const { request, path } = await listThatIs(state)
    const response = await request(`${path}/resume`, POST)
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({
      code: 'job_not_resumable',
      error: `The job is ${state}. Only a cancelled or failed job can be resumed.`,
    })
  })

  test('needs the same scope as cancelling', async () => {
    const { resume, request, addKey } = await createCancelledList()
    const key = await addKey({ scopes: ['jobs:read'] })
    const response = await request(resume, { ...POST, key })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ code: 'insufficient_scope' })
  })

  test('happens once for an Idempotency-Key, and the response is repeated', async () => {
    const { resume, request } = await createCancelledList()
    const ask = () => request(resume, { ...POST, headers: { 'Idempotency-Key': 'once' } })
    const first = await (await ask()).json()
    const again = await ask()
    expect(again.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await again.json()).toEqual(first)
    expect((await request(resume, POST)).status).toBe(409)
  })

  test('by two requests at the same time happens once', async () => {
    const { resume, request, credits } = await createCancelledList({}, { plan: 'free' })
    const answers = await Promise.all([request(resume, POST), request(resume, POST)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect(await credits()).toEqual({ used: 2, held: 4 })
  })
})

async function listThatIs(state: string) {
  if (state === 'processing') return createHalfwayList()
  if (state === 'completed') return createSimulatedList(MIXED)
  const service = await createTestService()
  return { ...service, path: `/v1/jobs/${await service.submit(MIXED)}` }
}

describe('the credits of a resumed job', () => {
  test('are reserved for its remaining rows from the current day, and returned when it is cancelled again', async () => {
    const { path, resume, json, credits, clock } = await createCancelledList({}, { plan: 'free' })
    expect(await credits()).toEqual({ used: 2, held: 0 })
    await clock.advance(DAY)
    await json(resume, POST)
    expect(await credits()).toEqual({ used: 0, held: 4 })
    await json(`${path}/cancel`, POST)
    expect(await credits()).toEqual({ used: 0, held: 0 })
  })

  test('leave it unchanged if there are too few, and the error says how many it needs', async () => {
    const { path, resume, json, request, submit, clock, credits } = await createCancelledList(
      {},
      { plan: 'free' },
    )
    await clock.advance(MINUTE)
    await submit(Array.from({ length: 95 }, (_, n) => `user${n}@held.test`))
    const before = await json(path)
    const response = await request(resume, POST)
    expect(response.status).toBe(429)
    expect(response.headers.get('Retry-After')).not.toBeNull()
    expect(await response.json()).toMatchObject({
      code: 'quota_exceeded',
      error: expect.stringMatching(/3 are left, and this list needs 4/),
    })
    expect(await json(path)).toEqual(before)
    expect(await credits()).toEqual({ used: 2, held: 95 })
  })

  test('are not needed in the sandbox', async () => {
    const { submit, request, credits } = await createTestService({ plan: 'free' })
    const path = `/v1/jobs/${await submit(MIXED, SANDBOX)}`
    await request(`${path}/cancel`, POST)
    expect((await request(`${path}/resume`, POST)).status).toBe(200)
    expect(await credits()).toEqual({ used: 0, held: 0 })
  })
})
