import { DAY } from '../../platform/clock.ts'
import { SECRET_GRACE_MAX_MS, SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import { deleteWebhook, rotateWebhookSecret, setWebhookActive } from '../../webhooks/endpoints.ts'
import { withAccounts } from '../accounts.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { graceOf } from '../keys/times.ts'
import { readConfig } from '../settings.ts'
import { withWebhook } from './lookup.ts'
import { newSecretObject, newSecretText, printJson, urlText, webhookObject } from './print.ts'
import { serviceSecretBox } from './service-secret-box.ts'

export type ChangeFlags = {
  readonly grace?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks rotate` and returns the exit code. */
export function rotateCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  const graceMs = graceOf(flags.grace ?? `${SECRET_GRACE_MS / DAY}d`, SECRET_GRACE_MAX_MS)
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, { accountId }) => {
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { database, clock: context.clock, random: context.random, secretBox }
    const input = { webhookId: id, accountId, graceMs }
    const { webhook, secret, previousExpiresAt } = await rotateWebhookSecret(services, input)
    if (flags.json) printJson(context, newSecretObject(webhook, secret))
    else {
      const end =
        graceMs === 0
          ? 'is not used any more'
          : `signs beside it in webhook-signature until ${timeText(previousExpiresAt)}; X-EV-Signature is of the new one from now on`
      context.stdout.write(`${newSecretText(webhook, secret)}The secret before it ${end}.\n`)
    }
    return 0
  })
}

/** Runs `ev webhooks enable` and `disable` and returns the exit code. */
export function switchCommand(
  context: CliContext,
  id: string,
  active: boolean,
  flags: ChangeFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const services = { database, clock: context.clock }
    const webhook = await setWebhookActive(services, { webhookId: id, accountId: null, active })
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

/** Runs `ev webhooks delete` and returns the exit code. */
export function deleteCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const services = { database, clock: context.clock }
    const webhook = await deleteWebhook(services, { webhookId: id, accountId: null })
    context.stdout.write(
      `Removed the webhook ${id} to ${urlText(webhook)}: nothing is sent to it any more.\n`,
    )
    return 0
  })
}
