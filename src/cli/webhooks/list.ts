import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import type { CliContext } from '../context.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { widthOf } from '../width.ts'
import { withWebhook } from './lookup.ts'
import { webhookObject, webhooksText, webhookText } from './print.ts'

export type WebhookFlags = {
  readonly account?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks list` and returns the exit code. */
export function listCommand(context: CliContext, flags: WebhookFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const selected =
      flags.account === undefined ? accounts : [selectAccount(accounts, flags.account)]
    const webhooks = (
      await Promise.all(selected.map(({ id }) => listWebhooks(database, id)))
    ).flat()
    if (flags.json) printJson(context, webhooks.map(webhookObject))
    else if (webhooks.length === 0) {
      printText(
        context,
        'No webhooks. To create one, run "ev webhooks create --url URL --events EVENTS".\n',
      )
    } else context.stdout.write(webhooksText(webhooks, widthOf(context, context.stdout)))
    return 0
  })
}

/** Runs `ev webhooks show` and returns the exit code. */
export function showCommand(context: CliContext, id: string, flags: WebhookFlags): Promise<number> {
  return withWebhook(context, readConfig(context, flags), id, async (_, webhook) => {
    if (flags.json) printJson(context, webhookObject(webhook))
    else context.stdout.write(webhookText(context, webhook))
    return 0
  })
}
