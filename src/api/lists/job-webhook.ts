import type { Context } from 'hono'
import type { SubmitOptions } from '../../jobs/job-store.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { EventKind } from '../../webhooks/event.ts'
import { type JobWebhook, newJobWebhook } from '../../webhooks/job-webhook.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { withOrigin } from '../request-context.ts'
import type { Service } from '../service.ts'

/**
 * Reads the `webhook_url` of a job; null if it is omitted. It needs no scope for webhooks: the
 * endpoint gets only events of a job that this key has created.
 */
export async function readJobWebhook(
  c: Context<Env>,
  service: Service,
  url: unknown,
  events: readonly EventKind[],
): Promise<JobWebhook | null> {
  if (url === undefined || url === null || url === '') return null
  if (typeof url !== 'string') {
    const excerpt = sanitizeText(JSON.stringify(url), 60)
    throw new ApiError('invalid_request', `"webhook_url" is ${excerpt}; it must be a string.`)
  }
  const { id: accountId } = c.get('caller').account
  return newJobWebhook(withOrigin(c, service), { accountId, url, events })
}

/** The endpoint of a job in the response that creates it, the only one with its secret. */
export const presentJobWebhook = ({ webhook }: SubmitOptions) =>
  webhook ? { webhook_id: webhook.id, webhook_secret: webhook.secret } : {}
