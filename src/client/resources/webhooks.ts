import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  CreatedWebhook,
  Delivery,
  DeliveryAnswer,
  DeliveryDetail,
  DeliveryDetailAnswer,
  DeliveryPage,
  EmittedEvent,
  EmittedEventAnswer,
  EmittedEventPage,
  EventList,
  ListDeliveriesQuery,
  ListEmittedEventsQuery,
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
  WebhookTestRequest,
} from '../types.ts'
import { createListing, type Listing, unwrapData } from './pagination.ts'

export type Webhooks = {
  /** Lists webhooks, oldest first. */
  list(options?: CallOptions): Promise<Webhook[]>
  get(webhookId: string, options?: CallOptions): Promise<Webhook>
  /** Creates a webhook. Only this response contains its signing secret. */
  create(webhook: NewWebhook, options?: CreateOptions): Promise<CreatedWebhook['data']>
  /** Updates a webhook; omitted fields keep their value. */
  update(webhookId: string, changes: WebhookPatch, options?: CallOptions): Promise<Webhook>
  /** Replaces a webhook; omitted fields get their default. The secret is kept. */
  replace(webhookId: string, webhook: NewWebhook, options?: CallOptions): Promise<Webhook>
  delete(webhookId: string, options?: CallOptions): Promise<void>
  /**
   * Sends a test event, or an example of another event type, once. Returns the receiver's response,
   * or the failure.
   */
  test(
    webhookId: string,
    test?: WebhookTestRequest,
    options?: CreateOptions,
  ): Promise<WebhookTest['data']>
  /**
   * Issues a new signing secret, which only this response contains. Both secrets sign during the
   * grace period.
   */
  rotateSecret(
    webhookId: string,
    rotation?: SecretRotation,
    options?: CreateOptions,
  ): Promise<RotatedWebhook['data']>
  /** Lists deliveries, newest first. */
  deliveries(
    webhookId: string,
    query?: Omit<ListDeliveriesQuery, 'cursor'>,
    options?: CallOptions,
  ): Listing<Delivery>
  /** Returns a delivery with its attempts. */
  delivery(webhookId: string, deliveryId: string, options?: CallOptions): Promise<DeliveryDetail>
  /** Retries a delivery. */
  retry(webhookId: string, deliveryId: string, options?: CreateOptions): Promise<Delivery>
  /** Retries all failed deliveries since a time. */
  recover(
    webhookId: string,
    recovery: Recovery,
    options?: CreateOptions,
  ): Promise<Recovered['data']>
  /** Lists the event types, each with the schema of its data and an example. */
  events(options?: CallOptions): Promise<EventList['data']['events']>
}

export function createWebhooksResource({ json }: Connection): Webhooks {
  const write = (method: 'PUT' | 'PATCH', webhookId: string, body: object, options?: CallOptions) =>
    unwrapData(json<WebhookAnswer>({ method, path: webhookPath(webhookId), body }, options))
  const create = <Answer extends { readonly data: unknown }>(
    path: string,
    o: { body?: object; timeoutMs?: number },
    options?: CreateOptions,
  ): Promise<Answer['data']> =>
    unwrapData(json<Answer>({ method: 'POST', path, ...o, creates: true }, options))

  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/webhooks' } as const
      return (await unwrapData(json<WebhookList>(request, options))).webhooks
    },
    get: (webhookId, options) =>
      unwrapData(json<WebhookAnswer>({ method: 'GET', path: webhookPath(webhookId) }, options)),
    create: (body, options) => create<CreatedWebhook>('/v1/webhooks', { body }, options),
    update: (webhookId, changes, options) => write('PATCH', webhookId, changes, options),
    replace: (webhookId, webhook, options) => write('PUT', webhookId, webhook, options),
    delete: (webhookId, options) =>
      json({ method: 'DELETE', path: webhookPath(webhookId) }, options),
    test: (webhookId, body = {}, options) =>
      create<WebhookTest>(
        `${webhookPath(webhookId)}/test`,
        { body, timeoutMs: TEST_TIMEOUT_MS },
        options,
      ),
    rotateSecret: (webhookId, body = {}, options) =>
      create<RotatedWebhook>(`${webhookPath(webhookId)}/secret`, { body }, options),
    deliveries: (webhookId, query, options) =>
      createListing(cursor =>
        unwrapData(
          json<DeliveryPage>(
            {
              ...{ method: 'GET', path: `${webhookPath(webhookId)}/deliveries` },
              query: { ...query, cursor },
            },
            options,
          ),
        ),
      ),
    delivery: (webhookId, deliveryId, options) =>
      unwrapData(
        json<DeliveryDetailAnswer>(
          { method: 'GET', path: deliveryPath(webhookId, deliveryId) },
          options,
        ),
      ),
    retry: (webhookId, deliveryId, options) =>
      create<DeliveryAnswer>(`${deliveryPath(webhookId, deliveryId)}/retry`, {}, options),
    recover: (webhookId, body, options) =>
      create<Recovered>(`${webhookPath(webhookId)}/recover`, { body }, options),
    async events(options) {
      const request = { method: 'GET', path: '/v1/webhooks/events' } as const
      return (await unwrapData(json<EventList>(request, options))).events
    },
  }
}

const webhookPath = (webhookId: string) => `/v1/webhooks/${encodeURIComponent(webhookId)}`

const deliveryPath = (webhookId: string, deliveryId: string) =>
  `${webhookPath(webhookId)}/deliveries/${encodeURIComponent(deliveryId)}`

/** The service itself waits up to 30 s for the receiver. */
const TEST_TIMEOUT_MS = 45_000

export type Events = {
  /** Lists events that were emitted for webhooks, newest first. */
  list(query?: Omit<ListEmittedEventsQuery, 'cursor'>, options?: CallOptions): Listing<EmittedEvent>
  /** Returns an event with its deliveries. */
  get(eventId: string, options?: CallOptions): Promise<EmittedEventAnswer['data']>
}

export function createEventsResource({ json }: Connection): Events {
  const get = <Answer>(path: string, query: object | undefined, options?: CallOptions) =>
    json<Answer>({ method: 'GET', path, query }, options)

  return {
    list: (query, options) =>
      createListing(cursor =>
        unwrapData(get<EmittedEventPage>('/v1/events', { ...query, cursor }, options)),
      ),
    get: (eventId, options) =>
      unwrapData(
        get<EmittedEventAnswer>(`/v1/events/${encodeURIComponent(eventId)}`, undefined, options),
      ),
  }
}
