import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { type NewAttempt, retryDelivery } from '../../src/webhooks/delivery-store.ts'
import { DISABLED_REASONS } from '../../src/webhooks/endpoint.ts'
import { findWebhook, updateWebhook } from '../../src/webhooks/endpoint-store.ts'
import {
  addDelivery,
  addWebhook,
  attemptAt,
  createDeliveries,
  cycleOf,
  deliveryRow,
  FAILURE,
  NOW,
  noticeOf,
  record,
  SUCCESS,
} from '../support/webhook-rows.ts'

const { gone: GONE, failing: FAILING } = DISABLED_REASONS

describe('a webhook', () => {
  const failingSince = async (database: Database) => {
    const webhook = await findWebhook(database, 'acc_a', 'wh_a')
    return webhook?.failingSince
  }

  test('is failing from its first failure until its first success', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b', 'dlv_c', 'dlv_d')
    await record(database, [attemptAt('dlv_a')], 10)
    expect(await failingSince(database)).toBe(10)
    await record(database, [attemptAt('dlv_b', FAILURE)], 20)
    expect(await failingSince(database)).toBe(10)
    await record(database, [attemptAt('dlv_c', SUCCESS)], 30)
    expect(await failingSince(database)).toBeNull()
    await record(database, [attemptAt('dlv_d')], 40)
    expect(await failingSince(database)).toBe(40)
  })

  test.each<[string, Partial<NewAttempt>[], number | null]>([
    ['a success and then a failure', [SUCCESS, FAILURE], 20],
    ['a failure and then a success', [FAILURE, SUCCESS], null],
    ['only failures', [FAILURE, {}], 10],
  ])('that was failing follows the order within one batch: %s', async (_, group, since) => {
    const database = await createDeliveries('dlv_x', 'dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_x')], 10)
    const attempts = group.map((given, n) => attemptAt(`dlv_${'ab'[n]}`, given))
    await record(database, attempts, 20)
    expect(await failingSince(database)).toBe(since)
  })

  test('is not affected by the responses of another one', async () => {
    const database = await createDeliveries('dlv_a')
    await addWebhook(database, { id: 'wh_b' })
    await addDelivery(database, 'dlv_b', { webhook_id: 'wh_b' })
    await record(database, [attemptAt('dlv_b'), attemptAt('dlv_a', SUCCESS)], 10)
    expect(await failingSince(database)).toBeNull()
    expect(await findWebhook(database, 'acc_a', 'wh_b')).toMatchObject({ failingSince: 10 })
  })

  test('counts an attempt whose delivery has a new cycle since', async () => {
    const database = await createDeliveries('dlv_a')
    await addDelivery(database, 'dlv_b', { state: 'retry_scheduled', attempt: 1 })
    await record(database, [attemptAt('dlv_a')], 10)
    await write(database, trx => retryDelivery(trx, 'wh_a', 'dlv_b', 15))
    const late = { ...cycleOf('dlv_b', 'scheduled', 1), ...SUCCESS }
    await record(database, [attemptAt('dlv_b', late)], 20)
    expect(await failingSince(database)).toBeNull()
  })

  test('is disabled with the given reason, keeps its open deliveries, and its owner is alerted', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    const gone = { ...FAILURE, statusCode: 410, disabledCode: 'gone' } as const
    await record(database, [attemptAt('dlv_a', gone)])
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({
      active: false,
      disabledReason: GONE,
      disabledCode: 'gone',
      updatedAt: NOW,
    })
    expect(await deliveryRow(database, 'dlv_b')).toMatchObject({ state: 'pending', due_at: 100 })
    expect(await noticeOf(database)).toMatchObject({
      account_id: 'acc_a',
      failed_events: 1,
      disabled_reason: GONE,
    })
  })

  test('that was disabled manually meanwhile is not disabled again', async () => {
    const database = await createDeliveries('dlv_a')
    await database.db.updateTable('webhook').set({ active: 0, updated_at: 77 }).execute()
    const gone = { ...FAILURE, statusCode: 410, disabledCode: 'gone' } as const
    await record(database, [attemptAt('dlv_a', gone)])
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({
      active: false,
      disabledReason: null,
      updatedAt: 77,
    })
    expect(await noticeOf(database)).toMatchObject({ failed_events: 1, disabled_reason: null })
  })

  test('that failed for long is not disabled by an attempt from before its success', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b', 'dlv_c', 'dlv_d')
    await record(database, [attemptAt('dlv_a')], 10)
    const judged = { startedAt: 900, disabledCode: 'failing' } as const
    const group = [attemptAt('dlv_b', SUCCESS), attemptAt('dlv_c', judged)]
    await record(database, [...group, attemptAt('dlv_d', judged)], 1_000)
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({
      active: true,
      disabledReason: null,
      failingSince: 1_000,
    })
  })

  test('that failed for long is disabled with the failure that asks for it', async () => {
    const database = await createDeliveries('dlv_a', 'dlv_b')
    await record(database, [attemptAt('dlv_a')], 10)
    const judged = { startedAt: 900, disabledCode: 'failing' } as const
    await record(database, [attemptAt('dlv_b', judged)], 1_000)
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toMatchObject({
      active: false,
      disabledReason: FAILING,
      disabledCode: 'failing',
      failingSince: 10,
    })
    expect(await noticeOf(database)).toMatchObject({
      failed_events: 0,
      disabled_reason: FAILING,
    })
  })

  test('is neither failing nor disabled because of responses at its former URL', async () => {
    const database = await createDeliveries('dlv_a')
    await write(database, trx =>
      updateWebhook(trx, 'acc_a', 'wh_a', { url: 'https://moved.example/', now: 1 }),
    )
    const before = await findWebhook(database, 'acc_a', 'wh_a')
    const gone = { ...FAILURE, statusCode: 410, disabledCode: 'gone' } as const
    await record(database, [attemptAt('dlv_a', gone)])
    expect(await findWebhook(database, 'acc_a', 'wh_a')).toEqual(before)
    expect(await deliveryRow(database, 'dlv_a')).toMatchObject({ state: 'failed' })
    expect(await noticeOf(database)).toMatchObject({ failed_events: 1, disabled_reason: null })
  })
})
