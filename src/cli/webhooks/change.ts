import { DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { SECRET_GRACE_MAX_MS, SECRET_GRACE_MS } from '../../webhooks/endpoint.ts'
import {
  deleteWebhook,
  rotateWebhookSecret,
  setWebhookActive,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import { withAccounts } from '../accounts.ts'
import { confirm } from '../confirm.ts'
import { auditServices, type CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { parseGrace } from '../keys/times.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { parseDescription, parseEvents, parseHeaders, withWebhookServices } from './create.ts'
import { withWebhook } from './lookup.ts'
import { newSecretObject, newSecretText, urlText, webhookObject, webhookText } from './print.ts'
import { serviceSecretBox } from './service-secret-box.ts'

export type ChangeFlags = {
  readonly grace?: string
  readonly url?: string
  readonly events?: string
  readonly description?: string
  readonly header?: readonly string[]
  readonly removeHeader?: readonly string[]
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks change` and returns the exit code. */
export function changeCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  const change = parseChange(flags)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async database => {
    const webhook = await withWebhookServices(context, config, database, services =>
      updateWebhook(services, { webhookId: id, accountId: null, change }),
    )
    if (flags.json) printJson(context, webhookObject(webhook))
    else context.stdout.write(webhookText(context, webhook))
    return 0
  })
}

function parseChange({ url, events, description, header, removeHeader }: ChangeFlags) {
  const removed = (removeHeader ?? []).map(name => [name, null] as const)
  const headers = { ...Object.fromEntries(removed), ...parseHeaders(header) }
  const change = {
    ...(url === undefined ? {} : { url }),
    ...(events === undefined ? {} : { events: parseEvents(events) }),
    ...(description === undefined ? {} : { description: parseDescription(description) }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  }
  if (Object.keys(change).length > 0) return change
  throw new EvError(
    'usage',
    'There is nothing to change. Give at least one of --url, --events, --description, --header and --remove-header.',
  )
}

/** Runs `ev webhooks rotate` and returns the exit code. */
export function rotateCommand(
  context: CliContext,
  id: string,
  flags: ChangeFlags,
): Promise<number> {
  const graceMs = parseGrace(flags.grace ?? `${SECRET_GRACE_MS / DAY}d`, SECRET_GRACE_MAX_MS)
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, { accountId }) => {
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { ...auditServices(context), database, secretBox }
    const input = { webhookId: id, accountId, graceMs }
    const { webhook, secret, previousExpiresAt } = await rotateWebhookSecret(services, input)
    if (flags.json) printJson(context, newSecretObject(webhook, secret))
    else {
      const end =
        graceMs === 0
          ? 'is no longer used'
          : `also signs webhook-signature until ${timeText(previousExpiresAt)}; X-EV-Signature uses only the new one`
      printText(context, `${newSecretText(webhook, secret)}The old secret ${end}.\n`)
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
    const services = { ...auditServices(context), database }
    const webhook = await setWebhookActive(services, { webhookId: id, accountId: null, active })
    if (flags.json) printJson(context, webhookObject(webhook))
    else {
      const state = active
        ? 'is enabled. Pending deliveries are sent when they are due'
        : 'is disabled. Nothing is sent to it, and new events are not stored for it'
      printText(context, `Webhook ${id} to ${urlText(webhook)} ${state}.\n`)
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
  return withWebhook(context, readConfig(context, flags), id, async (database, found) => {
    await confirm(context, flags, `delete webhook ${id} to ${urlText(found)}`)
    const services = { ...auditServices(context), database }
    const webhook = await deleteWebhook(services, { webhookId: id, accountId: null })
    printText(
      context,
      `Deleted webhook ${id} to ${urlText(webhook)}. Nothing is sent to it anymore.\n`,
    )
    return 0
  })
}
