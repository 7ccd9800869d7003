import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config/settings.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { httpsPost } from '../webhooks/transport/https-transport.ts'
import type { WebhookTransport } from '../webhooks/transport/transport.ts'

export type PostDeps = {
  readonly clock: Clock
  readonly resolver: Resolver
  /** What `readAuthority` gave. */
  readonly ca: string | null
}

/** Requests to webhooks go to addresses that anybody may have, and to those that whoever runs the service lets in. */
export function composeTransport(
  config: Config,
  { clock, resolver, ca }: PostDeps,
): WebhookTransport {
  const mayDial = createIpPolicy(config.webhookAllowRanges)
  return httpsPost({ clock, resolver, mayDial, ...(ca === null ? {} : { ca }) })
}

/** Read once, at the start: one that is missing is told then, not with the first event. Null: none is set. */
export function readAuthority({ webhookCaFile: file }: Config): string | null {
  if (file === null) return null
  try {
    const pem = readFileSync(file, 'utf8')
    // Throws for what is no certificate.
    new X509Certificate(pem)
    return pem
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `The authority for receivers of webhooks cannot be read from ${file}: ${errorMessage(cause)}. Name a file with its certificate in PEM, or leave --webhook-ca-file out.`,
      { cause },
    )
  }
}
