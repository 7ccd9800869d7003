import { createHmac } from 'node:crypto'
import type { WebhookRequest } from '../../src/webhooks/transport.ts'

/**
 * Whether the signature of Standard Webhooks is valid, without the check of the time by the package
 * `standardwebhooks`, which would reject the time of a fake clock.
 */
export function verify({ headers, body }: WebhookRequest, secret: string): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest('base64')
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${expected}`)
}
