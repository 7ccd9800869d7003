import { createHmac } from 'node:crypto'
import type { WebhookRequest } from '../../src/webhooks/transport/transport.ts'

/**
 * Whether a receiver that knows a secret takes a letter by Standard Webhooks; whatever the time is, which the package
 * `standardwebhooks` would hold against a clock that stands in the past.
 */
export function verify({ headers, body }: WebhookRequest, secret: string): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest('base64')
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${expected}`)
}
