import {
  type BeforeCommit,
  type Database,
  type Trx,
  writeConcurrent,
  writeWith,
} from '../db/database.ts'
import {
  type DeliveryRow,
  findDelivery,
  findWebhookOfDelivery,
  type LoggedDelivery,
  recoverDeliveries,
  retryDelivery as retryRow,
} from './delivery-store.ts'
import { findWebhook, type Webhook } from './endpoint-store.ts'
import { type ChangeServices, getWebhook, requireActive, type WebhookTarget } from './endpoints.ts'
import { webhookError } from './errors.ts'

export type DeliveryTarget = {
  readonly deliveryId: string
  /** Null for a delivery to any webhook. */
  readonly webhookId: string | null
  /** Null for a webhook of any account, as the admin may address. */
  readonly accountId: string | null
}

type WebhookDelivery = { readonly webhook: Webhook; readonly logged: LoggedDelivery }

/**
 * Returns a delivery with its attempts. Throws `delivery_not_found`, and `webhook_not_found` if a
 * webhook is specified.
 */
export async function getDelivery(
  services: { readonly database: Database },
  target: DeliveryTarget,
): Promise<WebhookDelivery> {
  const webhook = await findTargetWebhook(services, target)
  const logged = await findDelivery(services.database, webhook.id, target.deliveryId)
  return { webhook, logged: logged ?? deliveryNotFound(target) }
}

export type RetriedDelivery = { readonly webhook: Webhook; readonly delivery: DeliveryRow }

/**
 * Retries a delivery immediately. Throws `delivery_not_found`, `webhook_not_found` and
 * `webhook_disabled`.
 */
export async function retryDelivery(
  services: ChangeServices,
  target: DeliveryTarget,
  beforeCommit?: BeforeCommit<RetriedDelivery>,
): Promise<RetriedDelivery> {
  const webhook = await findTargetWebhook(services, target)
  requireActive(webhook)
  const now = services.database.steadyClock.now()
  const retry = async (trx: Trx) => {
    const row = await retryRow(trx, webhook.id, target.deliveryId, now)
    return { webhook, delivery: row ?? deliveryNotFound(target) }
  }
  const retried = await writeWith(services.database, retry, beforeCommit)
  services.deliveries?.wake()
  return retried
}

export type Recovered = { readonly webhook: Webhook; readonly recovered: number }

/**
 * Retries all deliveries that failed since a time, epoch ms. Throws `webhook_not_found` and
 * `webhook_disabled`.
 */
export async function retryFailedDeliveries(
  services: ChangeServices,
  { since, ...target }: WebhookTarget & { readonly since: number },
  beforeCommit?: BeforeCommit<Recovered>,
): Promise<Recovered> {
  const webhook = await getWebhook(services, target)
  requireActive(webhook)
  const now = services.database.steadyClock.now()
  const recover = async (trx: Trx) => ({
    webhook,
    recovered: await recoverDeliveries(trx, webhook.id, { since, now }),
  })
  const result = await writeWith(services.database, recover, beforeCommit, writeConcurrent)
  services.deliveries?.wake()
  return result
}

async function findTargetWebhook(
  services: { readonly database: Database },
  target: DeliveryTarget,
): Promise<Webhook> {
  const { webhookId, accountId, deliveryId } = target
  if (webhookId !== null) return getWebhook(services, { webhookId, accountId })
  const id = await findWebhookOfDelivery(services.database, deliveryId)
  const webhook = id === null ? null : await findWebhook(services.database, accountId, id)
  return webhook ?? deliveryNotFound(target)
}

function deliveryNotFound({ deliveryId: id, webhookId }: DeliveryTarget): never {
  throw webhookError('delivery_not_found', { id, webhookId })
}
