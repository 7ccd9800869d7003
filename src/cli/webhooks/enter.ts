import { EvError } from '../../base/error.ts'
import type { Seal } from '../../base/seal.ts'
import { newSigningSecret, newWebhookId, WEBHOOKS_MAX } from '../../hook/endpoint.ts'
import { type Database, write } from '../../store/database.ts'
import {
  countWebhooks,
  createWebhook,
  type NewWebhook,
  type Webhook,
} from '../../store/event/webhooks.ts'
import type { CliContext } from '../context.ts'

export type Wish = Pick<NewWebhook, 'accountId' | 'url' | 'events' | 'active' | 'description'>

/** Makes a webhook with a new secret, whose text nobody has but the caller. */
export async function enterWebhook(
  context: Pick<CliContext, 'random'>,
  database: Database,
  seal: Seal,
  wish: Wish,
): Promise<{ readonly webhook: Webhook; readonly secret: string }> {
  const { text: secret, hint } = newSigningSecret(context.random)
  const webhook = await write(database, async trx => {
    refuseTooMany(await countWebhooks(trx, wish.accountId))
    return createWebhook(trx, {
      ...{ ...wish, id: newWebhookId(context.random), createdAt: database.clock.now() },
      ...{ secret: seal.seal(secret), secretHint: hint },
    })
  })
  return { webhook, secret }
}

function refuseTooMany(count: number): void {
  if (count < WEBHOOKS_MAX) return
  throw new EvError(
    'usage',
    `The account has ${count} webhooks, which is the most it may have. Remove one first, with “ev webhooks delete”.`,
  )
}
