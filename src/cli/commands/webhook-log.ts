import { type Command, Option } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'

/** Adds the commands that show and retry deliveries. */
export function addWebhookLog(
  webhooks: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  addDeliveries(webhooks, context, setExitCode)
  addRetry(webhooks, context, setExitCode)
  addRecover(webhooks, context, setExitCode)
}

function addDeliveries(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const deliveries = webhooks
    .command('deliveries')
    .description('list deliveries to a webhook, newest first; or show one with its attempts')
    .argument('<webhook>', 'ID of the webhook, or of one delivery')
    .argument('[delivery]', 'ID of one delivery')
    .addOption(
      new Option('--status <status>', 'only deliveries with this status').choices([
        ...['pending', 'delivered', 'retry_scheduled', 'failed'],
      ]),
    )
    .option('--event <event>', 'only deliveries of this event, such as batch.completed')
    .option('--search <text>', 'only deliveries with this text in body, ID, status code or error')
    .option('--limit <n>', 'number of deliveries, up to 1000 (default: 20)')
    .option('--json', 'print JSON: an array of objects; for one delivery, an object')
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
      setExitCode(await deliveriesCommand(context, id, delivery, flags))
    })
  addSettings(deliveries, context, DATA_SETTINGS)
}

function addRetry(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const retry = webhooks
    .command('retry')
    .description('retry a delivery, with up to six new attempts')
    .argument('<target>', 'ID of the delivery; with --since, ID of the webhook')
    .argument('[delivery]', 'ID of the delivery, if the first argument is its webhook')
    .option('--since <time>', 'retry all failed deliveries since: 2h, 3d, or a date')
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
      setExitCode(await retryCommand(context, id, delivery, flags))
    })
  addSettings(retry, context, DATA_SETTINGS)
}

function addRecover(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const recover = webhooks
    .command('recover')
    .description('retry all deliveries that failed since a time')
    .argument('<webhook>', 'ID of the webhook')
    .requiredOption('--since <time>', '2h, 3d, or a date such as 2030-01-31')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks recover wh_4kq2 --since 2d')
    .action(async (id: string, flags) => {
      const { recoverCommand } = await import('../webhooks/retry.ts')
      setExitCode(await recoverCommand(context, id, flags))
    })
  addSettings(recover, context, DATA_SETTINGS)
}
