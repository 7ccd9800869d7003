import { composeResolver } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { DESCRIPTION_LENGTH_MAX } from '../../webhooks/endpoint.ts'
import { createWebhook } from '../../webhooks/endpoints.ts'
import { EVENT_KINDS, type EventKind, isEventKind } from '../../webhooks/event.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import { auditServices, type CliContext } from '../context.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { newSecretObject, newSecretText } from './print.ts'
import { serviceSecretBox } from './service-secret-box.ts'

export type CreateFlags = {
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
export async function withWebhookServices<T>(
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
export function parseHeaders(values: readonly string[] = []): Record<string, string> {
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

export function parseEvents(value: string): EventKind[] {
  const all = [...new Set(value.split(',').map(one => one.trim()))]
  if (all.length === 1 && all[0] === '*') return [...EVENT_KINDS]
  if (all.every(isEventKind)) return all
  const wrong = all.find(one => !isEventKind(one)) ?? ''
  throw new EvError(
    'usage',
    `There is no event "${sanitizeText(wrong)}". Events: ${EVENT_KINDS.join(', ')}, or * for all.`,
  )
}

export function parseDescription(value: string | undefined): string | null {
  const description = value?.trim() ?? null
  if (description === null || description.length <= DESCRIPTION_LENGTH_MAX) return description
  throw new EvError(
    'usage',
    `--description has ${description.length} characters; it takes up to ${DESCRIPTION_LENGTH_MAX}.`,
  )
}
