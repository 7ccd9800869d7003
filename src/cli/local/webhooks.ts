import type { Account } from '../../accounts/account-store.ts'
import type { Delivery } from '../../client/types.ts'
import { composeResolver } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { getDelivery, retryDelivery, retryFailedDeliveries } from '../../webhooks/deliveries.ts'
import {
  type DeliveryQuery,
  getDeliveryPage,
  searchDeliveries,
} from '../../webhooks/delivery-store.ts'
import { listWebhooks, type Webhook } from '../../webhooks/endpoint-store.ts'
import {
  createUncheckedWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  rotateWebhookSecret,
  setWebhookActive,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import {
  presentDelivery,
  presentDetail,
  presentTest,
  presentWebhook,
} from '../../webhooks/present.ts'
import type { DeliveryTable } from '../../webhooks/tables.ts'
import { type CliContext, version } from '../context.ts'
import { auditServices, isServed } from '../database.ts'
import { databaseName } from '../database-location.ts'
import type { OwnedWebhook, WebhooksBackend } from '../remote/webhooks.ts'
import { selectAccount } from '../select-account.ts'
import { serviceSecretBox } from '../service-secret.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the webhooks of all accounts in the database of this machine, as its admin. */
export function createLocalWebhooks(context: CliContext, config: Config): WebhooksBackend {
  const { clock } = context
  const inDatabase = <T>(work: (database: Database, accounts: readonly Account[]) => Promise<T>) =>
    withAccounts(context, config, work)
  return {
    location: databaseName(config),
    isRemote: false,
    list: account =>
      inDatabase(async (database, accounts) => {
        const selected = account === undefined ? accounts : [selectAccount(accounts, account)]
        const webhooks = await Promise.all(selected.map(({ id }) => listWebhooks(database, id)))
        return webhooks.flat().map(present)
      }),
    get: id => inDatabase(async database => present(await getWebhook({ database }, ofAdmin(id)))),
    owner: account => inDatabase(async (_, accounts) => selectAccount(accounts, account)),
    create: (
      { url, events, active = true, description = null, headers = {} },
      account,
      { isAnyUrl = false } = {},
    ) =>
      inDatabase(async (database, accounts) => {
        const { id: accountId } = selectAccount(accounts, account)
        const input = { url, events, active, description, headers, accountId }
        const { webhook, secret } = await withUrlServices(context, config, database, services =>
          (isAnyUrl ? createUncheckedWebhook : createWebhook)(services, input),
        )
        return { webhook: present(webhook), secret }
      }),
    update: (id, change) =>
      inDatabase(async database => {
        const webhook = await withUrlServices(context, config, database, services =>
          updateWebhook(services, { ...ofAdmin(id), change }),
        )
        return present(webhook)
      }),
    setActive: (id, active) =>
      inDatabase(async database => {
        const services = { ...auditServices(context), database }
        return present(await setWebhookActive(services, { ...ofAdmin(id), active }))
      }),
    rotate: (id, graceMs) =>
      inDatabase(async database => {
        await getWebhook({ database }, ofAdmin(id))
        const secretBox = await serviceSecretBox(context, config, database)
        const services = { ...auditServices(context), database, secretBox }
        const rotated = await rotateWebhookSecret(services, { ...ofAdmin(id), graceMs })
        return { ...rotated, webhook: present(rotated.webhook) }
      }),
    delete: id =>
      inDatabase(async database => {
        await deleteWebhook({ ...auditServices(context), database }, ofAdmin(id))
      }),
    test: (id, event) => inDatabase(database => sendTest(context, config, database, { id, event })),
    deliveries: (id, { search, ...query }) =>
      inDatabase(async database => {
        const webhook = await getWebhook({ database }, ofAdmin(id))
        const { rows, hasMore } = await findDeliveries(
          database,
          { ...query, webhookId: id, before: null },
          search,
        )
        const deliveries = rows.map(row => presentDelivery(row, webhook, database.steadyClock))
        return { deliveries, hasMore }
      }),
    delivery: target =>
      inDatabase(async database => {
        const found = await getDelivery({ database }, { ...target, accountId: null })
        const options = { withSignatures: true }
        return {
          webhook: present(found.webhook),
          delivery: presentDetail(found.logged, found.webhook, database.steadyClock, options),
        }
      }),
    retry: target =>
      inDatabase(async database => {
        const retried = await retryDelivery({ database, clock }, { ...target, accountId: null })
        const { webhook, delivery } = retried
        return {
          webhook: present(webhook),
          delivery: presentDelivery(delivery, webhook, database.steadyClock),
        }
      }),
    recover: (id, since) =>
      inDatabase(async database => {
        const input = { ...ofAdmin(id), since }
        return (await retryFailedDeliveries({ database, clock }, input)).recovered
      }),
    // Only the service sends deliveries.
    isServed: () => inDatabase(database => isServed(database, config, ['serve'])),
  }
}

const present = (webhook: Webhook): OwnedWebhook => ({
  ...presentWebhook(webhook),
  account_id: webhook.accountId,
})

const ofAdmin = (webhookId: string) => ({ webhookId, accountId: null })

/** Calls `work` with the dependencies that create and change webhooks. */
async function withUrlServices<T>(
  context: CliContext,
  config: Config,
  database: Database,
  work: (services: Parameters<typeof createWebhook>[0]) => Promise<T>,
): Promise<T> {
  const secretBox = await serviceSecretBox(context, config, database)
  const { clock, externalDeps } = context
  const { resolver, close } = composeResolver(config, externalDeps?.resolver, clock)
  try {
    const services = { ...auditServices(context), database, secretBox, resolver, settings: config }
    return await work(services)
  } finally {
    close()
  }
}

/** Sends a test event from this process, so the result is for the network of this machine. */
async function sendTest(
  context: CliContext,
  config: Config,
  database: Database,
  { id, event }: { readonly id: string; readonly event: Delivery['event'] },
) {
  await getWebhook({ database }, ofAdmin(id))
  const { composeTransport, readWebhookCa } = await import('../../compose/webhook-transport.ts')
  const { createTestEventLimit, sendTestEvent } = await import('../../webhooks/send-test-event.ts')
  const { clock, random } = context
  const ca = readWebhookCa(config)
  const secretBox = await serviceSecretBox(context, config, database)
  const { resolver, close } = composeResolver(config, context.externalDeps?.resolver, clock)
  const transport =
    context.externalDeps?.transport ?? composeTransport(config, { clock, resolver, ca })
  try {
    const services = {
      database,
      transport,
      secretBox,
      clock,
      random,
      version: version(),
      startTest: createTestEventLimit(),
    }
    const input = { ...ofAdmin(id), sandbox: false, kind: event }
    return presentTest(await sendTestEvent(services, input))
  } finally {
    await transport.close()
    close()
  }
}

async function findDeliveries(
  database: Database,
  query: DeliveryQuery,
  search: string,
): Promise<{ readonly rows: readonly DeliveryTable[]; readonly hasMore: boolean }> {
  if (search !== '') {
    const { rows, next } = await searchDeliveries(database, { ...query, search })
    return { rows, hasMore: next !== null }
  }
  const found = await getDeliveryPage(database, { ...query, max: query.max + 1 })
  return { rows: found.slice(0, query.max), hasMore: found.length > query.max }
}
