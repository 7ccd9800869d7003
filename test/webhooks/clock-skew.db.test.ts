import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { DAY, HOUR, MINUTE } from '../../src/platform/clock.ts'
import { queueFailureAlert } from '../../src/webhooks/alert-store.ts'
import { findWebhook } from '../../src/webhooks/endpoint-store.ts'
import { shiftAfterClockSkew } from '../../src/webhooks/start-deliveries.ts'
import { plansOf } from '../db/plan/query-plans.ts'
import { onPostgres } from '../support/database.ts'
import {
  addDelivery,
  attemptAt,
  createDeliveries,
  deliveryRow,
  noticeOf,
  record,
} from '../support/webhook-rows.ts'

const NOW = Date.UTC(2026, 5, 1)
const SCHEDULED = { state: 'retry_scheduled', attempt: 1 } as const

describe('a wall clock that was set back', () => {
  test('moves the times of due and waiting deliveries', async () => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_new', { at: NOW + DAY })
    await addDelivery(database, 'dlv_soon', { ...SCHEDULED, at: NOW + DAY + 5 * MINUTE })
    await addDelivery(database, 'dlv_late', { ...SCHEDULED, at: NOW + 10 * MINUTE })
    await addDelivery(database, 'dlv_due', { at: NOW - 5 })
    await addDelivery(database, 'dlv_over', { state: 'delivered', at: NOW + DAY })
    await shiftAfterClockSkew(database, { now: NOW, byMs: DAY })
    const dueAt = async (id: string) => (await deliveryRow(database, id))?.due_at
    expect(await dueAt('dlv_new')).toBe(NOW)
    expect(await dueAt('dlv_soon')).toBe(NOW + 5 * MINUTE)
    expect(await dueAt('dlv_late')).toBe(NOW)
    expect(await dueAt('dlv_due')).toBe(NOW - 5)
    expect(await dueAt('dlv_over')).toBe(NOW + DAY)
  })

  test('before the start is detected by implausible times', async () => {
    const database = await createDeliveries()
    await addDelivery(database, 'dlv_new', { at: NOW + 1 })
    await addDelivery(database, 'dlv_waits', { ...SCHEDULED, at: NOW + DAY })
    await addDelivery(database, 'dlv_never', { ...SCHEDULED, at: NOW + 400 * DAY })
    await shiftAfterClockSkew(database, { now: NOW, byMs: 0 })
    const dueAt = async (id: string) => (await deliveryRow(database, id))?.due_at
    expect(await dueAt('dlv_new')).toBe(NOW)
    expect(await dueAt('dlv_waits')).toBe(NOW + DAY)
    expect(await dueAt('dlv_never')).toBe(NOW + DAY)
  })

  test('delays no alert, and restarts the failure series of a webhook', async () => {
    const database = await createDeliveries('dlv_a')
    await record(database, [attemptAt('dlv_a')], NOW + 400 * DAY)
    const entered = { webhookId: 'wh_a', accountId: 'acc_a', events: 1, error: null }
    await write(database, trx => queueFailureAlert(trx, { ...entered, now: NOW + 400 * DAY }))
    await database.db
      .updateTable('notice')
      .set({ sent_at: NOW + 399 * DAY })
      .execute()
    await shiftAfterClockSkew(database, { now: NOW, byMs: 400 * DAY })
    expect(await noticeOf(database)).toMatchObject({ due_at: NOW + HOUR, sent_at: NOW })
    expect((await findWebhook(database, 'acc_a', 'wh_a'))?.failingSince).toBe(NOW)
  })
})

test('that was not set back causes no write', async () => {
  const database = await createDeliveries()
  await addDelivery(database, 'dlv_due', { at: NOW - 5 })
  await addDelivery(database, 'dlv_waits', { ...SCHEDULED, at: NOW + DAY })
  const readOnly = {
    ...database,
    get db(): never {
      throw new Error('it is written')
    },
  }
  await expect(shiftAfterClockSkew(readOnly, { now: NOW, byMs: 0 })).resolves.toBeUndefined()
})

test.skipIf(onPostgres)(
  'is detected by the index of open deliveries, without reading rows',
  async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    const plan = await plansOf(database, db => shiftAfterClockSkew(db, { now: NOW, byMs: 0 }))
    expect(plan.join('\n')).toMatch(/delivery USING COVERING INDEX delivery_due/)
  },
)
