import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { DAY } from '../../src/platform/clock.ts'
import {
  listNextDeliveries,
  type NewAttempt,
  type NewTest,
  recordTest,
  retryDelivery,
} from '../../src/webhooks/delivery-store.ts'
import { deleteWebhook, findWebhook } from '../../src/webhooks/endpoint-store.ts'
import type { DeliveryTrigger } from '../../src/webhooks/tables.ts'
import {
  addDelivery,
  addWebhook,
  attemptAt,
  attemptsOf,
  createDeliveries,
  cycleOf,
  deliveryRow,
  FAILURE,
  NOW,
  noticeOf,
  record,
  SUCCESS,
} from '../support/webhook-rows.ts'

describe('an attempt', () => {
  test('beyond sixty of one delivery replaces the oldest', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_b')])
    for (let n = 0; n < 63; n++) await record(database, [attemptAt('dlv_a', { startedAt: n })])
    const kept = (await attemptsOf(database)).map(row => [row.delivery_id, row.number])
    expect(kept).toEqual([...Array.from({ length: 60 }, (_, n) => ['dlv_a', n + 4]), ['dlv_b', 1]])
  })

  test('that will be retried updates its delivery, and is stored with its result', async () => {
    const database = await createDeliveries('dlv_a')
    const before = await deliveryRow(database, 'dlv_a')
    await record(database, [attemptAt('dlv_a')])
    expect(await deliveryRow(database, 'dlv_a')).toEqual({
      ...before,
      state: 'retry_scheduled',
      attempt: 1,
      due_at: 60_000,
      status_code: 500,
      duration_ms: 84,
      error: 'It answered 500.',
      error_code: 'http_status',
    })
    expect(await attemptsOf(database)).toEqual([
      {
        delivery_id: 'dlv_a',
        number: 1,
        trigger: 'scheduled',
        started_at: 1_000,
        url: 'https://app.example/hook',
        duration_ms: 84,
        status_code: 500,
        headers: '{"server":"x"}',
        excerpt: 'no',
        request_headers: null,
        error: 'It answered 500.',
        error_code: 'http_status',
      },
    ])
  })

  test('that succeeded or failed for good finishes its delivery', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_a', SUCCESS), attemptAt('dlv_b', FAILURE)])
    expect(await deliveryRow(database, 'dlv_a')).toMatchObject({
      state: 'delivered',
      attempt: 1,
      due_at: 100,
      expires_at: 900_000,
      status_code: 200,
      error: null,
    })
    expect(await deliveryRow(database, 'dlv_b')).toMatchObject({
      state: 'failed',
      attempt: 1,
      due_at: 100,
      expires_at: 900_000,
    })
    expect(await listNextDeliveries(database, 'wh_a', { now: 1e9, except: [], max: 1 })).toEqual([])
  })

  test('without a response has no status, headers or body', async () => {
    const database = await createDeliveries('dlv_a')
    const silent = { statusCode: null, headers: null, excerpt: null, error: 'No response.' }
    await record(database, [attemptAt('dlv_a', silent)])
    expect(await attemptsOf(database)).toMatchObject([
      { status_code: null, headers: null, excerpt: null, error: 'No response.' },
    ])
    expect(await deliveryRow(database, 'dlv_a')).toMatchObject({ status_code: null })
  })

  test('is numbered across all cycles of its delivery', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_a')])
    await record(database, [attemptAt('dlv_a', cycleOf('dlv_a', 'scheduled', 1))])
    await write(database, trx => retryDelivery(trx, 'wh_a', 'dlv_a', NOW))
    const third = attemptAt('dlv_a', cycleOf('dlv_a', 'manual', 0))
    await record(database, [attemptAt('dlv_b'), third])
    const kept = await attemptsOf(database)
    expect(kept.map(row => [row.delivery_id, row.number, row.trigger])).toEqual([
      ['dlv_a', 1, 'scheduled'],
      ['dlv_a', 2, 'scheduled'],
      ['dlv_a', 3, 'manual'],
      ['dlv_b', 1, 'scheduled'],
    ])
    expect(await deliveryRow(database, 'dlv_a')).toMatchObject({ trigger: 'manual', attempt: 1 })
  })

  test('keeps texts of the receiver unchanged', async () => {
    const database = await createDeliveries('dlv_a')
    const excerpt = 'a "b" \\ \n\t {"c":[1]} é 漢 😀'
    await record(database, [attemptAt('dlv_a', { excerpt, headers: { 'x-a': '"\\' } })])
    const [kept] = await attemptsOf(database)
    expect(kept?.excerpt).toBe(excerpt)
    expect(JSON.parse(kept?.headers ?? '')).toEqual({ 'x-a': '"\\' })
  })

  test.each<[string, Partial<NewAttempt>]>([
    ['succeeded', SUCCESS],
    ['failed for good', FAILURE],
    ['will be retried', {}],
  ])('that %s does not change a cycle that was started meanwhile', async (_, given) => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_a', { state: 'retry_scheduled', attempt: 5, at: 100 })
    const asked = await write(database, trx => retryDelivery(trx, 'wh_a', 'dlv_a', 4_000))
    await record(database, [attemptAt('dlv_a', { ...cycleOf('dlv_a', 'scheduled', 5), ...given })])
    expect(await deliveryRow(database, 'dlv_a')).toEqual(asked)
    expect(await attemptsOf(database)).toMatchObject([{ number: 1, trigger: 'scheduled' }])
    expect(await noticeOf(database)).toBeUndefined()
  })

  test('of the first cycle does not change one that was started since, even before its first attempt', async () => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_a', { trigger: 'manual', at: 100 })
    const asked = await deliveryRow(database, 'dlv_a')
    await record(database, [attemptAt('dlv_a', SUCCESS)])
    expect(await deliveryRow(database, 'dlv_a')).toEqual(asked)
  })

  test('of a second cycle does not change a third that was started meanwhile', async () => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_a', {
      trigger: 'manual',
      state: 'retry_scheduled',
      attempt: 2,
      at: 100,
    })
    const asked = await write(database, trx => retryDelivery(trx, 'wh_a', 'dlv_a', 4_000))
    await record(database, [attemptAt('dlv_a', cycleOf('dlv_a', 'manual', 2))])
    expect(await deliveryRow(database, 'dlv_a')).toEqual(asked)
  })

  test('of a deleted delivery or webhook is dropped, and the others are not', async () => {
    const database = await createDeliveries('dlv_a')
    await addWebhook(database, { id: 'wh_b' })
    await addDelivery(database, 'dlv_b', { webhook_id: 'wh_b' })
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_b', 1))
    const before = await deliveryRow(database, 'dlv_b')
    await record(database, [
      attemptAt('dlv_x', FAILURE),
      attemptAt('dlv_b', { ...FAILURE, disabledCode: 'gone' }),
      attemptAt('dlv_a'),
    ])
    expect(await deliveryRow(database, 'dlv_b')).toEqual(before)
    expect((await attemptsOf(database)).map(row => row.delivery_id)).toEqual(['dlv_a'])
    expect(await database.db.selectFrom('notice').selectAll().execute()).toEqual([])
  })

  test('can be recorded with two hundred others', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => `dlv_${1_000 + n}`)
    const database = await createDeliveries(...ids)
    await record(
      database,
      ids.map((id, n) => attemptAt(id, n % 2 === 0 ? SUCCESS : FAILURE)),
    )
    const rows = database.db.selectFrom('delivery').select(['id', 'state']).orderBy('id')
    expect(await rows.execute()).toEqual(
      ids.map((id, n) => ({ id, state: n % 2 === 0 ? 'delivered' : 'failed' })),
    )
    expect(await attemptsOf(database)).toHaveLength(200)
    expect(await noticeOf(database)).toMatchObject({ failed_events: 100 })
  })
})

