import { DAY } from '../platform/clock.ts'
import { setting } from './setting.ts'
import {
  baseUrl,
  days,
  endpoint,
  mailbox,
  megabytes,
  onOff,
  ranges,
  secret,
  smtpUrl,
  text,
  word,
} from './values.ts'

/** What only the service uses, in the order in which the help of `ev serve` shows them. */
export const SERVE = {
  listen: setting('--listen HOST:PORT', 'where to listen', endpoint, '127.0.0.1:8080'),
  tlsCert: setting('--tls-cert F', 'certificate and its chain, PEM', text),
  tlsKey: setting('--tls-key F', 'its private key, PEM', text),
  insecureHttp: setting('--insecure-http', 'plain HTTP beyond this machine', onOff, false),
  /** Proxies whose X-Forwarded-For is believed. */
  trustProxy: setting(
    '--trust-proxy CIDR,…',
    'proxies before us that speak TLS with clients',
    ranges,
    [],
  ),
  /** Without a slash at its end; null: made from `listen`. */
  baseUrl: setting('--base-url URL', 'our address for clients (default: from --listen)', baseUrl),
  work: setting('--work on|off', 'work on lists here, too; off: workers do it', onOff, true),
  /** False: nobody is held to a rate; credits still count. */
  limits: setting('--limits on|off', 'rate limits', onOff, true),
  plan: setting('--plan NAME', 'plan of the first account', word, 'enterprise'),
  webhookAllowRanges: setting(
    '--webhook-allow-ranges CIDR,…',
    'non-public addresses that webhooks may name',
    ranges,
    [],
  ),
  /** Beside the well-known ones. */
  webhookCaFile: setting(
    '--webhook-ca-file F',
    'authority that receivers of webhooks may be certified by, PEM',
    text,
  ),
  /** Null: notices are lines of the log. */
  notifySmtp: {
    ...setting(
      '--notify-smtp URL',
      'mail server for notices, smtp://host (default: the log)',
      smtpUrl,
    ),
    mayHoldPassword: true,
  },
  notifyFrom: setting('--notify-from ADDRESS', 'sender of notices', mailbox),
  notifyTo: setting(
    '--notify-to ADDRESS',
    'who gets notices of accounts without an address',
    mailbox,
  ),
  metricsListen: setting(
    '--metrics-listen HOST:PORT',
    'own port for health and metrics, plain HTTP',
    endpoint,
  ),
  metricsToken: {
    ...setting('--metrics-token T', 'bearer token of /metrics (default: loopback only)', secret),
    isSecret: true,
  },
  /** How long a verification stays in the history. */
  keepHistoryMs: setting('--keep-history D', 'days that the history is kept', days, 90 * DAY),
  /**
   * Free bytes on the disk of the data directory; 0: any will do. A list of a million rows takes about as much before its
   * results: those of accepted lists still have room.
   */
  minFreeDisk: setting(
    '--min-free-disk MB',
    'with less free disk no new list is taken',
    megabytes,
    500_000_000,
  ),
  /** Null: made in the data directory. */
  secret: { ...setting('--secret S', 'seals what must be read again', secret), isSecret: true },
  secretFile: setting(
    '--secret-file F',
    'file of the secret that seals those of webhooks (default: made in the data directory)',
    text,
  ),
}
