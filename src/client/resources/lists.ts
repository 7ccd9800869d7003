import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
  BatchRequest,
  BulkRequest,
  FileDryRun,
  InstantBulk,
  JobStatus,
  QueuedBatch,
  QueuedBulk,
  QueuedFile,
  UrlRequest,
} from '../types.ts'

export type FileOptions = CreateOptions & {
  /** File name. Default: the name of a File. */
  readonly filename?: string | undefined
  /** Address column, by name or number from 1. Default: detected. */
  readonly column?: string | number | undefined
  /** Sheet of a workbook, by name. Default: the first visible one. */
  readonly sheet?: string | undefined
  /** Whether the first row is a header. Default: detected. */
  readonly header?: boolean | undefined
  /** True keeps recent results of other services that the file has in its columns. */
  readonly keep_external?: boolean | undefined
  /** When the file with these results was exported, such as `2026-03-01`. */
  readonly external_date?: string | undefined
  /** Label of the encoding, such as `windows-1252`. Default: detected. */
  readonly encoding?: string | undefined
  /**
   * True verifies every address of a row, each as a separate row; false verifies one. Default: true
   * for lists without a header.
   */
  readonly all_addresses?: boolean | undefined
  /** Name of the job. */
  readonly name?: string | undefined
  readonly deduplicate?: boolean | undefined
  /** False skips the SMTP check. */
  readonly check_smtp?: boolean | undefined
  /** True bypasses the result cache. */
  readonly force_refresh?: boolean | undefined
  /** Your key-value pairs, returned with the job and in its events. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** True emails the address of the account when the list is finished. */
  readonly notify?: boolean | undefined
  /** URL that gets the events of this job. The response has the secret that signs them. */
  readonly webhook_url?: string | undefined
}

/** Input of a list. A stream is read into memory first, so that the request can be retried. */
export type ListFile = Blob | string | Uint8Array | ReadableStream<Uint8Array>

export type Lists = {
  /** Verifies up to 10 addresses immediately (`instant`), or up to 10,000 as a job. */
  bulk(
    list: readonly string[] | BulkRequest,
    options?: CreateOptions,
  ): Promise<InstantBulk | QueuedBulk>
  /** Returns the status of a job, with its results when it has ended. */
  bulkStatus(jobId: string, options?: StatusOptions): Promise<JobStatus>
  /** Verifies up to 50,000 addresses as a job. */
  batch(list: readonly string[] | BatchRequest, options?: CreateOptions): Promise<QueuedBatch>
  /** Verifies a file: CSV, TSV, XLSX, or one address per line. The download keeps its columns. */
  file(list: ListFile, options?: FileOptions): Promise<QueuedFile>
  /**
   * Verifies a file that the service downloads, from an https URL, or with `s3` from an
   * s3://bucket/key URL. The service does not store the credentials.
   */
  url(url: string, options?: UrlOptions): Promise<QueuedFile>
  /** Analyzes a file at a URL, like `preview`. */
  previewUrl(url: string, options?: PreviewUrlOptions): Promise<FileDryRun>
  /** Analyzes a file: columns and row counts. Stores, charges and verifies nothing. */
  preview(list: ListFile, options?: PreviewOptions): Promise<FileDryRun>
}

/** Options of a list at a URL: fields of the request. */
export type UrlOptions = CreateOptions & Omit<UrlRequest, 'url' | 'dry_run'>

export type PreviewOptions = Omit<FileOptions, 'idempotencyKey' | 'name'>

export type PreviewUrlOptions = Omit<UrlOptions, 'idempotencyKey' | 'name'>

export type StatusOptions = CallOptions & {
  /** Includes finished rows before the job is completed. */
  readonly partial?: boolean | undefined
  /** Long polling: seconds to wait for progress before the response. */
  readonly wait?: number | undefined
}

export function createListsResource({ json }: Connection): Lists {
  return {
    bulk: (list, options) => json(create('/v1/verify/bulk', toBody(list)), options),
    bulkStatus: (jobId, { partial, wait, ...options } = {}) =>
      json(
        {
          method: 'GET',
          path: `/v1/verify/bulk/status/${encodeId(jobId)}`,
          query: { partial, wait },
          waitMs: (wait ?? 0) * 1_000,
        },
        options,
      ),
    batch: (list, options) => json(create('/v1/verify/batch', toBody(list)), options),
    file: async (list, options = {}) => {
      const { form, rest } = await buildForm(list, options)
      return json(create('/v1/verify/file', form), rest)
    },
    preview: async (list, options = {}) => {
      const { form, rest } = await buildForm(list, options, true)
      return json({ ...create('/v1/verify/file', form), creates: false }, rest)
    },
    url: (url, options = {}) => {
      const { body, rest } = splitUrlOptions(options)
      return json(create('/v1/verify/url', { url, ...body }), rest)
    },
    previewUrl: (url, options = {}) => {
      const { body, rest } = splitUrlOptions(options)
      const call = create('/v1/verify/url', { url, ...body, dry_run: true })
      return json({ ...call, creates: false }, rest)
    },
  }
}

/** Separates the fields of the request from the options of the call. */
function splitUrlOptions({ idempotencyKey, signal, timeoutMs, retries, ...body }: UrlOptions) {
  return { body, rest: { idempotencyKey, signal, timeoutMs, retries } }
}

const toBody = (list: readonly string[] | BulkRequest | BatchRequest) =>
  'map' in list ? { emails: list } : list

async function buildForm(list: ListFile, options: FileOptions, dryRun?: true) {
  const { filename, metadata, idempotencyKey, signal, timeoutMs, retries, ...more } = options
  const rest = { idempotencyKey, signal, timeoutMs, retries }
  const form = new FormData()
  const fields = { ...more, dry_run: dryRun, metadata: metadata && JSON.stringify(metadata) }
  // Fields go before the file, so that the service has them when the file arrives.
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(key, String(value))
  }
  form.append('file', await toBlob(list), filename ?? fileName(list))
  return { form, rest }
}

const create = (path: string, body: object) =>
  ({ method: 'POST', path, body, creates: true, timeoutMs: SEND_MS }) as const

function toBlob(list: ListFile): Blob | Promise<Blob> {
  if (list instanceof Blob) return list
  if (list instanceof ReadableStream) return new Response(list).blob()
  return new Blob([typeof list === 'string' ? list : Uint8Array.from(list)])
}

/** Some platforms have Blob, but no File class to test for. */
const fileName = (list: ListFile) =>
  list instanceof Blob && 'name' in list && typeof list.name === 'string' ? list.name : 'list.csv'

/**
 * The largest batch, 16 MB, takes this long at 1 Mbit/s. A download by the service takes up to 90
 * seconds.
 */
const SEND_MS = 120_000
