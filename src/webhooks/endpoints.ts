import { type AuditAction, type AuditServices, addAuditEntry } from '../audit.ts'
import { type BeforeCommit, type Database, type Trx, write, writeWith } from '../db/database.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { validateUrl } from '../outbound/url-policy.ts'
import type { Clock } from '../platform/clock.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import { type CustomHeadersPatch, patchHeaders } from './custom-headers.ts'
import { newSigningSecret, newWebhookId, WEBHOOKS_MAX } from './endpoint.ts'
import {
  countWebhooks,
  deleteWebhook as deleteRow,
  findWebhook,
  createWebhook as insertRow,
  type NewWebhook,
  rotateSecret,
  updateWebhook as updateRow,
  type Webhook,
  type WebhookPatch,
} from './endpoint-store.ts'
import { webhookError } from './errors.ts'

/** Dependencies of the check of webhook URLs. */
export type UrlServices = {
  readonly resolver: Resolver
  readonly settings: { readonly webhookAllowRanges: readonly string[] }
}

export type SecretServices = AuditServices & {
  readonly database: Database
  /** Encrypts signing secrets. Its key must be that of the sending service. */
  readonly secretBox: SecretBox
}

export type ChangeServices = {
  readonly database: Database
  readonly clock: Clock
  /** Woken when a delivery became due; without it the service notices within half a second. */
  readonly deliveries?: { wake(): void }
}

export type WebhookTarget = {
  readonly webhookId: string
  /** Null for a webhook of any account, as the admin may address. */
  readonly accountId: string | null
}

/** Returns a webhook. Throws `webhook_not_found`, also for a webhook of another account. */
export async function getWebhook(
  { database }: { readonly database: Database },
  { accountId, webhookId: id }: WebhookTarget,
): Promise<Webhook> {
  return (await findWebhook(database, accountId, id)) ?? webhookNotFound(id)
}

type WebhookInput = Pick<NewWebhook, 'accountId' | 'url' | 'events' | 'active' | 'description'> & {
  /** Custom request headers by name; omitted: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export type WebhookWithSecret = {
  readonly webhook: Webhook
  /** The secret. Only the caller gets it: the database stores it encrypted. */
  readonly secret: string
}

/**
 * Creates an endpoint with a new secret. Throws `webhook_url_rejected`, `webhook_header_rejected`
 * and `webhook_limit_reached`.
 */
export async function createWebhook(
  services: SecretServices & UrlServices,
  input: WebhookInput,
  beforeCommit?: BeforeCommit<WebhookWithSecret>,
): Promise<WebhookWithSecret> {
  await checkWebhookUrl(services, input.url)
  return createUncheckedWebhook(services, input, beforeCommit)
}

/**
 * The same without the URL check, for a URL that ev creates itself, as `ev webhooks listen` does.
 */
export function createUncheckedWebhook(
  services: SecretServices,
  input: WebhookInput,
  beforeCommit?: BeforeCommit<WebhookWithSecret>,
): Promise<WebhookWithSecret> {
  const { database, clock, random, secretBox } = services
  const { text: secret, hint } = newSigningSecret(random)
  const row = {
    ...input,
    id: newWebhookId(random),
    description: blankToNull(input.description),
    headers: patchHeaders(secretBox, {}, input.headers ?? {}),
    secret: secretBox.encrypt(secret),
    secretHint: hint,
    createdAt: clock.now(),
  }
  const insert = async (trx: Parameters<typeof insertRow>[0]) => {
    const count = await countWebhooks(trx, input.accountId)
    if (count >= WEBHOOKS_MAX) throw webhookError('webhook_limit_reached', { count })
    const webhook = await insertRow(trx, row)
    await audit(trx, services, webhook, 'webhook.created')
    return { webhook, secret }
  }
  return writeWith(database, insert, beforeCommit)
}

type WebhookUpdate = WebhookTarget & {
  readonly change: Omit<WebhookPatch, 'now' | 'headers'> & {
    /** Changes of single headers. */
    readonly headers?: CustomHeadersPatch | undefined
  }
  /** Whether headers that are not in `change` are removed. */
  readonly replacesHeaders?: boolean
}

/**
 * Updates the fields in `change`. A changed URL is checked. An unchanged one is not, because a
 * temporary DNS failure must not block other changes. Throws `webhook_url_rejected` and
 * `webhook_header_rejected`.
 */
