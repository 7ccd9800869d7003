import { type Command, Option } from 'commander'
import type { WebhookTest } from '../../client/types.ts'
import { sanitizeText } from '../../platform/text.ts'
import { SENT_KINDS, type SentKind, TEST_KIND } from '../../webhooks/event-types.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { printJson, printText } from '../print.ts'
import type { OwnedWebhook } from '../remote/webhooks.ts'
import { openWebhooks, SECRET_SETTINGS } from './backend.ts'
import { urlText } from './print.ts'

type TestFlags = DataFlags & { readonly event?: SentKind }

export function addTest(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const test = webhooks
    .command('test')
    .description('send a test event to a webhook and show the response')
    .argument('<webhook>', 'ID of the webhook')
    .addOption(
      new Option('--event <event>', 'event to send an example of (default: webhook.test)').choices([
        ...SENT_KINDS,
      ]),
    )
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks test wh_4kq2
  ev webhooks test wh_4kq2 --event batch.completed

Example events have "sandbox": true. The event is sent once, from this process and with its settings; with --url, from the service.

Exit codes: 0 delivered; 1 not delivered.`,
    )
    .action(async (id: string, flags) => {
      setExitCode(await testCommand(context, id, flags))
    })
  worksOnData(test, context, ['dns', 'webhookAllowRanges', 'webhookCaFile', ...SECRET_SETTINGS])
}

async function testCommand(context: CliContext, id: string, flags: TestFlags): Promise<number> {
  const backend = await openWebhooks(context, flags)
  const webhook = await backend.get(id)
  const outcome = await backend.test(id, flags.event ?? TEST_KIND)
  if (flags.json) printJson(context, outcome)
  else printText(context, outcomeText(outcome, webhook, backend))
  return outcome.status === 'delivered' ? 0 : NOT_DELIVERED
}

/** The command succeeded with a negative result, as in `ev verify`. */
const NOT_DELIVERED = 1

const NOT_THE_SERVICE =
  'The event was sent from this process with its own settings. The settings of "ev serve" may differ, such as --webhook-allow-ranges, --webhook-ca-file and --dns.\n'

function outcomeText(
  { status, status_code, duration_ms, error, response_excerpt, ...event }: WebhookTest['data'],
  webhook: OwnedWebhook,
  { isRemote }: { readonly isRemote: boolean },
): string {
  const result = status === 'delivered' ? 'Delivered' : 'Not delivered'
  // Without a response, the error says whether a request was sent.
  const answer = status_code === null ? '' : ` responded with ${status_code}`
  return [
    `${result}: ${urlText(webhook)}${answer} after ${duration_ms} ms.\n`,
    error === null ? '' : `${sanitizeText(error)}\n`,
    status_code === null && !isRemote ? NOT_THE_SERVICE : '',
    response_excerpt === null || response_excerpt === ''
      ? ''
      : `Response: ${sanitizeText(response_excerpt)}\n`,
    `Event ${event.event_id}. To show it, run "ev webhooks deliveries ${event.delivery_id}".\n`,
  ].join('')
}
