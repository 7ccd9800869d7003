import { composeResolver } from '../../compose/engine.ts'
import { composeTransport, readWebhookCa } from '../../compose/webhook-transport.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type SentKind, TEST_KIND } from '../../webhooks/event-types.ts'
import { presentTest } from '../../webhooks/present.ts'
import {
  createTestEventLimit,
  sendTestEvent,
  type TestOutcome,
} from '../../webhooks/send-test-event.ts'
import { type CliContext, version } from '../context.ts'
import { printJson, printText } from '../print.ts'
import { serviceSecretBox } from '../service-secret.ts'
import { readConfig } from '../settings.ts'
import { urlText } from './print.ts'
import { withWebhook } from './webhooks.ts'

export type TestFlags = {
  readonly event?: SentKind
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks test` and returns the exit code. */
export function testCommand(context: CliContext, id: string, flags: TestFlags): Promise<number> {
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, webhook) => {
    const outcome = await send(context, config, database, {
      webhookId: webhook.id,
      kind: flags.event ?? TEST_KIND,
    })
    if (flags.json) printJson(context, presentTest(outcome))
    else printText(context, outcomeText(outcome))
    return outcome.state === 'delivered' ? 0 : NOT_DELIVERED
  })
}

/** The command succeeded with a negative result, as in `ev verify`. */
const NOT_DELIVERED = 1

/** Sends a test event from this process, so the result is for the network of this machine. */
async function send(
  context: CliContext,
  config: Config,
  database: Database,
  { webhookId, kind }: { readonly webhookId: string; readonly kind: SentKind },
): Promise<TestOutcome> {
  const [clock, random] = [context.clock, context.random]
  const ca = readWebhookCa(config)
  const secretBox = await serviceSecretBox(context, config, database)
  const { resolver, close } = composeResolver(config, context.externalDeps?.resolver, clock)
  const transport =
    context.externalDeps?.transport ?? composeTransport(config, { clock, resolver, ca })
  try {
    const testLimit = createTestEventLimit()
    const services = {
      database,
      transport,
      secretBox,
      clock,
      random,
      version: version(),
      testLimit,
    }
    return await sendTestEvent(services, { webhookId, accountId: null, sandbox: false, kind })
  } finally {
    await transport.close()
    close()
  }
}

const NOT_THE_SERVICE =
  'The event was sent from this process with its own settings. The settings of "ev serve" may differ, such as --webhook-allow-ranges, --webhook-ca-file and --dns.\n'

function outcomeText(outcome: TestOutcome): string {
  const { webhook, state, statusCode, durationMs, excerpt, error } = outcome
  const answer = statusCode === null ? 'did not respond' : `responded with ${statusCode}`
  const result = state === 'delivered' ? 'Delivered' : 'Not delivered'
  return [
    `${result}: ${urlText(webhook)} ${answer} after ${durationMs} ms.\n`,
    error === null ? '' : `${sanitizeText(error)}\n`,
    statusCode === null ? NOT_THE_SERVICE : '',
    excerpt === null || excerpt === '' ? '' : `Response: ${sanitizeText(excerpt)}\n`,
    `Event ${outcome.eventId}. To show it, run "ev webhooks deliveries ${outcome.deliveryId}".\n`,
  ].join('')
}
