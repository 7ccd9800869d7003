import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import type { Config } from '../../config/settings.ts'
import type { Account } from '../../store/account/accounts.ts'
import type { Database } from '../../store/database.ts'
import { findDelivery, type LoggedDelivery } from '../../store/event/delivery-log.ts'
import { findWebhook, listWebhooks, type Webhook } from '../../store/event/webhooks.ts'
import { withAccounts } from '../accounts/chosen.ts'
import type { CliContext } from '../context.ts'

/** Runs `work` on the database and the webhook of that ID, whosever it is. */
export function withWebhook<T>(
  context: CliContext,
  config: Config,
  id: string,
  work: (database: Database, webhook: Webhook) => Promise<T>,
): Promise<T> {
  return withAccounts(context, config, async (database, accounts) =>
    work(database, await webhookOf(database, accounts, id)),
  )
}

export type ChosenDelivery = { readonly webhook: Webhook; readonly logged: LoggedDelivery }

/** Runs `work` on the database and the delivery of that ID; its webhook need not be named. */
export function withDelivery<T>(
  context: CliContext,
  config: Config,
  { delivery, webhook }: { delivery: string; webhook: string | undefined },
  work: (database: Database, chosen: ChosenDelivery) => Promise<T>,
): Promise<T> {
  return withAccounts(context, config, async (database, accounts) => {
    const among =
      webhook === undefined
        ? await allWebhooks(database, accounts)
        : [await webhookOf(database, accounts, webhook)]
    for (const one of among) {
      const logged = await findDelivery(database, one.id, delivery)
      if (logged !== null) return work(database, { webhook: one, logged })
    }
    throw noSuchDelivery(delivery, among.length === 1 ? among[0] : undefined)
  })
}

export const isDeliveryId = (text: string) => text.startsWith('dlv_')

/** All that there are, account by account. */
export async function allWebhooks(
  database: Database,
  accounts: readonly Account[],
): Promise<Webhook[]> {
  return (await Promise.all(accounts.map(({ id }) => listWebhooks(database, id)))).flat()
}

export const noSuchWebhook = (id: string) =>
  new EvError(
    'no_input',
    `There is no webhook ${cleanText(id)}. “ev webhooks” lists those there are.`,
  )

async function webhookOf(
  database: Database,
  accounts: readonly Account[],
  id: string,
): Promise<Webhook> {
  for (const account of accounts) {
    const webhook = await findWebhook(database, account.id, id)
    if (webhook !== null) return webhook
  }
  throw noSuchWebhook(id)
}

export function noSuchDelivery(id: string, webhook: Webhook | undefined): EvError {
  const where = webhook === undefined ? '' : ` of the webhook ${webhook.id}`
  return new EvError(
    'no_input',
    `There is no delivery ${cleanText(id)}${where}. “ev webhooks deliveries ${webhook?.id ?? 'WEBHOOK'}” lists those there are; what ended is kept for seven days.`,
  )
}
