import type { CliContext } from '../context.ts'
import { createRemoteWebhooks, type WebhooksBackend } from '../remote/webhooks.ts'
import { connectService, type ServiceFlags } from '../service.ts'
import { DATA_SETTINGS, readConfig } from '../settings.ts'

/** Flags that several commands have. */
export type WebhookFlags = ServiceFlags & {
  readonly account?: string
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Commands that encrypt or decrypt signing secrets need the service secret. */
export const SECRET_SETTINGS = ['secret', 'secretFile', ...DATA_SETTINGS] as const

/** Opens the webhooks of a service or of the database of this machine. */
export async function openWebhooks(
  context: CliContext,
  flags: WebhookFlags,
): Promise<WebhooksBackend> {
  if (flags.service !== undefined) {
    return createRemoteWebhooks(flags.service.url, await connectService(flags.service))
  }
  const config = readConfig(context, flags)
  const { createLocalWebhooks } = await import('../local/webhooks.ts')
  return createLocalWebhooks(context, config)
}

export const isDeliveryId = (text: string) => text.startsWith('dlv_')
