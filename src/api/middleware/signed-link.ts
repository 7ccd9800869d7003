import { timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { type ApiKey, type FoundKey, findKeyById } from '../../accounts/key-store.ts'
import { type AuditServices, addAuditEntry } from '../../audit.ts'
import type { Trx } from '../../db/database.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { DeduplicateBy } from '../../jobs/import/import-counter.ts'
import { getListName, type Job } from '../../jobs/job-store.ts'
import { DAY, SECOND } from '../../platform/clock.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'

// A signed link is a request with the rights of a key, but without its secret. The signature covers
// the path, the whole query and the current secret of the key.

type Signer = { readonly secretBox: Pick<SecretBox, 'sign'> }

type Link = {
  readonly key: ApiKey
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Epoch ms; rounded down to seconds. */
  readonly expiresAt: number
}

/** Returns the path and query of a signed link. */
function signLink(signer: Signer, { key, path, query, expiresAt }: Link): string {
  const expires = String(Math.floor(expiresAt / SECOND))
  const target = `${path}?${new URLSearchParams({ ...query, key_id: key.id, expires })}`
  return `${target}${SIGNATURE}${sign(signer, key, target)}`
}

/**
 * Authenticates a signed link. The key is read at each request: a link ends when its key is revoked,
 * rotated or expired. Throws ApiError.
 */
export async function authenticateLink(c: Context<Env>, service: Service): Promise<FoundKey> {
  const { pathname, search } = new URL(c.req.url)
  const url = `${pathname}${search}`
  // All that follows is the signature: no parameter can be added behind it.
  const end = url.indexOf(SIGNATURE)
  const [target, signature] = [url.slice(0, end), url.slice(end + SIGNATURE.length)]
  const found = await findKeyById(service.database, c.req.query('key_id') ?? '')
  if (found === null || !isEqual(signature, sign(service, found.key, target))) throw invalidLink()
  const now = service.clock.now()
  const expiresAt = Number(c.req.query('expires')) * SECOND
  if (!(now < expiresAt) || (found.key.expiresAt !== null && found.key.expiresAt <= now)) {
    throw new ApiError('key_expired', 'This link has expired. Create a new one.')
  }
  return found
}

const SIGNATURE = '&signature='

/** The hint is part of the newest secret, so that a rotation of the key ends its links. */
const sign = ({ secretBox }: Signer, { id, hint }: ApiKey, target: string) =>
  secretBox.sign(`link 1 ${id} ${hint} ${target}`)

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const invalidLink = () =>
  new ApiError(
    'authentication_error',
    'This link is not valid: it was changed, or its API key was rotated or revoked. Create a new one.',
  )

/** Time to pass the link on; a link that leaks does no harm for long. */
const LIFETIME_MS = DAY

/** The file that a URL returns. */
type DownloadSelection = {
  readonly format: string
  /** All classes if left out. */
  readonly filter?: readonly Class[] | undefined
  readonly raw?: boolean | undefined
  readonly deduplicate?: boolean | DeduplicateBy | undefined
  /** Also of a job that is not completed. */
  readonly partial?: boolean | undefined
}

type DownloadUrlInput = DownloadSelection & {
  readonly job: Job
  /** The key whose rights the URL has. */
  readonly key: ApiKey
  /**
   * End of the grace period of the secret that asks for the URL, epoch ms; null for a current
   * secret. The URL does not outlive it.
   */
  readonly secretExpiresAt: number | null
}

type DownloadUrlServices = AuditServices & {
  readonly secretBox: Pick<SecretBox, 'sign'>
  /** Public URL of the service, without a trailing slash. */
  readonly baseUrl: string
}

/** Creates a URL of the results that needs no API key, and records that in the audit log. */
export async function createDownloadUrl(
  trx: Trx,
  services: DownloadUrlServices,
  { job, key, secretExpiresAt, format, filter, raw, deduplicate, partial }: DownloadUrlInput,
): Promise<{ readonly url: string; readonly expiresAt: number }> {
  const query = {
    format,
    ...(filter === undefined ? {} : { filter: filter.join(',') }),
    ...(raw ? { raw: 'true' } : {}),
    ...(deduplicate ? { deduplicate: String(deduplicate) } : {}),
    ...(partial ? { partial: 'true' } : {}),
  }
  const endsAt = Math.min(services.clock.now() + LIFETIME_MS, secretExpiresAt ?? Infinity)
  const expiresAt = Math.floor(endsAt / SECOND) * SECOND
  const path = `/v1/jobs/${job.id}/download`
  const url = services.baseUrl + signLink(services, { key, path, query, expiresAt })
  const target = { id: job.id, name: getListName(job) }
  const entry = { action: 'results.shared', accountId: key.accountId, target } as const
  await addAuditEntry(trx, services, entry)
  return { url, expiresAt }
}
