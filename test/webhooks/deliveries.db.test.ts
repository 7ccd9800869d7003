import { expect, test } from 'vitest'
import { COMMAND_LINE } from '../../src/audit.ts'
import type { Database } from '../../src/db/database.ts'
import { getDelivery, retryDelivery, retryFailedDeliveries } from '../../src/webhooks/deliveries.ts'
import { deleteWebhook, setWebhookActive } from '../../src/webhooks/endpoints.ts'
import { fakeClock } from '../support/clock.ts'
import { countedRandom } from '../support/random.ts'
import {
  addWebhook,
  attemptAt,
  createDeliveries,
  deliveryRow,
  FAILURE,
  record,
} from '../support/webhook-rows.ts'

const OURS = { deliveryId: 'dlv_a', webhookId: 'wh_a', accountId: 'acc_a' }
const ALONE = { deliveryId: 'dlv_a', webhookId: null, accountId: null }

async function withFailed() {
  const database = await createDeliveries('dlv_a')
  await record(database, [attemptAt('dlv_a', FAILURE)])
  const [clock, wakes] = [fakeClock(), [] as number[]]
  const audit = { random: countedRandom(), origin: COMMAND_LINE }
  return {
    ...audit,
    database,
    clock,
    wakes,
    deliveries: { wake: () => void wakes.push(clock.now()) },
  }
}

const stateIn = async (database: Database) => (await deliveryRow(database, 'dlv_a'))?.state

test('a delivery is found by its ID alone if neither webhook nor account is specified', async () => {
  const services = await withFailed()
  const { webhook, logged } = await getDelivery(services, ALONE)
  expect([webhook.id, logged.delivery.id]).toEqual(['wh_a', 'dlv_a'])
  expect((await getDelivery(services, OURS)).logged).toEqual(logged)
})

test('a delivery of another account, another webhook or a deleted one is not found', async () => {
  const services = await withFailed()
  await addWebhook(services.database, { id: 'wh_b' })
  const others = [
    [{ ...ALONE, accountId: 'acc_b' }, 'delivery_not_found'],
    [{ ...OURS, accountId: 'acc_b' }, 'webhook_not_found'],
    [{ ...OURS, webhookId: 'wh_b' }, 'delivery_not_found'],
    [{ ...ALONE, deliveryId: 'dlv_none' }, 'delivery_not_found'],
  ] as const
  for (const [target, code] of others) {
    await expect(getDelivery(services, target)).rejects.toMatchObject({ code })
    await expect(retryDelivery(services, target)).rejects.toMatchObject({ code })
  }
  await deleteWebhook(services, { webhookId: 'wh_a', accountId: null })
  await expect(getDelivery(services, ALONE)).rejects.toMatchObject({ code: 'delivery_not_found' })
  expect(services.wakes).toEqual([])
})

test('a retried delivery is due, and the sender is woken', async () => {
  const services = await withFailed()
  const { delivery } = await retryDelivery(services, ALONE)
  expect(delivery).toMatchObject({ state: 'pending', trigger: 'manual', attempt: 0 })
  expect(services.wakes).toHaveLength(1)
})

test('all deliveries that failed since a time are retried, and the sender is woken', async () => {
  const services = await withFailed()
  const target = { webhookId: 'wh_a', accountId: null }
  expect(await retryFailedDeliveries(services, { ...target, since: 101 })).toMatchObject({
    recovered: 0,
  })
  expect(await retryFailedDeliveries(services, { ...target, since: 100 })).toMatchObject({
    recovered: 1,
  })
  expect(await stateIn(services.database)).toBe('pending')
  expect(services.wakes).toHaveLength(2)
})

test('nothing is retried for a disabled webhook', async () => {
  const services = await withFailed()
  const target = { webhookId: 'wh_a', accountId: 'acc_a' }
  await setWebhookActive(services, { ...target, active: false })
  const off = expect.objectContaining({ code: 'webhook_disabled', facts: { id: 'wh_a' } })
  await expect(retryDelivery(services, OURS)).rejects.toThrow(off)
  await expect(retryFailedDeliveries(services, { ...target, since: 0 })).rejects.toThrow(off)
  expect(await stateIn(services.database)).toBe('failed')
})

test('nothing is retried if the write before the commit fails', async () => {
  const services = await withFailed()
  const failing = async () => {
    throw new Error('no room for the answer')
  }
  await expect(retryDelivery(services, OURS, failing)).rejects.toThrow('no room for the answer')
  expect(await stateIn(services.database)).toBe('failed')
  expect(services.wakes).toEqual([])
})
