import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { DeliveryTarget } from '../../webhooks/deliveries.ts'
import type { WebhookTarget } from '../../webhooks/endpoints.ts'
import type { Env } from '../context.ts'

/** What the path of an endpoint names. */
export const webhookParams = z.object({
  id: z.string().max(100).openapi({ example: 'wh_8f3a2c1d' }),
})

/** What the path of a delivery names. */
export const deliveryParams = webhookParams.extend({
  delivery_id: z.string().max(100).openapi({ example: 'dlv_01' }),
})

/** The endpoint of a path, which must be one of the caller's account. */
export const webhookTarget = (
  c: Context<Env>,
  { id }: z.output<typeof webhookParams>,
): WebhookTarget => ({ webhookId: id, accountId: c.get('caller').account.id })

export const deliveryTarget = (
  c: Context<Env>,
  { id, delivery_id }: z.output<typeof deliveryParams>,
): DeliveryTarget => ({
  ...{ deliveryId: delivery_id, webhookId: id },
  accountId: c.get('caller').account.id,
})