export async function updateWebhook(
  services: ChangeServices & UrlServices & SecretServices,
  { change, replacesHeaders = false, ...target }: WebhookUpdate,
): Promise<Webhook> {
  const webhook = await getWebhook(services, target)
  const { url = webhook.url, headers } = change
  if (url !== webhook.url) await checkWebhookUrl(services, url)
  // Otherwise a caller that may not read the headers could have them sent to another server.
  const isMoved = new URL(url).origin !== new URL(webhook.url).origin
  const areReset = replacesHeaders || isMoved
  const current = areReset ? {} : webhook.headers
  const patched = patchHeaders(services.secretBox, current, headers ?? {})
  return applyChange(services, webhook, { ...change, headers: patched }, Object.keys(change))
}

/** Enables or disables an endpoint. */
export async function setWebhookActive(
  services: ChangeServices & AuditServices,
  { active, ...target }: WebhookTarget & { readonly active: boolean },
): Promise<Webhook> {
  return applyChange(services, await getWebhook(services, target), { active }, ['active'])
}

export type RotatedSecret = WebhookWithSecret & {
  /** When the previous secret stops signing, epoch ms. */
  readonly previousExpiresAt: number
}

/**
 * Issues a new signing secret. The previous one also signs for `graceMs`, at most
 * `SECRET_GRACE_MAX_MS`.
 */
export async function rotateWebhookSecret(
  services: SecretServices,
  { graceMs, ...target }: WebhookTarget & { readonly graceMs: number },
  beforeCommit?: BeforeCommit<RotatedSecret>,
): Promise<RotatedSecret> {
  const { database, random, secretBox } = services
  const { id, accountId } = await getWebhook(services, target)
  const { text, hint } = newSigningSecret(random)
  const now = services.clock.now()
  const encrypted = { secret: secretBox.encrypt(text), secretHint: hint, graceMs, now }
  const rotate = async (trx: Parameters<typeof rotateSecret>[0]) => {
    const webhook = (await rotateSecret(trx, accountId, id, encrypted)) ?? webhookNotFound(id)
    await audit(trx, services, webhook, 'webhook.rotated')
    return { webhook, secret: text, previousExpiresAt: now + graceMs }
  }
  return writeWith(database, rotate, beforeCommit)
}

/** Deletes an endpoint and returns its last state. Nothing more is sent to it. */
export async function deleteWebhook(
  services: Pick<ChangeServices, 'database'> & AuditServices,
  target: WebhookTarget,
): Promise<Webhook> {
  const webhook = await getWebhook(services, target)
  const { id, accountId } = webhook
  const now = services.clock.now()
  return write(services.database, async trx => {
    if (!(await deleteRow(trx, accountId, id, now))) webhookNotFound(id)
    await audit(trx, services, webhook, 'webhook.deleted')
    return webhook
  })
}

/**
 * Throws `webhook_disabled`: a retry would be accepted but not sent while the webhook is disabled.
 */
export function requireActive({ id, active }: Webhook): void {
  if (!active) throw webhookError('webhook_disabled', { id })
}

async function applyChange(
  services: ChangeServices & AuditServices,
  { id, accountId }: Webhook,
  { description, ...change }: Omit<WebhookPatch, 'now'>,
  changed: readonly string[],
): Promise<Webhook> {
  const { database, clock, deliveries } = services
  const patch = {
    ...change,
    now: clock.now(),
    description: description === undefined ? undefined : blankToNull(description),
  }
  const webhook = await write(database, async trx => {
    const updated = (await updateRow(trx, accountId, id, patch)) ?? webhookNotFound(id)
    await audit(trx, services, updated, 'webhook.updated', changed)
    return updated
  })
  // Deliveries that waited while it was disabled are due now.
  if (change.active === true) deliveries?.wake()
  return webhook
}

/** Records a change of a webhook. Its name in the audit log is the host: a path may be secret. */
const audit = (
  trx: Trx,
  services: AuditServices,
  { id, accountId, url }: Webhook,
  action: AuditAction,
  changed?: readonly string[],
) => {
  const target = { id, name: new URL(url).host }
  return addAuditEntry(trx, services, { action, accountId, target, ...(changed && { changed }) })
}

/** Turns a blank description into null. */
const blankToNull = (description: string | null) => description?.trim() || null

function webhookNotFound(id: string): never {
  throw webhookError('webhook_not_found', { id })
}

/**
 * Validates a URL; throws `webhook_url_rejected`. The service checks it again when it sends, with its
 * own settings.
 */
export async function checkWebhookUrl(
  { resolver, settings }: UrlServices,
  url: string,
  field: 'url' | 'webhook_url' = 'url',
): Promise<void> {
  const findFault = (mayDial: (ip: string) => boolean) => validateUrl(url, { resolver, mayDial })
  const fault = await findFault(createIpPolicy(settings.webhookAllowRanges))
  if (fault === null) return
  const isPrivate = (await findFault(() => true)) === null
  throw webhookError('webhook_url_rejected', { field, url, fault, isPrivate })
}
