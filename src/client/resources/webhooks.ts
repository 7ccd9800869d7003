import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  CreatedWebhook,
  Delivery,
  DeliveryAnswer,
  DeliveryDetail,
  DeliveryDetailAnswer,
  DeliveryPage,
  EventList,
  ListDeliveriesQuery,
  NewWebhook,
  Recovered,
  Recovery,
  RotatedWebhook,
  SecretRotation,
  Webhook,
  WebhookAnswer,
  WebhookList,
  WebhookPatch,
  WebhookTest,
} from '../types.ts'
import { dataOf } from './data.ts'
import { createListing, type Listing } from './pagination.ts'

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
  /** Sends a test event once and at once; what the receiver said is in the answer, also where it failed. */
  test(webhookId: string, options?: CreateOptions): Promise<WebhookTest['data']>
  /** Gives it another secret, which is in this answer and in no other; the one that it has goes on for a while. */
  rotateSecret(
    webhookId: string,
    rotation?: SecretRotation,
    options?: CreateOptions,
  ): Promise<RotatedWebhook['data']>
  /** What was sent to it, the newest first. */
  deliveries(
    webhookId: string,
    query?: Omit<ListDeliveriesQuery, 'cursor'>,
    options?: CallOptions,
  ): Listing<Delivery>
  /** One delivery, with what was sent and answered. */
  delivery(webhookId: string, deliveryId: string, options?: CallOptions): Promise<DeliveryDetail>
  /** Sends an event once more. */
  retry(webhookId: string, deliveryId: string, options?: CreateOptions): Promise<Delivery>
  /** Sends all once more that was given up since a time. */
  recover(
    webhookId: string,
    recovery: Recovery,
    options?: CreateOptions,
  ): Promise<Recovered['data']>
  /** The kinds of events that there are, with the schema of their data and an example of each. */
  events(options?: CallOptions): Promise<EventList['data']['events']>
}

export function webhooksRoom({ json }: Connection): Webhooks {
  const write = (method: 'PUT' | 'PATCH', webhookId: string, body: object, options?: CallOptions) =>
    dataOf(json<WebhookAnswer>({ method, path: pathOf(webhookId), body }, options))
  const create = <Answer extends { readonly data: unknown }>(
    path: string,
    o: { body?: object; timeoutMs?: number },
    options?: CreateOptions,
  ): Promise<Answer['data']> =>
    dataOf(json<Answer>({ method: 'POST', path, ...o, creates: true }, options))

  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/webhooks' } as const
      return (await dataOf(json<WebhookList>(request, options))).webhooks
    },
    get: (webhookId, options) =>
      dataOf(json<WebhookAnswer>({ method: 'GET', path: pathOf(webhookId) }, options)),
    create: (body, options) => create<CreatedWebhook>('/v1/webhooks', { body }, options),
    update: (webhookId, changes, options) => write('PATCH', webhookId, changes, options),
    replace: (webhookId, webhook, options) => write('PUT', webhookId, webhook, options),
    delete: (webhookId, options) => json({ method: 'DELETE', path: pathOf(webhookId) }, options),
    test: (webhookId, options) =>
      create<WebhookTest>(`${pathOf(webhookId)}/test`, { timeoutMs: TEST_TIMEOUT_MS }, options),
    rotateSecret: (webhookId, body = {}, options) =>
      create<RotatedWebhook>(`${pathOf(webhookId)}/secret`, { body }, options),
    deliveries: (webhookId, query, options) =>
      createListing(cursor =>
        dataOf(
          json<DeliveryPage>(
            {
              ...{ method: 'GET', path: `${pathOf(webhookId)}/deliveries` },
              query: { ...query, cursor },
            },
            options,
          ),
        ),
      ),
    delivery: (webhookId, deliveryId, options) =>
      dataOf(
        json<DeliveryDetailAnswer>(
          { method: 'GET', path: deliveryPath(webhookId, deliveryId) },
          options,
        ),
      ),
    retry: (webhookId, deliveryId, options) =>
      create<DeliveryAnswer>(`${deliveryPath(webhookId, deliveryId)}/retry`, {}, options),
    recover: (webhookId, body, options) =>
      create<Recovered>(`${pathOf(webhookId)}/recover`, { body }, options),
    async events(options) {
      const request = { method: 'GET', path: '/v1/webhooks/events' } as const
      return (await dataOf(json<EventList>(request, options))).events
    },
  }
}

const pathOf = (webhookId: string) => `/v1/webhooks/${encodeURIComponent(webhookId)}`

const deliveryPath = (webhookId: string, deliveryId: string) =>
  `${pathOf(webhookId)}/deliveries/${encodeURIComponent(deliveryId)}`

/** The receiver has half a minute of its own. */
const TEST_TIMEOUT_MS = 45_000
