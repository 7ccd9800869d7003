import { composeResolver } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import {
  DESCRIPTION_LENGTH_MAX,
  SECRET_GRACE_MAX_MS,
  SECRET_GRACE_MS,
} from '../../webhooks/endpoint.ts'
import { listWebhooks, type Webhook } from '../../webhooks/endpoint-store.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  rotateWebhookSecret,
  setWebhookActive,
  updateWebhook,
} from '../../webhooks/endpoints.ts'
import { EVENT_KINDS, type EventKind, isEventKind } from '../../webhooks/event-types.ts'
import { confirm } from '../confirm.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import { parseGrace } from '../flag-values.ts'
import { withAccounts } from '../local/with-accounts.ts'
import { printJson, printText, timeText } from '../print.ts'
import { selectAccount } from '../select-account.ts'
import { serviceSecretBox } from '../service-secret.ts'
import { readConfig } from '../settings.ts'
import { widthOf } from '../width.ts'
import {
  newSecretObject,
  newSecretText,
  urlText,
  webhookObject,
  webhooksText,
  webhookText,
} from './print.ts'

type WebhookFlags = {
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

type CreateFlags = {
  readonly url: string
  readonly events: string
  readonly description?: string
  readonly header?: readonly string[]
  readonly inactive?: boolean
  readonly account?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks create` and returns the exit code. */
export function createCommand(context: CliContext, flags: CreateFlags): Promise<number> {
  const config = readConfig(context, flags)
  const input = {
    url: flags.url,
    events: parseEvents(flags.events),
    active: flags.inactive !== true,
    description: parseDescription(flags.description),
    headers: parseHeaders(flags.header),
  }
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, flags.account)
    const { webhook, secret } = await withWebhookServices(context, config, database, services =>
      createWebhook(services, { ...input, accountId }),
    )
    if (flags.json) printJson(context, newSecretObject(webhook, secret))
    else printText(context, newSecretText(webhook, secret))
    return 0
  })
}

/** Calls `work` with the dependencies that create and change webhooks. */
async function withWebhookServices<T>(
  context: CliContext,
  config: Config,
  database: Database,
  work: (services: Parameters<typeof createWebhook>[0]) => Promise<T>,
): Promise<T> {
  const secretBox = await serviceSecretBox(context, config, database)
  const { clock, externalDeps } = context
  const { resolver, close } = composeResolver(config, externalDeps?.resolver, clock)
  try {
    const services = { ...auditServices(context), database, secretBox, resolver, settings: config }
    return await work(services)
  } finally {
    close()
  }
}

/** Parses headers in the form of curl: `Name: value`. */
function parseHeaders(values: readonly string[] = []): Record<string, string> {
  const headers = values.map(value => {
    const colon = value.indexOf(':')
    if (colon > 0) return [value.slice(0, colon).trim(), value.slice(colon + 1).trim()] as const
    throw new EvError(
      'usage',
      '--header has no colon; give the name and the value, as in "Authorization: Bearer 4f9c21".',
    )
  })
  return Object.fromEntries(headers)
}

function parseEvents(value: string): EventKind[] {
  const all = [...new Set(value.split(',').map(one => one.trim()))]
  if (all.length === 1 && all[0] === '*') return [...EVENT_KINDS]
  if (all.every(isEventKind)) return all
  const wrong = all.find(one => !isEventKind(one)) ?? ''
  throw new EvError(
    'usage',
    `Unknown event "${sanitizeText(wrong)}". Events: ${EVENT_KINDS.join(', ')}, or * for all.`,
  )
}

function parseDescription(value: string | undefined): string | null {
  const description = value?.trim() ?? null
  if (description === null || description.length <= DESCRIPTION_LENGTH_MAX) return description
  throw new EvError(
    'usage',
    `--description has ${formatNumber(description.length)} characters; it takes up to ${formatNumber(DESCRIPTION_LENGTH_MAX)}.`,
  )
}

type ChangeFlags = {
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

/** Calls `work` with the database and the webhook of that ID, in any account. */
export function withWebhook<T>(
  context: CliContext,
  config: Config,
  id: string,
  work: (database: Database, webhook: Webhook) => Promise<T>,
): Promise<T> {
  return withAccounts(context, config, async database =>
    work(database, await getWebhook({ database }, { webhookId: id, accountId: null })),
  )
}

export const isDeliveryId = (text: string) => text.startsWith('dlv_')
