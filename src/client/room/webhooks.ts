import type { CallOptions, Connection, CreateOptions } from '../connection/connection.ts'
import type { CreateWebhookBody, NewWebhook, UpdateWebhookBody, Webhook } from '../types.ts'

export type Webhooks = {
  list(options?: CallOptions): Promise<Webhook[]>
  get(webhookId: string, options?: CallOptions): Promise<Webhook>
  /** The secret of its signatures is in this answer and in no other. */
  create(webhook: CreateWebhookBody, options?: CreateOptions): Promise<NewWebhook>
  update(webhookId: string, changes: UpdateWebhookBody, options?: CallOptions): Promise<Webhook>
  delete(webhookId: string, options?: CallOptions): Promise<void>
}

export function webhooksRoom({ json }: Connection): Webhooks {
  const given = async <T>(answer: Promise<{ data: T }>) => (await answer).data

  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/webhooks', repeatable: 'yes' } as const
      return (await json<{ data: { webhooks: Webhook[] } }>(request, options)).data.webhooks
    },
    get: (webhookId, options) =>
      given(json({ method: 'GET', path: pathOf(webhookId), repeatable: 'yes' }, options)),
    create: (webhook, options) =>
      given(
        json({ method: 'POST', path: '/v1/webhooks', body: webhook, repeatable: 'key' }, options),
      ),
    update: (webhookId, changes, options) =>
      given(
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
