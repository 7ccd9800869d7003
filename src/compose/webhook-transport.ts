import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config/settings.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { createDownload, type Download } from '../outbound/download.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { createHttpsTransport } from '../webhooks/https-transport.ts'
import type { WebhookTransport } from '../webhooks/transport.ts'

type TransportDeps = {
  readonly clock: Clock
  readonly resolver: Resolver
  /** CA certificate from `readWebhookCa`. */
  readonly ca: string | null
}

/** Builds the webhook transport, which connects to public addresses and to the allowed ranges. */
export function composeTransport(
  config: Config,
  { clock, resolver, ca }: TransportDeps,
): WebhookTransport {
  const mayDial = createIpPolicy(config.webhookAllowRanges)
  return createHttpsTransport({ clock, resolver, mayDial, ...(ca === null ? {} : { ca }) })
}

/** Builds the download of lists, which connects to public addresses and to ranges of its own. */
export const composeDownload = (
  { listAllowRanges }: Config,
  { clock, resolver, ca }: TransportDeps,
): Download =>
  createDownload({
    clock,
    resolver,
    mayDial: createIpPolicy(listAllowRanges),
    ...(ca === null ? {} : { ca }),
  })

/**
 * Reads the additional CA certificate at startup, so that a missing file fails then and not with
 * the first event. Returns null if none is set.
 */
export function readWebhookCa({ webhookCaFile: file }: Config): string | null {
  if (file === null) return null
  try {
    const pem = readFileSync(file, 'utf8')
    // Throws if it is not a certificate.
    new X509Certificate(pem)
    return pem
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `The CA certificate for webhooks cannot be read from ${file}: ${errorMessage(cause)}. Set --webhook-ca-file to a PEM certificate, or omit it.`,
      { cause },
    )
  }
}
