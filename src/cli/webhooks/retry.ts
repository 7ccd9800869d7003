import type { Command } from 'commander'
import { EvError } from '../../platform/error.ts'
import { pluralize } from '../../platform/format.ts'
import type { CliContext } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { parseSince } from '../flag-values.ts'
import { printJson, printText } from '../print.ts'
import type { DeliveryTarget, WebhooksBackend } from '../remote/webhooks.ts'
import { isDeliveryId, openWebhooks } from './backend.ts'
import { urlText } from './print.ts'

type RetryFlags = DataFlags & { readonly since?: string }

export function addRetry(webhooks: Command, context: CliContext): void {
  const retry = webhooks
    .command('retry')
    .description('retry a delivery, with up to six new attempts')
    .argument('<target>', 'ID of the delivery; with --since, ID of the webhook')
    .argument('[delivery]', 'ID of the delivery, if the first argument is its webhook')
    .option('--since <time>', 'retry all deliveries that failed since this time: 2h, 3d, or a date')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks retry dlv_7ab1
  ev webhooks retry --since 2d wh_4kq2`,
    )
    .action((id: string, delivery: string | undefined, flags) =>
      retryCommand(context, id, delivery, flags),
    )
  worksOnData(retry, context)
}

async function retryCommand(
  context: CliContext,
  target: string,
  delivery: string | undefined,
  flags: RetryFlags,
): Promise<void> {
  if (flags.since !== undefined) {
    if (delivery === undefined && !isDeliveryId(target))
      return recoverCommand(context, target, flags)
    throw new EvError(
      'usage',
      `--since retries all failed deliveries of a webhook. Give only the webhook, as in "ev webhooks retry --since 2d wh_…", or one delivery without --since.`,
    )
  }
  if (delivery !== undefined)
    return retryOne(context, { webhookId: target, deliveryId: delivery }, flags)
  if (isDeliveryId(target)) return retryOne(context, { webhookId: null, deliveryId: target }, flags)
  throw new EvError(
    'usage',
    `Give the ID of a delivery (dlv_…), or retry all failed deliveries of a webhook with --since, as in "ev webhooks retry --since 2d wh_…".`,
  )
}

async function retryOne(
  context: CliContext,
  target: DeliveryTarget,
  flags: RetryFlags,
): Promise<void> {
  const backend = await openWebhooks(context, flags)
  const { webhook, delivery } = await backend.retry(target)
  if (flags.json) printJson(context, delivery)
  else {
    const what = `${delivery.id} (${delivery.event}) to ${urlText(webhook)}`
    printText(context, `${what} will be sent again${await whenSent(backend)}\n`)
  }
}

export function addRecover(webhooks: Command, context: CliContext): void {
  const recover = webhooks
    .command('recover')
    .description('retry all deliveries that failed since a time')
    .argument('<webhook>', 'ID of the webhook')
    .requiredOption(
      '--since <time>',
      'retry deliveries that failed since this time: 2h, 3d, or a date such as 2030-01-31',
    )
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks recover wh_4kq2 --since 2d')
    .action((id: string, flags) => recoverCommand(context, id, flags))
  worksOnData(recover, context)
}

/** Runs `ev webhooks recover` and `ev webhooks retry --since`. */
async function recoverCommand(context: CliContext, id: string, flags: RetryFlags): Promise<void> {
  const since = parseSince(flags.since ?? '', context.clock.now())
  const backend = await openWebhooks(context, flags)
  const webhook = await backend.get(id)
  const recovered = await backend.recover(id, since)
  if (flags.json) printJson(context, { recovered })
  else if (recovered === 0) printText(context, `No delivery to ${id} has failed since then.\n`)
  else {
    const what = `${pluralize(recovered, 'delivery')} to ${urlText(webhook)}`
    printText(context, `${what} will be sent again${await whenSent(backend)}\n`)
  }
}

/** Returns the end of the sentence. */
const whenSent = async (backend: WebhooksBackend) =>
  (await backend.isServed())
    ? ', within a second.'
    : `. No "ev serve" is running on ${backend.location}; it is sent when one starts.`
