import { addAuditEntry } from '../audit.ts'
import type { Trx } from '../db/database.ts'
import { newSigningSecret, newWebhookId } from './endpoint.ts'
import { createWebhook } from './endpoint-store.ts'
import { checkWebhookUrl, type SecretServices, type UrlServices } from './endpoints.ts'
import type { EventKind } from './event-types.ts'

/** An endpoint for the events of one job, which is stored with the job and deleted with it. */
export type JobWebhook = {
  readonly id: string
  /** The signing secret. Only the caller gets it: the database stores it encrypted. */
  readonly secret: string
  insert(trx: Trx, jobId: string): Promise<void>
}

type JobWebhookInput = {
  readonly accountId: string
  readonly url: string
  readonly events: readonly EventKind[]
}

/** Prepares the endpoint of a job. Throws `webhook_url_rejected`. */
export async function newJobWebhook(
  services: UrlServices & SecretServices,
  { accountId, url, events }: JobWebhookInput,
): Promise<JobWebhook> {
  await checkWebhookUrl(services, url, 'webhook_url')
  const { random, secretBox, clock } = services
  const id = newWebhookId(random)
  const { text: secret, hint: secretHint } = newSigningSecret(random)
  return {
    id,
    secret,
    async insert(trx, jobId) {
      await createWebhook(trx, {
        id,
        accountId,
        url,
        events,
        active: true,
        description: null,
        jobId,
        secret: secretBox.encrypt(secret),
        secretHint,
        createdAt: clock.now(),
      })
      const target = { id, name: new URL(url).host }
      await addAuditEntry(trx, services, { action: 'webhook.created', accountId, target })
    },
  }
}
