import type { ApiKey } from '../accounts/key-store.ts'
import { signLink } from '../accounts/signed-link.ts'
import { type AuditServices, addAuditEntry } from '../audit.ts'
import type { Trx } from '../db/database.ts'
import type { Action } from '../engine/verdict/action.ts'
import type { Class } from '../engine/verdict/verdict.ts'
import type { Vocabulary } from '../formats/vocabulary/names.ts'
import { DAY, SECOND } from '../platform/clock.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { DeduplicateBy } from './import/import-counter.ts'
import { getListName, type Job } from './job-store.ts'

/** Time to pass the link on; a link that leaks does no harm for long. */
const LIFETIME_MS = DAY

/** The file that a URL returns. */
type DownloadSelection = {
  readonly format: string
  /** All classes if left out. */
  readonly filter?: readonly Class[] | undefined
  /** All actions if left out. */
  readonly action?: readonly Action[] | undefined
  readonly raw?: boolean | undefined
  readonly deduplicate?: boolean | DeduplicateBy | undefined
  readonly vocabulary?: Vocabulary | undefined
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
  {
    job,
    key,
    secretExpiresAt,
    format,
    filter,
    action,
    raw,
    deduplicate,
    vocabulary,
    partial,
  }: DownloadUrlInput,
): Promise<{ readonly url: string; readonly expiresAt: number }> {
  const query = {
    format,
    ...(filter === undefined ? {} : { filter: filter.join(',') }),
    ...(action === undefined ? {} : { action: action.join(',') }),
    ...(raw ? { raw: 'true' } : {}),
    ...(deduplicate ? { deduplicate: String(deduplicate) } : {}),
    ...(vocabulary === undefined ? {} : { vocabulary }),
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
