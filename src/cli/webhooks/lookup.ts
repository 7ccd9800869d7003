import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import { getWebhook } from '../../webhooks/endpoints.ts'
import { withAccounts } from '../accounts.ts'
import type { CliContext } from '../context.ts'

/** Calls `work` with the database and the webhook of that ID, in any account. */
export function withWebhook<T>(
  context: CliContext,
  config: Config,
  id: string,
  work: (database: Database, webhook: Webhook) => Promise<T>,
): Promise<T> {
  return withAccounts(context, config, async database =>
    work(database, await getWebhook({ database }, { webhookId: id, accountId: null })),
  )
}

export const isDeliveryId = (text: string) => text.startsWith('dlv_')