describe('the owner of a webhook', () => {
  test.each<[string, DeliveryTrigger, Partial<NewAttempt>, number | undefined]>([
    ['a failed delivery', 'scheduled', FAILURE, 1],
    ['a delivery that failed after a manual retry', 'manual', FAILURE, 1],
    ['nothing that will be retried', 'scheduled', {}, undefined],
    ['nothing that was delivered', 'scheduled', SUCCESS, undefined],
  ])('is alerted to %s', async (_, trigger, given, told) => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_a', { trigger, attempt: 5, state: 'retry_scheduled' })
    await record(database, [attemptAt('dlv_a', { ...cycleOf('dlv_a', trigger, 5), ...given })])
    expect((await noticeOf(database))?.failed_events).toBe(told)
  })

  test('is alerted to the number of failed events and the last error', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b', 'dlv_c')
    await record(database, [
      attemptAt('dlv_a', { ...FAILURE, error: 'first' }),
      attemptAt('dlv_b', { ...FAILURE, error: 'last' }),
      attemptAt('dlv_c', SUCCESS),
    ])
    expect(await noticeOf(database)).toMatchObject({ failed_events: 2, last_error: 'last' })
  })
})

test('attempts are counted by webhook and day; late ones and those at a former URL are not', async () => {
  const database = await createDeliveries('dlv_a', 'dlv_b', 'dlv_c', 'dlv_d')
  await addWebhook(database, { id: 'wh_b' })
  await addDelivery(database, 'dlv_other', { at: 100, webhook_id: 'wh_b' })
  const other = {
    id: 'dlv_other',
    webhookId: 'wh_b',
    cycle: cycleOf('', 'scheduled', 0).delivery.cycle,
  }
  await record(database, [
    attemptAt('dlv_a', SUCCESS),
    attemptAt('dlv_b'),
    attemptAt('dlv_other', { delivery: other }),
  ])
  await write(database, trx => retryDelivery(trx, 'wh_a', 'dlv_b', NOW))
  const late = cycleOf('dlv_b', 'scheduled', 1)
  await record(database, [
    attemptAt('dlv_c', { startedAt: DAY }),
    attemptAt('dlv_d', { startedAt: DAY, url: 'https://app.example/former' }),
    attemptAt('dlv_b', { ...late, startedAt: DAY }),
  ])
  const counts = async (id: string) => (await findWebhook(database, null, id))?.dailyAttempts
  expect(await counts('wh_a')).toEqual([
    { date: '1970-01-01', delivered: 1, failed: 1 },
    { date: '1970-01-02', delivered: 0, failed: 1 },
  ])
  expect(await counts('wh_b')).toEqual([{ date: '1970-01-01', delivered: 0, failed: 1 }])
})

