import { EvApiError } from '../../client/error.ts'
import { EvError } from '../../platform/error.ts'
import { isLoopback, plainIp } from '../../platform/ip.ts'
import { isRefusal } from '../../platform/operation-error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { parseUrl } from '../../platform/url.ts'
import { EVENT_KINDS } from '../../webhooks/event-types.ts'
import type { DataFlags } from '../data-command.ts'
import { parseInteger, parsePort } from '../flag-values.ts'
import type { WebhookOwner, WebhooksBackend } from '../remote/webhooks.ts'

export type ListenFlags = DataFlags & {
  readonly port?: string
  readonly host?: string
  readonly status?: string
  readonly register?: boolean
  readonly publicUrl?: string
}

/** The validated options of a listener. */
export type ListenOptions = {
  readonly host: string
  readonly port: number
  /** Host in the URL of the listener. */
  readonly urlHost: string
  /** URL of the webhook, as of a tunnel; null for the URL of the listener. */
  readonly publicUrl: string | null
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
    host,
    dialled: isLocal ? LOOPBACK : host,
    urlHost: isLocal ? 'localhost' : host.includes(':') ? `[${host}]` : host,
    publicUrl: flags.publicUrl === undefined ? null : parsePublicUrl(flags.publicUrl),
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

function parsePublicUrl(value: string): string {
  const url = parseUrl(value)
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href
  throw new EvError(
    'usage',
    `--public-url is "${sanitizeText(value, 100)}"; it takes a URL such as https://tunnel.example.com/hook, which forwards to the listener.`,
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

/** Formats the URL of the listener, how the service reaches it, and how to test it. */
export function listenBanner({ url, options, registration }: Banner): string {
  const { publicUrl } = options
  const lines = [
    `Listening on ${url} ${eventSource(registration)}`,
    ...(publicUrl === null ? [] : [`The service sends events to ${sanitizeText(publicUrl)}`]),
    // A service has checked that it may send to this URL.
    ...(publicUrl === null && registration?.service == null ? neededSetting(options) : []),
    ...(registration === null ? [] : testHint(registration, options)),
  ]
  return `${lines.join('\n')}\n\n`
}

const neededSetting = ({ dialled }: ListenOptions) => [
  'To reach it, start "ev serve" with',
  `  --webhook-allow-ranges ${dialled}`,
  'or set this in its environment:',
  `  EV_WEBHOOK_ALLOW_RANGES=${dialled}`,
]

function eventSource(registration: Registration | null): string {
  if (registration === null) {
    return 'for events signed with the secret in EV_WEBHOOK_SECRET. Press Ctrl-C to stop.'
  }
  const { id, owner, service } = registration
  const place = service === null ? '' : ` at ${sanitizeText(service)}`
  return `for all events of account "${sanitizeText(owner.name)}"${place}. Press Ctrl-C to stop and delete the webhook ${id}.`
}

function testHint({ id, service }: Registration, { dialled, publicUrl }: ListenOptions): string[] {
  const ev = service === null ? 'ev' : `ev --url ${sanitizeText(service)}`
  const setting = service === null && publicUrl === null ? ` --webhook-allow-ranges ${dialled}` : ''
  return [
    'To send a test event:',
    `  ${ev} webhooks test ${id}${setting}`,
    `If an event does not arrive, run "${ev} webhooks deliveries ${id}".`,
  ]
}

/** The temporary webhook of a listener. */
type Registration = {
  readonly id: string
  readonly owner: WebhookOwner
  readonly secret: string
  /** URL of the service that has the webhook; null for the database of this machine. */
  readonly service: string | null
}

type RegisterInput = {
  /** URL of the listener. */
  readonly url: string
  readonly publicUrl: string | null
  readonly account: string | undefined
}

/**
 * Creates a webhook for all events of the account, and deletes those that killed listeners left.
 */
export async function register(
  backend: WebhooksBackend,
  { url, publicUrl, account }: RegisterInput,
): Promise<Registration> {
  const owner = await backend.owner(account)
  await deleteLeftovers(backend, owner, publicUrl ?? url)
  const input = {
    url: publicUrl ?? url,
    description: DESCRIPTION,
    events: [...EVENT_KINDS],
    active: true,
  }
  try {
    // "ev serve" may have a setting for the URL of the listener that this process has not.
    const isAnyUrl = publicUrl === null
    const { webhook, secret } = await backend.create(input, owner.id, { isAnyUrl })
    return { id: webhook.id, owner, secret, service: backend.isRemote ? backend.location : null }
  } catch (error) {
    if (!(publicUrl === null && isUrlRejected(error))) throw error
    const sentence = `${sanitizeText(error.message, 500)} Or set --public-url to an https:// URL that forwards to the listener, such as that of a tunnel.`
    throw new EvError('usage', sentence, { cause: error })
  }
}

const isUrlRejected = (error: unknown): error is EvApiError =>
  error instanceof EvApiError && error.code === 'invalid_webhook_url'

/** Deletes the webhook of the listener if it still exists. */
export const unregister = (backend: WebhooksBackend, { id }: Registration): Promise<void> =>
  deleteIfThere(backend, id)

/** Marks webhooks of listeners, so that leftovers can be recognized. */
const DESCRIPTION = 'Made by ev webhooks listen, which removes it'

async function deleteLeftovers(
  backend: WebhooksBackend,
  owner: WebhookOwner,
  url: string,
): Promise<void> {
  const left = (await backend.list(owner.id)).filter(
    webhook => webhook.url === url && webhook.description === DESCRIPTION,
  )
  for (const { id } of left) await deleteIfThere(backend, id)
}

async function deleteIfThere(backend: WebhooksBackend, id: string): Promise<void> {
  try {
    await backend.delete(id)
  } catch (error) {
    const isGone = error instanceof EvApiError && error.code === 'not_found'
    if (!isGone && !isRefusal(error, 'webhook_not_found')) throw error
  }
}
