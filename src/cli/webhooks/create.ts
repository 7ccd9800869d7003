import { composeResolver } from '../../compose/engine.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { DESCRIPTION_LENGTH_MAX } from '../../webhooks/endpoint.ts'
import { createWebhook } from '../../webhooks/endpoints.ts'
import { EVENT_KINDS, type EventKind, isEventKind } from '../../webhooks/event.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import type { CliContext } from '../context.ts'
import { readConfig } from '../settings.ts'
import { newSecretObject, newSecretText, printJson } from './print.ts'
import { serviceSecretBox } from './service-secret-box.ts'

export type CreateFlags = {
  readonly url: string
  readonly events: string
  readonly description?: string
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
  }
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, flags.account)
    const secretBox = await serviceSecretBox(context, config, database)
    const { clock, random, externalDeps } = context
    const { resolver, close } = composeResolver(config, externalDeps?.resolver, clock)
    try {
      const services = { database, clock, random, secretBox, resolver, settings: config }
      const { webhook, secret } = await createWebhook(services, { ...input, accountId })
      if (flags.json) printJson(context, newSecretObject(webhook, secret))
      else context.stdout.write(newSecretText(webhook, secret))
      return 0
    } finally {
      close()
    }
  })
}

function parseEvents(value: string): EventKind[] {
  const all = [...new Set(value.split(',').map(one => one.trim()))]
  if (all.length === 1 && all[0] === '*') return [...EVENT_KINDS]
  if (all.every(isEventKind)) return all
  const wrong = all.find(one => !isEventKind(one)) ?? ''
  throw new EvError(
    'usage',
    `There is no event "${sanitizeText(wrong)}". Events: ${EVENT_KINDS.join(', ')}, or * for all.`,
  )
}

function parseDescription(value: string | undefined): string | null {
  const description = value?.trim() ?? null
  if (description === null || description.length <= DESCRIPTION_LENGTH_MAX) return description
  throw new EvError(
    'usage',
    `--description has ${description.length} characters; it takes up to ${DESCRIPTION_LENGTH_MAX}.`,
  )
}
