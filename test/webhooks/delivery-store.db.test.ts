import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { yieldToEventLoop } from '../../src/platform/clock.ts'
import {
  countOpenDeliveries,
  listDueWebhooks,
  listNextDeliveries,
  nextDueAt,
  recoverDeliveries,
  retryDelivery,
} from '../../src/webhooks/delivery-store.ts'
import { deleteWebhook, updateWebhook } from '../../src/webhooks/endpoint-store.ts'
import type { DeliveryState, DeliveryTable } from '../../src/webhooks/tables.ts'
import { tempDatabase } from '../support/database.ts'
import { addDelivery, addWebhook, deliveryRow } from '../support/webhook-rows.ts'

describe('webhooks with due deliveries', () => {
  const due = async (database: Database, now: number) =>
    (await listDueWebhooks(database, now)).map(({ id }) => id).sort()

  test('are those with an open delivery whose time has come, to the millisecond', async () => {
    const database = await tempDatabase()
    for (const id of ['wh_a', 'wh_b', 'wh_c', 'wh_d']) await addWebhook(database, { id })
    await addDelivery(database, 'dlv_a', { webhook_id: 'wh_a', at: 10 })
    await addDelivery(database, 'dlv_b', {
      webhook_id: 'wh_b',
      at: 20,
      state: 'retry_scheduled',
      attempt: 1,
    })
    await addDelivery(database, 'dlv_c', { webhook_id: 'wh_c', at: 1, state: 'delivered' })
    await addDelivery(database, 'dlv_d', { webhook_id: 'wh_d', at: 1, state: 'failed' })
    expect(await due(database, 9)).toEqual([])
    expect(await due(database, 10)).toEqual(['wh_a'])
    expect(await due(database, 19)).toEqual(['wh_a'])
    expect(await due(database, 20)).toEqual(['wh_a', 'wh_b'])
  })

  test('are listed once, however many deliveries are due', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    for (let n = 0; n < 5; n++) await addDelivery(database, `dlv_${n}`, { at: n })
    expect(await due(database, 9)).toEqual(['wh_a'])
  })

  test('are neither disabled nor deleted', async () => {
    const database = await tempDatabase()
    for (const id of ['wh_deleted', 'wh_off', 'wh_on']) {
      await addWebhook(database, { id, active: id !== 'wh_off' })
      await addDelivery(database, `dlv_${id}`, { webhook_id: id })
    }
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_deleted', 1))
    expect(await due(database, 9)).toEqual(['wh_on'])
  })
})

