import { type Command, Option } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

/** The commands about what was sent to webhooks, and what came of it. */
export function addWebhookLog(webhooks: Command, context: CliContext, end: EndWith): void {
  addDeliveries(webhooks, context, end)
  addRetry(webhooks, context, end)
  addRecover(webhooks, context, end)
}

function addDeliveries(webhooks: Command, context: CliContext, end: EndWith): void {
  const deliveries = webhooks
    .command('deliveries')
    .description('what was sent to one, the latest first; or one delivery with all its attempts')
    .argument('<webhook>', 'its ID; that of a delivery shows it alone')
    .argument('[delivery]', 'the ID of one delivery')
    .addOption(
      new Option('--status <status>', 'only those that stand so').choices([
        ...['pending', 'delivered', 'retry_scheduled', 'failed'],
      ]),
    )
    .option('--event <event>', 'only those of this kind, such as batch.completed')
    .option('--limit <n>', 'how many, up to 1000 (default: 20)')
    .option('--json', 'print JSON: an array of objects; of one delivery an object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks deliveries wh_4kq2
  ev webhooks deliveries wh_4kq2 --status failed --limit 100
  ev webhooks deliveries dlv_7ab1`,
    )
    .action(async (id: string, delivery: string | undefined, flags) => {
      const { deliveriesCommand } = await import('../webhooks/deliveries.ts')
      end(await deliveriesCommand(context, id, delivery, flags))
    })
  addSettings(deliveries, context, DATA_SETTINGS)
}

function addRetry(webhooks: Command, context: CliContext, end: EndWith): void {
  const retry = webhooks
    .command('retry')
    .description('send one delivery once more, with all six attempts anew')
    .argument('<target>', 'the ID of the delivery; with --since that of the webhook')
    .argument('[delivery]', 'its ID, where that of its webhook comes first')
    .option('--since <time>', 'all of a webhook that failed since: 2h, 3d, or a date')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks retry dlv_7ab1
  ev webhooks retry --since 2d wh_4kq2`,
    )
    .action(async (id: string, delivery: string | undefined, flags) => {
      const { retryCommand } = await import('../webhooks/retry.ts')
      end(await retryCommand(context, id, delivery, flags))
    })
  addSettings(retry, context, DATA_SETTINGS)
}

function addRecover(webhooks: Command, context: CliContext, end: EndWith): void {
  const recover = webhooks
    .command('recover')
    .description('send all once more that failed since a time')
    .argument('<webhook>', 'its ID')
    .requiredOption('--since <time>', '2h, 3d, or a date such as 2030-01-31')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks recover wh_4kq2 --since 2d')
    .action(async (id: string, flags) => {
      const { recoverCommand } = await import('../webhooks/retry.ts')
      end(await recoverCommand(context, id, flags))
    })
  addSettings(recover, context, DATA_SETTINGS)
}
