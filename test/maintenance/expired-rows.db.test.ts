import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import type { Expiry } from '../../src/db/paging.ts'
import { queueFailureAlert } from '../../src/webhooks/alert-store.ts'
import { deleteWebhook, findWebhook, rotateSecret } from '../../src/webhooks/endpoint-store.ts'
import {
  clearSecretsUntil,
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../../src/webhooks/retention.ts'
import { tempDatabase } from '../support/database.ts'
import { addDelivery, addWebhook } from '../support/webhook-rows.ts'

const run = (database: Database, expiry: Expiry, until: number, max = 99) =>
  write(database, trx => expiry(trx, until, max))

const addAttempt = ({ db }: Database, id: string, number = 1) =>
  db
    .insertInto('attempt')
    .values({
      delivery_id: id,
      number,
      trigger: 'scheduled',
      url: 'https://x.example/',
      started_at: 0,
      duration_ms: 9,
    })
    .execute()

/** IDs of the existing rows. */
async function kept({ db }: Database) {
  const [deliveries, events, webhooks] = await Promise.all(
    (['delivery', 'event', 'webhook'] as const).map(table =>
      db.selectFrom(table).select('id').orderBy('id').execute(),
    ),
  )
  const attempts = await db
    .selectFrom('attempt')
    .select('delivery_id as id')
    .orderBy('id')
    .execute()
  const ids = (rows: { id: string }[] = []) => rows.map(({ id }) => id)
  return {
    deliveries: ids(deliveries),
    events: ids(events),
    attempts: ids(attempts),
    webhooks: ids(webhooks),
  }
}

describe('an expired delivery', () => {
  test('is deleted at the end of its retention, with its attempts and its event', async () => {
    const database = await tempDatabase()
    await addDelivery(database, 'dlv_a', { state: 'failed', expires_at: 10 })
    await addDelivery(database, 'dlv_b', { state: 'delivered', expires_at: 11 })
    await addDelivery(database, 'dlv_c')
    for (const id of ['dlv_a', 'dlv_b', 'dlv_c']) await addAttempt(database, id)
    await addAttempt(database, 'dlv_a', 2)
    expect(await run(database, deleteDeliveriesUntil, 9)).toBe(0)
    expect(await run(database, deleteDeliveriesUntil, 10)).toBe(1)
    expect(await kept(database)).toMatchObject({
      deliveries: ['dlv_b', 'dlv_c'],
      events: ['evt_b', 'evt_c'],
      attempts: ['dlv_b', 'dlv_c'],
    })
    expect(await run(database, deleteDeliveriesUntil, 1e15)).toBe(1)
    expect(await kept(database)).toMatchObject({ deliveries: ['dlv_c'], events: ['evt_c'] })
  })

  test('keeps an event that other deliveries refer to, and the last one deletes it', async () => {
    const database = await tempDatabase()
    const ended = { state: 'delivered', event_id: 'evt_x' } as const
    await addDelivery(database, 'dlv_a', { ...ended, expires_at: 10 })
    await addDelivery(database, 'dlv_b', { ...ended, expires_at: 20, webhook_id: 'wh_b' })
    await run(database, deleteDeliveriesUntil, 10)
    expect(await kept(database)).toMatchObject({ deliveries: ['dlv_b'], events: ['evt_x'] })
    await run(database, deleteDeliveriesUntil, 20)
    expect(await kept(database)).toMatchObject({ deliveries: [], events: [] })
  })

  test('is deleted in steps, the longest expired first', async () => {
    const database = await tempDatabase()
    for (const expires_at of [3, 1, 2]) {
      await addDelivery(database, `dlv_${expires_at}`, { state: 'failed', expires_at })
    }
    expect(await run(database, deleteDeliveriesUntil, 10, 2)).toBe(2)
    expect(await kept(database)).toMatchObject({ deliveries: ['dlv_3'], events: ['evt_3'] })
    expect(await run(database, deleteDeliveriesUntil, 10, 2)).toBe(1)
  })
})

test('open deliveries of a disabled webhook are deleted by their due time, and no others', async () => {
  const database = await tempDatabase()
  await addWebhook(database, { id: 'wh_on' })
  await addWebhook(database, { id: 'wh_off', active: false })
  const off = { webhook_id: 'wh_off' }
  await addDelivery(database, 'dlv_a', { ...off, at: 10 })
  await addDelivery(database, 'dlv_b', { ...off, at: 5, due_at: 10, state: 'retry_scheduled' })
  await addDelivery(database, 'dlv_c', { ...off, at: 5, due_at: 11, state: 'retry_scheduled' })
  await addDelivery(database, 'dlv_d', { ...off, at: 1, state: 'delivered', expires_at: 99 })
  await addDelivery(database, 'dlv_e', { webhook_id: 'wh_on', at: 1 })
  await addAttempt(database, 'dlv_b')
  expect(await run(database, deleteStrandedUntil, 9)).toBe(0)
  expect(await run(database, deleteStrandedUntil, 10, 1)).toBe(1)
  expect(await run(database, deleteStrandedUntil, 10)).toBe(1)
  expect(await kept(database)).toEqual({
    deliveries: ['dlv_c', 'dlv_d', 'dlv_e'],
    events: ['evt_c', 'evt_d', 'evt_e'],
    attempts: [],
    webhooks: ['wh_off', 'wh_on'],
  })
})

test('a deleted webhook is removed with the last of its deliveries, in steps', async () => {
  const database = await tempDatabase()
  await addWebhook(database, { id: 'wh_a' })
  await addWebhook(database, { id: 'wh_b' })
  for (const n of [1, 2, 3]) {
    await addDelivery(database, `dlv_${n}`, { state: n === 1 ? 'failed' : 'pending' })
    await addAttempt(database, `dlv_${n}`)
  }
  await addDelivery(database, 'dlv_b', { webhook_id: 'wh_b' })
  for (const webhookId of ['wh_a', 'wh_b']) {
    const failure = { webhookId, accountId: 'acc_a', events: 1, error: null, now: 1 }
    await write(database, trx => queueFailureAlert(trx, failure))
  }
  await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_a', 10))
  expect(await run(database, deleteWebhooksUntil, 9)).toBe(0)
  expect((await kept(database)).webhooks).toEqual(['wh_a', 'wh_b'])
  expect(await run(database, deleteWebhooksUntil, 10, 2)).toBe(2)
  expect((await kept(database)).webhooks).toEqual(['wh_a', 'wh_b'])
  expect(await run(database, deleteWebhooksUntil, 10, 2)).toBe(1)
  expect(await kept(database)).toEqual({
    deliveries: ['dlv_b'],
    events: ['evt_b'],
    attempts: [],
    webhooks: ['wh_b'],
  })
  const notices = await database.db.selectFrom('notice').select('webhook_id').execute()
  expect(notices).toEqual([{ webhook_id: 'wh_b' }])
})

describe('an event without a delivery', () => {
  const addEvent = ({ db }: Database, id: string, created_at: number) =>
    db
      .insertInto('event')
      .values({ id, account_id: 'acc_a', kind: 'quota.warning', body: '{}', created_at })
      .execute()

  test('is deleted by its age, and one with a delivery is not', async () => {
    const database = await tempDatabase()
    await addEvent(database, 'evt_old', 9)
    await addEvent(database, 'evt_young', 10)
    await addDelivery(database, 'dlv_a', { at: 1 })
    expect(await run(database, deleteOrphanedEventsBefore, 10)).toBe(1)
    expect((await kept(database)).events).toEqual(['evt_a', 'evt_young'])
  })

  test('is searched only among the oldest', async () => {
    const database = await tempDatabase()
    await addDelivery(database, 'dlv_a', { at: 1 })
    await addDelivery(database, 'dlv_b', { at: 2 })
    await addEvent(database, 'evt_x', 3)
    expect(await run(database, deleteOrphanedEventsBefore, 10, 2)).toBe(0)
    expect(await run(database, deleteOrphanedEventsBefore, 10, 3)).toBe(1)
  })
})

test('a replaced secret is cleared after its grace period, in steps', async () => {
  const database = await tempDatabase()
  for (const [id, graceMs] of [
    ['wh_a', 10],
    ['wh_b', 10],
    ['wh_c', 11],
  ] as const) {
    await addWebhook(database, { id })
    const fields = { secret: 'new', secretHint: 'Hint', graceMs, now: 0 }
    await write(database, trx => rotateSecret(trx, 'acc_a', id, fields))
  }
  expect(await run(database, clearSecretsUntil, 9)).toBe(0)
  expect(await run(database, clearSecretsUntil, 10, 1)).toBe(1)
  expect(await run(database, clearSecretsUntil, 10, 99)).toBe(1)
  const found = await Promise.all(
    ['wh_a', 'wh_b', 'wh_c'].map(id => findWebhook(database, 'acc_a', id)),
  )
  expect(found.map(webhook => [webhook?.secret, webhook?.previousSecret])).toEqual([
    ['new', null],
    ['new', null],
    ['new', { secret: 'sealed', until: 11 }],
  ])
})
