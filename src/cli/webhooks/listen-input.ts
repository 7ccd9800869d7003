import type { Account } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { EvError } from '../../platform/error.ts'
import { isLoopback, plainIp } from '../../platform/ip.ts'
import { isRefusal } from '../../platform/operation-error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { listWebhooks } from '../../webhooks/endpoint-store.ts'
import { createUncheckedWebhook, deleteWebhook } from '../../webhooks/endpoints.ts'
import { EVENT_KINDS } from '../../webhooks/event-types.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import { parseInteger, parsePort } from '../flag-values.ts'
import { withAccounts } from '../local/with-accounts.ts'
import { selectAccount } from '../select-account.ts'
import { serviceSecretBox } from '../service-secret.ts'

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
    host,
    dialled: isLocal ? LOOPBACK : host,
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

/** The temporary webhook of a listener. */
type Registration = {
  readonly id: string
  readonly account: Account
  readonly secret: string
}

/**
 * Creates a webhook for all events of the account, and deletes those that killed listeners left.
 */
export function register(
  context: CliContext,
  config: Config,
  { url, account }: { url: string; account: string | undefined },
): Promise<Registration> {
  return withAccounts(context, config, async (database, accounts) => {
    const chosen = selectAccount(accounts, account)
    await deleteLeftovers(context, database, chosen.id, url)
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { ...auditServices(context), database, secretBox }
    const { webhook, secret } = await createUncheckedWebhook(services, {
      accountId: chosen.id,
      url,
      description: DESCRIPTION,
      events: [...EVENT_KINDS],
      active: true,
    })
    return { id: webhook.id, account: chosen, secret }
  })
}

/** Deletes the webhook of the listener if it still exists. */
export function unregister(
  context: CliContext,
  config: Config,
  { id, account }: Pick<Registration, 'id' | 'account'>,
): Promise<void> {
  return withAccounts(context, config, async database => {
    await remove(context, database, account.id, id)
  })
}

/** Marks webhooks of listeners, so that leftovers can be recognized. */
const DESCRIPTION = 'Made by ev webhooks listen, which removes it'

async function deleteLeftovers(
  context: CliContext,
  database: Database,
  accountId: string,
  url: string,
): Promise<void> {
  const left = (await listWebhooks(database, accountId)).filter(
    webhook => webhook.url === url && webhook.description === DESCRIPTION,
  )
  for (const { id } of left) await remove(context, database, accountId, id)
}

async function remove(context: CliContext, database: Database, accountId: string, id: string) {
  try {
    await deleteWebhook({ ...auditServices(context), database }, { webhookId: id, accountId })
  } catch (error) {
    if (!isRefusal(error, 'webhook_not_found')) throw error
  }
}
