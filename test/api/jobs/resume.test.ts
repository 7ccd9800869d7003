import { describe, expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../../src/accounts/credits/credit-store.ts'
import { periodStart } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { failJob } from '../../../src/jobs/job-state.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { createTestService, idleWorker } from '../../support/service.ts'

const POST = { method: 'POST' }
const CANCEL = '/v1/jobs/job_a/cancel'
const RESUME = '/v1/jobs/job_a/resume'

describe('resuming a job', () => {
  test('that was cancelled continues it, notifies the worker, and returns the job', async () => {
    const worker = idleWorker()
    const { database, request, json } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 2 })
    await request(CANCEL, POST)
    const response = await request(RESUME, POST)
    expect(response.status).toBe(200)
    const answer = await response.json()
    expect(answer).toMatchObject({
      success: true,
      job_id: 'job_a',
      status: 'processing',
      processed_emails: 2,
      data: { summary: { total: 6, valid: 2, failed: 0 }, completed_at: null },
    })
    expect(worker.taken).toEqual(['job_a'])
    expect(await json('/v1/jobs/job_a')).toMatchObject(answer as object)
  })

  test('that failed removes its error', async () => {
    const { database, json, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    await write(database, trx => failJob(trx, 'job_a', 'server_error', clock.now()))
    expect(await json('/v1/jobs/job_a')).toMatchObject({ error: { code: 'server_error' } })
    expect(await json(RESUME, POST)).toMatchObject({ status: 'processing', error: null })
  })

  test('does not count the time in which it was stopped', async () => {
    const { database, json, clock } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 3 })
    await clock.advance(MINUTE)
    await json(CANCEL, POST)
    await clock.advance(DAY)
    await json(RESUME, POST)
    const { started_at } = await json('/v1/jobs/job_a')
    expect(started_at).toBe('2026-06-02T12:00:00.000Z')
  })

  test.each([
    ['queued', 0],
    ['processing', 2],
    ['completed', 6],
  ])('that is %s is refused', async (state, done) => {
    const worker = idleWorker()
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done })
    const response = await request(RESUME, POST)
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({
      code: 'job_not_resumable',
      error: `The job is ${state}. Only a cancelled or failed job can be resumed.`,
    })
    expect(worker.taken).toEqual([])
  })

  test('needs the same scope as cancelling', async () => {
    const { database, request, addKey } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 2 })
    const key = await addKey({ scopes: ['jobs:read'] })
    const response = await request(RESUME, { ...POST, key })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ code: 'insufficient_scope' })
  })

  test('happens once for an Idempotency-Key, and the response is repeated', async () => {
    const worker = idleWorker()
    const { database, request } = await createTestService({ deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 2 })
    await request(CANCEL, POST)
    const ask = () => request(RESUME, { ...POST, headers: { 'Idempotency-Key': 'once' } })
    const first = await (await ask()).json()
    const again = await ask()
    expect(again.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await again.json()).toEqual(first)
    expect(worker.taken).toEqual(['job_a'])
    expect((await request(RESUME, POST)).status).toBe(409)
  })

  test('by two requests at the same time happens once', async () => {
    const { database, request } = await createTestService({ plan: 'free' })
    await seedJob(database, { texts: MIXED, done: 2 })
    await request(CANCEL, POST)
    const answers = await Promise.all([request(RESUME, POST), request(RESUME, POST)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect(await creditOf(database)).toMatchObject({ held: 4 })
  })
})

describe('the credits of a resumed job', () => {
  test('are reserved for its remaining rows from the current day, and returned when it is cancelled again', async () => {
    const { database, request, clock } = await createTestService({ plan: 'free' })
    await seedJob(database, { texts: [...MIXED, 'no address'], done: 2 })
    await request(CANCEL, POST)
    await clock.advance(DAY)
    await request(RESUME, POST)
    const period = periodStart(clock.now())
    expect(await readJob(database, 'job_a')).toMatchObject({ held: 4, credit_period: period })
    expect(await creditOf(database)).toMatchObject({ held: 4, used: 0 })
    await request(CANCEL, POST)
    expect(await creditOf(database)).toMatchObject({ held: 0, used: 0 })
  })

  test('leave it unchanged if there are too few, and the error says how many it needs', async () => {
    const worker = idleWorker()
    const { database, request, json } = await createTestService({ plan: 'free', deps: { worker } })
    await seedJob(database, { texts: MIXED, done: 2 })
    await request(CANCEL, POST)
    await reserveAmount(database, 97)
    const before = await json('/v1/jobs/job_a')
    const response = await request(RESUME, POST)
    expect(response.status).toBe(429)
    expect(response.headers.get('Retry-After')).not.toBeNull()
    expect(await response.json()).toMatchObject({
      code: 'quota_exceeded',
      error: expect.stringMatching(/3 are left, and this list needs 4/),
    })
    expect(await json('/v1/jobs/job_a')).toEqual(before)
    expect(await creditOf(database)).toMatchObject({ held: 97 })
    expect(worker.taken).toEqual([])
  })

  test('are not needed in the sandbox and in a plan without a limit', async () => {
    const simulated = await createTestService({ plan: 'free' })
    await seedJob(simulated.database, { texts: MIXED, done: 2, sandbox: true })
    await simulated.request(CANCEL, POST)
    expect((await simulated.request(RESUME, POST)).status).toBe(200)
    expect(await creditOf(simulated.database)).toMatchObject({ held: 0 })
    const unlimited = await createTestService({ plan: 'enterprise' })
    await seedJob(unlimited.database, { texts: MIXED, done: 2 })
    await unlimited.request(CANCEL, POST)
    expect((await unlimited.request(RESUME, POST)).status).toBe(200)
    expect(await creditOf(unlimited.database)).toMatchObject({ held: 0 })
  })
})

const creditOf = (database: Database) =>
  readCredit(database, 'acc_1', periodStart(database.clock.now()))

const reserveAmount = (database: Database, amount: number) =>
  write(database, trx => {
    const period = periodStart(database.clock.now())
    return reserveCredits(trx, { accountId: 'acc_1', period, amount, limit: null })
  })
