import { DAY } from '../../base/clock.ts'
import { newSigningSecret, SECRET_GRACE_MAX_MS, SECRET_GRACE_MS } from '../../hook/endpoint.ts'
import { write } from '../../store/database.ts'
import { deleteWebhook, rotateSecret, updateWebhook } from '../../store/event/webhooks.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { graceOf } from '../keys/times.ts'
import { readConfig } from '../settings/settings.ts'
import { noSuchWebhook, withWebhook } from './chosen.ts'
import { newSecretObject, newSecretText, printJson, urlText, webhookObject } from './print.ts'
import { serviceSeal } from './service-seal.ts'

export type ChangeFlags = {
  readonly grace?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev webhooks rotate`: gives the code to exit with. */
export function rotateCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  const graceMs = graceOf(flags.grace ?? `${SECRET_GRACE_MS / DAY}d`, SECRET_GRACE_MAX_MS)
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, { accountId }) => {
    const seal = await serviceSeal(context, config, database)
    const { text, hint } = newSigningSecret(context.random)
    const now = context.clock.now()
    const fields = { secret: seal.seal(text), secretHint: hint, graceMs, now }
    const webhook = await write(database, trx => rotateSecret(trx, accountId, id, fields))
    if (webhook === null) throw noSuchWebhook(id)
    if (flags.json) printJson(context, newSecretObject(webhook, text))
    else {
      const end =
        graceMs === 0
          ? 'is not used any more'
          : `signs beside it in webhook-signature until ${timeText(now + graceMs)}; X-EV-Signature is of the new one from now on`
      context.stdout.write(`${newSecretText(webhook, text)}The secret before it ${end}.\n`)
    }
    return 0
  })
}

/** `ev webhooks enable` and `disable`: gives the code to exit with. */
export function switchCommand(
  context: CliContext,
  id: string,
  active: boolean,
  flags: ChangeFlags,
): Promise<number> {
  return withWebhook(context, readConfig(context, flags), id, async (database, { accountId }) => {
    const patch = { active, now: context.clock.now() }
    const webhook = await write(database, trx => updateWebhook(trx, accountId, id, patch))
    if (webhook === null) throw noSuchWebhook(id)
    if (flags.json) printJson(context, webhookObject(webhook))
    else {
      const follows = active
        ? 'is on: what waited for it is sent as it falls due'
        : 'is off: nothing is sent to it, and what happens meanwhile is not kept for it'
      context.stdout.write(`Webhook ${id} to ${urlText(webhook)} ${follows}.\n`)
    }
    return 0
  })
}

/** `ev webhooks delete`: gives the code to exit with. */
export function deleteCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  return withWebhook(context, readConfig(context, flags), id, async (database, webhook) => {
    const now = context.clock.now()
    const isGone = await write(database, trx => deleteWebhook(trx, webhook.accountId, id, now))
    if (!isGone) throw noSuchWebhook(id)
    context.stdout.write(
      `Removed the webhook ${id} to ${urlText(webhook)}: nothing is sent to it any more.\n`,
    )
    return 0
  })
}
