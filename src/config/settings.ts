import { DAY, SECOND } from '../platform/clock.ts'
import type { EgressConfig } from './egresses.ts'
import { ENGINE } from './engine-settings.ts'
import type { OperatorConfig } from './operators.ts'
import type { IpLimitsConfig, PlanConfig } from './plans.ts'
import { type SettingSpec, type SettingValues, setting } from './setting.ts'
import {
  baseUrl,
  days,
  endpoint,
  MEGABYTE,
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
const SERVE = {
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

/** Everything that can be set, checked and frozen. Flags win over the environment, that over the file, that over the defaults. */
export type Config = Settings & {
  /** At least one; several only where the config file names them. */
  readonly egresses: readonly EgressConfig[]
  /** By the operator's name: what the config file says of it. */
  readonly operators: Readonly<Record<string, OperatorConfig>>
  /** By its name: what the config file says of a plan. */
  readonly plans: Readonly<Record<string, PlanConfig>>
  readonly ipLimits: IpLimitsConfig
}

/** What is one text at every door: a flag, a variable of the environment, a key of the file. */
export type Settings = SettingValues<typeof ENGINE & typeof SERVE>
export type ServeSettings = SettingValues<typeof SERVE>
export type LogLevel = Settings['log']

export type Setting = SettingSpec & { readonly key: keyof Settings }

const withKeys = (table: Readonly<Record<string, SettingSpec>>): readonly Setting[] =>
  Object.entries(table).map(([key, one]) => ({ ...one, key: key as keyof Settings }))

export const ENGINE_SETTINGS = withKeys(ENGINE)
export const SERVE_SETTINGS = withKeys(SERVE)
export const SETTINGS: readonly Setting[] = [...ENGINE_SETTINGS, ...SERVE_SETTINGS]

/** A value in the unit in which it is written: inside everything is milliseconds and bytes. */
export function inItsUnit<V>({ value: placeholder }: Setting, value: V): V | number {
  const unit = UNITS[placeholder ?? '']
  return unit === undefined || value === null ? value : Number(value) / unit
}

const UNITS: Readonly<Record<string, number>> = { S: SECOND, D: DAY, MB: MEGABYTE }

/** Whether it names a file or a folder. */
export const isPath = ({ value }: Setting) => value === 'F' || value === 'DIR'
