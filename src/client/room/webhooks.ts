import type { CallOptions, Connection, CreateOptions } from '../connection/connection.ts'
import { dataOf } from './data.ts'

export type Webhooks = {
  list(options?: CallOptions): Promise<Webhook[]>
  get(webhookId: string, options?: CallOptions): Promise<Webhook>
  /** The secret of its signatures is in this answer and in no other. */
  create(webhook: CreateWebhookBody, options?: CreateOptions): Promise<NewWebhook>
  update(webhookId: string, changes: UpdateWebhookBody, options?: CallOptions): Promise<Webhook>
  delete(webhookId: string, options?: CallOptions): Promise<void>
}

export function webhooksRoom({ json }: Connection): Webhooks {
  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/webhooks', repeatable: 'yes' } as const
      const answer = json<{ data: { webhooks: Webhook[] } }>(request, options)
      return (await dataOf(answer)).webhooks
    },
    get: (webhookId, options) =>
      dataOf(json({ method: 'GET', path: pathOf(webhookId), repeatable: 'yes' }, options)),
    create: (webhook, options) =>
      dataOf(
        json({ method: 'POST', path: '/v1/webhooks', body: webhook, repeatable: 'key' }, options),
      ),
    update: (webhookId, changes, options) =>
      dataOf(
        json(
          { method: 'PATCH', path: pathOf(webhookId), body: changes, repeatable: 'yes' },
          options,
        ),
      ),
    delete: (webhookId, options) =>
      json({ method: 'DELETE', path: pathOf(webhookId), repeatable: 'yes' }, options),
  }
}

const pathOf = (webhookId: string) => `/v1/webhooks/${encodeURIComponent(webhookId)}`

// Until the document has them.
export type CreateWebhookBody = { url: string; events: string[]; active?: boolean }
export type UpdateWebhookBody = Partial<CreateWebhookBody>
export type Webhook = { id: string; url: string; events: string[]; active: boolean }
export type NewWebhook = Webhook & { secret: string }
