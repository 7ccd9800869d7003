import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
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
import { createRequests, type Listing } from './requests.ts'

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

export function createWebhooksResource(connection: Connection): Webhooks {
  const { get, list, create, update, send, delete: remove } = createRequests(connection)
  return {
    list: async options => (await get<WebhookList>('/v1/webhooks', options)).webhooks,
    get: (webhookId, options) => get<WebhookAnswer>(webhookPath(webhookId), options),
    create: (webhook, options) => create<CreatedWebhook>('/v1/webhooks', webhook, options),
    update: (webhookId, changes, options) =>
      update<WebhookAnswer>(webhookPath(webhookId), changes, options),
    replace: (webhookId, body, options) =>
      send<WebhookAnswer>({ method: 'PUT', path: webhookPath(webhookId), body }, options),
    delete: (webhookId, options) => remove(webhookPath(webhookId), options),
    test: (webhookId, body = {}, options) => {
      const path = `${webhookPath(webhookId)}/test`
      const request = { method: 'POST', path, body, creates: true } as const
      return send<WebhookTest>({ ...request, timeoutMs: TEST_TIMEOUT_MS }, options)
    },
    rotateSecret: (webhookId, rotation = {}, options) =>
      create<RotatedWebhook>(`${webhookPath(webhookId)}/secret`, rotation, options),
    deliveries: (webhookId, query, options) =>
      list<DeliveryPage>(`${webhookPath(webhookId)}/deliveries`, query, options),
    delivery: (webhookId, deliveryId, options) =>
      get<DeliveryDetailAnswer>(deliveryPath(webhookId, deliveryId), options),
    retry: (webhookId, deliveryId, options) =>
      create<DeliveryAnswer>(`${deliveryPath(webhookId, deliveryId)}/retry`, undefined, options),
    recover: (webhookId, recovery, options) =>
      create<Recovered>(`${webhookPath(webhookId)}/recover`, recovery, options),
    events: async options => (await get<EventList>('/v1/webhooks/events', options)).events,
  }
}

const webhookPath = (webhookId: string) => `/v1/webhooks/${encodeId(webhookId)}`

const deliveryPath = (webhookId: string, deliveryId: string) =>
  `${webhookPath(webhookId)}/deliveries/${encodeId(deliveryId)}`

/** The service itself waits up to 30 s for the receiver. */
const TEST_TIMEOUT_MS = 45_000

export type Events = {
  /** Lists events that were emitted for webhooks, newest first. */
  list(query?: Omit<ListEmittedEventsQuery, 'cursor'>, options?: CallOptions): Listing<EmittedEvent>
  /** Returns an event with its deliveries. */
  get(eventId: string, options?: CallOptions): Promise<EmittedEventAnswer['data']>
}

export function createEventsResource(connection: Connection): Events {
  const { get, list } = createRequests(connection)
  return {
    list: (query, options) => list<EmittedEventPage>('/v1/events', query, options),
    get: (eventId, options) => get<EmittedEventAnswer>(`/v1/events/${encodeId(eventId)}`, options),
  }
}
