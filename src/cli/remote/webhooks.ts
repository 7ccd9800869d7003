import type { EvClient } from '../../client/client.ts'
import { EvApiError } from '../../client/error.ts'
import type {
  Delivery,
  DeliveryDetail,
  NewWebhook,
  Webhook,
  WebhookPatch,
  WebhookTest,
} from '../../client/types.ts'
import { SECOND } from '../../platform/clock.ts'
import { isoTime } from '../../platform/format.ts'
import { SECRET_HINT_LENGTH } from '../../webhooks/endpoint.ts'
import { webhookError } from '../../webhooks/errors.ts'
import { ownAccount } from '../service.ts'

/** The webhooks that the commands manage: of a database, or of a service. */
export type WebhooksBackend = {
  /** The data directory, the database or the URL, for messages. */
  readonly location: string
  /** Whether test events are sent by the service, and not by this process. */
  readonly isRemote: boolean
  /** Lists the webhooks of an account, by ID or name, or of all; oldest first. */
  list(account: string | undefined): Promise<readonly OwnedWebhook[]>
  get(id: string): Promise<OwnedWebhook>
  /** Returns the account, by ID or name, that a new webhook belongs to. */
  owner(account: string | undefined): Promise<WebhookOwner>
  create(
    input: NewWebhook,
    account: string | undefined,
    options?: CreateOptions,
  ): Promise<WebhookWithSecret>
  /** Changes fields other than `active`. */
  update(id: string, patch: WebhookPatch): Promise<OwnedWebhook>
  setActive(id: string, active: boolean): Promise<OwnedWebhook>
  rotate(id: string, graceMs: number): Promise<RotatedSecret>
  delete(id: string): Promise<void>
  test(id: string, event: Delivery['event']): Promise<WebhookTest['data']>
  /** Lists deliveries, newest first. */
  deliveries(id: string, query: DeliveriesQuery): Promise<DeliveriesFound>
  delivery(target: DeliveryTarget): Promise<DeliveryOfWebhook<DeliveryDetail>>
  retry(target: DeliveryTarget): Promise<DeliveryOfWebhook<Delivery>>
  /** Retries what failed since a time, epoch ms, and returns the number of deliveries. */
  recover(id: string, since: number): Promise<number>
  /** Whether a service runs that sends deliveries. */
  isServed(): Promise<boolean>
}

export type OwnedWebhook = Webhook & { readonly account_id: string }

export type WebhookOwner = { readonly id: string; readonly name: string }

type CreateOptions = {
  /**
   * Whether the URL need not be allowed by the settings of this process. A service always checks it.
   */
  readonly isAnyUrl?: boolean
}

type WebhookWithSecret = { readonly webhook: OwnedWebhook; readonly secret: string }

type RotatedSecret = WebhookWithSecret & {
  /** When the previous secret stops signing, epoch ms. */
  readonly previousExpiresAt: number
}

type DeliveriesQuery = {
  readonly status?: Delivery['status']
  readonly event?: Delivery['event']
  /** Empty for all. */
  readonly search: string
  readonly max: number
}

type DeliveriesFound = { readonly deliveries: readonly Delivery[]; readonly hasMore: boolean }

export type DeliveryTarget = {
  /** Null for a delivery of any webhook. */
  readonly webhookId: string | null
  readonly deliveryId: string
}

type DeliveryOfWebhook<D extends Delivery> = {
  readonly webhook: OwnedWebhook
  readonly delivery: D
}

/** Manages the webhooks of the account of a key. */
export function createRemoteWebhooks(client: EvClient, location: string): WebhooksBackend {
  const { webhooks } = client
  const withOwner = async (webhook: Webhook): Promise<OwnedWebhook> => ({
    ...webhook,
    account_id: (await ownAccount(client, undefined)).id,
  })
  const get = async (id: string) => withOwner(await webhooks.get(id))
  const find = (target: DeliveryTarget) => findDelivery(client, target)
  return {
    location,
    isRemote: true,
    async list(account) {
      const { id } = await ownAccount(client, account)
      return (await webhooks.list()).map(webhook => ({ ...webhook, account_id: id }))
    },
    get,
    owner: account => ownAccount(client, account),
    async create(input, account) {
      // The owner first: after the creation, nothing may come before the secret.
      const { id } = await ownAccount(client, account)
      const { secret, ...webhook } = await webhooks.create(input)
      return { webhook: { ...webhook, ...hintOf(secret), account_id: id }, secret }
    },
    update: async (id, patch) => withOwner(await webhooks.update(id, patch)),
    setActive: async (id, active) => withOwner(await webhooks.update(id, { active })),
    async rotate(id, graceMs) {
      const { id: account_id } = await ownAccount(client, undefined)
      const grace = { grace_period_seconds: graceMs / SECOND }
      const { secret, ...webhook } = await webhooks.rotateSecret(id, grace)
      const previousExpiresAt = Date.parse(webhook.previous_secret_expires_at)
      return { webhook: { ...webhook, ...hintOf(secret), account_id }, secret, previousExpiresAt }
    },
    delete: id => webhooks.delete(id),
    test: (id, event) => webhooks.test(id, { event }),
    async deliveries(id, { max, search, ...query }) {
      const filters = { ...query, limit: Math.min(max, 100), ...(search === '' ? {} : { search }) }
      const deliveries: Delivery[] = []
      for await (const delivery of webhooks.deliveries(id, filters)) {
        if (deliveries.length === max) return { deliveries, hasMore: true }
        deliveries.push(delivery)
      }
      return { deliveries, hasMore: false }
    },
    async delivery(target) {
      const delivery = await find(target)
      return { webhook: await get(delivery.webhook_id), delivery }
    },
    async retry(target) {
      const { id, webhook_id } = await find(target)
      const delivery = await webhooks.retry(webhook_id, id)
      return { webhook: await get(webhook_id), delivery }
    },
    recover: async (id, since) => (await webhooks.recover(id, { since: isoTime(since) })).recovered,
    isServed: async () => true,
  }
}

const hintOf = (secret: string) => ({ secret_hint: secret.slice(-SECRET_HINT_LENGTH) })

/** The API finds a delivery only below its webhook. */
async function findDelivery(
  { webhooks }: EvClient,
  { webhookId, deliveryId }: DeliveryTarget,
): Promise<DeliveryDetail> {
  if (webhookId !== null) return webhooks.delivery(webhookId, deliveryId)
  for (const { id } of await webhooks.list()) {
    try {
      return await webhooks.delivery(id, deliveryId)
    } catch (error) {
      if (!(error instanceof EvApiError && error.status === 404)) throw error
    }
  }
  throw webhookError('delivery_not_found', { id: deliveryId, webhookId })
}