describe('the next delivery of a webhook', () => {
  const all = async (database: Database, o: { now: number; max: number; except?: string[] }) =>
    (await listNextDeliveries(database, 'wh_a', { except: [], ...o })).map(({ id }) => id)
  const next = async (database: Database, now: number, except: string[] = []) =>
    (await all(database, { now, except, max: 1 }))[0] ?? null

  test('is its earliest due, except those in flight', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    await addWebhook(database, { id: 'wh_b' })
    await addDelivery(database, 'dlv_other', { webhook_id: 'wh_b', at: 1 })
    await addDelivery(database, 'dlv_late', { at: 30 })
    await addDelivery(database, 'dlv_retry', { at: 10, state: 'retry_scheduled', attempt: 2 })
    await addDelivery(database, 'dlv_mid', { at: 20 })
    await addDelivery(database, 'dlv_done', { at: 1, state: 'delivered' })
    await addDelivery(database, 'dlv_lost', { at: 1, state: 'failed' })
    expect(await next(database, 9)).toBeNull()
    expect(await next(database, 10)).toBe('dlv_retry')
    expect(await next(database, 30)).toBe('dlv_retry')
    expect(await next(database, 30, ['dlv_retry'])).toBe('dlv_mid')
    expect(await next(database, 30, ['dlv_mid', 'dlv_retry'])).toBe('dlv_late')
    expect(await next(database, 29, ['dlv_mid', 'dlv_retry'])).toBeNull()
    expect(await next(database, 30, ['dlv_mid', 'dlv_retry', 'dlv_late'])).toBeNull()
    expect(await all(database, { now: 30, max: 2 })).toEqual(['dlv_retry', 'dlv_mid'])
    expect(await all(database, { now: 30, max: 4, except: ['dlv_mid'] })).toEqual([
      'dlv_retry',
      'dlv_late',
    ])
  })

  test('is the oldest of those due at the same time', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    for (const [id, created_at] of [
      ['dlv_c', 1],
      ['dlv_a', 3],
      ['dlv_b', 2],
    ] as const) {
      await addDelivery(database, id, { due_at: 10, created_at })
    }
    expect(await next(database, 10)).toBe('dlv_c')
    expect(await next(database, 10, ['dlv_c'])).toBe('dlv_b')
  })

  test('has the body of its event, its cycle, and its webhook in its current state', async () => {
    const database = await tempDatabase()
    const webhook = await addWebhook(database)
    await addDelivery(database, 'dlv_a', {
      kind: 'quota.warning',
      trigger: 'manual',
      attempt: 3,
      state: 'retry_scheduled',
    })
    const o = { now: 0, except: [], max: 1 }
    expect(await listNextDeliveries(database, 'wh_a', o)).toEqual([
      {
        id: 'dlv_a',
        eventId: 'evt_a',
        kind: 'quota.warning',
        body: 'body of evt_a',
        trigger: 'manual',
        attempt: 3,
        webhook,
      },
    ])
    const now = database.clock.now() + 1
    const url = 'https://other.example/'
    await write(database, trx => updateWebhook(trx, 'acc_a', 'wh_a', { url, now }))
    const [after] = await listNextDeliveries(database, 'wh_a', o)
    expect(after?.webhook).toEqual({ ...webhook, url, updatedAt: now })
  })

  test('is missing while the webhook is disabled, and back when it is enabled', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { active: false })
    await addDelivery(database, 'dlv_a', { at: 10 })
    expect(await next(database, 10)).toBeNull()
    expect(await nextDueAt(database, 'wh_a', [])).toBeNull()
    await write(database, trx => updateWebhook(trx, 'acc_a', 'wh_a', { active: true, now: 1 }))
    expect(await next(database, 10)).toBe('dlv_a')
    expect(await nextDueAt(database, 'wh_a', [])).toBe(10)
  })

  test('is missing for a deleted or unknown webhook', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    await addDelivery(database, 'dlv_a', { at: 10 })
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', 1))
    expect(await next(database, 10)).toBeNull()
    expect(await nextDueAt(database, 'wh_a', [])).toBeNull()
    expect(await listNextDeliveries(database, 'wh_x', { now: 10, except: [], max: 1 })).toEqual([])
    expect(await nextDueAt(database, 'wh_x', [])).toBeNull()
  })

  test('is due at the earliest time of those open and not in flight', async () => {
    const database = await tempDatabase()
    await addWebhook(database)
    await addDelivery(database, 'dlv_a', { at: 10 })
    await addDelivery(database, 'dlv_b', { at: 20, state: 'retry_scheduled' })
    await addDelivery(database, 'dlv_c', { at: 1, state: 'failed' })
    expect(await nextDueAt(database, 'wh_a', [])).toBe(10)
    expect(await nextDueAt(database, 'wh_a', ['dlv_a'])).toBe(20)
    expect(await nextDueAt(database, 'wh_a', ['dlv_b', 'dlv_a'])).toBeNull()
  })
})

test('counts the open deliveries of all webhooks', async () => {
  const database = await tempDatabase()
  expect(await countOpenDeliveries(database)).toBe(0)
  await addWebhook(database, { active: false })
  for (const state of ['pending', 'retry_scheduled', 'delivered', 'failed'] as const) {
    await addDelivery(database, `dlv_${state}`, { state })
  }
  expect(await countOpenDeliveries(database)).toBe(2)
})

const NEW_CYCLE = {
  state: 'pending',
  trigger: 'manual',
  attempt: 0,
  due_at: 500,
  expires_at: null,
} as const satisfies Partial<DeliveryTable>

