import type { CliContext } from '../context.ts'
import { type DataFlags, openBackend } from '../data-command.ts'
import { createRemoteWebhooks, type WebhooksBackend } from '../remote/webhooks.ts'
import { DATA_SETTINGS } from '../settings.ts'

/** Commands that encrypt or decrypt signing secrets need the service secret. */
export const SECRET_SETTINGS = ['secret', 'secretFile', ...DATA_SETTINGS] as const

/** Opens the webhooks of a service or of the database of this machine. */
export const openWebhooks = (context: CliContext, flags: DataFlags): Promise<WebhooksBackend> =>
  openBackend(context, flags, {
    remote: createRemoteWebhooks,
    loadLocal: async () => (await import('../local/webhooks.ts')).createLocalWebhooks,
  })

export const isDeliveryId = (text: string) => text.startsWith('dlv_')
