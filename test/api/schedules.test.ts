import { expect, test } from 'vitest'
import { DAY, SECOND } from '../../src/platform/clock.ts'
import { createHalfwayList, SANDBOX } from '../support/list-service.ts'
import { createTestService, idleWorker } from '../support/service.ts'
import { drainEventLoop } from '../support/wait.ts'

const TEXTS = ['ann@a.test', 'zoe@a.test']
const PATH = '/v1/schedules'

type Schedule = { readonly id: string } & Record<string, unknown>

type ListService = Omit<Awaited<ReturnType<typeof createHalfwayList>>, 'finish' | 'release'>

/** Adds functions of schedules to a service with a list. */
function withSchedules(service: ListService) {
  const { json, id: job_id } = service
  return {
    ...service,
    /** Lets days pass, with a poll for due schedules on each. */
    async pass(days: number): Promise<void> {
      for (let day = 0; day < days; day++) {
        await service.clock.advance(DAY)
        await drainEventLoop()
      }
    },
    create: async (body: object = {}) => {
      const sent = { job_id, every_days: 30, ...body }
      return (await json(PATH, { body: sent })).data as Schedule
    },
    get: async (id: string) => (await json(`${PATH}/${id}`)).data as Schedule,
    update: async (id: string, body: object) =>
      (await json(`${PATH}/${id}`, { method: 'PATCH', body })).data as Schedule,
  }
}

/** A service with a finished list. */
async function createService() {
  const service = await createTestService({ works: true })
  const id = await service.submit(TEXTS)
  await service.finished(id)
  return withSchedules({ ...service, id, path: `/v1/jobs/${id}` })
}

test('a schedule has its conditions and the time of its next run', async () => {
  const { id: job_id, create, get } = withSchedules(await createHalfwayList())
  const created = await create({ only: ['unknown'], older_than_days: 90 })
  expect(created).toEqual({
    id: expect.stringMatching(/^sch_\w{20}$/),
    job_id,
    every_days: 30,
    only: ['unknown'],
    older_than_days: 90,
    notify: false,
    active: true,
    next_run_at: expect.stringMatching(/^2026-07-01T12:00:00/),
    last_run: null,
    last_error: null,
    last_job_id: null,
    created_at: expect.stringMatching(/^2026-06-01T12:00:00/),
  })
  expect(await get(created.id)).toEqual(created)
})

test('a run is shown with its job, which names the schedule, also in its event', async () => {
  const { id: listId, create, get, pass, json, finished } = await createService()
  await json('/v1/webhooks', { body: { url: 'https://8.8.8.8/', events: ['batch.completed'] } })
  const { id } = await create()
  await pass(31)
  const ran = await get(id)
  expect(ran).toMatchObject({
    last_run: { at: expect.stringMatching(/^2026-07-02T12:00:00/), status: 'started' },
    last_error: null,
    last_job_id: expect.stringMatching(/^job_/),
    next_run_at: expect.stringMatching(/^2026-08-01T12:00:00/),
    active: true,
  })
  const jobId = String(ran.last_job_id)
  const origin = { previous_job_id: listId, schedule_id: id }
  expect(await json(`/v1/jobs/${jobId}`)).toMatchObject(origin)
  await finished(jobId)
  expect(await json('/v1/events')).toMatchObject({
    data: { items: [{ data: { job_id: jobId, ...origin } }] },
  })
  for (const list of [listId, jobId]) {
    expect((await json(`${PATH}?job_id=${list}`)).data).toMatchObject({ items: [{ id }] })
  }
  expect((await json(`${PATH}?job_id=job_b`)).data).toMatchObject({ items: [] })
})

test('a skipped run has a reason', async () => {
  const service = await createTestService({ works: true, deps: { worker: idleWorker() } })
  const list = await service.submit(TEXTS)
  const { create, get, pass } = withSchedules({ ...service, id: list, path: `/v1/jobs/${list}` })
  const { id } = await create({ every_days: 1 })
  await pass(2)
  expect(await get(id)).toMatchObject({
    active: true,
    last_run: { status: 'skipped' },
    last_job_id: null,
    last_error: {
      code: 'previous_run_unfinished',
      message: 'The previous run had not ended. The list is verified the next time.',
    },
  })
})

