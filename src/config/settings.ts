import { DAY, SECOND } from '../platform/clock.ts'
import { ENGINE } from './engine-settings.ts'
import type { EgressConfig, IpLimitsConfig, OperatorConfig, PlanConfig } from './file-settings.ts'
import { type SettingSpec, type SettingValues, setting } from './setting.ts'
import {
  baseUrl,
  clientId,
  days,
  endpoint,
  integer,
  issuer,
  listenHost,
  MEGABYTE,
  mailbox,
  megabytes,
  onOff,
  ranges,
  secret,
  shortName,
  smtpUrl,
  text,
  word,
} from './values.ts'

/** Settings of the service alone, in the order of the help of `ev serve`. */
const SERVE = {
  /** With `host` and `port` applied. */
  listen: setting('--listen host:port', 'address to listen on', endpoint, '127.0.0.1:8080'),
  host: setting(
    '--host host',
    'host of --listen, such as 127.0.0.1; 0.0.0.0: all addresses',
    listenHost,
  ),
  port: setting('--port n', 'port of --listen; 0: any free port', integer(0, 65_535)),
  tlsCert: setting('--tls-cert file', 'certificate chain, in PEM format', text),
  tlsKey: setting('--tls-key file', 'private key of the certificate, in PEM format', text),
  insecureHttp: setting('--insecure-http', 'accept plain HTTP from other machines', onOff, false),
  /** Proxies whose X-Forwarded-For is trusted. */
  trustProxy: setting(
    '--trust-proxy range,…',
    'addresses of reverse proxies that terminate TLS',
    ranges,
    [],
  ),
  /** Without a trailing slash; null to derive it from `listen`. */
  baseUrl: setting('--base-url url', 'public URL of the service (default: from --listen)', baseUrl),
  work: setting(
    '--work on|off',
    'process jobs in this process; with off, only workers do',
    onOff,
    true,
  ),
  reacherApi: setting('--reacher-api', 'also serve the API of Reacher', onOff, false),
  /** False disables rate limits; credits still apply. */
  limits: setting('--limits on|off', 'enforce rate limits', onOff, true),
  plan: setting(
    '--plan name',
    'plan of the account that the first start creates',
    word,
    'enterprise',
  ),
  webhookAllowRanges: setting(
    '--webhook-allow-ranges range,…',
    'non-public addresses that webhooks may have',
    ranges,
    [],
  ),
  /** Apart from those of webhooks: customers read what is downloaded, but not what a webhook gets. */
  listAllowRanges: setting(
    '--list-allow-ranges range,…',
    'non-public addresses that list URLs may have',
    ranges,
    [],
  ),
  /** In addition to the root certificates of Node. */
  webhookCaFile: setting(
    '--webhook-ca-file file',
    'additional CA certificate for webhooks, list URLs and the identity provider, in PEM format',
    text,
  ),
  /** Null: people sign in with passwords only. */
  oidcIssuer: setting(
    '--oidc-issuer url',
    'issuer of the identity provider with which people may sign in',
    issuer,
  ),
  oidcClientId: setting('--oidc-client-id id', 'ID of ev at the identity provider', clientId),
  oidcClientSecret: {
    ...setting('--oidc-client-secret secret', 'secret of ev at the identity provider', secret),
    isSecret: true,
  },
  /** Null: the host of the issuer. */
  oidcName: setting(
    '--oidc-name name',
    'name of the identity provider on the sign-in page (default: its host)',
    shortName,
  ),
  /** Apart from those of lists and webhooks, which customers can reach. */
  oidcAllowRanges: setting(
    '--oidc-allow-ranges range,…',
    'non-public addresses that the identity provider may have',
    ranges,
    [],
  ),
  fastSandboxRetries: setting(
    '--fast-sandbox-retries',
    'retry failed webhook deliveries of the sandbox within seconds',
    onOff,
    false,
  ),
  /** Null: alerts are written to the log. */
  notifySmtp: {
    ...setting(
      '--notify-smtp url',
      'mail server for alerts, such as smtp://host (default: alerts go to the log)',
      smtpUrl,
    ),
    mayHoldPassword: true,
  },
  notifyFrom: setting('--notify-from address', 'sender of alerts', mailbox),
  notifyTo: setting(
    '--notify-to address',
    'recipient of alerts for accounts without an address',
    mailbox,
  ),
  metricsListen: setting(
    '--metrics-listen host:port',
    'separate port for health checks and metrics, over plain HTTP',
    endpoint,
  ),
  metricsToken: {
    ...setting(
      '--metrics-token token',
      'bearer token of /metrics (default: loopback only)',
      secret,
    ),
    isSecret: true,
  },
  /** Retention of verifications in the history. */
  keepHistoryMs: setting(
    '--keep-history days',
    'days to keep the history of verifications',
    days,
    90 * DAY,
  ),
  /**
   * Free bytes required on the disk of the data directory; 0 for no check. A list of a million rows
   * takes about 500 MB before its results, so the results of accepted lists still have space.
   */
  minFreeDisk: setting(
    '--min-free-disk MB',
    'free disk space that a new list needs',
    megabytes,
    500_000_000,
  ),
  /** Null: generated in the data directory. */
  secret: { ...setting('--secret secret', 'encrypts stored secrets', secret), isSecret: true },
  secretFile: setting(
    '--secret-file file',
    'file with the encryption secret (default: generated in the data directory)',
    text,
  ),
}

/**
 * The validated, frozen configuration. Precedence: flags, the environment, the config file, the
 * defaults.
 */
export type Config = Settings & {
  /** At least one; several only if the config file lists them. */
  readonly egresses: readonly EgressConfig[]
  /** Operator settings of the config file, by name. */
  readonly operators: Readonly<Record<string, OperatorConfig>>
  /** Plan settings of the config file, by name. */
  readonly plans: Readonly<Record<string, PlanConfig>>
  readonly ipLimits: IpLimitsConfig
}

/** Settings that are a single text: as a flag, an environment variable or a key of the file. */
export type Settings = SettingValues<typeof ENGINE & typeof SERVE>
export type ServeSettings = SettingValues<typeof SERVE>
export type LogLevel = Settings['log']

export type Setting = SettingSpec & { readonly key: keyof Settings }

const withKeys = (table: Readonly<Record<string, SettingSpec>>): readonly Setting[] =>
  Object.entries(table).map(([key, one]) => ({ ...one, key: key as keyof Settings }))

export const ENGINE_SETTINGS = withKeys(ENGINE)
export const SERVE_SETTINGS = withKeys(SERVE)
export const SETTINGS: readonly Setting[] = [...ENGINE_SETTINGS, ...SERVE_SETTINGS]

/** Converts a value from ms or bytes to the unit of its flag. */
export function toDisplayUnit<V>({ value: placeholder }: Setting, value: V): V | number {
  const unit = UNITS[placeholder ?? '']
  return unit === undefined || value === null ? value : Number(value) / unit
}

const UNITS: Readonly<Record<string, number>> = { seconds: SECOND, days: DAY, MB: MEGABYTE }

/** Whether a setting is the path of a file or directory. */
export const isPath = ({ value }: Setting) => value === 'file' || value === 'dir'