describe('a retried delivery', () => {
  const retry = (database: Database, id: string, webhookId = 'wh_a') =>
    write(database, trx => retryDelivery(trx, webhookId, id, 500))

  test.each<DeliveryState>(['failed', 'delivered', 'retry_scheduled'])(
    'is due at once in a new cycle: %s',
    async state => {
      const database = await tempDatabase()
      const outcome = { status_code: 500, duration_ms: 84, error: 'It answered 500.' }
      const facts = { ...outcome, state, attempt: 4, at: 100, due_at: 90_000, expires_at: 9 }
      await addDelivery(database, 'dlv_a', facts)
      const before = await deliveryRow(database, 'dlv_a')
      const row = await retry(database, 'dlv_a')
      expect(row).toEqual({ ...before, ...NEW_CYCLE })
      expect(await deliveryRow(database, 'dlv_a')).toEqual(row)
    },
  )

  test('is unchanged if its first attempt is pending', async () => {
    const database = await tempDatabase()
    await addDelivery(database, 'dlv_a', { at: 100 })
    const before = await deliveryRow(database, 'dlv_a')
    expect(await retry(database, 'dlv_a')).toEqual(before)
    expect(await deliveryRow(database, 'dlv_a')).toEqual(before)
  })

  test('belongs to its webhook, and no other is retried', async () => {
    const database = await tempDatabase()
    await addDelivery(database, 'dlv_a', { state: 'failed' })
    await addDelivery(database, 'dlv_b', { state: 'failed' })
    expect(await retry(database, 'dlv_a', 'wh_b')).toBeNull()
    expect(await retry(database, 'dlv_x')).toBeNull()
    await retry(database, 'dlv_a')
    expect(await deliveryRow(database, 'dlv_a')).toMatchObject(NEW_CYCLE)
    expect(await deliveryRow(database, 'dlv_b')).toMatchObject({ state: 'failed' })
  })
})

test('recovery retries all deliveries of a webhook that failed since a time, except tests', async () => {
  const database = await tempDatabase()
  const failed = { state: 'failed' as const, attempt: 6, expires_at: 9_000 }
  await addDelivery(database, 'dlv_before', { ...failed, at: 99 })
  await addDelivery(database, 'dlv_a', { ...failed, at: 100 })
  await addDelivery(database, 'dlv_b', { ...failed, at: 101, trigger: 'manual' })
  await addDelivery(database, 'dlv_test', { ...failed, at: 101, trigger: 'test' })
  await addDelivery(database, 'dlv_other', { ...failed, at: 101, webhook_id: 'wh_b' })
  for (const state of ['pending', 'delivered', 'retry_scheduled'] as const) {
    await addDelivery(database, `dlv_${state}`, { at: 101, state })
  }
  const all = () => database.db.selectFrom('delivery').selectAll().orderBy('id').execute()
  const before = await all()
  const recover = () =>
    write(database, trx => recoverDeliveries(trx, 'wh_a', { since: 100, now: 500 }))
  expect(await recover()).toBe(2)
  expect(await all()).toEqual(
    before.map(row => (['dlv_a', 'dlv_b'].includes(row.id) ? { ...row, ...NEW_CYCLE } : row)),
  )
  expect(await recover()).toBe(0)
})

test('recovery of many runs in steps that do not block the event loop', async () => {
  const database = await tempDatabase()
  await addWebhook(database)
  await sql`
    insert into delivery (id, event_id, webhook_id, kind, state, attempt, due_at, created_at)
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500)
    select 'dlv_' || i, 'evt_' || i, 'wh_a', 'batch.completed', 'failed', 6, 0, i from n`.execute(
    database.db,
  )
  let turns = 0
  const recovering = write(database, async trx => {
    void yieldToEventLoop().then(() => turns++)
    return recoverDeliveries(trx, 'wh_a', { since: 101, now: 500 })
  })
  expect(await recovering).toBe(2_400)
  expect(turns).toBe(1)
  expect(await countOpenDeliveries(database)).toBe(2_400)
})
