import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { emitJobEvent } from '../../src/jobs/job-events.ts'
import { createJob, type Job, readJob } from '../../src/jobs/job-store.ts'
import { deleteWebhook } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import type { EventKind } from '../../src/webhooks/event-types.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { addWebhook } from '../support/webhook-rows.ts'

const BASE_URL = 'https://api.example.com'

describe('an event', () => {
  test('is written once, with a delivery for each active subscribed webhook', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a', events: ['batch.completed'] })
    await addWebhook(database, { id: 'wh_b', events: ['batch.completed', 'quota.warning'] })
    await addWebhook(database, { id: 'wh_c', events: ['quota.warning'] })
    await addWebhook(database, { id: 'wh_d', events: ['batch.completed'], active: false })
    await addWebhook(database, { id: 'wh_e', events: ['batch.completed'], accountId: 'acc_b' })
    await addWebhook(database, { id: 'wh_f', events: ['batch.completed'] })
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_f', database.clock.now()))
    const id = await emitOne(database, 'batch.completed')
    expect(await deliveries(database)).toEqual([
      { event_id: id, webhook_id: 'wh_a', state: 'pending', attempt: 0 },
      { event_id: id, webhook_id: 'wh_b', state: 'pending', attempt: 0 },
    ])
    expect((await events(database)).map(event => event.id)).toEqual([id])
  })

  test('is not written without a subscribed webhook', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { events: ['quota.warning'] })
    expect(await emitOne(database, 'batch.completed')).toBeNull()
    expect(await events(database)).toEqual([])
    expect(await deliveries(database)).toEqual([])
  })

  test('is rolled back with the transaction that it belongs to', async () => {
    const database = await tempDatabase()
    await addWebhook(database, {})
    const failing = write(database, async trx => {
      await emit(trx, emission(database, 'quota.warning'))
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    expect(await events(database)).toEqual([])
    expect(await deliveries(database)).toEqual([])
  })

  test('is due at once, and its body is the envelope of the spec', async () => {
    const database = await tempDatabase()
    await addWebhook(database, {})
    const id = await emitOne(database, 'quota.warning')
    const [event] = await events(database)
    expect(event?.body).toBe(
      `{"event":"quota.warning","event_id":"${id}","timestamp":"2026-06-01T12:00:00.000Z","data":{"remaining":20}}`,
    )
    expect(id).toMatch(/^evt_[a-z0-9]{20}$/)
    const row = await database.db.selectFrom('delivery').selectAll().executeTakeFirstOrThrow()
    expect(row).toEqual({
      id: expect.stringMatching(/^dlv_[a-z0-9]{20}$/),
      event_id: id,
      webhook_id: 'wh_a',
      kind: 'quota.warning',
      state: 'pending',
      trigger: 'scheduled',
      attempt: 0,
      due_at: database.clock.now(),
      created_at: database.clock.now(),
      expires_at: null,
      status_code: null,
      duration_ms: null,
      error: null,
      error_code: null,
    })
  })

  test('of the sandbox is marked beside its data', async () => {
    const database = await tempDatabase()
    await addWebhook(database, {})
    await write(database, trx =>
      emit(trx, { ...emission(database, 'quota.warning'), sandbox: true }),
    )
    const [event] = await events(database)
    expect(JSON.parse(event?.body ?? '')).toMatchObject({ sandbox: true, data: { remaining: 20 } })
    expect(JSON.parse(event?.body ?? '').data).toEqual({ remaining: 20 })
  })
})

describe('the event of a job', () => {
  const COUNTS = {
    total: 10_000,
    done: 10_000,
    deliverable: 8_400,
    risky: 300,
    undeliverable: 1_200,
    unknown: 100,
    failed: 10,
  }

  test('that is completed has its counts, which sum up, and the URL of its results', async () => {
    const [body] = await bodiesFor({ ...COUNTS, state: 'completed' })
    expect(body).toMatchObject({ event: 'batch.completed' })
    expect(body.data).toEqual({
      job_id: 'job_a',
      total: 10_000,
      valid: 8_400,
      invalid: 1_200,
      risky: 300,
      unknown: 90,
      failed: 10,
      download_url: 'https://api.example.com/v1/jobs/job_a/download',
      metadata: {},
    })
    const { valid, invalid, risky, unknown, failed, total } = body.data
    expect(valid + invalid + risky + unknown + failed).toBe(total)
  })

  test('that failed has its progress', async () => {
    const [body] = await bodiesFor({
      ...COUNTS,
      state: 'failed',
      done: 4_200,
      error: 'server_error',
    })
    expect(body).toMatchObject({ event: 'batch.failed' })
    expect(body.data).toEqual({
      job_id: 'job_a',
      total: 10_000,
      processed: 4_200,
      error: 'server_error',
      message: 'The job could not be finished',
      metadata: {},
    })
  })

  test('of the sandbox is marked', async () => {
    const [body] = await bodiesFor({ ...COUNTS, state: 'completed', sandbox: 1 })
    expect(body.sandbox).toBe(true)
  })

  test.each<[string, Partial<Job>]>([
    ['was cancelled', { state: 'cancelled' }],
    ['is a list of the command line', { state: 'completed', type: 'list' }],
    ['has no account', { state: 'completed', account_id: null }],
    ['is not finished', { state: 'processing' }],
    ['is a single address without a result', { state: 'failed', type: 'single' }],
  ])('that %s is not sent', async (_, change) => {
    expect(await bodiesFor({ ...COUNTS, ...change })).toEqual([])
  })
})

const emission = (database: Database, kind: EventKind) => ({
  accountId: 'acc_a',
  kind,
  data: { remaining: 20 },
  sandbox: false,
  now: database.clock.now(),
  dueAt: database.clock.now(),
  random: countedRandom(),
})

const emitOne = (database: Database, kind: EventKind) =>
  write(database, trx => emit(trx, emission(database, kind)))

const events = ({ db }: Database) => db.selectFrom('event').selectAll().execute()

const deliveries = ({ db }: Database) =>
  db
    .selectFrom('delivery')
    .select(['event_id', 'webhook_id', 'state', 'attempt'])
    .orderBy('webhook_id')
    .execute()

/** The bodies of the events emitted when a job has these counts. */
async function bodiesFor(change: Partial<Job>) {
  const database = await tempDatabase()
  await addWebhook(database, {})
  const owner = { accountId: 'acc_a', keyId: 'key_a', name: null, sandbox: false }
  await createJob(database, {
    id: 'job_a',
    sourceKey: 's',
    source: '{}',
    owner: { ...owner, type: 'batch' },
  })
  const job = { ...(await readJob(database, 'job_a')), ...change }
  const { clock } = database
  await write(database, trx =>
    emitJobEvent(trx, job, {
      now: clock.now(),
      dueAt: clock.now(),
      random: countedRandom(),
      baseUrl: BASE_URL,
    }),
  )
  return (await events(database)).map(event => JSON.parse(event.body))
}
