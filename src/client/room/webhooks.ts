import type { CallOptions, Connection, CreateOptions } from '../connection/connection.ts'
import type {
  CreatedWebhook,
  EventList,
  NewWebhook,
  Webhook,
  WebhookAnswer,
  WebhookList,
  WebhookPatch,
} from '../types.ts'
import { dataOf } from './data.ts'

export type Webhooks = {
  /** The oldest first. */
  list(options?: CallOptions): Promise<Webhook[]>
  get(webhookId: string, options?: CallOptions): Promise<Webhook>
  /** The secret of its signatures is in this answer and in no other. */
  create(webhook: NewWebhook, options?: CreateOptions): Promise<CreatedWebhook['data']>
  /** What is left out stays as it is. */
  update(webhookId: string, changes: WebhookPatch, options?: CallOptions): Promise<Webhook>
  /** What is left out gets its default; the secret stays. */
  replace(webhookId: string, webhook: NewWebhook, options?: CallOptions): Promise<Webhook>
  delete(webhookId: string, options?: CallOptions): Promise<void>
  /** The kinds of events that there are, with the schema of their data and an example of each. */
  events(options?: CallOptions): Promise<EventList['data']['events']>
}

export function webhooksRoom({ json }: Connection): Webhooks {
  const write = (method: 'PUT' | 'PATCH', webhookId: string, body: object, options?: CallOptions) =>
    dataOf(json<WebhookAnswer>({ method, path: pathOf(webhookId), body }, options))

  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/webhooks' } as const
      return (await dataOf(json<WebhookList>(request, options))).webhooks
    },
    get: (webhookId, options) =>
      dataOf(json<WebhookAnswer>({ method: 'GET', path: pathOf(webhookId) }, options)),
    create: (body, options) =>
      dataOf(
        json<CreatedWebhook>(
          { method: 'POST', path: '/v1/webhooks', body, creates: true },
          options,
        ),
      ),
    update: (webhookId, changes, options) => write('PATCH', webhookId, changes, options),
    replace: (webhookId, webhook, options) => write('PUT', webhookId, webhook, options),
    delete: (webhookId, options) => json({ method: 'DELETE', path: pathOf(webhookId) }, options),
    async events(options) {
      const request = { method: 'GET', path: '/v1/webhooks/events' } as const
      return (await dataOf(json<EventList>(request, options))).events
    },
  }
}

const pathOf = (webhookId: string) => `/v1/webhooks/${encodeURIComponent(webhookId)}`
