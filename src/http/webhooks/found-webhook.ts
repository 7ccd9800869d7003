import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { findWebhook, type Webhook } from '../../store/event/webhooks.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** What the path of an endpoint names. */
export const webhookParams = z.object({
  id: z.string().max(100).openapi({ example: 'wh_8f3a2c1d' }),
})

/** The endpoint of a path; whoever asks for another account's hears that there is none. */
export async function foundWebhook(
  c: Context<Env>,
  { database }: Service,
  id: string,
): Promise<Webhook> {
  return (await findWebhook(database, c.get('caller').account.id, id)) ?? noSuchWebhook()
}

export function noSuchWebhook(): never {
  throw new ApiError('not_found', 'There is no such webhook endpoint')
}

/** What is to be sent again waits while its endpoint is off: nobody should take that for sent. */
export function refuseOff({ active }: Webhook): void {
  if (active) return
  throw new ApiError(
    'invalid_request',
    'The webhook endpoint is switched off, so nothing is sent to it. Switch it on first: PATCH it with {"active": true}.',
  )
}
