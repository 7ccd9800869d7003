import type { Account } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { isRefusal } from '../../platform/operation-error.ts'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import { createUncheckedWebhook, deleteWebhook } from '../../webhooks/endpoints.ts'
import { EVENT_KINDS } from '../../webhooks/event.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import { auditServices, type CliContext } from '../context.ts'
import { serviceSecretBox } from '../webhooks/service-secret-box.ts'

/** The temporary webhook of a listener. */
export type Registration = {
  readonly id: string
  readonly account: Account
  readonly secret: string
}

/**
 * Creates a webhook for all events of the account, and deletes those that killed listeners left.
 */
export function register(
  context: CliContext,
  config: Config,
  { url, account }: { url: string; account: string | undefined },
): Promise<Registration> {
  return withAccounts(context, config, async (database, accounts) => {
    const chosen = selectAccount(accounts, account)
    await deleteLeftovers(context, database, chosen.id, url)
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { ...auditServices(context), database, secretBox }
    const { webhook, secret } = await createUncheckedWebhook(services, {
      ...{ accountId: chosen.id, url, description: DESCRIPTION },
      ...{ events: [...EVENT_KINDS], active: true },
    })
    return { id: webhook.id, account: chosen, secret }
  })
}

/** Deletes the webhook of the listener if it still exists. */
export function unregister(
  context: CliContext,
  config: Config,
  { id, account }: Pick<Registration, 'id' | 'account'>,
): Promise<void> {
  return withAccounts(context, config, async database => {
    await remove(context, database, account.id, id)
  })
}

/** Marks webhooks of listeners, so that leftovers can be recognized. */
const DESCRIPTION = 'Made by ev webhooks listen, which removes it'

async function deleteLeftovers(
  context: CliContext,
  database: Database,
  accountId: string,
  url: string,
): Promise<void> {
  const left = (await listWebhooks(database, accountId)).filter(
    webhook => webhook.url === url && webhook.description === DESCRIPTION,
  )
  for (const { id } of left) await remove(context, database, accountId, id)
}

async function remove(context: CliContext, database: Database, accountId: string, id: string) {
  try {
    await deleteWebhook({ ...auditServices(context), database }, { webhookId: id, accountId })
  } catch (error) {
    if (!isRefusal(error, 'webhook_not_found')) throw error
  }
}
