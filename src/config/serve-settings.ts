import { DAY } from '../base/clock.ts'
import { passwordSetting, type Setting, secretSetting, setting } from './setting.ts'
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

/** What only the service uses. */
export type ServeSettings = {
  /** HOST:PORT */
  readonly listen: string
  readonly tlsCert: string | null
  readonly tlsKey: string | null
  /** Whether plain HTTP may be spoken with others than this machine. */
  readonly insecureHttp: boolean
  /** Proxies whose X-Forwarded-For is believed. */
  readonly trustProxy: readonly string[]
  /** Without a slash at its end; null: made from `listen`. */
  readonly baseUrl: string | null
  /** False: lists are left to other processes that share the database. */
  readonly work: boolean
  /** False: nobody is held to a rate; credits still count. */
  readonly limits: boolean
  /** Plan of the first account. */
  readonly plan: string
  readonly webhookAllowRanges: readonly string[]
  /** PEM of an authority whose certificates receivers of webhooks may have, beside the well-known ones. */
  readonly webhookCaFile: string | null
  /** `smtp://` or `smtps://` URL of the server that notices are handed to; null: they are lines of the log. */
  readonly notifySmtp: string | null
  readonly notifyFrom: string | null
  /** Who is told where an account has no address of its own. */
  readonly notifyTo: string | null
  /** HOST:PORT of a port of their own for health and metrics. */
  readonly metricsListen: string | null
  readonly metricsToken: string | null
  /** How long a verification stays in the history. */
  readonly keepHistoryMs: number
  /** Free bytes on the disk of the data directory below which no new list is taken; 0: any will do. */
  readonly minFreeDisk: number
  /** Seals what must be read again; null: made in the data directory. */
  readonly secret: string | null
  readonly secretFile: string | null
}

/** Settings of `ev serve`, in the order in which its help shows them. */
export const SERVE_SETTINGS: readonly Setting[] = [
  setting('listen', '--listen HOST:PORT', 'where to listen', endpoint, '127.0.0.1:8080'),
  setting('tlsCert', '--tls-cert F', 'certificate and its chain, PEM', text, null),
  setting('tlsKey', '--tls-key F', 'its private key, PEM', text, null),
  setting('insecureHttp', '--insecure-http', 'plain HTTP beyond this machine', onOff, false),
  setting(
    'trustProxy',
    '--trust-proxy CIDR,…',
    'proxies before us that speak TLS with clients',
    ranges,
    [],
  ),
  setting(
    'baseUrl',
    '--base-url URL',
    'our address for clients (default: from --listen)',
    baseUrl,
    null,
  ),
  setting('work', '--work on|off', 'work on lists here, too; off: workers do it', onOff, true),
  setting('limits', '--limits on|off', 'rate limits', onOff, true),
  setting('plan', '--plan NAME', 'plan of the first account', word, 'enterprise'),
  setting(
    'webhookAllowRanges',
    '--webhook-allow-ranges CIDR,…',
    'non-public addresses that webhooks may name',
    ranges,
    [],
  ),
  setting(
    'webhookCaFile',
    '--webhook-ca-file F',
    'authority that receivers of webhooks may be certified by, PEM',
    text,
    null,
  ),
  passwordSetting(
    'notifySmtp',
    '--notify-smtp URL',
    'mail server for notices, smtp://host (default: the log)',
    smtpUrl,
    null,
  ),
  setting('notifyFrom', '--notify-from ADDRESS', 'sender of notices', mailbox, null),
  setting(
    'notifyTo',
    '--notify-to ADDRESS',
    'who gets notices of accounts without an address',
    mailbox,
    null,
  ),
  setting(
    'metricsListen',
    '--metrics-listen HOST:PORT',
    'own port for health and metrics, plain HTTP',
    endpoint,
    null,
  ),
  secretSetting(
    'metricsToken',
    '--metrics-token T',
    'bearer token of /metrics (default: loopback only)',
    secret,
    null,
  ),
  setting('keepHistoryMs', '--keep-history D', 'days that the history is kept', days, 90 * DAY),
  // A list of a million rows takes about as much before its results: those of accepted lists still have room.
  setting(
    'minFreeDisk',
    '--min-free-disk MB',
    'with less free disk no new list is taken',
    megabytes,
    500_000_000,
  ),
  secretSetting('secret', '--secret S', 'seals what must be read again', secret, null),
  setting(
    'secretFile',
    '--secret-file F',
    'file of the secret that seals those of webhooks (default: made in the data directory)',
    text,
    null,
  ),
] as readonly Setting[]
