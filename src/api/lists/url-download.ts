import type { Context } from 'hono'
import { storeTemporary } from '../../jobs/import/multipart-form.ts'
import { FILE_BYTES_MAX, storeBytes, UploadFault } from '../../jobs/import/store-upload.ts'
import { getFileName } from '../../outbound/download.ts'
import { DownloadFault } from '../../outbound/download-fault.ts'
import { isS3Url, type S3Access } from '../../outbound/s3.ts'
import { SECOND } from '../../platform/clock.ts'
import { limitByAccount } from '../account-share.ts'
import type { ApiDeps } from '../api-deps.ts'
import { clientAborted, type Env } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import { type QueueDeps, readListOptions } from './queue.ts'
import { type FileOptions, type ListUpload, toApiError } from './upload.ts'

export type UrlDownloadDeps = Pick<ApiDeps, 'download' | 'random' | 'settings'> & QueueDeps

/** A list at a URL, with the options of a file. */
type UrlBody = FileOptions & {
  readonly url: string
  readonly s3?: S3Fields | undefined
}

type S3Fields = {
  readonly endpoint?: string | undefined
  readonly region: string
  readonly access_key_id: string
  readonly secret_access_key: string
  readonly session_token?: string | undefined
}

/** Time for a download: leaves half a minute of the two minutes that clients wait for a list. */
const DOWNLOAD_MS = 90 * SECOND
/** Downloads at the same time: bounds the disk and the network. */
export const DOWNLOADS_MAX = 8
/** Downloads of an account at the same time, so that slow servers do not block other accounts. */
export const ACCOUNT_DOWNLOADS_MAX = 2

/**
 * Returns a function that downloads the list of a request and calls `use` with it. The file is on
 * the disk until `use` has ended.
 */
export function listDownloads(service: UrlDownloadDeps) {
  const admit = limitByAccount({
    max: DOWNLOADS_MAX,
    accountMax: ACCOUNT_DOWNLOADS_MAX,
    what: 'lists are being downloaded',
    retryAfterS: RETRY_S,
  })
  const { dataDir } = service.settings
  return async <T>(
    c: Context<Env>,
    { url, s3, ...options }: UrlBody,
    use: (upload: ListUpload) => Promise<T>,
  ): Promise<T> => {
    // Invalid options are refused before the download.
    await readListOptions(c, service, options)
    const { signal } = c.req.raw
    const request = {
      url,
      s3: readAccess(url, s3),
      signal,
      bytesMax: FILE_BYTES_MAX,
      totalMs: DOWNLOAD_MS,
    }
    const release = admit(c.get('caller').account.id)
    const { path, discard } = await storeTemporary(dataDir, service.random, async path => {
      await service.download(request, bytes => storeBytes(bytes, path, () => {}))
      return {}
    })
      .catch(error => {
        throw signal.aborted ? clientAborted() : toDownloadError(error)
      })
      .finally(release)
    try {
      return await use({ path, fileName: getFileName(url), options })
    } finally {
      await discard()
    }
  }
}

function readAccess(url: string, s3: S3Fields | undefined): S3Access | undefined {
  if (isS3Url(url) && s3 === undefined) {
    throw requestError('s3_access_missing')
  }
  if (s3 === undefined) return undefined
  if (!isS3Url(url)) {
    throw requestError('s3_url_required')
  }
  return {
    endpoint: s3.endpoint,
    region: s3.region,
    accessKeyId: s3.access_key_id,
    secretAccessKey: s3.secret_access_key,
    sessionToken: s3.session_token,
  }
}

/** Most lists arrive within seconds. */
const RETRY_S = 5

function toDownloadError(error: unknown): unknown {
  if (error instanceof UploadFault) return toApiError(error)
  if (!(error instanceof DownloadFault)) return error
  const { kind, message } = error
  return kind === 'too_large'
    ? requestError('file_too_large', { fault: message })
    : requestError('list_not_fetched', { kind, fault: message })
}