describe('a test', () => {
  const TEST: NewTest = {
    accountId: 'acc_a',
    webhookId: 'wh_a',
    deliveryId: 'dlv_t',
    now: NOW,
    dueAt: NOW,
    event: { id: 'evt_t', kind: 'webhook.test', body: '{"event":"webhook.test"}' },
    startedAt: 4_900,
    url: 'https://app.example/hook',
    durationMs: 84,
    statusCode: 200,
    headers: {},
    requestHeaders: null,
    excerpt: 'ok',
    error: null,
    errorCode: null,
    next: { state: 'delivered', expiresAt: 900_000 },
  }

  test('is recorded with its result', async () => {
    const database = await createDeliveries()
    await write(database, trx => recordTest(trx, TEST))
    const event = await database.db.selectFrom('event').selectAll().execute()
    expect(event).toEqual([
      {
        id: 'evt_t',
        account_id: 'acc_a',
        kind: 'webhook.test',
        created_at: NOW,
        body: '{"event":"webhook.test"}',
      },
    ])
    expect(await deliveryRow(database, 'dlv_t')).toEqual({
      id: 'dlv_t',
      event_id: 'evt_t',
      webhook_id: 'wh_a',
      kind: 'webhook.test',
      state: 'delivered',
      trigger: 'test',
      attempt: 1,
      due_at: NOW,
      created_at: NOW,
      status_code: 200,
      duration_ms: 84,
      error: null,
      error_code: null,
      expires_at: 900_000,
    })
    expect(await attemptsOf(database)).toEqual([
      {
        delivery_id: 'dlv_t',
        number: 1,
        trigger: 'test',
        started_at: 4_900,
        url: 'https://app.example/hook',
        duration_ms: 84,
        status_code: 200,
        headers: '{}',
        excerpt: 'ok',
        error: null,
        error_code: null,
        request_headers: null,
      },
    ])
  })

  test('that failed does not affect its webhook and sends no alert', async () => {
    const database = await createDeliveries()
    const before = await findWebhook(database, 'acc_a', 'wh_a')
    const failed = { ...TEST, ...FAILURE, statusCode: 410, error: 'It answered 410.' }
    await write(database, trx => recordTest(trx, failed))
    expect(await deliveryRow(database, 'dlv_t')).toMatchObject({ state: 'failed', attempt: 1 })
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toEqual(before)
    expect(await noticeOf(database)).toBeUndefined()
  })
})
