import { isLoopback } from '../../outbound/url-policy.ts'
import { EvError } from '../../platform/error.ts'
import { plainIp } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import { parseInteger, parsePort } from '../integer-flag.ts'
import type { Registration } from './registration.ts'

export type ListenFlags = {
  readonly port?: string
  readonly host?: string
  readonly status?: string
  readonly register?: boolean
  readonly account?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** The validated options of a listener. */
export type ListenOptions = {
  readonly host: string
  readonly port: number
  /** Host in the URL of the webhook. */
  readonly urlHost: string
  /** IP address that the service connects to. */
  readonly dialled: string
  readonly status: number
  /** Secrets to verify with; null to create a webhook and use its secret. */
  readonly secrets: readonly string[] | null
  readonly isJson: boolean
}

export function toListenOptions(
  flags: ListenFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ListenOptions {
  const host = parseHost(flags.host ?? LOOPBACK)
  const isLocal = [LOOPBACK, ...ANY].includes(host)
  return {
    ...{ host, dialled: isLocal ? LOOPBACK : host },
    urlHost: isLocal ? 'localhost' : host.includes(':') ? `[${host}]` : host,
    port: parsePort('--port', flags.port ?? PORT),
    status: parseInteger('--status', flags.status ?? '200', [200, 599]),
    secrets: flags.register === false ? parseSecrets(environment.EV_WEBHOOK_SECRET) : null,
    isJson: flags.json === true,
  }
}

const LOOPBACK = '127.0.0.1'
const ANY: readonly string[] = ['0.0.0.0', '::']
/** The port after that of `ev serve`. It is fixed, so that leftover webhooks have the same URL. */
const PORT = '8081'

function parseHost(value: string): string {
  if (value === 'localhost') return LOOPBACK
  const ip = plainIp(value)
  if (ip !== null && (isLoopback(ip) || ANY.includes(ip))) return ip
  throw new EvError(
    'usage',
    `--host is "${sanitizeText(value)}"; it takes localhost, a loopback address such as 127.0.0.1, or 0.0.0.0 or :: for all addresses of this machine. "ev serve" sends plain HTTP to loopback addresses only.`,
  )
}

/** Parses a comma-separated list: during a rotation, two secrets are valid. */
function parseSecrets(value: string | undefined): readonly string[] {
  const secrets = (value ?? '').split(',').map(one => one.trim())
  if (secrets.every(one => one !== '')) return secrets
  throw new EvError(
    'usage',
    '--no-register needs the secret of the webhook in the environment: EV_WEBHOOK_SECRET=whsec_… (separate several with commas).',
  )
}

type Banner = {
  readonly url: string
  readonly options: ListenOptions
  /** Null if the listener created no webhook. */
  readonly registration: Registration | null
}

/** Formats the URL of the listener and the setting that the service needs to reach it. */
export function listenBanner({ url, options, registration }: Banner): string {
  const lines = [
    `Listening on ${url} ${eventSource(registration)}`,
    'To reach it, start "ev serve" with',
    `  --webhook-allow-ranges ${options.dialled}`,
    'or set this in its environment:',
    `  EV_WEBHOOK_ALLOW_RANGES=${options.dialled}`,
    ...(registration === null ? [] : testHint(registration, options)),
  ]
  return `${lines.join('\n')}\n\n`
}

const eventSource = (registration: Registration | null) =>
  registration === null
    ? 'for events signed with the secret in EV_WEBHOOK_SECRET. Press Ctrl-C to stop.'
    : `for all events of account "${sanitizeText(registration.account.name)}". Press Ctrl-C to stop and delete the webhook ${registration.id}.`

const testHint = ({ id }: Registration, { dialled }: ListenOptions) => [
  'To send a test event:',
  `  ev webhooks test ${id} --webhook-allow-ranges ${dialled}`,
  `If an event does not arrive, run "ev webhooks deliveries ${id}".`,
]
