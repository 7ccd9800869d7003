import { expect, test } from 'vitest'
import { updateAccount } from '../../src/accounts/account-store.ts'
import { write } from '../../src/db/database.ts'
import { deleteJob } from '../../src/jobs/change-job.ts'
import {
  DEFAULT_SCHEDULE_TIMINGS,
  runDueSchedules,
} from '../../src/jobs/schedules/run-schedules.ts'
import { DAY } from '../../src/platform/clock.ts'
import { seedJob } from '../support/job-rows.ts'
import { verifyQueued } from '../support/reverified-job.ts'
import { createTestService, idleWorker } from '../support/service.ts'

const TEXTS = ['valid@a.example', 'timeout@a.example']
const PATH = '/v1/schedules'

type Schedule = { readonly id: string } & Record<string, unknown>

async function createService(seed: Partial<Parameters<typeof seedJob>[1]> = {}) {
  const worker = idleWorker()
  const fixture = await createTestService({ deps: { worker } })
  const job = await seedJob(fixture.database, { texts: TEXTS, ...seed })
  const { service } = fixture
  return {
    ...fixture,
    worker,
    job,
    create: async (body: object = {}) => {
      const sent = { job_id: 'job_a', every_days: 30, ...body }
      return (await fixture.json(PATH, { body: sent })).data as Schedule
    },
    get: async (id: string) => (await fixture.json(`${PATH}/${id}`)).data as Schedule,
    update: async (id: string, body: object) =>
      (await fixture.json(`${PATH}/${id}`, { method: 'PATCH', body })).data as Schedule,
    run: () =>
      runDueSchedules(
        { ...service, worker, plans: service.settings.plans, timings: DEFAULT_SCHEDULE_TIMINGS },
        new AbortController().signal,
      ),
  }
}

test('a schedule has its conditions and the time of its next run', async () => {
  const { create, get } = await createService({ done: 1 })
  const created = await create({ only: ['unknown'], older_than_days: 90 })
  expect(created).toEqual({
    id: expect.stringMatching(/^sch_\w{20}$/),
    job_id: 'job_a',
    every_days: 30,
    only: ['unknown'],
    older_than_days: 90,
    notify: false,
    active: true,
    next_run_at: '2026-07-01T12:00:00.000Z',
    last_run: null,
    last_error: null,
    last_job_id: null,
    created_at: '2026-06-01T12:00:00.000Z',
  })
  expect(await get(created.id)).toEqual(created)
})

test('a run is shown with its job, which names the schedule, also in its event', async () => {
  const { create, get, run, clock, json, database, worker } = await createService()
  await json('/v1/webhooks', { body: { url: 'https://8.8.8.8/', events: ['batch.completed'] } })
  const { id } = await create()
  await clock.advance(30 * DAY)
  await run()
  const [jobId = ''] = worker.taken
  expect(await get(id)).toMatchObject({
    last_run: { at: '2026-07-01T12:00:00.000Z', status: 'started' },
    last_error: null,
    last_job_id: jobId,
    next_run_at: '2026-07-31T12:00:00.000Z',
    active: true,
  })
  const origin = { previous_job_id: 'job_a', schedule_id: id }
  expect(await json(`/v1/jobs/${jobId}`)).toMatchObject(origin)
  await verifyQueued(database, jobId)
  const event = await database.db.selectFrom('event').select('body').executeTakeFirstOrThrow()
  expect(JSON.parse(event.body)).toMatchObject({ data: { job_id: jobId, ...origin } })
  for (const list of ['job_a', jobId]) {
    expect((await json(`${PATH}?job_id=${list}`)).data).toMatchObject({ items: [{ id }] })
  }
  expect((await json(`${PATH}?job_id=job_b`)).data).toMatchObject({ items: [] })
})

test('a skipped run has a reason', async () => {
  const { create, get, run, clock } = await createService({ done: 1 })
  const { id } = await create()
  await clock.advance(30 * DAY)
  await run()
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
    next_run_at: '2026-06-09T12:00:00.000Z',
  })
  expect(await update(id, { active: false })).toMatchObject({ active: false, next_run_at: null })
  expect(await update(id, { every_days: 8 })).toMatchObject({ active: false, next_run_at: null })
  await clock.advance(DAY)
  expect(await update(id, { active: true })).toMatchObject({
    active: true,
    next_run_at: '2026-06-11T12:00:00.000Z',
  })
})

test('a deleted schedule runs no more', async () => {
  const { create, request, run, clock, worker } = await createService()
  const { id } = await create()
  expect((await request(`${PATH}/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await request(`${PATH}/${id}`)).status).toBe(404)
  await clock.advance(30 * DAY)
  await run()
  expect(worker.taken).toEqual([])
})

test('a schedule is paused when its results are deleted, and cannot be resumed', async () => {
  const { create, get, request, database, job } = await createService()
  const { id } = await create()
  await deleteJob({ database, settings: { dataDir: '' } }, job)
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
  ['a list that does not exist', {}, { job_id: 'job_b' }, 404, 'not_found'],
  ['a single address', { type: 'single' as const }, {}, 409, 'job_not_reverifiable'],
  ['no interval', {}, { every_days: undefined }, 400, 'invalid_request'],
  ['an interval of 0 days', {}, { every_days: 0 }, 400, 'invalid_request'],
  ['an interval of 366 days', {}, { every_days: 366 }, 400, 'invalid_request'],
  ['an unknown class', {}, { only: ['valid'] }, 400, 'invalid_request'],
  ['mail to an account without an address', {}, { notify: true }, 400, 'invalid_request'],
])('%s is refused', async (_, seed, body, status, code) => {
  const { request } = await createService(seed)
  const response = await request(PATH, { body: { job_id: 'job_a', every_days: 30, ...body } })
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ code })
})

test('notify is accepted if the account has an address', async () => {
  const { create, database } = await createService()
  await write(database, trx => updateAccount(trx, 'acc_1', { email: 'owner@shop.example' }))
  expect(await create({ notify: true })).toMatchObject({ notify: true })
})

test('a key needs the scopes of lists', async () => {
  const { create, request, addKey } = await createService()
  const { id } = await create()
  const body = { job_id: 'job_a', every_days: 30 }
  const key = await addKey({ scopes: ['jobs:read'] })
  expect((await request(PATH, { key })).status).toBe(200)
  expect((await request(PATH, { body, key })).status).toBe(403)
  expect((await request(`${PATH}/${id}`, { method: 'PATCH', body: {}, key })).status).toBe(403)
  expect((await request(`${PATH}/${id}`, { method: 'DELETE', key })).status).toBe(403)
})

test('a test key sees only schedules of the sandbox', async () => {
  const { create, request, json, addKey, database } = await createService()
  const { id } = await create()
  await seedJob(database, { id: 'job_b', texts: TEXTS, sandbox: true })
  const key = await addKey({ kind: 'test' })
  expect((await request(`${PATH}/${id}`, { key })).status).toBe(404)
  const body = { job_id: 'job_a', every_days: 30 }
  expect((await request(PATH, { body, key })).status).toBe(404)
  expect((await request(PATH, { body, headers: { 'X-EV-Sandbox': 'true' } })).status).toBe(404)
  const simulated = await json(PATH, { body: { ...body, job_id: 'job_b' }, key })
  expect(simulated.data).toMatchObject({ job_id: 'job_b', sandbox: true })
  expect((await json(PATH, { key })).data).toMatchObject({ items: [{ job_id: 'job_b' }] })
  expect((await json(PATH)).data).toMatchObject({ items: [{ job_id: 'job_a' }] })
})
