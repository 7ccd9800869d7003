import { EvError } from '../../platform/error.ts'
import { plainIp } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import { isLoopback } from '../../webhooks/webhook-url.ts'
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

/** What is asked of a listener, checked. */
export type ListenOptions = {
  readonly host: string
  readonly port: number
  /** How it is called in a URL. */
  readonly urlHost: string
  /** The address that ev dials to reach it. */
  readonly dialled: string
  readonly status: number
  /** What to check with; null: with that of a webhook of its own. */
  readonly secrets: readonly string[] | null
  readonly isJson: boolean
}

export function toListenOptions(
  flags: ListenFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ListenOptions {
  const host = hostOf(flags.host ?? LOOPBACK)
  const isLocal = [LOOPBACK, ...ANY].includes(host)
  return {
    ...{ host, dialled: isLocal ? LOOPBACK : host },
    urlHost: isLocal ? 'localhost' : host.includes(':') ? `[${host}]` : host,
    port: numberOf('--port', flags.port ?? PORT, [0, 65_535]),
    status: numberOf('--status', flags.status ?? '200', [200, 599]),
    secrets: flags.register === false ? secretsOf(environment.EV_WEBHOOK_SECRET) : null,
    isJson: flags.json === true,
  }
}

const LOOPBACK = '127.0.0.1'
const ANY: readonly string[] = ['0.0.0.0', '::']
/** The next one after that of “ev serve”; always the same, so that an own webhook is known again. */
const PORT = '8081'

function hostOf(given: string): string {
  if (given === 'localhost') return LOOPBACK
  const ip = plainIp(given)
  if (ip !== null && (isLoopback(ip) || ANY.includes(ip))) return ip
  throw new EvError(
    'usage',
    `--host takes localhost, a loopback address such as 127.0.0.1, or 0.0.0.0 or :: for all addresses of this machine, not “${sanitizeText(given)}”: “ev serve” sends plain HTTP to loopback only.`,
  )
}

function numberOf(
  flag: string,
  given: string,
  [min, max]: readonly [min: number, max: number],
): number {
  const number = Number(given)
  if (/^\d+$/.test(given) && number >= min && number <= max) return number
  throw new EvError(
    'usage',
    `${flag} takes a whole number from ${min} to ${max}, not “${sanitizeText(given)}”.`,
  )
}

/** Several while one is being replaced, with commas between. */
function secretsOf(given: string | undefined): readonly string[] {
  const secrets = (given ?? '').split(',').map(one => one.trim())
  if (secrets.every(one => one !== '')) return secrets
  throw new EvError(
    'usage',
    '--no-register needs the secret of the webhook in the environment, to check signatures with: EV_WEBHOOK_SECRET=whsec_… (several with commas between).',
  )
}

type Banner = {
  readonly url: string
  readonly wish: ListenOptions
  /** Null: it made no webhook. */
  readonly registration: Registration | null
}

/** Says where events are taken, and what the service needs to bring them there. */
export function printBanner({ url, wish, registration }: Banner): string {
  const lines = [
    `Listening on ${url} ${whose(registration)}`,
    'To reach it, “ev serve” must be started with',
    `  --webhook-allow-ranges ${wish.dialled}`,
    'or with this in its environment:',
    `  EV_WEBHOOK_ALLOW_RANGES=${wish.dialled}`,
    ...(registration === null ? [] : tryIt(registration, wish)),
  ]
  return `${lines.join('\n')}\n\n`
}

const whose = (registration: Registration | null) =>
  registration === null
    ? 'for events that are signed with the secret in EV_WEBHOOK_SECRET. Ctrl-C ends it.'
    : `for all events of the account “${sanitizeText(registration.account.name)}”. Ctrl-C ends it and removes its webhook, ${registration.id}.`

const tryIt = ({ id }: Registration, { dialled }: ListenOptions) => [
  'To try it:',
  `  ev webhooks test ${id} --webhook-allow-ranges ${dialled}`,
  `What does not arrive is told by “ev webhooks deliveries ${id}”.`,
]