test('a schedule is changed, paused and resumed', async () => {
  const { create, update, clock } = await createService()
  const { id, next_run_at } = await create({ only: ['unknown'], older_than_days: 90 })
  await clock.advance(DAY)
  expect(await update(id, { only: null, older_than_days: 30 })).toMatchObject({
    only: null,
    older_than_days: 30,
    every_days: 30,
    next_run_at,
  })
  expect(await update(id, { every_days: 7 })).toMatchObject({
    every_days: 7,
    next_run_at: expect.stringMatching(/^2026-06-09T12:00:/),
  })
  expect(await update(id, { active: false })).toMatchObject({ active: false, next_run_at: null })
  expect(await update(id, { every_days: 8 })).toMatchObject({ active: false, next_run_at: null })
  await clock.advance(DAY)
  expect(await update(id, { active: true })).toMatchObject({
    active: true,
    next_run_at: expect.stringMatching(/^2026-06-11T12:00:/),
  })
})

test('a deleted schedule runs no more', async () => {
  const { create, request, pass, json } = await createService()
  const { id } = await create()
  expect((await request(`${PATH}/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await request(`${PATH}/${id}`)).status).toBe(404)
  await pass(31)
  expect(((await json('/v1/jobs')).data as { items: object[] }).items).toHaveLength(1)
})

test('a schedule is paused when its results are deleted, and cannot be resumed', async () => {
  const { path, create, get, request } = await createService()
  const { id } = await create()
  await request(path, { method: 'DELETE' })
  expect(await get(id)).toMatchObject({
    active: false,
    next_run_at: null,
    last_error: { code: 'results_deleted' },
  })
  const response = await request(`${PATH}/${id}`, { method: 'PATCH', body: { active: true } })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: expect.stringContaining('the results of its list were deleted'),
  })
})

test.each([
  ['a list that does not exist', { job_id: 'job_b' }, 404, 'not_found'],
  ['no interval', { every_days: undefined }, 400, 'invalid_request'],
  ['an interval of 0 days', { every_days: 0 }, 400, 'invalid_request'],
  ['an interval of 366 days', { every_days: 366 }, 400, 'invalid_request'],
  ['an unknown class', { only: ['valid'] }, 400, 'invalid_request'],
  ['mail to an account without an address', { notify: true }, 400, 'invalid_request'],
])('%s is refused', async (_, body, status, code) => {
  const { id, request } = await createService()
  const response = await request(PATH, { body: { job_id: id, every_days: 30, ...body } })
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ code })
})

test('a single address is refused', async () => {
  const { json, request } = await createTestService()
  const body = { email: 'ann@a.test', async: true }
  const { verification_id } = await json('/v1/verify/single', { body })
  const response = await request(PATH, { body: { job_id: verification_id, every_days: 30 } })
  expect(response.status).toBe(409)
  expect(await response.json()).toMatchObject({ code: 'job_not_reverifiable' })
})

test('notify is accepted if the account has an address', async () => {
  const { create, request, clock } = await createService()
  await request('/v1/account', { method: 'PATCH', body: { email: 'owner@shop.example' } })
  // Changes of an account apply within a second.
  await clock.advance(SECOND)
  expect(await create({ notify: true })).toMatchObject({ notify: true })
})

test('a key needs the scopes of lists', async () => {
  const { id: job_id, create, request, addKey } = await createService()
  const { id } = await create()
  const body = { job_id, every_days: 30 }
  const key = await addKey({ scopes: ['jobs:read'] })
  expect((await request(PATH, { key })).status).toBe(200)
  expect((await request(PATH, { body, key })).status).toBe(403)
  expect((await request(`${PATH}/${id}`, { method: 'PATCH', body: {}, key })).status).toBe(403)
  expect((await request(`${PATH}/${id}`, { method: 'DELETE', key })).status).toBe(403)
})

test('a test key sees only schedules of the sandbox', async () => {
  const { id: live, create, request, json, addKey, submit } = await createService()
  const { id } = await create()
  const simulated = await submit(TEXTS, SANDBOX)
  const key = await addKey({ kind: 'test' })
  expect((await request(`${PATH}/${id}`, { key })).status).toBe(404)
  const body = { job_id: live, every_days: 30 }
  expect((await request(PATH, { body, key })).status).toBe(404)
  expect((await request(PATH, { body, ...SANDBOX })).status).toBe(404)
  const made = await json(PATH, { body: { ...body, job_id: simulated }, key })
  expect(made.data).toMatchObject({ job_id: simulated, sandbox: true })
  expect((await json(PATH, { key })).data).toMatchObject({ items: [{ job_id: simulated }] })
  expect((await json(PATH)).data).toMatchObject({ items: [{ job_id: live }] })
})
